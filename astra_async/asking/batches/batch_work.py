"""Life cycle of each batch of one pool: find, poll, collect the results, hand them to the calls."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from astra_async.asking.batches.batch_calls import (
    commit_results,
    is_queue_full,
    read_outcomes,
    storage_errors,
)
from astra_async.asking.batches.batch_interface import Gone
from astra_async.asking.batches.batch_log import age_s
from astra_async.asking.batches.batch_tasks import LATEST_S, PASSING, SOONEST_S, BatchTasks
from astra_async.errors import PoolUnusable, ProviderError, TruncatedStream

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from astra_async.asking.batches.batch_calls import Call
    from astra_async.asking.batches.batch_interface import BatchOutcome, BatchStatus
    from astra_async.asking.batches.batch_log import Intent

_TRIES = 3  # attempts of a request with a transient error
_PAID_TRIES = 2  # attempts of a request whose failed attempt was billed
_SHARE = 0.05  # seconds between two polls, as a share of the batch's age


class BatchWork(BatchTasks):
    """Part of a batch pool that follows each batch from its creation until its results are handed out."""

    def batch_name(self, intent: Intent) -> str:
        """Return the name of a batch for messages."""
        return f"{self.name}: batch {intent.batch_id or intent.token}"

    def report_invalid(self, intent: Intent) -> Callable[[str], None]:
        """Return a callback that reports invalid lines of results."""
        return lambda text: self.emit(f"{intent.batch_id}: {text}")

    def follow(self, intent: Intent) -> None:
        """Start a task that follows a batch and gives its calls their results."""
        self.start(self._follow_to_end(intent), lambda: self.calls.calls_in(intent))

    async def _follow_to_end(self, intent: Intent) -> None:
        try:
            if not intent.batch_id and not await self._find(intent):
                await self._record_not_created(intent)
                return
            status, was_ended = await self._wait_for_end(intent)
            if status.failure is not None:
                await self.handle_refusal(intent, self.interface.control.meaning(status.failure))
                return
            status, missing = await self._collect(intent, status)
        except Gone as error:
            why = (
                f"the provider does not have it or its results ({error}): check that the key is of the same"
                " account and project"
            )
            raise ProviderError(self._missing_message(intent, why), status=error.status) from error
        await self._hand_out(intent, status, again=not was_ended, missing=missing)

    async def _record_not_created(self, intent: Intent) -> None:
        await self.log.record("refused", intent, detail="no batch was created")
        self.emit(f"{intent.token}: no batch was created, so its requests are sent now")
        self._allow_next_batch()
        for call in self.calls.calls_in(intent):
            self.gather(call)

    def _allow_next_batch(self) -> None:
        """Allow the next batch now, because the tokens of a finished batch are free."""
        self.held_until = 0.0
        self.changed.set()

    async def _find(self, intent: Intent) -> bool:
        """Wait until it is certain if a batch exists for the intent. Return True if it exists.

        A new batch may take `batch_settled_s` seconds to appear in lists. This process waits that long itself
        instead of trusting the recorded time of the request, because clocks may be wrong.
        """
        began, pause_s = time.monotonic(), SOONEST_S
        while True:
            known = frozenset(each.batch_id for each in self.log.intents.values() if each.batch_id)
            found = await self.retrying(lambda known=known: self.interface.find(intent, known))  # type: ignore[misc]
            if found:
                await self.log.record("submitted", intent, batch=found)
                self.emit(f"{found}: the batch was created and has been found ({intent.token})")
                return True
            if found is not None and time.monotonic() - began >= self.settings.batch_settled_s:
                return False
            await self.pause(pause_s)
            pause_s = min(LATEST_S, 1.5 * pause_s)

    async def _wait_for_end(self, intent: Intent) -> tuple[BatchStatus, bool]:
        """Wait for the end of a batch. Return its state, and True if it was cancelled during this process."""
        first: BatchStatus | None = None
        while True:
            status = await self.retrying(lambda: self.interface.status(intent.batch_id))
            first = first or status
            if (status.state, status.done) != (intent.state, intent.done):
                await self.log.record("state", intent, state=status.state, done=status.done)
            if status.has_ended:
                self.emit(f"{intent.batch_id}: ended, {status.state}")
                return status, status.was_cancelled and not first.was_cancelled
            await self.pause(min(LATEST_S, max(SOONEST_S, _SHARE * age_s(intent))))

    async def _collect(self, intent: Intent, status: BatchStatus) -> tuple[BatchStatus, int]:
        """Fetch the results until they are as many as the batch's counts say, for at most `late_s` seconds.

        A provider may report the end of a batch before its result files exist or are complete.

        Returns:
            The current state of the batch, and the number of missing paid results. If results are missing,
            the batch is not recorded as collected, so that its requests are not sent again.
        """
        path, began, pause_s = self.log.results(intent), time.monotonic(), SOONEST_S
        while True:
            there, answered = await self._fetch(intent, status, path)
            # A batch that ended regularly has at least one result. Otherwise its counts may be late as well.
            least = 0 if status.is_partial else 1
            is_whole = there >= max(status.done, least)
            missing = 0 if is_whole else max(status.succeeded, least) - answered
            if missing <= 0 and (status.is_partial or there == len(intent.requests)):
                break
            if time.monotonic() - began >= self.late_s:
                break
            if pause_s == SOONEST_S:
                self.emit(f"{intent.batch_id}: only {there} results are available yet, trying again")
            await self.pause(pause_s)
            pause_s = min(LATEST_S, 1.5 * pause_s)
            status = await self.retrying(lambda: self.interface.status(intent.batch_id))
        if missing <= 0:
            await self.log.record("collected", intent)
            self._allow_next_batch()
        return status, max(0, missing)

    async def _fetch(self, intent: Intent, status: BatchStatus, path: Path) -> tuple[int, int]:
        """Download the results. Return the number of requests with a result, and with an answer."""
        draft = path.with_suffix(".draft")

        async def fetch() -> None:
            with storage_errors(draft):
                draft.parent.mkdir(mode=0o700, exist_ok=True)
                draft.write_bytes(b"".join(line + b"\n" for line in status.inline))
                await self.interface.fetch(status, draft)

        def counted() -> tuple[int, int]:
            there, answered = set(), set()
            for _, _, outcome in read_outcomes(draft, self.interface.read, lambda _: None):
                there |= {outcome.custom_id} if outcome.is_result else set()
                answered |= {outcome.custom_id} if outcome.body is not None else set()
            return len(there & intent.requests.keys()), len(answered & intent.requests.keys())

        await self.retrying(fetch)
        counts = await asyncio.to_thread(counted)
        await asyncio.to_thread(commit_results, draft, path)
        return counts

    async def _hand_out(self, intent: Intent, status: BatchStatus, *, again: bool, missing: int) -> None:
        """Give each call its result: the first complete answer to its request, else the first failure.

        While results are missing the batch stays open. Only answers are used then, because a failed request
        must not be sent again while it is in an open batch.
        """
        for is_wanted in (self._take_answer,) if missing else (self._take_answer, self._take_outcome):
            if not self.calls.calls_in(intent):
                break
            for _, _, outcome in read_outcomes(
                self.log.results(intent), self.interface.read, self.report_invalid(intent)
            ):
                key = intent.requests.get(outcome.custom_id)
                call = self.calls.waiting(key) if key else None
                if call is not None and outcome.is_result and is_wanted(call, outcome):
                    await asyncio.sleep(0)  # let the waiting task record the answer before the next line
        text = "has ended without a result for this request; run the same command again to send it again"
        if status.is_partial:
            text = "was cancelled; run the same command again to send the remaining requests"
        error = ProviderError(f"{self.batch_name(intent)} {text}")
        if missing:
            error = ProviderError(
                self._missing_message(intent, f"{missing} of its reported results are missing")
            )
        for call in self.calls.calls_in(intent):
            if status.is_partial and again and not missing:
                self.gather(call)
            else:
                self.calls.fail(call, error)
        self.changed.set()

    def _take_answer(self, call: Call, outcome: BatchOutcome) -> bool:
        """Give a call its answer if the outcome is a complete answer. Return True if it is."""
        if outcome.body is None:
            return False
        with suppress(ProviderError):
            self.calls.succeed(call, self.interface.answer(self.settings, outcome))
        return call.answer.done()

    def _take_outcome(self, call: Call, outcome: BatchOutcome) -> bool:
        """Give a call its answer or its error, or gather it again after a transient error. Return True."""
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
                self.disable(error)
        return True

    async def handle_refusal(self, intent: Intent, error: ProviderError) -> None:
        """Handle a batch of which nothing was processed. If it was only too large, send smaller batches."""
        await self.log.record("refused", intent, detail=str(error))
        self.emit(f"{intent.batch_id or intent.token}: the batch was refused: {error}")
        calls = self.calls.calls_in(intent)
        queue_is_full = is_queue_full(error)
        if not queue_is_full and not isinstance(error, PASSING):
            self.fail_calls(calls, error)
            if isinstance(error, PoolUnusable):
                self.disable(error)
            return
        self.calls.ledger.rate_limited += 1
        if not (queue_is_full and self.window.learn(intent, str(error), self.log.open_intents(self.name))):
            self.held_until = time.monotonic() + (error.hint_s or LATEST_S / 4)
            self.waits_for = str(error)
        for call in calls:
            self.gather(call)

    def _missing_message(self, intent: Intent, why: str) -> str:
        """Return a message about a failed batch, with the time from which its requests may be sent again."""
        over = datetime.fromisoformat(intent.at) + timedelta(hours=self.interface.lifetime_h)
        when = f"{over:%Y-%m-%d %H:%M} UTC"
        text = f"the batch expired at {when}:"
        if datetime.now(UTC) < over:
            text = (
                "its requests are not sent again while it may produce results: run the same command later. If"
                f" results are still missing after {when},"
            )
        return (
            f"{self.batch_name(intent)}: {why}; {text}"
            f" give it up with `astra batches {self.log.folder.parent} --forget {intent.token}`;"
            " its requests are then sent and paid for again"
        )
