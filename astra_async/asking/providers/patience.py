"""How long an attempt may be silent, and how long it may last, by a clock that may have gone on without us.

A process that stood still (stopped and continued, its machine suspended or overwhelmed) finds its timers
over before it has read what came meanwhile: an answer that is there, and paid for, would be thrown away. So a
timer that comes late concludes nothing; it looks again a little later.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Self

import aiohttp

if TYPE_CHECKING:
    from types import TracebackType

_LATE_S = 1.0
_SECOND_LOOK_S = 5.0


class Patience(AbstractAsyncContextManager["Patience"]):
    """Bounds the block within; it raises TimeoutError there, or in the stream that it listens to.

    Attributes:
        whole_s: seconds that the block may last.
        is_over: the block lasted longer than that.
    """

    def __init__(self, *, silence_s: float, whole_s: float) -> None:
        self.whole_s = whole_s
        self.is_over = False
        self._silence_s = silence_s
        self._loop = asyncio.get_running_loop()
        self._began = self._heard_at = self._looks_at = 0.0
        self._timeout = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None
        self._content: aiohttp.StreamReader | None = None

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._began = self._heard_at = self._loop.time()
        self._look_at(self._due())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._timeout.__aexit__(kind, error, trace)

    def listen_to(self, content: aiohttp.StreamReader) -> None:
        """From now on silence ends this stream, whose reader may have all that it needs."""
        self._content = content
        self.heard()

    def heard(self) -> None:
        """A byte has come."""
        self._heard_at = self._loop.time()

    def _due(self) -> float:
        return min(self._heard_at + self._silence_s, self._began + self.whole_s)

    def _look_at(self, moment: float) -> None:
        self._looks_at = moment
        self._timer = self._loop.call_at(moment, self._look)

    def _look(self) -> None:
        now = self._loop.time()
        if now - self._looks_at > _LATE_S:
            self._look_at(now + _SECOND_LOOK_S)
        elif now < self._due():
            self._look_at(self._due())
        else:
            self._conclude(now)

    def _conclude(self, now: float) -> None:
        self.is_over = now >= self._began + self.whole_s
        if self._content is None or self.is_over:
            self._timeout.reschedule(now)
        else:
            self._content.set_exception(aiohttp.SocketTimeoutError("no byte came"))
