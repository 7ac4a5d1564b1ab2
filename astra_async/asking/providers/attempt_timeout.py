"""Time-outs of one attempt: for silence and for the whole duration.

If a process was suspended, its timers expire before it has read the data that arrived during the suspension,
and a complete, paid answer would be lost. A timer that fires late therefore only schedules a second check.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Self

import aiohttp

if TYPE_CHECKING:
    from types import TracebackType

CONNECT_TIMEOUT_S = 30.0
WHOLE_ATTEMPT_FACTOR = 6.0
_LATE_S = 1.0
_SECOND_CHECK_S = 5.0
_GRACE_S = 10.0


class AttemptTimeout(AbstractAsyncContextManager["AttemptTimeout"]):
    """Context manager that limits the silence and the duration of its block.

    On time-out, TimeoutError is raised in the block or in the stream given to `watch_stream`.

    Attributes:
        whole_s: maximum duration of the block in seconds.
        is_too_long: the block lasted longer than `whole_s`.
        is_timed_out: the block timed out, because of its duration or of silence.
    """

    def __init__(self, *, silence_s: float, whole_s: float | None = None) -> None:
        self.whole_s = WHOLE_ATTEMPT_FACTOR * silence_s if whole_s is None else whole_s
        self.is_too_long = self.is_timed_out = False
        self._silence_s = silence_s
        self._began = self._data_at = self._check_at = 0.0
        self._ends_at = math.inf
        self._timeout = asyncio.Timeout(None)
        self._timer: asyncio.TimerHandle | None = None
        self._content: aiohttp.StreamReader | None = None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        await self._timeout.__aenter__()
        self._began = self._data_at = self._loop.time()
        self._schedule(self._due())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._timeout.__aexit__(kind, error, trace)

    def watch_stream(self, content: aiohttp.StreamReader) -> None:
        """Raise later time-outs for silence in this stream, so that its reader can still return an answer."""
        self._content = content
        self.record_data()

    def record_data(self, *, settled: bool = False) -> None:
        """Record that data arrived. If `settled` (the answer is complete), only a short time is left."""
        self._data_at = now = self._loop.time()
        if settled != (self._ends_at < math.inf):
            self._ends_at = now + min(_GRACE_S, self._silence_s) if settled else math.inf
            if self._timer is not None:
                self._timer.cancel()
            self._schedule(self._due())

    def describe(self) -> str:
        """Return a description of the time-out."""
        if self.is_too_long:
            return f"no end after {self.whole_s:.0f} s (6 x timeout_s in [[models]])"
        silence = f"no data for {self._silence_s:g} s (timeout_s in [[models]])"
        return f"{silence}, or no connection within {CONNECT_TIMEOUT_S:g} s"

    def _due(self) -> float:
        return min(self._data_at + self._silence_s, self._began + self.whole_s, self._ends_at)

    def _schedule(self, at: float) -> None:
        self._check_at = at
        self._timer = self._loop.call_at(at, self._check)

    def _check(self) -> None:
        now = self._loop.time()
        if now - self._check_at > _LATE_S:
            self._schedule(now + _SECOND_CHECK_S)
        elif now < self._due():
            self._schedule(self._due())
        else:
            self._time_out(now)

    def _time_out(self, now: float) -> None:
        self.is_timed_out = True
        self.is_too_long = now >= self._began + self.whole_s
        if self._content is None or self.is_too_long:
            self._timeout.reschedule(now)
        else:
            self._content.set_exception(aiohttp.SocketTimeoutError("no data arrived"))
