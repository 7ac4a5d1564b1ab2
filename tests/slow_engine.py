"""Proxy before Docker's socket with slow, fragmented or missing responses."""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from threaded_server import ThreadedServer

if TYPE_CHECKING:
    from types import TracebackType

_PIECES = 8
_PAUSES = 60  # between two pieces, as parts of the longest delay


class SlowEngine(ThreadedServer):
    """Between the program and an engine.

    Attributes:
        host: for DOCKER_HOST.
        longest_s: the most that an answer's first byte is held back (a third of it at least); 0: nothing is.
        unanswered: how requests begin that nobody ever answers (b"DELETE"), if any do.
    """

    def __init__(self, longest_s: float, *, behind: str = "/var/run/docker.sock") -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp(prefix="astra-"))  # short: a socket's path has at most 107 bytes
        self.host = f"unix://{self._folder}/docker.sock"
        self.longest_s = longest_s
        self.unanswered: bytes | None = None
        self._passing = asyncio.Event()
        self._passing.set()
        self._behind = behind
        self._random = random.Random(7)

    async def listen(self) -> asyncio.Server:
        return await asyncio.start_unix_server(self._serve, f"{self._folder}/docker.sock", backlog=512)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        shutil.rmtree(self._folder)

    def hang(self) -> None:
        """Hold all requests and responses."""
        self.loop.call_soon_threadsafe(self._passing.clear)

    def go_on(self) -> None:
        """Forward the held data."""
        self.loop.call_soon_threadsafe(self._passing.set)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        their_reader, their_writer = await asyncio.open_unix_connection(self._behind)
        asked = asyncio.Event()

        async def up() -> None:
            with suppress(ConnectionError):
                while data := await reader.read(2**16):
                    await self._passing.wait()
                    if self.unanswered is not None and data.startswith(self.unanswered):
                        continue
                    asked.set()
                    their_writer.write(data)
                    await their_writer.drain()
            with suppress(OSError):
                their_writer.write_eof()

        async def down() -> None:
            with suppress(ConnectionError):
                while data := await their_reader.read(2**16):
                    if asked.is_set():
                        asked.clear()
                        await asyncio.sleep(self._random.uniform(self.longest_s / 3, self.longest_s))
                    await self._trickle(writer, data)

        ways = [asyncio.create_task(up()), asyncio.create_task(down())]
        try:
            with suppress(asyncio.CancelledError):
                await ways[1]
        finally:
            ways[0].cancel()
            writer.close()
            their_writer.close()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _trickle(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        size = max(1, -(-len(data) // _PIECES))
        for start in range(0, len(data), size):
            await self._passing.wait()
            writer.write(data[start : start + size])
            await writer.drain()
            await asyncio.sleep(self.longest_s / _PAUSES)
