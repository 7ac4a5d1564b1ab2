"""One model's calls, sent as batches: gathered, submitted in windows, followed, collected.

It stands where the throttle's pool stands: `call` takes a request and returns its answer, a day later
perhaps. While it is open one task submits what was gathered, and one for each batch follows it to its end
(`batch_work`).

Invariants: a create follows a synced intent and happens once for it; what an unfinished create has come to is
looked up and not guessed; results are on disk before an answer of theirs goes to anybody.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from astra_async.asking.batches.batch_calls import Calls
from astra_async.asking.batches.batch_interface import is_certainly_none
from astra_async.asking.batches.batch_log import Intent, age_s, new_token
from astra_async.asking.batches.batch_work import LATEST_S, Stopped, Work
from astra_async.asking.batches.request_files import outcome_at, outcomes, storage, write_requests
from astra_async.asking.throttle import PoolState
from astra_async.asking.throttle.state import BatchState
from astra_async.errors import ProviderError
from astra_async.running.log import now_utc

if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from pathlib import Path

    from astra_async.asking.batches.batch_calls import Call
    from astra_async.asking.batches.batch_interface import BatchInterface
    from astra_async.asking.batches.batch_log import BatchLog
    from astra_async.asking.throttle import Budget, PoolEvent
    from astra_async.types import AnswerKey, Completion, ModelRequest, ModelSettings, Usage

_QUIET_S = 0.5  # nothing more was asked for so long, and what was gathered goes


class BatchPool:
    """Answers requests by batches; see the module.

    Args:
        settings: the model.
        interface: its provider's batches.
        log: of the run directory, shared by all models.
        answered: keys that the directory has an answer of: results of theirs are no news.
        price: US dollars for a usage, None where a price is unknown.
        budget: a ceiling, shared with other pools.
        on_event: is told of every batch; must not raise.
    """

    def __init__(  # noqa: PLR0913 - everything that a test must control is injected here
        self,
        settings: ModelSettings,
        interface: BatchInterface,
        log: BatchLog,
        *,
        answered: Container[AnswerKey],
        price: Callable[[Usage], float | None],
        budget: Budget | None = None,
        on_event: Callable[[PoolEvent], None] | None = None,
    ) -> None:
        self._answered = answered
        self._calls = Calls(settings, price, budget)
        self._work = Work(settings, interface, log, self._calls, on_event)
        self._more_comes: Callable[[], bool] = lambda: False
        self._stored: dict[AnswerKey, tuple[Path, int, int]] | None = None

    async def call(self, request: ModelRequest) -> Completion:
        """One answer, when its batch has brought it.

        Raises:
            PoolUnusable: stopped, or no request of this model can succeed; BudgetExhausted.
            ProviderError: the request was refused, or its batch came to an end without a result of it.
            StorageError: the log or the results cannot be written.
        """
        work = self._work
        if work.stopping.is_set():
            raise work.stopped()
        call = self._calls.enter(request)
        try:
            self._begin()
            if any(request.key in intent.keys for intent in work.log.open_of(work.name)):
                self._calls.reserve(call)
            elif not self._take_stored(call):
                work.gather(call)
            return await call.answer
        finally:
            self._calls.leave(call)

    def expect(self, more_comes: Callable[[], bool]) -> None:
        """Ask this before a batch of turns goes: whether something under way may bring further ones."""
        self._more_comes = more_comes

    def stop(self) -> None:
        """Submit nothing more, and wait for nothing; batches go on, and a create under way is recorded."""
        self._work.stopping.set()
        self._work.changed.set()
        self._work.fail_gathered(self._work.stopped())

    @property
    def state(self) -> PoolState:
        """The pool as it stands."""
        work, gathered = self._work, len(self._calls.gathered)
        return PoolState(
            model=work.name,
            waiting=gathered,
            held_by=(work.waits_for or None) if gathered else None,
            **self._calls.ledger.sums(),
            dead=None if work.dead is None else str(work.dead),
            batches=tuple(map(_state_of, work.log.open_of(work.name))),
        )

    async def close(self) -> None:
        """End what runs here; what is with the provider stays there."""
        await self._work.close()

    def _begin(self) -> None:
        """Follow what earlier processes left with the provider, once."""
        if self._stored is not None:
            return
        work, self._stored = self._work, {}
        for intent in work.log.intents.values():
            if intent.model == work.name and intent.is_collected:
                self._index(intent, self._stored)
        for intent in work.log.open_of(work.name):
            self._work.follow(intent)
        work.start(self._go_on(), self._calls.gathered.values, lasting=True)

    def _index(self, intent: Intent, stored: dict[AnswerKey, tuple[Path, int, int]]) -> None:
        """Where answers stand that were collected by a process that was killed before it recorded them."""
        work, path = self._work, self._work.log.results(intent)
        if not path.exists() or all(key in self._answered for key in intent.keys):
            return
        for offset, length, outcome in outcomes(path, work.interface.read, work.odd(intent)):
            key = intent.requests.get(outcome.custom_id)
            if key is not None and outcome.body is not None and key not in self._answered:
                stored[key] = path, offset, length

    def _take_stored(self, call: Call) -> bool:
        """An answer that lies here is taken; whatever else lies here is asked for once more."""
        work, place = self._work, (self._stored or {}).pop(call.request.key, None)
        if place is None:
            return False
        with suppress(ProviderError):
            outcome = outcome_at(*place, work.interface.read)
            self._calls.succeed(call, work.interface.answer(work.settings, outcome))
        return call.answer.done()

    # --- what was gathered goes into batches: as many as fit, each an intent on disk before it is created ---

    async def _go_on(self) -> None:
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
            if may_go and not (is_turn and self._more_comes()):
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
                await self._work.refused(intent, error)
                return
            self._work.emit(f"{intent.token}: whether it was created is unknown, it is looked for ({error})")
        else:
            await self._work.log.note("submitted", intent, batch=batch_id)
            self._work.emit(f"{batch_id}: submitted with {len(intent.requests)} requests ({intent.token})")
        self._work.follow(intent)


def _state_of(intent: Intent) -> BatchState:
    return BatchState(
        id=intent.batch_id,
        state=intent.state,
        requests=len(intent.requests),
        done=intent.done,
        age_s=max(0.0, age_s(intent)),
    )
