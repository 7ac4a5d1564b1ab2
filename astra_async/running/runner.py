"""Run all samples of a plan: start samples, contain their failures, and shut down.

Each model has a feeder task that walks the plan and starts samples. `run_sample` processes a sample, and then
each of its follow-up turns (`turns.TurnPlan`). An exception fails one sample, or disables one model if every
request would fail. The run ends early only if results cannot be recorded or tests cannot run, and only after
requests in flight have finished. `Bookkeeping` counts the outcomes.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from astra_async.errors import (
    AstraError,
    BudgetExhausted,
    EngineUnavailable,
    ExpectationError,
    PoolUnusable,
    ProviderError,
    StorageError,
)
from astra_async.files import file_mode, write_atomically
from astra_async.log import keep_synced
from astra_async.metrics import problems_csv
from astra_async.running.admission import Admission, FairPermits, Stopped
from astra_async.running.bookkeeping import Bookkeeping
from astra_async.running.plan import Speed, in_order
from astra_async.running.sample import run_sample
from astra_async.running.trouble import described, is_cancelled, kind_of, spent, to_astra_error
from astra_async.testing.verdict import limits_for
from astra_async.types import is_agent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from astra_async.metrics import Metrics
    from astra_async.running.admission import Passage
    from astra_async.running.plan import Plan
    from astra_async.running.sample import Setup
    from astra_async.running.trouble import RecordedKind
    from astra_async.running.until import Deciding
    from astra_async.types import AnswerKey, Result

# A model sends no new requests while this many answers are ungraded: its share of the first number, or the
# second number if the share is smaller.
_UNGRADED, _UNGRADED_OF_ONE = 1000, 100
_PUBLISH_S = 5.0
_UNEXPECTED_IN_A_ROW = 10  # consecutive unexpected exceptions that disable a model


@dataclass(eq=False)
class Runner:
    """Runner of one plan in a run directory.

    If `setup.grading` is None, answers are recorded but not graded.

    Attributes:
        books: outcomes of the samples so far.
        tally: live counts of the samples by state.
        speed: answers and verdicts since `run` was called.
        stopping: event that is set by `stop`.
        fatal: the error that ends the run, or None.
        dead: disabled models, with the reason.
        deciding: rounds of a run with `--until`, else None.
        on_result: callback for every recorded final line, including those of follow-up turns. An exception
            that it raises ends the run.
    """

    plan: Plan
    setup: Setup
    metrics: Metrics
    deciding: Deciding | None = None

    def __post_init__(self) -> None:
        self.directory = self.setup.directory
        self.books = Bookkeeping(self.plan, self.setup, self.metrics)
        self.tally = self.books.tally
        self.speed = Speed(0, 0)
        self.stopping = asyncio.Event()
        self.fatal: Exception | None = None
        self.dead: dict[str, PoolUnusable] = {}
        self.on_result: Callable[[Result], None] = lambda _: None
        self._making = self.setup.grading.making if self.setup.grading else None
        self.permits = FairPermits(self.setup.grading.at_once if self.setup.grading else 1)
        self._admissions: dict[tuple[str, bool], Admission] = {}  # by (model, is an agent)
        self._agents_of_one: int | None = None  # maximum of one model; None if no agent can start
        self._ungradable: dict[str, AstraError] = {}  # problems without expected tests

    async def run(self) -> None:
        """Run all samples of the plan that can be run.

        Raises StorageError, EngineUnavailable (Docker did not come back) or InvariantError. The next
        invocation resumes from the recorded lines.
        """
        for problem_id, error in self.plan.unprepared.items():
            self.note(kind_of(error), problem_id=problem_id, detail=str(error))
        self.books.count_recorded()
        # Exclude samples of earlier invocations from this invocation's rate.
        self.speed = Speed(self.tally.answered, self.tally.final)
        synced = keep_synced(self.directory.logs, self.stop_with_error)
        async with asyncio.TaskGroup() as outer:
            background = (synced, self._publish_regularly(), self._follow_images())
            helpers = [outer.create_task(each) for each in background]
            await self._run_rounds()
            for helper in helpers:
                helper.cancel()
        try:
            await self.publish()
        except StorageError as error:
            self.fatal = self.fatal or error
        if self.fatal:
            raise self.fatal
        self.books.check(stopped=self.stopping.is_set())

    async def _run_rounds(self) -> None:
        """Run all samples at once; with `--until`, run rounds with an interim analysis after each round.

        A round with a missing sample ends the invocation without an interim analysis, except for a regrade.
        """
        if self.deciding is None:
            await self._round(self.plan.models, 0, self.plan.samples)
            return
        self.books.plan_up_to(0, self.plan.models)
        for first, end in pairwise((0, *self.deciding.rounds)):
            going = self.deciding.begin(end)
            self.books.plan_up_to(end, going)
            await self._round(going, first, end)
            cannot_look = self.books.has_missing and not self.deciding.is_closed
            if self.stopping.is_set() or cannot_look or not going:
                return
            try:
                await asyncio.to_thread(self.deciding.look)
            except AstraError as error:
                self.stop_with_error(error)
                return

    async def _round(self, models: Sequence[str], first: int, end: int) -> None:
        async with asyncio.TaskGroup() as samples:
            for model in models:
                for by_agent in sorted({is_agent(fmt) for fmt in self.plan.formats}):
                    samples.create_task(self._feed(model, samples, range(first, end), by_agent=by_agent))

    def stop(self) -> None:
        """Stop starting work; requests and tests under way finish and are recorded."""
        self.stopping.set()
        if agents := self.setup.asking.agents:
            agents.runs.stop()
        if making := self._making:
            making.stop()
        for model, pool in self.setup.asking.pools.items():
            try:
                pool.stop()
            except Exception as error:  # noqa: BLE001 - must not keep the other pools from stopping
                self.fatal = self.fatal or ProviderError(f"{model}: cannot be stopped: {described(error)}")

    @property
    def seconds_left(self) -> float | None:
        """Estimate the seconds until the run is complete at the current rate.

        Returns None before the first sample is complete, and if only follow-up turns are left, because
        their number is not known in advance.
        """
        tally, graded = self.tally, self.setup.grading is not None
        if tally.final == tally.planned and tally.turns.asking + tally.turns.grading:
            return None
        obtainable = tally.planned - tally.missing.total()
        return self.speed.left_s(tally.final if graded else tally.answered, obtainable, graded=graded)

    def is_grading(self, model: str) -> bool:
        """Return True if the model has ungraded answers, which may lead to follow-up turns."""
        return any(each.waiting > 0 for (name, _), each in self._admissions.items() if name == model)

    async def publish(self) -> None:
        """Rewrite problems.csv from the current metrics, in a thread. Raises StorageError."""
        path = self.directory.path / "problems.csv"
        try:
            content = problems_csv(self.metrics).encode()
            await asyncio.to_thread(write_atomically, path, content, mode=file_mode(path.parent))
        except StorageError:
            raise
        except Exception as error:
            raise StorageError(f"{path}: {described(error)}") from error

    async def _follow_images(self) -> None:
        """Record each failed image build, and end the run if Docker is unavailable."""
        making = self._making
        recorded = set(self.plan.unprepared)
        while making and not self.stopping.is_set():
            for problem_id in making.failed.keys() - recorded:
                recorded.add(problem_id)
                error = making.failed[problem_id]
                self.note(kind_of(error), problem_id=problem_id, detail=str(error))
                if isinstance(error, EngineUnavailable):
                    self.stop_with_error(error)
            if not making.pending:
                return
            await making.changed()

    async def _feed(self, model: str, samples: asyncio.TaskGroup, numbers: range, *, by_agent: bool) -> None:
        admission = self._admission(model, by_agent=by_agent)
        async for sample in in_order(self.plan.keys(model), self._making, self.stopping):
            if sample.sample not in numbers or is_agent(sample.format) != by_agent:
                continue
            key: AnswerKey | None = sample
            if sample in self.directory.graded:
                key = self.setup.turns.next(sample, self.directory)
            answered = key in self.directory.answered
            if key is None or (answered and self.setup.grading is None):
                continue
            await admission.wait_for_slot(answered=answered)
            samples.create_task(self._run_with_turns(admission.start(key)))

    def resize_agents(self, slots: int) -> None:
        """Let each model have two samples for each slot of agents, so that a free slot finds one waiting."""
        self._agents_of_one = 2 * slots
        for (_, by_agent), admission in self._admissions.items():
            if by_agent:
                admission.resize(self._agents_of_one)

    def _admission(self, model: str, *, by_agent: bool) -> Admission:
        if (model, by_agent) not in self._admissions:
            ungraded = max(_UNGRADED_OF_ONE, _UNGRADED // len(self.plan.models))
            most = self._agents_of_one if by_agent else self.plan.max_in_flight.get(model)
            self._admissions[model, by_agent] = Admission(
                tally=self.tally,
                max_asking=math.inf if most is None else most,
                max_waiting=math.inf if most is None else ungraded,
                permits=self.permits,
                stopping=self.stopping,
                on_answer=self._check_disk,
                recorded=self.directory.answered,
            )
        return self._admissions[model, by_agent]

    async def _run_with_turns(self, passage: Passage) -> None:
        """Run a sample or a follow-up turn, then all follow-up turns after it.

        A follow-up turn reuses its sample's slot and therefore never queues.
        """
        while True:
            await self._run_key(passage)
            goes_on = passage.key in self.directory.graded and not self.stopping.is_set()
            if not goes_on or not (following := self.setup.turns.next(passage.key.first, self.directory)):
                return
            passage = passage.admission.start(following)

    def _skip_if_impossible(self, key: AnswerKey, *, answered: bool) -> bool:
        """Count the key as missing if it cannot succeed; return True if so."""
        places = (self.plan.unprepared, self._ungradable, self._making.failed if self._making else {})
        error = next((known[key.problem_id] for known in places if key.problem_id in known), None)
        if error := error or (None if answered else self.dead.get(key.model)):
            self.books.add_missing(key, error)
        return error is not None

    async def _run_key(self, passage: Passage) -> None:
        """Run one sample or follow-up turn, and handle every exception that it raises."""
        key = passage.key
        try:
            if self.stopping.is_set() or self._skip_if_impossible(key, answered=passage.is_answered):
                return
            prepared = self.plan.prepared[key.problem_id]
            if (grading := self.setup.grading) and not (passage.is_answered or prepared.task):
                # The answer is under way: announce the container that will be needed to grade it.
                grading.sandbox.expect(grading.images[key.problem_id], limits_for(prepared, grading.limits))
            # Invariant: a key has a final line or is missing; if the run is stopped, it may be neither.
            if result := await run_sample(key, prepared, self.setup, passage):
                self._add_result(result)
        except Stopped:
            return
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise  # otherwise a library has cancelled its own awaitable
            self._handle_failure(error, passage)
        finally:
            passage.leave()

    def _handle_failure(self, raised: BaseException, passage: Passage) -> None:
        """Record why a key has no final line; disable its model or stop the run if the error requires it."""
        key = passage.key
        error = to_astra_error(raised, "grading" if passage.is_answered else "asking")
        if isinstance(error, StorageError):
            self.stop_with_error(error)  # the sample is not missing: RunDirectory spools its answer
            return
        by_agent = is_agent(key.format) and not passage.is_answered
        if self.stopping.is_set() and (by_agent or isinstance(error, EngineUnavailable)):
            return  # the next invocation continues: an agent resumes from its recorded requests
        if isinstance(error, ExpectationError):
            self._ungradable.setdefault(key.problem_id, error)
        if isinstance(error, EngineUnavailable):
            self.stop_with_error(error)
        if isinstance(error, PoolUnusable):
            if self.stopping.is_set():  # the next invocation repeats the sample
                if error.cost_usd:
                    self.note("stopped", key, detail=str(error), **spent(error))
                return
            self._disable_model(key.model, error)
        elif error is not raised and not passage.is_answered:
            passage.admission.unexpected += 1
            if passage.admission.unexpected >= _UNEXPECTED_IN_A_ROW:
                last = PoolUnusable(f"the last {_UNEXPECTED_IN_A_ROW} requests failed unexpectedly: {error}")
                self._disable_model(key.model, last)
        # Invariant: the key is counted as missing even if the event cannot be recorded.
        cost = {} if is_agent(key.format) else spent(error)  # an agent's requests are recorded one by one
        self.note(kind_of(error), key, detail=str(error), **cost)
        self.books.add_missing(key, error)

    def stop_with_error(self, error: Exception) -> None:
        """End the run with `error` after requests in flight have finished and are recorded."""
        self.fatal = self.fatal or error
        self.stop()

    def _add_result(self, result: Result) -> None:
        self.books.add_final(result)
        try:
            self.on_result(result)
        except Exception as error:  # noqa: BLE001 - raised when the run has ended
            self.on_result = lambda _: None
            self.stop_with_error(error)

    def _disable_model(self, model: str, error: PoolUnusable) -> None:
        """Start no more requests to a model. The reason of the first call is kept."""
        if model not in self.dead:
            self.dead[model] = error
            if isinstance(error, BudgetExhausted):
                self.note("budget", model=model, detail=str(error), raise_to_usd=error.raise_to_usd)
            else:
                self.note("pool_failed", model=model, detail=str(error))

    def note(self, kind: RecordedKind, key: AnswerKey | None = None, **details: object) -> None:
        """Record an event; if it cannot be recorded, end the run after the requests in flight."""
        try:
            self.directory.record_event(kind, key, **details)
        except Exception as error:  # noqa: BLE001 - any failure to record ends the run
            self.stop_with_error(StorageError(f"{self.directory.path}/events.jsonl: {described(error)}"))
        self._check_disk()

    def _check_disk(self) -> None:
        if self.directory.spool.exhausted:
            self.stop_with_error(self.directory.spool.exhausted)

    async def _publish_regularly(self) -> None:
        """Rewrite problems.csv every few seconds if results were added.

        A failure is recorded as an event. Only a failure of the last write, when the run ends, is raised.
        """
        published = -1
        while True:
            await asyncio.sleep(_PUBLISH_S)
            if published != self.tally.final:
                published = self.tally.final
                try:
                    await self.publish()
                except StorageError as error:
                    self.note("publish_failed", detail=str(error))
