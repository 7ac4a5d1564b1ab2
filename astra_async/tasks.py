"""Cancellation of asyncio tasks, and a base class for closable objects."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Any, Self


async def cancel(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait for their end; results and exceptions are dropped."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def mark_retrieved(task: asyncio.Future[Any]) -> None:
    """Mark a task's exception as retrieved; only awaiters handle it, and there may be none."""
    if not task.cancelled():
        task.exception()


class Closing(ABC):
    """An async context manager that calls `close` on exit."""

    @abstractmethod
    async def close(self) -> None:
        """Release all resources."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
