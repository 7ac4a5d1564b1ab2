"""Handling of SIGINT, SIGTERM and SIGHUP (closed terminal): the first drains, the second stops at once.

Stopping at once has a deadline. The program does not wait for slower work (an engine that does not answer, a
thread that reads a huge archive). Recorded data is not lost.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

AT_ONCE_S = 1.7  # seconds; the promise is two seconds, including the end of the process
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopper:
    """Signal handler of this process while installed.

    Attributes:
        received: number of the first signal, or None; 128 + it is the exit code.
        at_once: True after the second signal; start no work that can be done later.
    """

    def __init__(
        self, on_first: Callable[[], None] | None = None, *, on_late: Callable[[], None] | None = None
    ) -> None:
        """`on_first` starts draining (None: nothing to drain); `on_late` ends the process."""
        self.received: int | None = None
        self.at_once = False
        self._on_first = on_first
        self._on_late = on_late
        self._task = asyncio.current_task()
        self._terminals = [descriptor for descriptor in (0, 1, 2) if os.isatty(descriptor)]

    @contextmanager
    def installed(self) -> Iterator[Stopper]:
        """Handle the signals within this block; the second one cancels the task that entered it."""
        loop = asyncio.get_running_loop()
        # Signals that were ignored at the start stay ignored, because `nohup` relies on this.
        numbers = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        for number in numbers:
            loop.add_signal_handler(number, self._handle, number)
        try:
            yield self
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)
                if self.at_once:  # a third signal has no effect, because it would hide the exit code
                    signal.signal(number, signal.SIG_IGN)

    def drains(self, on_first: Callable[[], None]) -> None:
        """Set the drain callback; from now on the first signal cancels nothing."""
        self._on_first = on_first

    def is_closing(self) -> None:
        """Mark the start of cleaning up: signals no longer cancel the task; the second sets a deadline."""
        self._on_first = lambda: None
        self._task = None

    def _handle(self, number: int) -> None:
        if number == signal.SIGHUP:
            _let_go(self._terminals)
        is_first = self.received is None
        self.received = self.received or number
        if is_first and self._on_first is not None:
            self._on_first()
        elif not self.at_once:
            self._stop_at_once()

    def _stop_at_once(self) -> None:
        self.at_once = True
        if self._task is not None:
            self._task.cancel()
        if self._on_late is not None:
            asyncio.get_running_loop().call_later(AT_ONCE_S, self._on_late)


def _let_go(terminals: Sequence[int]) -> None:
    """Redirect output to /dev/null after the terminal was closed, so that draining does not fail."""
    for descriptor in terminals:
        if not os.isatty(descriptor):
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
