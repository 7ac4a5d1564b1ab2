"""Carry connections from an agent's loopback address to the gateway's socket in this process.

The agent's container has no network. A relay container joins its network namespace, listens on 127.0.0.1 and
sends every connection as frames over its standard input and output, which are an attached stream of the
engine. This works with a local engine, a remote engine and a node of a cluster. The relay container has its
own file system, processes and user, so the agent sees an open port and nothing else.

Each connection has a flow-control window, so an unread connection neither blocks another one nor takes more
memory than its window. The relay container ends when our stream is closed. `relay.pl` is its program and
defines the frames; perl is part of every Debian image.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from contextlib import asynccontextmanager, suppress
from importlib import resources
from typing import TYPE_CHECKING

from astra_async.errors import ContainerLost, SandboxError
from astra_async.tasks import cancel
from astra_async.testing.sandbox.engine_errors import both_ends, engine_call
from astra_async.testing.sandbox.hardened import confined
from astra_async.types import Limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from aiodocker.stream import Stream

    from astra_async.testing.sandbox.containers import Containers

PORT = 24_601  # below the kernel's range of ephemeral ports
_WINDOW_BYTES = 128 * 1024
_PIECE_BYTES = 64 * 1024
_MOST_CONNECTIONS = 64
_LISTENS_WITHIN_S = 60.0
_ERROR_BYTES = 4096
_HEADER = struct.Struct(">cII")
_COUNT = struct.Struct(">I")
_LIMITS = Limits(memory_bytes=128 * 1024**2, processes=16)
_USER = "65533:65533"  # used neither by images nor by the first process of a container
_STDOUT = 1
_log = logging.getLogger(__name__)


@asynccontextmanager
async def relayed(containers: Containers, base: str, agent: str, gateway: Path) -> AsyncIterator[Relay]:
    """Forward 127.0.0.1:PORT of a running container to the gateway's socket while the context is open.

    `base` is the id of an image with perl, `agent` the id of the container. Raises SandboxError if the engine
    fails or the image has no perl.
    """
    program = resources.files(__package__).joinpath("relay.pl").read_text()
    command = ["perl", "-e", program, str(PORT), str(_WINDOW_BYTES), str(_MOST_CONNECTIONS)]
    config = confined(base, command, _LIMITS, keeper=_USER, labels=containers.labels)
    config["NetworkDisabled"] = False
    config["HostConfig"] |= {"NetworkMode": f"container:{agent}", "IpcMode": "none"}
    async with containers.removing(await containers.create_as(config)) as made:
        stream = await containers.engine.attach(made.container)
        relay = Relay(stream, gateway)
        try:
            await containers.engine.start(made.container)
            await relay.listens()
            yield relay
        finally:
            await relay.close()


class Relay:
    """This process's end of the stream. `lost` is set when the container's end is gone."""

    def __init__(self, stream: Stream, gateway: Path) -> None:
        self.lost = asyncio.Event()
        self._stream = stream
        self._gateway = gateway
        self._listens = asyncio.Event()
        self._writing = asyncio.Lock()
        self._open: dict[int, _Connection] = {}
        self._errors = bytearray()  # on its standard error
        self._reading = asyncio.create_task(self._read())

    async def listens(self) -> None:
        """Return when it listens. Raises SandboxError when it never does."""
        waits = [asyncio.create_task(event.wait()) for event in (self._listens, self.lost)]
        await asyncio.wait(waits, timeout=_LISTENS_WITHIN_S, return_when=asyncio.FIRST_COMPLETED)
        for each in waits:
            each.cancel()
        if not self._listens.is_set():
            why = both_ends(self._errors.decode(errors="replace")) or "the engine did not start it in time"
            raise SandboxError(f"The way from an agent's container to its model could not be opened: {why}")

    async def close(self) -> None:
        """Cut every connection; the container ends."""
        await cancel(self._reading, *(each.task for each in self._open.values()))
        with suppress(AssertionError):  # aiodocker's, when the connection has gone already
            await self._stream.close()

    async def send(self, kind: bytes, number: int, content: bytes = b"") -> None:
        """Send a frame. Raises ContainerLost."""
        async with self._writing, engine_call("write to the relay", timeout_s=None, running=True):
            await self._stream.write_in(_HEADER.pack(kind, number, len(content)) + content)

    def forget(self, number: int) -> None:
        """A connection has ended."""
        self._open.pop(number, None)

    async def _read(self) -> None:
        held = bytearray()
        try:
            async with engine_call("read from the relay", timeout_s=None, running=True):
                while (message := await self._stream.read_out()) is not None:
                    if message.stream != _STDOUT:
                        self._errors += message.data[: _ERROR_BYTES - len(self._errors)]
                        continue
                    held += message.data
                    self._take(held)
        except ContainerLost as error:
            _log.info("a relay was lost: %s", error)
        finally:
            self.lost.set()

    def _take(self, held: bytearray) -> None:
        """Handle every complete frame and remove it from the buffer."""
        at = 0
        while at + _HEADER.size <= len(held):
            kind, number, length = _HEADER.unpack_from(held, at)
            end = at + _HEADER.size + length
            if end > len(held):
                break
            self._act(kind, number, bytes(held[at + _HEADER.size : end]))
            at = end
        del held[:at]

    def _act(self, kind: bytes, number: int, content: bytes) -> None:
        if kind == b"L":
            self._listens.set()
        elif kind == b"O":
            self._open[number] = _Connection(self, number, self._gateway)
        elif (connection := self._open.get(number)) is not None:
            connection.take(kind, content)


class _Connection:
    """One connection of the agent and the matching connection to the gateway."""

    def __init__(self, relay: Relay, number: int, gateway: Path) -> None:
        self._relay = relay
        self._number = number
        # Invariant: holds at most one window of bytes, because the sender waits for delivery.
        self._came: asyncio.Queue[bytes] = asyncio.Queue()  # an empty item marks the end
        self._credit = _WINDOW_BYTES
        self._more_credit = asyncio.Event()
        self.task = asyncio.create_task(self._carry(gateway))

    def take(self, kind: bytes, content: bytes) -> None:
        """Handle a frame of this connection."""
        if kind == b"D":
            self._came.put_nowait(content)
        elif kind == b"E":
            self._came.put_nowait(b"")
        elif kind == b"W":
            self._credit += _COUNT.unpack(content)[0]
            self._more_credit.set()
        elif kind == b"R":
            self.task.cancel()

    async def _carry(self, gateway: Path) -> None:
        try:
            reader, writer = await asyncio.open_unix_connection(str(gateway))
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._to_gateway(writer))
                    tasks.create_task(self._to_agent(reader))
            finally:
                writer.close()
        except* OSError as group:
            _log.info("a connection to the gateway broke: %s", group.exceptions[0])
            with suppress(ContainerLost):
                await self._relay.send(b"R", self._number)
        except* ContainerLost:
            pass  # `lost` is set, and the agent's runner raises the error
        finally:
            self._relay.forget(self._number)

    async def _to_gateway(self, writer: asyncio.StreamWriter) -> None:
        while content := await self._came.get():
            writer.write(content)
            await writer.drain()
            await self._relay.send(b"W", self._number, _COUNT.pack(len(content)))
        writer.write_eof()

    async def _to_agent(self, reader: asyncio.StreamReader) -> None:
        while content := await reader.read(min(_PIECE_BYTES, await self._allowed())):
            self._credit -= len(content)
            await self._relay.send(b"D", self._number, content)
        await self._relay.send(b"E", self._number)

    async def _allowed(self) -> int:
        while self._credit <= 0:
            self._more_credit.clear()
            await self._more_credit.wait()
        return self._credit
