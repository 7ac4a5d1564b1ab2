"""Pool that sends the calls of one model in batches.

`BatchPool` has the same interface as the throttle's `Pool`: `call` takes a request and returns its answer,
perhaps a day later. One task submits gathered calls, and one task for each batch follows the batch to its end
(`batch_work`, which builds on `batch_tasks`).

Invariants: a batch is created once for each intent, after the intent is synced to disk. If the outcome of a
create request is unknown, the provider is asked. Results are on disk before an answer is used.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from astra_async.asking.batches.batch_calls import (
    BatchCalls,
    read_outcome_at,
    read_outcomes,
    storage_errors,
    write_requests,
)
from astra_async.asking.batches.batch_interface import proves_no_batch
from astra_async.asking.batches.batch_log import Intent, age_s, new_token
from astra_async.asking.batches.batch_tasks import LATEST_S, BatchStopped
from astra_async.asking.batches.batch_work import BatchWork
from astra_async.asking.throttle import PoolState
from astra_async.errors import ProviderError
from astra_async.log import now_utc
from astra_async.types.pools import BatchState

if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from pathlib import Path

    from astra_async.asking.batches.batch_calls import Call
    from astra_async.asking.batches.batch_interface import BatchInterface
    from astra_async.asking.batches.batch_log import BatchLog
    from astra_async.asking.throttle import Budget, PoolEvent
    from astra_async.types import AnswerKey, Completion, ModelRequest, ModelSettings, Usage

_QUIET_S = 0.5  # gathered calls are submitted once no call has arrived for this many seconds


class BatchPool(BatchWork):
    """Pool that answers requests in batches.

    Args:
        settings: settings of the model.
        interface: the provider's batch interface.
        log: log of the run directory, shared by all models.
        answered: keys that already have a recorded answer; their stored results are ignored.
        price: returns the cost of a usage in US dollars, None if a price is unknown.
        budget: shared with other pools.
        on_event: called for every event of a batch; must not raise.
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
        super().__init__(settings, interface, log, BatchCalls(settings, price, budget), on_event)
        self._answered = answered
        self._more_turns_possible: Callable[[], bool] = lambda: False
        self._stored: dict[AnswerKey, tuple[Path, int, int]] | None = None

    async def call(self, request: ModelRequest) -> Completion:
        """Return the answer to a request once its batch has ended.

        Raises:
            PoolUnusable: the pool was stopped, or no request of this model can succeed. BudgetExhausted if
                the ceiling is reached.
            ProviderError: the request was refused, or its batch ended without a result for it.
            StorageError: the log or the results cannot be written.
        """
        if self.stopping.is_set():
            raise self.stopped_error()
        call = self.calls.enter(request)
        try:
            self._start_tasks()
            if any(request.key in intent.keys for intent in self.log.open_intents(self.name)):
                self.calls.reserve(call)
            elif not self._take_stored(call):
                self.gather(call)
            return await call.answer
        finally:
            self.calls.leave(call)

    def expect(self, more_turns_possible: Callable[[], bool]) -> None:
        """Set a callback that returns True while work in progress may cause further follow-up turns."""
        self._more_turns_possible = more_turns_possible

    def stop(self) -> None:
        """Submit no more batches and fail waiting calls. Batches continue; a create in flight is recorded."""
        self.stopping.set()
        self.changed.set()
        self.fail_gathered(self.stopped_error())

    @property
    def state(self) -> PoolState:
        """Current state of the pool, for the display."""
        gathered = len(self.calls.gathered)
        return PoolState(
            model=self.name,
            waiting=gathered,
            held_by=(self.waits_for or None) if gathered else None,
            **self.calls.ledger.sums(),
            dead=None if self.dead is None else str(self.dead),
            batches=tuple(map(_state_of, self.log.open_intents(self.name))),
        )

    def _start_tasks(self) -> None:
        """Start the pool's tasks on the first call, and follow the open batches of earlier processes."""
        if self._stored is not None:
            return
        self._stored = {}
        for intent in self.log.intents.values():
            if intent.model == self.name and intent.is_collected:
                self._index(intent, self._stored)
        for intent in self.log.open_intents(self.name):
            self.follow(intent)
        self.start(self._submit_gathered(), self.calls.gathered.values, lasting=True)

    def _index(self, intent: Intent, stored: dict[AnswerKey, tuple[Path, int, int]]) -> None:
        """Index collected answers that a killed process did not record in the run."""
        path = self.log.results(intent)
        if not path.exists() or all(key in self._answered for key in intent.keys):
            return
        for offset, length, outcome in read_outcomes(path, self.interface.read, self.report_invalid(intent)):
            key = intent.requests.get(outcome.custom_id)
            if key is not None and outcome.body is not None and key not in self._answered:
                stored.setdefault(key, (path, offset, length))

    def _take_stored(self, call: Call) -> bool:
        """Give a call its stored answer. Return False if there is no usable stored answer."""
        place = (self._stored or {}).pop(call.request.key, None)
        if place is None:
            return False
        with suppress(ProviderError):
            outcome = read_outcome_at(*place, self.interface.read)
            self.calls.succeed(call, self.interface.answer(self.settings, outcome))
        return call.answer.done()

    # --- submitting gathered calls ------------------------------------------------------------------------

    async def _submit_gathered(self) -> None:
        """Submit gathered calls until the pool is stopped. Raises BatchStopped or StorageError."""
        while True:
            await self._wait_for_gathered()
            if chunk := self._next_chunk():
                await self._submit(chunk)
            else:
                await self.until_changed(LATEST_S)

    async def _wait_for_gathered(self) -> None:
        """Wait until calls may be submitted and no more calls are expected soon.

        First turns arrive all at once. Follow-up turns arrive one by one, after the tests of other samples.
        """
        while True:
            now = time.monotonic()
            is_quiet = now - self.calls.gathered_at >= _QUIET_S
            is_turn = any(key.turn for key in self.calls.gathered)
            may_go = self.calls.gathered and is_quiet and now >= self.held_until
            if may_go and not (is_turn and self._more_turns_possible()):
                return
            await self.until_changed(_QUIET_S if self.calls.gathered else LATEST_S)

    def _next_chunk(self) -> list[Call]:
        """Return the first gathered calls of one turn, as many as the token limit and the budget allow."""
        chunk: list[Call] = []
        others = self.log.open_intents(self.name)
        tokens, self.waits_for = 0.0, ""
        for call in [*self.calls.gathered.values()][: self.interface.most_requests]:
            if chunk and call.request.key.turn != chunk[0].request.key.turn:
                break
            tokens += self.calls.tokens(call)
            if not self.window.fits(tokens, others, first=not chunk):
                self.waits_for = "enqueued tokens"
                break
            if not self._is_affordable(call, first=not chunk):
                break
            self.calls.reserve(call)
            chunk.append(call)
        return chunk

    def _is_affordable(self, call: Call, *, first: bool) -> bool:
        budget, ledger = self.calls.budget, self.calls.ledger
        worst_usd = ledger.worst_usd(call.request)
        fit = budget.fits(worst_usd)
        if fit == "never" and first:
            self.disable(ledger.exhausted(worst_usd))
        elif fit == "later":
            self.waits_for = "budget"
            budget.wake_on_settlement(self.changed.set)
        return fit == "now"

    async def _submit(self, chunk: list[Call]) -> None:
        """Submit one batch with the first calls of the chunk, as many as fit into one file."""
        token = new_token(self.log.run_id)
        path = self.log.folder / f"{token}.requests"
        ids = self.log.new_ids(call.request.key for call in chunk)
        named = [*zip(ids, (call.request for call in chunk), strict=True)]
        try:
            written = await asyncio.to_thread(write_requests, path, self.interface, named)
            for call in chunk[written:]:
                self.calls.settle(call, 0.0)
            file = await self.retrying(lambda: self.interface.upload(path, token), refusals_s=0.0)
            if self.stopping.is_set():
                raise BatchStopped
            intent = Intent(
                token=token,
                model=self.name,
                at=now_utc(),
                requests=dict([*ids.items()][:written]),
                file=file,
                tokens=round(sum(map(self.calls.tokens, chunk[:written]))),
                most_usd=sum(call.reserved_usd or 0.0 for call in chunk[:written]) or None,
            )
            await self._create(path, intent)
        finally:
            with storage_errors(path):
                path.unlink(missing_ok=True)

    async def _create(self, path: Path, intent: Intent) -> None:
        """Create a batch. Only this request costs money. If the outcome is unknown, look for the batch."""
        await self.log.write_intent(intent)
        for key in intent.keys:  # from now on these calls belong to the batch
            self.calls.gathered.pop(key, None)
        try:
            batch_id = await self.interface.create(path, intent)
        except ProviderError as error:
            if proves_no_batch(error):
                await self.handle_refusal(intent, error)
                return
            self.emit(f"{intent.token}: unknown if the batch was created, looking for it ({error})")
        else:
            await self.log.record("submitted", intent, batch=batch_id)
            self.emit(f"{batch_id}: submitted with {len(intent.requests)} requests ({intent.token})")
        self.follow(intent)


def _state_of(intent: Intent) -> BatchState:
    return BatchState(
        id=intent.batch_id,
        state=intent.state,
        requests=len(intent.requests),
        done=intent.done,
        age_s=max(0.0, age_s(intent)),
    )
