"""SIGINT, SIGTERM and SIGHUP (the terminal is gone): once drains, twice stops at once.

Stopping at once has a deadline. What has not ended by then (an engine that answers slowly or never, a thread
that reads a huge archive) is not waited for: a process that ends so loses nothing that it has recorded.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

AT_ONCE_S = 1.7  # of the two seconds that are promised; the rest is for the process to end
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopper:
    """Counts the signals of this process while installed.

    Attributes:
        received: number of the first signal, or None; 128 + it is the exit code.
        at_once: the work was broken off, and nothing that can be done later is to be begun.
    """

    def __init__(
        self, on_first: Callable[[], None] | None = None, *, on_late: Callable[[], None] | None = None
    ) -> None:
        """`on_first` begins to drain (None: there is nothing to drain); `on_late` ends the process."""
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
        # What was ignored when the process began stays so: that is what `nohup` is for.
        numbers = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        for number in numbers:
            loop.add_signal_handler(number, self._handle, number)
        try:
            yield self
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)
                if self.at_once:  # a third one has nothing left to hurry, and would hide the exit code
                    signal.signal(number, signal.SIG_IGN)

    def drains(self, on_first: Callable[[], None]) -> None:
        """From now on there is something to drain: the first signal cancels nothing."""
        self._on_first = on_first

    def is_closing(self) -> None:
        """From now on the task only tidies up: it is never cancelled, and has `AT_ONCE_S` if hurried."""
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
    """Where the terminal has gone, what is written to it goes nowhere, instead of failing in mid-drain."""
    for descriptor in terminals:
        if not os.isatty(descriptor):
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)
