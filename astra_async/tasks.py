"""Tasks of asyncio that end together, and what is closed at its end."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Any, Self


async def cancel(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait until each has ended; their outcomes and errors are dropped."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def seen(task: asyncio.Future[Any]) -> None:
    """Take note of a task that has ended: its failure is its awaiters' alone, and none may be left."""
    if not task.cancelled():
        task.exception()


class Closing(ABC):
    """An asynchronous context manager that closes itself."""

    @abstractmethod
    async def close(self) -> None:
        """Release what it holds."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
