"""One model's calls, sent as batches: gathered, submitted in windows, followed, collected.

It stands where the throttle's pool stands: `call` takes a request and returns its answer, a day later
perhaps. While it is open one task submits what was gathered (`batch_submitting`), and one for each batch
follows it to its end (`batch_following`).

Invariants: a create follows a synced intent and happens once for it; what an unfinished create has come to is
looked up and not guessed; results are on disk before an answer of theirs goes to anybody.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from astra_async.asking.batches.batch_answers import answer_of
from astra_async.asking.batches.batch_calls import Calls
from astra_async.asking.batches.batch_following import Following
from astra_async.asking.batches.batch_log import age_s
from astra_async.asking.batches.batch_submitting import Submitting
from astra_async.asking.batches.batch_work import Work
from astra_async.asking.batches.request_files import outcome_at, outcomes
from astra_async.asking.throttle import PoolState
from astra_async.asking.throttle.state import BatchState
from astra_async.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from pathlib import Path

    from astra_async.asking.batches.batch_calls import Call
    from astra_async.asking.batches.batch_interface import BatchInterface
    from astra_async.asking.batches.batch_log import BatchLog, Intent
    from astra_async.asking.throttle import Budget, PoolEvent
    from astra_async.types import AnswerKey, Completion, ModelRequest, ModelSettings, Usage


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
        self._following = Following(self._work)
        self._submitting = Submitting(self._work, self._following)
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
        self._submitting.more_comes = more_comes

    def stop(self) -> None:
        """Submit nothing more, and wait for nothing; batches go on, and a create under way is recorded."""
        self._work.stopping.set()
        self._work.changed.set()
        self._work.fail_gathered(self._work.stopped())

    @property
    def state(self) -> PoolState:
        """The pool as it stands."""
        work, tally, gathered = self._work, self._calls.tally, len(self._calls.gathered)
        return PoolState(
            model=work.name,
            in_flight=0,
            waiting=gathered,
            limit=0,
            buckets=(),
            send_rate=None,
            held_by=(work.waits_for or None) if gathered else None,
            paused_for_s=0.0,
            pause_reason="",
            calls_ok=tally.calls_ok,
            rate_limited=tally.rate_limited,
            retries=tally.retries,
            input_tokens=tally.input_tokens,
            output_tokens=tally.output_tokens,
            tokens_per_minute=0.0,
            cost_usd=tally.cost_usd,
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
            self._following.follow(intent)
        work.start(self._submitting.go_on(), self._calls.gathered.values, lasting=True)

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
            self._calls.succeed(call, answer_of(work.settings, work.interface, outcome))
        return call.answer.done()


def _state_of(intent: Intent) -> BatchState:
    return BatchState(
        id=intent.batch_id,
        state=intent.state,
        requests=len(intent.requests),
        done=intent.done,
        age_s=max(0.0, age_s(intent)),
    )
