"""Concurrency limits of a run, designed so that one model's backlog cannot delay another model.

Each model has its own limits for requests in flight and for ungraded answers. All models share the test
permits, which are granted to the models round-robin.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Container

    from astra_async.running.plan import Tally
    from astra_async.types import AnswerKey

_READ_AT_ONCE = 4  # answers of one model that are being parsed, or are parsed and wait for a test permit


@dataclass(eq=False, kw_only=True)
class Admission:
    """Limits and counters for the samples of one model.

    Invariants: new requests start only while `asking` is below `max_asking` and `waiting` is below
    `max_waiting`. Answers to requests already sent are always accepted. Follow-up turns may exceed both
    limits; new samples then wait until the counters are below the limits again. A sample is counted in
    either `asking` or `waiting` from start to finish, here and in the tally.

    Attributes:
        max_asking: maximum number of samples in `asking`; infinity for no limit.
        max_waiting: maximum number of samples in `waiting`; infinity for no limit.
        permits: test permits, shared by all models.
        stopping: event that is set when the run stops starting work.
        on_answer: callback that is called after an answer was recorded.
        recorded: keys of all recorded answers.
        asking: number of samples that have requested an answer and not received it.
        waiting: number of samples with a recorded answer that is not graded yet.
        unexpected: number of consecutive requests that failed with an unexpected exception type.
        reading: semaphore that limits the parsed answers in memory.
    """

    tally: Tally
    max_asking: float
    max_waiting: float
    permits: FairPermits
    stopping: asyncio.Event
    on_answer: Callable[[], None]
    recorded: Container[AnswerKey]
    asking: int = 0
    waiting: int = 0
    unexpected: int = 0
    reading: asyncio.Semaphore = field(default_factory=partial(asyncio.Semaphore, _READ_AT_ONCE))
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait_for_slot(self, *, answered: bool) -> None:
        """Wait until one more sample may start; `answered` samples only need to be graded."""
        while self.waiting >= self.max_waiting or (not answered and self.asking >= self.max_asking):
            self._changed.clear()
            await self._changed.wait()

    def resize(self, max_asking: float) -> None:
        """Change the limit of samples in `asking`; samples that wait for a slot check it again."""
        self.max_asking = max_asking
        self._changed.set()

    def start(self, key: AnswerKey) -> Passage:
        """Count a sample or a follow-up turn as started.

        Limits are not checked here: a follow-up turn starts even if its model is at a limit. A
        sample has at most one turn under way, so the excess is bounded.
        """
        answered = key in self.recorded
        self._count(key, 1, answered=answered)
        return Passage(self, key, answered)

    def answered(self, key: AnswerKey) -> None:
        """Count a sample as answered and waiting for its tests."""
        self._count(key, -1, answered=False)
        self._count(key, 1, answered=True)
        self.tally.of(key).answered += 1
        self.unexpected = 0
        self._changed.set()

    def leave(self, key: AnswerKey, *, answered: bool) -> None:
        """Stop counting a sample that finished or failed."""
        self._count(key, -1, answered=answered)
        self._changed.set()

    def _count(self, key: AnswerKey, by: int, *, answered: bool) -> None:
        counts = self.tally.of(key)
        if answered:
            self.waiting += by
            counts.grading += by
        else:
            self.asking += by
            counts.asking += by


class Stopped(Exception):  # noqa: N818 - not an error: the next invocation continues the sample
    """Raised instead of starting a sample's next stage because the run is stopping."""


@dataclass(slots=True)
class Passage:
    """One sample under way, counted in its model's Admission until `leave` is called.

    The sample acquires its slots and permits here. The methods raise Stopped instead if the run is stopping.
    """

    admission: Admission
    key: AnswerKey
    is_answered: bool

    def answered(self) -> None:
        """Count the sample as answered; later stages send no paid requests."""
        self.is_answered = True
        self.admission.answered(self.key)
        self.admission.on_answer()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Hold a slot to parse an answer; the slots limit memory use. Raises Stopped."""
        async with self.admission.reading:
            self._raise_if_stopping()
            yield

    @asynccontextmanager
    async def testing(self) -> AsyncIterator[None]:
        """Hold a permit to run tests. Raises Stopped."""
        async with self.admission.permits.permit(self.key.model):
            self._raise_if_stopping()
            yield

    async def pause(self, seconds: float) -> None:
        """Wait before a retry, without holding a slot. Raises Stopped as soon as the run stops."""
        try:
            async with asyncio.timeout(seconds):
                await self.admission.stopping.wait()
        except TimeoutError:
            return
        raise Stopped

    def leave(self) -> None:
        """Stop counting the sample, whether it succeeded or failed."""
        self.admission.leave(self.key, answered=self.is_answered)

    def _raise_if_stopping(self) -> None:
        if self.admission.stopping.is_set():
            raise Stopped


class FairPermits:
    """Limit on concurrent test runs, granted to models round-robin.

    A backlog of one model cannot delay another model. Invariant: a permit is free only while no sample
    waits for a permit.
    """

    def __init__(self, permits: int) -> None:
        self._permits = permits
        self._free = permits  # negative after a reduction: that many held permits are not reissued
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # by model; the first model is served next

    @asynccontextmanager
    async def permit(self, model: str) -> AsyncIterator[None]:
        """Wait for a permit and hold it for the duration of the context."""
        if self._free > 0:
            self._free -= 1
        else:
            await self._wait(model)
        try:
            yield
        finally:
            self._pass_on()

    def resize(self, permits: int) -> None:
        """Change the number of permits; permits already held are not revoked."""
        more, self._permits = permits - self._permits, permits
        if more < 0:
            self._free += more
        for _ in range(more):
            self._pass_on()

    async def _wait(self, model: str) -> None:
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(model, deque()).append(called)
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():
                self._pass_on()  # the permit was granted just before the cancellation
            raise

    def _pass_on(self) -> None:
        while self._waiting and self._free >= 0:
            model = next(iter(self._waiting))
            queue = self._waiting.pop(model)
            called = queue.popleft()
            if queue:
                self._waiting[model] = queue  # move the model behind the other models
            if not called.done():
                called.set_result(None)
                return
        self._free += 1
