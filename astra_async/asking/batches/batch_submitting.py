"""What was gathered goes into batches: as many as fit, each an intent on disk before it is created."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from astra_async.asking.batches.batch_interface import is_certainly_none
from astra_async.asking.batches.batch_log import Intent, new_token
from astra_async.asking.batches.batch_work import LATEST_S, Stopped
from astra_async.asking.batches.request_files import storage, write_requests
from astra_async.errors import ProviderError
from astra_async.running.log import now_utc

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from astra_async.asking.batches.batch_calls import Call
    from astra_async.asking.batches.batch_following import Following
    from astra_async.asking.batches.batch_work import Work
    from astra_async.types import AnswerKey

_QUIET_S = 0.5  # nothing more was asked for so long, and what was gathered goes


class Submitting:
    """Submits for one pool.

    Attributes:
        more_comes: whether something that is under way may bring further requests of a turn.
    """

    def __init__(self, work: Work, following: Following) -> None:
        self.more_comes: Callable[[], bool] = lambda: False
        self._work = work
        self._following = following

    async def go_on(self) -> None:
        """Submit whatever is gathered, for as long as the pool is open. Raises Stopped, StorageError."""
        while True:
            await self._until_gathered()
            chunk = self._next_chunk()
            if chunk:
                await self._submit(chunk)
            else:
                await self._work.until_changed(LATEST_S)

    async def _until_gathered(self) -> None:
        """Until something may go and nothing more is to be expected soon.

        First answers are asked for all at once. Turns come one by one, while others are being tested.
        """
        while True:
            now = time.monotonic()
            is_quiet = now - self._work.calls.gathered_at >= _QUIET_S
            is_turn = any(key.turn for key in self._work.calls.gathered)
            may_go = self._work.calls.gathered and is_quiet and now >= self._work.held_until
            if may_go and not (is_turn and self.more_comes()):
                return
            await self._work.until_changed(_QUIET_S if self._work.calls.gathered else LATEST_S)

    def _next_chunk(self) -> list[Call]:
        """The first of what is gathered, all of one turn, as far as tokens and money allow."""
        chunk: list[Call] = []
        tokens, self._work.waits_for = 0.0, ""
        for call in [*self._work.calls.gathered.values()][: self._work.interface.most_requests]:
            if chunk and call.request.key.turn != chunk[0].request.key.turn:
                break
            tokens += self._work.calls.tokens(call)
            if not self._work.window.takes(tokens, first=not chunk):
                self._work.waits_for = "room among the provider's enqueued tokens"
                break
            if not self._afford(call, first=not chunk):
                break
            self._work.calls.reserve(call)
            chunk.append(call)
        return chunk

    def _afford(self, call: Call, *, first: bool) -> bool:
        budget, ledger = self._work.calls.budget, self._work.calls.ledger
        worst_usd = ledger.worst_usd(call.request)
        fit = budget.fits(worst_usd)
        if fit == "never" and first:
            self._work.die(ledger.exhausted(worst_usd))
        elif fit == "later":
            self._work.waits_for = "budget"
            budget.wake_on_settlement(self._work.changed.set)
        return fit == "now"

    async def _submit(self, chunk: list[Call]) -> None:
        """One batch of the chunk, or of the first of it where all do not fit into one."""
        token = new_token(self._work.log.run_id)
        path = self._work.log.folder / f"{token}.requests"
        ids = self._work.log.new_ids(call.request.key for call in chunk)
        named = [*zip(ids, (call.request for call in chunk), strict=True)]
        try:
            written = await asyncio.to_thread(write_requests, path, self._work.interface, named)
            for call in chunk[written:]:
                self._work.calls.settle(call, 0.0)
            file = await self._work.patiently(
                lambda: self._work.interface.upload(path, token), refusals_s=0.0
            )
            if self._work.stopping.is_set():
                raise Stopped
            await self._create(
                path, self._intent(token, chunk[:written], dict([*ids.items()][:written]), file)
            )
        finally:
            with storage(path):
                path.unlink(missing_ok=True)

    def _intent(self, token: str, chunk: list[Call], ids: dict[str, AnswerKey], file: str) -> Intent:
        most_usd = sum(call.reserved_usd or 0.0 for call in chunk)
        return Intent(
            token=token,
            model=self._work.name,
            at=now_utc(),
            requests=ids,
            file=file,
            tokens=round(sum(map(self._work.calls.tokens, chunk))),
            most_usd=most_usd or None,
        )

    async def _create(self, path: Path, intent: Intent) -> None:
        """The one request that costs; after an answer that tells nothing the batch is looked for."""
        await self._work.log.intend(intent)
        for key in intent.keys:  # from here on they are the batch's
            self._work.calls.gathered.pop(key, None)
        try:
            batch_id = await self._work.interface.create(path, intent)
        except ProviderError as error:
            if is_certainly_none(error):
                await self._following.refused(intent, error)
                return
            self._work.emit(f"{intent.token}: whether it was created is unknown, it is looked for ({error})")
        else:
            await self._work.log.submitted(intent, batch_id)
            self._work.emit(f"{batch_id}: submitted with {len(intent.requests)} requests ({intent.token})")
        self._following.follow(intent)
