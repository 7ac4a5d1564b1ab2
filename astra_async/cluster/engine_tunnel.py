"""Tunnel from the head to a node's Docker Engine: a local socket, forwarded to the node's worker.

Each connection to the socket has its own connection to the worker, opened like all others of the cluster
(with TLS if configured). After one initial message in each direction, it carries the engine's raw bytes.
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
    """Forward bytes in both directions until one side ends; then close both."""
    far: Any = comm.stream  # the tornado stream of tcp:// and tls://

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
    """Async context manager that offers a node's engine as `docker_host`; accessible to this user only."""

    def __init__(self, address: str, run_id: str, connection: Mapping[str, Any]) -> None:
        self._address, self._run_id, self._connection = address, run_id, connection
        self._folder = Path(tempfile.mkdtemp(prefix="astra-"))
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    @property
    def docker_host(self) -> str:
        """The address of the node's engine while the tunnel is open."""
        return f"unix://{self._folder}/docker.sock"

    async def __aenter__(self) -> Self:
        path = self.docker_host.removeprefix("unix://")
        self._server = await asyncio.start_unix_server(self._accept, path)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cut()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def cut(self) -> None:
        """Close all connections and accept no more."""
        if self._server is not None:
            self._server.close()
        await cancel(*self._open)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._carry(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):  # the client of the engine sees a closed connection
            try:
                async with connected(self._address, self._connection) as comm:
                    await comm.write({"op": ENGINE, "run_id": self._run_id})
                    await comm.read()
                    await carried(comm, reader, writer)
            finally:
                writer.close()
