"""All samples of a run: admission, the two stages of each sample, shutdown, and the end invariant.

Each model has a feeder that walks the plan in rounds and keeps at most `max_in_flight` samples asking.
A recorded answer goes on to grading; gradings are admitted by a gate of their own, so that a stop can
let the running ones finish and leave the waiting ones for the next run.

End invariant: planned = final lines + missing, each key once (InvariantError otherwise): a child task
that vanishes from the task group cannot go unnoticed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from astra_async.errors import (
    AstraError,
    BudgetExhausted,
    EngineUnavailable,
    ImageError,
    InvariantError,
    PoolUnusable,
    ProjectError,
    ProviderError,
    SandboxError,
    StorageError,
)
from astra_async.metrics import problems_csv
from astra_async.problems import rounds
from astra_async.running.log import keep_synced, write_atomically
from astra_async.running.sample import ask, grade_sample
from astra_async.testing.verdict import limits_for
from astra_async.types import SampleKey

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from astra_async.metrics import Metrics
    from astra_async.problems.prepare import Prepared
    from astra_async.running.directory import RunDirectory
    from astra_async.running.sample import Asking, Workshop
    from astra_async.types import Format, Result, Trouble

_UNGRADED_AT_ONCE = 1000  # answers waiting for a container before admission pauses
_PUBLISH_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What this call shall bring about.

    `unprepared` holds problems that cannot run, with the reason: their samples are missing.
    `blocks` is the number of consecutive samples of a problem asked together, by model.
    """

    models: tuple[str, ...]
    formats: tuple[Format, ...]
    problem_ids: tuple[str, ...]
    samples: int
    prepared: Mapping[str, Prepared]
    unprepared: Mapping[str, AstraError] = field(default_factory=dict)
    blocks: Mapping[str, int] = field(default_factory=dict)
    max_in_flight: Mapping[str, int] = field(default_factory=dict)

    def keys(self, model: str) -> Iterator[SampleKey]:
        """The model's samples in the order they are asked (DESIGN.md: rounds of blocks)."""
        for problem_id, sample in rounds(self.problem_ids, self.samples, self.blocks.get(model, 1)):
            for fmt in self.formats:
                yield SampleKey(model, fmt, problem_id, sample)

    @property
    def size(self) -> int:
        """Number of samples planned."""
        return len(self.models) * len(self.formats) * len(self.problem_ids) * self.samples


@dataclass(slots=True)
class Tally:
    """Where the planned samples are; `missing` counts by reason, `reasons` has a line for each.

    `answered` counts recorded answers, graded or not.
    """

    planned: int
    answered: int = 0
    final: int = 0
    asking: int = 0
    grading: int = 0
    missing: Counter[Trouble] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)


class Runner:
    """Runs a plan in a run directory; without a workshop it records answers only.

    Attributes:
        tally: counts for the display, current at every moment.
        stopping: set once `stop` was called.
        fatal: why the run cannot go on, if so.
        dead: models of which no answer can be had any more, with the reason.
    """

    def __init__(
        self,
        plan: Plan,
        directory: RunDirectory,
        metrics: Metrics,
        *,
        asking: Asking,
        workshop: Workshop | None,
    ) -> None:
        self.plan = plan
        self.directory = directory
        self.metrics = metrics
        self.asking = asking
        self.tally = Tally(planned=plan.size)
        self.stopping = asyncio.Event()
        self.fatal: AstraError | None = None
        self.dead: dict[str, PoolUnusable] = {}
        self._workshop = workshop
        self._gate = asyncio.Semaphore(workshop.at_once if workshop else 1)
        self._room = asyncio.Semaphore(_UNGRADED_AT_ONCE)
        self._missing: set[SampleKey] = set()

    async def run(self) -> None:
        """Bring about the plan, or as much of it as can be.

        Raises StorageError, ConflictError, EngineUnavailable (the engine did not come back) or
        InvariantError; whatever was recorded until then is resumed by the next run.
        """
        for problem_id, error in self.plan.unprepared.items():
            self.directory.record_event(_trouble(error), problem_id=problem_id, detail=str(error))
        self._count_what_is_there()
        background = (keep_synced(self.directory.logs), self._publish_regularly())
        try:
            async with asyncio.TaskGroup() as outer:
                helpers = [outer.create_task(coroutine) for coroutine in background]
                async with asyncio.TaskGroup() as samples:
                    for model in self.plan.models:
                        samples.create_task(self._feed(model, samples))
                for helper in helpers:
                    helper.cancel()
        except* AstraError as group:
            self.fatal = self.fatal or _first(group)
        finally:
            await self.publish()
        if self.fatal:
            raise self.fatal
        self._check_invariant()

    def stop(self) -> None:
        """Admit nothing more; calls and tests under way come to their end and are recorded."""
        self.stopping.set()
        for pool in self.asking.pools.values():
            pool.stop()

    async def publish(self) -> None:
        """Rewrite problems.csv from the metrics as they stand; the disk is written from a thread."""
        content = problems_csv(self.metrics).encode()
        try:
            await asyncio.to_thread(write_atomically, self.directory.path / "problems.csv", content)
        except StorageError as error:
            self._cannot_go_on(error)

    def _count_what_is_there(self) -> None:
        for model in self.plan.models:
            for key in self.plan.keys(model):
                self.tally.final += key in self.directory.graded
                self.tally.answered += key in self.directory.answered or key in self.directory.graded

    async def _feed(self, model: str, samples: asyncio.TaskGroup) -> None:
        places = asyncio.Semaphore(self.plan.max_in_flight.get(model, 1))
        for key in self.plan.keys(model):
            if key in self.directory.graded:
                continue
            answered = key in self.directory.answered
            if self.stopping.is_set() or (answered and self._workshop is None):
                continue
            if self._is_hopeless(key, answered=answered):
                continue
            await self._room.acquire()
            if answered:
                samples.create_task(self._finish(key))
            else:
                await places.acquire()
                samples.create_task(self._begin(key, places))

    def _is_hopeless(self, key: SampleKey, *, answered: bool) -> bool:
        """Count a sample as missing before it costs anything."""
        error: AstraError | None = self.plan.unprepared.get(key.problem_id)
        if error is None and self._workshop:
            error = self._workshop.expectations.failure(key.problem_id)
        if error is None and not answered:
            error = self.dead.get(key.model)
        if error is not None:
            self._count_missing(key, error)
        return error is not None

    async def _begin(self, key: SampleKey, places: asyncio.Semaphore) -> None:
        """Ask, then grade. The place is given back as soon as the answer is recorded."""
        self.tally.asking += 1
        recorded = False
        try:
            recorded = await self._ask(key)
        finally:
            self.tally.asking -= 1
            places.release()
            if not recorded:
                self._room.release()
        if recorded:
            await self._finish(key)

    async def _ask(self, key: SampleKey) -> bool:
        if self.stopping.is_set() or self._is_hopeless(key, answered=False):
            return False
        if self._workshop:
            self._expect(key.problem_id, self._workshop)
        try:
            await ask(key, self.plan.prepared[key.problem_id], self.directory, self.asking)
        except PoolUnusable as error:
            if self.stopping.is_set():
                return False
            self._bury(key.model, error)
            self._count_missing(key, error)
            return False
        except ProviderError as error:
            self._record_missing(key, error)
            return False
        self.tally.answered += 1
        if self.directory.exhausted:
            self._cannot_go_on(self.directory.exhausted)
        return True

    def _expect(self, problem_id: str, workshop: Workshop) -> None:
        limits = limits_for(self.plan.prepared[problem_id], workshop.limits)
        workshop.sandbox.expect(workshop.images[problem_id], limits)

    async def _finish(self, key: SampleKey) -> None:
        self.tally.grading += 1
        try:
            if self._workshop:
                await self._grade(key, self._workshop)
        except (ProjectError, SandboxError) as error:
            self._record_missing(key, error)
            if isinstance(error, EngineUnavailable):
                self._cannot_go_on(error)
        except StorageError as error:
            self._cannot_go_on(error)  # not raised: that would cancel calls that are paid
        finally:
            self.tally.grading -= 1
            self._room.release()

    async def _grade(self, key: SampleKey, workshop: Workshop) -> None:
        prepared = self.plan.prepared[key.problem_id]
        for delay_s in (*workshop.retry_delays_s, None):
            async with self._gate:
                if self.stopping.is_set():
                    return
                try:
                    result = await grade_sample(key, prepared, self.directory, workshop)
                except (ImageError, EngineUnavailable):
                    raise  # nothing changes by waiting; the sandbox has waited for its engine already
                except SandboxError as error:
                    if delay_s is None:
                        raise
                    self.directory.record_event("sandbox_retry", key, detail=str(error), seconds=delay_s)
                else:
                    self._count(result)
                    return
            await asyncio.sleep(delay_s)  # outside the gate: waiting holds nothing

    def _cannot_go_on(self, error: AstraError) -> None:
        """End the run with this error, after calls that are under way (and paid) were recorded."""
        self.fatal = self.fatal or error
        self.stop()

    def _count(self, result: Result) -> None:
        self.tally.final += 1
        self.metrics.add(
            result.model,
            result.format,
            result.problem_id,
            result.passed,
            result.total,
            status=result.status,
            failure=result.failure,
        )

    def _bury(self, model: str, error: PoolUnusable) -> None:
        if model not in self.dead:
            self.dead[model] = error
            kind = "budget" if isinstance(error, BudgetExhausted) else "pool_failed"
            self.directory.record_event(kind, model=model, detail=str(error))

    def _record_missing(self, key: SampleKey, error: AstraError) -> None:
        details = {}
        if isinstance(error, ProviderError):
            details = {
                "attempts": error.attempts,
                "cost_usd": error.cost_usd,
                "cost_estimated": error.cost_estimated,
                "status": error.status,
            }
        self.directory.record_event(_trouble(error), key, detail=str(error), **details)
        self._count_missing(key, error)

    def _count_missing(self, key: SampleKey, error: AstraError) -> None:
        self._missing.add(key)
        self.tally.missing[_trouble(error)] += 1
        self.tally.reasons[str(error)] += 1

    def _check_invariant(self) -> None:
        if self.stopping.is_set():
            return
        done = self.directory.graded if self._workshop else self.directory.answered | self.directory.graded
        lost: list[SampleKey] = []
        twice: list[SampleKey] = []
        for model in self.plan.models:
            for key in self.plan.keys(model):
                if (key in done) == (key in self._missing):
                    (twice if key in done else lost).append(key)
        if lost or twice:
            named = ", ".join(str(key) for key in (lost + twice)[:5])
            raise InvariantError(
                f"{len(lost)} samples are neither recorded nor missing, {len(twice)} are both: {named};"
                " please report this, the recorded lines are sound"
            )

    async def _publish_regularly(self) -> None:
        published = -1
        while True:
            await asyncio.sleep(_PUBLISH_S)
            if published != self.tally.final:
                published = self.tally.final
                await self.publish()


def _trouble(error: AstraError) -> Trouble:
    if isinstance(error, ProviderError):
        return "provider_error"
    return "sandbox_error" if isinstance(error, SandboxError) else "project_error"


def _first(group: BaseExceptionGroup[AstraError]) -> AstraError:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, AstraError)  # noqa: S101 - `except*` lets nothing else in
    return error
