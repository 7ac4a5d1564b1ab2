"""Who may begin what: the limits of a run, none of which one model can exhaust for another.

Each model has its own places for calls and its own room for answers that wait for their tests. The turns to
run tests are everybody's, and are given to the models one after the other.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from astra_async.running.plan import Tally
    from astra_async.types import AnswerKey

_READ_AT_ONCE = 4  # answers of a model that are being read, or are read and wait for a permit to be tested


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
    """

    def __init__(self, tally: Tally, places: float, room: float) -> None:
        self.asking = 0
        self.waiting = 0
        self.unexpected = 0
        self.reading = asyncio.Semaphore(_READ_AT_ONCE)
        self._tally = tally
        self._places = places
        self._room = room
        self._changed = asyncio.Event()

    async def until_room(self, *, answered: bool) -> None:
        """Wait until one more sample may begin to ask, or to be graded if its answer is recorded."""
        while self.waiting >= self._room or (not answered and self.asking >= self._places):
            self._changed.clear()
            await self._changed.wait()

    def enter(self, key: AnswerKey, *, answered: bool) -> None:
        """Begin, for a further turn although there may be no room: turns are bounded by their samples."""
        self._count(key, 1, answered=answered)

    def answered(self, key: AnswerKey) -> None:
        """One that was asking waits for its tests now."""
        self._count(key, -1, answered=False)
        self._count(key, 1, answered=True)
        self._tally.of(key).answered += 1
        self.unexpected = 0
        self._changed.set()

    def leave(self, key: AnswerKey, *, answered: bool) -> None:
        """One that was asking, or was waiting for its tests, is gone."""
        self._count(key, -1, answered=answered)
        self._changed.set()

    def _count(self, key: AnswerKey, by: int, *, answered: bool) -> None:
        counts = self._tally.of(key)
        if answered:
            self.waiting += by
            counts.grading += by
        else:
            self.asking += by
            counts.asking += by


class FairPermits:
    """So many permits to test at a time, given to the models in rotation: each waits only for its own queue.

    Invariant: a permit is free only while nobody waits for one.
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
