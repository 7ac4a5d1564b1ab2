"""Each batch of one pool: found, looked at, collected, handed out."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from astra_async.asking.batches.batch_calls import is_too_much, keep, outcomes, storage
from astra_async.asking.batches.batch_interface import Gone
from astra_async.asking.batches.batch_log import age_s
from astra_async.asking.batches.batch_tasks import LATEST_S, PASSING, SOONEST_S, BatchTasks
from astra_async.errors import PoolUnusable, ProviderError, TruncatedStream

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from astra_async.asking.batches.batch_calls import Call
    from astra_async.asking.batches.batch_interface import BatchOutcome, Standing
    from astra_async.asking.batches.batch_log import Intent

_TRIES = 3  # of a request that the provider itself failed at; two where it was paid for
_PAID_TRIES = 2
_SHARE = 0.05  # of a batch's age: how long until it is looked at again


class Work(BatchTasks):
    """What of a batch pool follows its batches, each from when it may exist to when its results are out."""

    def who(self, intent: Intent) -> str:
        """A batch's name in a message."""
        return f"{self.name}: batch {intent.batch_id or intent.token}"

    def odd(self, intent: Intent) -> Callable[[str], None]:
        """What hears of lines of results that are none."""
        return lambda text: self.emit(f"{intent.batch_id}: {text}")

    def follow(self, intent: Intent) -> None:
        """Follow a batch; its calls hear of its end."""
        self.start(self._to_its_end(intent), lambda: self.calls.inside(intent))

    async def _to_its_end(self, intent: Intent) -> None:
        try:
            if not intent.batch_id and not await self._is_found(intent):
                await self._nothing_came(intent)
                return
            standing, was_ended = await self._ended(intent)
            if standing.failure is not None:
                await self.refused(intent, self.interface.control.meaning(standing.failure))
                return
            standing, missing = await self._collected(intent, standing)
        except Gone as error:
            why = f"the provider does not know it or its results ({error}): is it another account or project?"
            raise ProviderError(self._on_hold(intent, why), status=error.status) from error
        await self._hand_out(intent, standing, again=not was_ended, missing=missing)

    async def _nothing_came(self, intent: Intent) -> None:
        await self.log.note("refused", intent, detail="no batch came of it")
        self.emit(f"{intent.token}: no batch came of it, its requests are sent now")
        self._go_on_at_once()
        for call in self.calls.inside(intent):
            self.gather(call)

    def _go_on_at_once(self) -> None:
        """The tokens of a batch that is over are the next one's."""
        self.held_until = 0.0
        self.changed.set()

    async def _is_found(self, intent: Intent) -> bool:
        """Whether a batch came of the intent: until that is certain, nothing of it is sent.

        No clock is asked how long ago the create was: this process waits as long as one may take to be seen.
        """
        began, pause_s = time.monotonic(), SOONEST_S
        while True:
            known = frozenset(each.batch_id for each in self.log.intents.values() if each.batch_id)
            found = await self.patiently(lambda known=known: self.interface.find(intent, known))  # type: ignore[misc]
            if found:
                await self.log.note("submitted", intent, batch=found)
                self.emit(f"{found}: found again, it was created ({intent.token})")
                return True
            if found is not None and time.monotonic() - began >= self.settings.batch_settled_s:
                return False
            await self.pause(pause_s)
            pause_s = min(LATEST_S, 1.5 * pause_s)

    async def _ended(self, intent: Intent) -> tuple[Standing, bool]:
        """How it has ended, and whether that was somebody's will since this process first looked."""
        first: Standing | None = None
        while True:
            standing = await self.patiently(lambda: self.interface.look(intent.batch_id))
            first = first or standing
            if (standing.state, standing.done) != (intent.state, intent.done):
                await self.log.note("state", intent, state=standing.state, done=standing.done)
            if standing.has_ended:
                self.emit(f"{intent.batch_id}: ended, {standing.state}")
                return standing, standing.was_cancelled and not first.was_cancelled
            await self.pause(min(LATEST_S, max(SOONEST_S, _SHARE * age_s(intent))))

    async def _collected(self, intent: Intent, standing: Standing) -> tuple[Standing, int]:
        """Fetch the results until all that its counts promise are there, for a bounded time.

        A provider may say that a batch has ended before it names its files, or before they are whole.

        Returns:
            How the batch stands now, and how many results that were paid for are missing. If there are any,
            the batch is not recorded as collected: its requests stay with the provider.
        """
        path, began, pause_s = self.log.results(intent), time.monotonic(), SOONEST_S
        while True:
            there, answered = await self._fetch(intent, standing, path)
            # An end in order brings something: without a single result, the counts may be late as well.
            least = 0 if standing.is_partial else 1
            is_whole = there >= max(standing.done, least)
            missing = 0 if is_whole else max(standing.succeeded, least) - answered
            if missing <= 0 and (standing.is_partial or there == len(intent.requests)):
                break
            if time.monotonic() - began >= self.late_s:
                break
            if pause_s == SOONEST_S:
                self.emit(f"{intent.batch_id}: {there} results are there and not all, looked for again")
            await self.pause(pause_s)
            pause_s = min(LATEST_S, 1.5 * pause_s)
            standing = await self.patiently(lambda: self.interface.look(intent.batch_id))
        if missing <= 0:
            await self.log.note("collected", intent)
            self._go_on_at_once()
        return standing, max(0, missing)

    async def _fetch(self, intent: Intent, standing: Standing, path: Path) -> tuple[int, int]:
        """Bring the results to disk, and return how many requests have a result, and how many an answer."""
        draft = path.with_suffix(".draft")

        async def fetch() -> None:
            with storage(draft):
                draft.parent.mkdir(mode=0o700, exist_ok=True)
                draft.write_bytes(b"".join(line + b"\n" for line in standing.inline))
                await self.interface.fetch(standing, draft)

        def counted() -> tuple[int, int]:
            there, answered = set(), set()
            for _, _, outcome in outcomes(draft, self.interface.read, lambda _: None):
                there |= {outcome.custom_id} if outcome.is_result else set()
                answered |= {outcome.custom_id} if outcome.body is not None else set()
            return len(there & intent.requests.keys()), len(answered & intent.requests.keys())

        await self.patiently(fetch)
        counts = await asyncio.to_thread(counted)
        await asyncio.to_thread(keep, draft, path)
        return counts

    async def _hand_out(self, intent: Intent, standing: Standing, *, again: bool, missing: int) -> None:
        """Each call gets its result: the first whole answer to a request counts, else its first failure.

        While results are missing, only answers are taken: a request is in one open batch at most.
        """
        for is_wanted in (self._take_answer,) if missing else (self._take_answer, self._take_outcome):
            if not self.calls.inside(intent):
                break
            for _, _, outcome in outcomes(self.log.results(intent), self.interface.read, self.odd(intent)):
                key = intent.requests.get(outcome.custom_id)
                call = self.calls.waiting(key) if key else None
                if call is not None and outcome.is_result and is_wanted(call, outcome):
                    await asyncio.sleep(0)  # whoever waited records it before the next line is read
        text = "has ended without a result of this request; the same command asks once more"
        if standing.is_partial:
            text = "was cancelled; the same command sends the rest again"
        error = ProviderError(f"{self.who(intent)} {text}")
        if missing:
            error = ProviderError(self._on_hold(intent, f"{missing} results that it promises are missing"))
        for call in self.calls.inside(intent):
            if standing.is_partial and again and not missing:
                self.gather(call)
            else:
                self.calls.fail(call, error)
        self.changed.set()

    def _take_answer(self, call: Call, outcome: BatchOutcome) -> bool:
        """Give a call its answer, if the outcome is a whole one."""
        if outcome.body is None:
            return False
        with suppress(ProviderError):
            self.calls.succeed(call, self.interface.answer(self.settings, outcome))
        return call.answer.done()

    def _take_outcome(self, call: Call, outcome: BatchOutcome) -> bool:
        """Give a call what has become of it, or send it again. Always True."""
        try:
            self.calls.succeed(call, self.interface.answer(self.settings, outcome))
        except ProviderError as error:
            if error.usage is not None:
                self.calls.bill(call, error.usage, 0)
            call.history.attempts += 1
            most = _PAID_TRIES if isinstance(error, TruncatedStream) else _TRIES
            if isinstance(error, PASSING) and call.history.attempts < most:
                self.calls.ledger.retries += 1
                self.gather(call)
                return True
            self.calls.fail(call, error)
            if isinstance(error, PoolUnusable):
                self.die(error)
        return True

    async def refused(self, intent: Intent, error: ProviderError) -> None:
        """Nothing of a batch was processed. What was only too much is sent again, in pieces that fit."""
        await self.log.note("refused", intent, detail=str(error))
        self.emit(f"{intent.batch_id or intent.token}: nothing of it was processed: {error}")
        calls = self.calls.inside(intent)
        too_much = is_too_much(error)
        if not too_much and not isinstance(error, PASSING):
            self.tell(calls, error)
            if isinstance(error, PoolUnusable):
                self.die(error)
            return
        self.calls.ledger.rate_limited += 1
        if not (too_much and self.window.learn(intent, str(error), self.log.open_of(self.name))):
            self.held_until = time.monotonic() + (error.hint_s or LATEST_S / 4)
            self.waits_for = str(error)
        for call in calls:
            self.gather(call)

    def _on_hold(self, intent: Intent, why: str) -> str:
        """Say what is wrong with a batch, and from when on it is safe to pay for its requests once more."""
        over = datetime.fromisoformat(intent.at) + timedelta(hours=self.interface.lifetime_h)
        when = f"{over:%Y-%m-%d %H:%M} UTC"
        text = f"its time was over at {when}:"
        if datetime.now(UTC) < over:
            text = (
                "its requests are not asked again while it may bring results: run the same command later. If"
                f" results are still missing after {when},"
            )
        return (
            f"{self.who(intent)}: {why}; {text}"
            f" `astra batches {self.log.folder.parent} --forget {intent.token}` writes it off,"
            " and its requests are asked and paid for once more"
        )
