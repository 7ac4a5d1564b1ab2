"""What may pass: a fetch is tried again, and a body that trickles is given up to be asked for again."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, TypeVar

from astra_async.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

ATTEMPTS = 5
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
WINDOW_S = 60.0
LEAST_BYTES_PER_S = 1024


class Passing(SourceError):  # noqa: N818 - a state of the source
    """A fetch failed in a way that may pass; `hint_s` is the pause that the server asked for."""

    def __init__(
        self, cause: str, *, where: str = "", problem_id: str = "", hint_s: float | None = None
    ) -> None:
        super().__init__(cause, where=where, problem_id=problem_id)
        self.hint_s = hint_s


async def retried(
    attempt: Callable[[], Awaitable[T]], *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> T:
    """The result of the first attempt that succeeds, with doubling, jittered pauses in between.

    Raises:
        Passing: the last attempt's trouble.
    """
    for number in range(ATTEMPTS - 1):
        try:
            return await attempt()
        except Passing as trouble:
            jitter = random.uniform(0.5, 1.5)  # noqa: S311 - spreads clients, guards nothing
            pause = trouble.hint_s or _FIRST_PAUSE_S * 2**number * jitter
        await sleep(min(pause, _LONGEST_PAUSE_S))
    return await attempt()


class TrickleWatch:
    """Watches the pieces of one body: a byte now and then keeps every idle timer quiet, for ever.

    Args:
        shown: the body's location, for the message.
        clock: monotonic seconds.
    """

    def __init__(self, shown: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._shown = shown
        self._clock = clock
        self._window_began = clock()
        self._bytes = 0

    def came(self, size_bytes: int) -> None:
        """A piece has come. Raises Passing after WINDOW_S seconds with less than LEAST_BYTES_PER_S."""
        self._bytes += size_bytes
        elapsed_s = self._clock() - self._window_began
        if elapsed_s < WINDOW_S:
            return
        if self._bytes < LEAST_BYTES_PER_S * elapsed_s:
            raise Passing(
                f"{self._shown}: only {self._bytes:,} bytes came in {elapsed_s:.0f} s;"
                " check the connection, or copy the archives here and name them by --projects"
            )
        self._window_began, self._bytes = self._clock(), 0
