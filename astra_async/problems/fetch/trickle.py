"""A body that trickles is given up: a byte now and then keeps every idle timer quiet, for ever."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from astra_async.problems.fetch.retrying import Passing

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOW_S = 60.0
LEAST_BYTES_PER_S = 1024


class TrickleWatch:
    """Watches the pieces of one body as they come.

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
