"""Who may begin what: the limits of a run, none of which one model can exhaust for another.

Each model has its own places for calls and its own room for answers that wait for their tests. The turns to
run tests are everybody's, and are given to the models one after the other.
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

_READ_AT_ONCE = 4  # answers of a model that are being read, or are read and wait for a permit to be tested


@dataclass(eq=False, kw_only=True)
class Admission:
    """The limits of one model's samples, which are counted as they come and go.

    Invariants: `asking` is at most the number of places; nothing new is asked while as many answers as
    there is room for wait for their tests, but every answer to what was asked is taken. Further turns of a
    sample come in beside that; nothing new begins until they have found room. From its beginning to its end
    a sample is counted as asked or as waiting, here and in the tally.

    Attributes:
        asking: samples whose answer is being asked for.
        waiting: samples whose answer is recorded and not yet graded.
        unexpected: calls in a row that ended with what no provider should raise.
        permits, stopping: everybody's turns to test; set once nothing more is begun.
        on_answer: called when an answer was recorded; `recorded` holds its key then.
    """

    tally: Tally
    places: float
    room: float
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
        """Wait until one more sample may begin to ask, or to be graded if its answer is recorded."""
        while self.waiting >= self.room or (not answered and self.asking >= self.places):
            self._changed.clear()
            await self._changed.wait()

    def passage(self, key: AnswerKey) -> Passage:
        """Begin, for a further turn although there may be no room: turns are bounded by their samples."""
        answered = key in self.recorded
        self._count(key, 1, answered=answered)
        return Passage(self, key, answered)

    def answered(self, key: AnswerKey) -> None:
        """One that was asking waits for its tests now."""
        self._count(key, -1, answered=False)
        self._count(key, 1, answered=True)
        self.tally.of(key).answered += 1
        self.unexpected = 0
        self._changed.set()

    def leave(self, key: AnswerKey, *, answered: bool) -> None:
        """One that was asking, or was waiting for its tests, is gone."""
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


class Stopped(Exception):  # noqa: N818 - no error: the sample is left for the next call
    """The run is coming to its end, and this sample's next stage is not begun."""


@dataclass(slots=True)
class Passage:
    """Admits one sample to its stages, or raises Stopped; counted from its beginning to `leave`."""

    admission: Admission
    key: AnswerKey
    is_answered: bool

    def answered(self) -> None:
        """The answer is recorded: what comes now costs no money."""
        self.is_answered = True
        self.admission.answered(self.key)
        self.admission.on_answer()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """A turn to read an answer: few of them lie in memory at a time."""
        async with self.admission.reading:
            self._raise_if_stopping()
            yield

    @asynccontextmanager
    async def testing(self) -> AsyncIterator[None]:
        """A turn to run tests."""
        async with self.admission.permits.permit(self.key.model):
            self._raise_if_stopping()
            yield

    async def pause(self, seconds: float) -> None:
        """Wait before a repetition, holding nothing."""
        try:
            async with asyncio.timeout(seconds):
                await self.admission.stopping.wait()
        except TimeoutError:
            return
        raise Stopped

    def leave(self) -> None:
        """The sample has come to its end, whichever."""
        self.admission.leave(self.key, answered=self.is_answered)

    def _raise_if_stopping(self) -> None:
        if self.admission.stopping.is_set():
            raise Stopped


class FairPermits:
    """So many permits to test at a time, given to the models in rotation: each waits only for its own queue.

    Invariant: a permit is free only while no sample waits for one.
    """

    def __init__(self, permits: int) -> None:
        self._permits = permits
        self._free = permits  # below 0: so many that are held now are not given again
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # the first of them is the next model

    @asynccontextmanager
    async def permit(self, model: str) -> AsyncIterator[None]:
        """Wait for a permit, and hold it."""
        if self._free > 0:
            self._free -= 1
        else:
            await self._wait(model)
        try:
            yield
        finally:
            self._pass_on()

    def resize(self, permits: int) -> None:
        """From now on there are so many; those that are held beyond it come to their end."""
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
                self._pass_on()  # its permit had come just before
            raise

    def _pass_on(self) -> None:
        while self._waiting and self._free >= 0:
            model = next(iter(self._waiting))
            queue = self._waiting.pop(model)
            called = queue.popleft()
            if queue:
                self._waiting[model] = queue  # behind the other models
            if not called.done():
                called.set_result(None)
                return
        self._free += 1
