"""Server in a thread of the test process, with a separate event loop."""

from __future__ import annotations

import asyncio
import socket
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


class ThreadedServer(ABC):
    """A context manager; `loop` runs in the thread while it is open."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_task_factory(self._task)
        # A loop itself keeps none whose connection is lost.
        self._tasks: set[asyncio.Task[Any]] = set()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._listening: asyncio.Server

    @abstractmethod
    async def listen(self) -> asyncio.Server:
        """Start listening, and set the values that depend on the address."""

    def __enter__(self) -> Self:
        self._thread.start()
        self._listening = asyncio.run_coroutine_threadsafe(self.listen(), self.loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def _task(self, loop: asyncio.AbstractEventLoop, what: Any, **options: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(what, loop=loop, **options)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _end(self) -> None:
        self._listening.close()
        while others := asyncio.all_tasks() - {
            asyncio.current_task()
        }:  # a task may start another one at its end
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)


def free_port() -> int:
    """Return a free port of 127.0.0.1 for a program with a port option."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def answers_at(port: int) -> bool:
    """Return True if a process listens on a port of 127.0.0.1."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
