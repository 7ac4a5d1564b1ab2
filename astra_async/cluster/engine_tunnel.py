"""The way from the head to a node's Docker Engine: a local socket, carried to the node's worker and on.

Each connection to the socket has one of its own to the worker, opened like all others of the cluster (TLS
where it has that). After a first message on both sides it carries the engine's bytes as they are, and no Dask
messages.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from astra_async.cluster.messages import ENGINE, connected
from astra_async.tasks import cancel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from distributed.comm import Comm

_PIECE_BYTES = 64 * 1024


async def carried(comm: Comm, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry bytes both tasks until one side has no more; then both are closed."""
    far: Any = comm.stream  # tornado's, of tcp:// and tls://

    async def to_far() -> None:
        while piece := await reader.read(_PIECE_BYTES):
            await far.write(piece)

    async def to_near() -> None:
        while True:
            writer.write(await far.read_bytes(_PIECE_BYTES, partial=True))
            await writer.drain()

    tasks = [asyncio.create_task(to_far()), asyncio.create_task(to_near())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel(*tasks)
        writer.close()
        comm.abort()


class EngineTunnel:
    """A node's engine as `docker_host`; an asynchronous context manager. Nobody but this user gets to it."""

    def __init__(self, address: str, run_id: str, connection: Mapping[str, Any]) -> None:
        self._address, self._run_id, self._connection = address, run_id, connection
        self._folder = Path(tempfile.mkdtemp(prefix="astra-"))
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    @property
    def docker_host(self) -> str:
        """The address that leads there while this is open."""
        return f"unix://{self._folder}/docker.sock"

    async def __aenter__(self) -> Self:
        path = self.docker_host.removeprefix("unix://")
        self._server = await asyncio.start_unix_server(self._accept, path)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cut()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def cut(self) -> None:
        """End every connection, and take no more."""
        if self._server is not None:
            self._server.close()
        await cancel(*self._open)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._carry(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):  # whoever asked the engine sees a connection that ends
            try:
                async with connected(self._address, self._connection) as comm:
                    await comm.write({"op": ENGINE, "run_id": self._run_id})
                    await comm.read()
                    await carried(comm, reader, writer)
            finally:
                writer.close()
