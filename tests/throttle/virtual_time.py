"""Event loop in virtual time: its clock jumps to the next timer, so hours pass in milliseconds."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Deadlock(Exception):  # noqa: N818 - names what was seen
    """No task is ready and no timer is set, so the program would wait forever."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """Event loop whose `time()` advances only if no task is ready."""

    def __init__(self) -> None:
        self.now = 1000.0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        return self.now


class _JumpingSelector(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise Deadlock
        if timeout > 0:
            self._loop.now += timeout
        return super().select(0)


def run(main: Callable[[VirtualLoop], Coroutine[Any, Any, T]]) -> T:
    """Run `main(loop)` to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        return runner.run(main(loop))
