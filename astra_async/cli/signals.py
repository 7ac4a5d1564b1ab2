"""SIGINT and SIGTERM: once drains, twice stops at once."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopper:
    """Counts the signals of this process while installed.

    Attributes:
        received: number of the first signal, or None; 128 + it is the exit code.
    """

    def __init__(self, on_first: Callable[[], None]) -> None:
        self.received: int | None = None
        self._on_first = on_first
        self._task = asyncio.current_task()

    @contextmanager
    def installed(self) -> Iterator[Stopper]:
        """Handle the signals within this block; the second one cancels the task that entered it."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._handle, number)
        try:
            yield self
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    def _handle(self, number: int) -> None:
        if self.received is None:
            self.received = number
            self._on_first()
        elif self._task is not None:
            self._task.cancel()
