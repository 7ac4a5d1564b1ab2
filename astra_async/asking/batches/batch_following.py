"""One batch from when it may exist to when its results were handed out: found, looked at, collected."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from astra_async.asking.batches.batch_answers import answer_of
from astra_async.asking.batches.batch_interface import Gone
from astra_async.asking.batches.batch_log import age_s
from astra_async.asking.batches.batch_work import LATEST_S, PASSING, SOONEST_S
from astra_async.asking.batches.enqueued import is_too_much
from astra_async.asking.batches.request_files import keep, outcomes, storage
from astra_async.errors import PoolUnusable, ProviderError, TruncatedStream

if TYPE_CHECKING:
    from astra_async.asking.batches.batch_calls import Call
    from astra_async.asking.batches.batch_interface import Outcome, Standing
    from astra_async.asking.batches.batch_log import Intent
    from astra_async.asking.batches.batch_work import Work

_TRIES = 3  # of a request that the provider itself failed at; two where it was paid for
_PAID_TRIES = 2
_SHARE = 0.05  # of a batch's age: how long until it is looked at again


class Following:
    """Follows the batches of one pool."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def follow(self, intent: Intent) -> None:
        """Begin; its calls hear of its end."""
        self._work.window.enter(intent)
        self._work.start(self._to_its_end(intent), lambda: self._work.calls.inside(intent))

    async def _to_its_end(self, intent: Intent) -> None:
        try:
            if not intent.batch_id and not await self._is_found(intent):
                await self._nothing_came(intent)
                return
            standing, was_ended = await self._ended(intent)
            if standing.failure is not None:
                await self.refused(intent, self._work.interface.control.meaning(standing.failure))
                return
            await self._collect(intent, standing)
        except Gone as error:
            raise ProviderError(self._gone(intent, error), status=error.status) from error
        await self._hand_out(intent, standing, again=not was_ended)

    async def _nothing_came(self, intent: Intent) -> None:
        await self._work.log.refused(intent, "no batch came of it")
        self._work.emit(f"{intent.token}: no batch came of it, its requests are sent now")
        self._let_go(intent)
        for call in self._work.calls.inside(intent):
            self._work.gather(call)

    def _let_go(self, intent: Intent) -> None:
        """Its tokens are the next batch's."""
        self._work.window.leave(intent)
        self._work.held_until = 0.0
        self._work.changed.set()

    async def _is_found(self, intent: Intent) -> bool:
        """Whether a batch came of the intent: until that is certain, nothing of it is sent.

        No clock is asked how long ago the create was: this process waits as long as one may take to be seen.
        """
        began, pause_s = time.monotonic(), SOONEST_S
        while True:
            known = frozenset(each.batch_id for each in self._work.log.intents.values() if each.batch_id)
            found = await self._work.patiently(lambda known=known: self._work.interface.find(intent, known))  # type: ignore[misc]
            if found.batch_id:
                await self._work.log.submitted(intent, found.batch_id)
                self._work.emit(f"{found.batch_id}: found again, it was created ({intent.token})")
                return True
            if not found.is_undecided and time.monotonic() - began >= self._work.settings.batch_settled_s:
                return False
            await self._work.pause(pause_s)
            pause_s = min(LATEST_S, 1.5 * pause_s)

    async def _ended(self, intent: Intent) -> tuple[Standing, bool]:
        """How it has ended, and whether that was somebody's will since this process first looked."""
        first: Standing | None = None
        while True:
            standing = await self._work.patiently(lambda: self._work.interface.look(intent.batch_id))
            first = first or standing
            if (standing.state, standing.done) != (intent.state, intent.done):
                await self._work.log.state(intent, standing.state, standing.done)
            if standing.has_ended:
                self._work.emit(f"{intent.batch_id}: ended, {standing.state}")
                return standing, standing.was_cancelled and not first.was_cancelled
            await self._work.pause(min(LATEST_S, max(SOONEST_S, _SHARE * age_s(intent))))

    async def _collect(self, intent: Intent, standing: Standing) -> None:
        """Its results, on disk under the name by which they are believed."""
        path = self._work.log.results(intent)
        draft = path.with_suffix(".draft")

        async def fetch() -> None:
            with storage(draft):
                draft.parent.mkdir(mode=0o700, exist_ok=True)
                draft.write_bytes(b"")
                await self._work.interface.fetch(standing, draft)

        await self._work.patiently(fetch)
        await asyncio.to_thread(keep, draft, path)
        await self._work.log.collected(intent)
        self._let_go(intent)

    async def _hand_out(self, intent: Intent, standing: Standing, *, again: bool) -> None:
        """Each call gets its result; the first answer to a request counts, whatever else is there."""
        for _, _, outcome in outcomes(
            self._work.log.results(intent), self._work.interface.read, self._work.odd(intent)
        ):
            key = intent.requests.get(outcome.custom_id)
            call = self._work.calls.waiting(key) if key else None
            if call is None:
                continue
            if outcome.body is not None or outcome.failure is not None:
                self._resolve(call, outcome)
                await asyncio.sleep(0)  # whoever waited records it before the next line is read
        for call in self._work.calls.inside(intent):
            if not standing.is_partial:
                text = "has ended without a result of this request; the same command asks once more"
                self._work.calls.fail(call, ProviderError(f"{self._work.who(intent)} {text}"))
            elif again:
                self._work.gather(call)
            else:
                text = "was cancelled; the same command sends the rest again"
                self._work.calls.fail(call, ProviderError(f"{self._work.who(intent)} {text}"))
        self._work.changed.set()

    def _resolve(self, call: Call, outcome: Outcome) -> None:
        try:
            self._work.calls.succeed(call, answer_of(self._work.settings, self._work.interface, outcome))
        except ProviderError as error:
            if error.usage is not None:
                self._work.calls.bill(call, error.usage, 0)
            call.tries += 1
            most = _PAID_TRIES if isinstance(error, TruncatedStream) else _TRIES
            if isinstance(error, PASSING) and call.tries < most:
                self._work.calls.tally.retries += 1
                self._work.gather(call)
                return
            self._work.calls.fail(call, error)
            if isinstance(error, PoolUnusable):
                self._work.die(error)

    async def refused(self, intent: Intent, error: ProviderError) -> None:
        """Nothing of a batch was processed. What was only too much is sent again, in pieces that fit."""
        await self._work.log.refused(intent, str(error))
        self._work.window.leave(intent)
        self._work.emit(f"{intent.batch_id or intent.token}: nothing of it was processed: {error}")
        calls = self._work.calls.inside(intent)
        too_much = is_too_much(error)
        if not too_much and not isinstance(error, PASSING):
            self._work.tell(calls, error)
            if isinstance(error, PoolUnusable):
                self._work.die(error)
            return
        self._work.calls.tally.rate_limited += 1
        if not (too_much and self._work.window.learn(intent, str(error))):
            self._work.held_until = time.monotonic() + (error.hint_s or LATEST_S / 4)
            self._work.waits_for = str(error)
        for call in calls:
            self._work.gather(call)

    def _gone(self, intent: Intent, error: ProviderError) -> str:
        directory = self._work.log.folder.parent
        return (
            f"{self._work.who(intent)} or its results are unknown to the provider ({error}): is this the same"
            f" account and project? `astra batches {directory} --forget {intent.token}` writes it off; its"
            " requests are then asked and paid for once more"
        )
