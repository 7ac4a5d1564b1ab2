"""Cancellation of asyncio tasks, and context managers that close objects."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


async def cancel(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait for their end; results and exceptions are dropped."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def mark_retrieved(task: asyncio.Future[Any]) -> None:
    """Mark a task's exception as retrieved; only awaiters handle it, and there may be none."""
    if not task.cancelled():
        task.exception()


@asynccontextmanager
async def closed_on_error(close: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """Call `close` if the block raises an exception or is cancelled."""
    try:
        yield
    except BaseException:
        await close()
        raise


class Closing(ABC):
    """An async context manager that calls `close` on exit."""

    @abstractmethod
    async def close(self) -> None:
        """Release all resources."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
