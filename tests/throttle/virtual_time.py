"""An event loop whose clock jumps to the next timer: hours pass in milliseconds, in exact order."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Deadlock(Exception):  # noqa: N818 - names what was seen
    """Nothing is ready and no timer is set: the program would wait for ever."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` is virtual and moves only when there is nothing else to do."""

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
