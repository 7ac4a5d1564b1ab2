"""Messages between the head and a worker: lists of plain dictionaries over one Dask connection.

Messages are packed here and are bytes for Dask. They contain names chosen by code under test, and Dask
interprets some dictionary keys.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgpack
from distributed.comm import connect

from astra_async.errors import ContainerLost, EngineUnavailable, ImageError, SandboxError
from astra_async.log import fields_of
from astra_async.types import Job, Limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from distributed.comm import Comm

    from astra_async.types import Execution

# Names of this package's handlers on a Dask worker.
TESTS, ABOUT, LOAD, ENGINE = "astra-tests", "astra-about", "astra-load", "astra-engine"
VERSION = 2  # the message format
_CONNECT_S = 10.0

Message = dict[str, Any]
_ERRORS = {kind.__name__: kind for kind in (SandboxError, ContainerLost, EngineUnavailable, ImageError)}


@contextlib.asynccontextmanager
async def connected(address: str, connection: Mapping[str, Any]) -> AsyncIterator[Comm]:
    """Open a connection to a worker; abort it at the end. Dask does not decode messages. Raises OSError."""
    comm = await connect(address, timeout=_CONNECT_S, deserialize=False, **connection)
    try:
        yield comm
    finally:
        comm.abort()


class Stream:
    """Ordered messages in both directions; `send` never blocks, and queued messages are sent together."""

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self._outgoing: list[bytes] = []
        self._more = asyncio.Event()
        self._writing = asyncio.create_task(self._write())

    def send(self, op: str, **content: object) -> None:
        """Queue a message; after a connection loss nothing is sent, and `receive` raises."""
        self._outgoing.append(pack({"op": op, **content}))
        self._more.set()

    async def receive(self) -> list[Message]:
        """Return the next messages. Raises OSError if the connection is lost."""
        packed = await self._comm.read()
        return [unpack(each) for each in packed]

    def abort(self) -> None:
        """Abort the connection."""
        self._comm.abort()

    async def close(self) -> None:
        """Abort the connection; unsent messages are dropped."""
        self._writing.cancel()
        self.abort()
        with contextlib.suppress(asyncio.CancelledError):
            await self._writing

    async def _write(self) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            batch, self._outgoing = self._outgoing, []
            try:
                await self._comm.write(batch)
            except OSError:
                self.abort()  # the reader gets an error
                return


def pack(content: Mapping[str, Any]) -> bytes:
    """Encode a dictionary of plain values; lone surrogates are preserved."""
    packed: bytes = msgpack.packb(content, unicode_errors="surrogatepass")
    return packed


def unpack(packed: bytes) -> Message:
    """Decode the output of `pack`; raises ValueError for other data. Nothing in the data is executed."""
    content = msgpack.unpackb(packed, unicode_errors="surrogatepass", use_list=False)
    if not isinstance(content, dict):
        raise ValueError("not a message of astra_async")  # noqa: TRY004 - invalid data, like msgpack's errors
    return content


def from_job(job: Job) -> Message:
    """Return a job as plain values."""
    return {**fields_of(job), "environment": dict(job.environment), "limits": asdict(job.limits)}


def to_job(content: Mapping[str, Any]) -> Job:
    """Return the job that `from_job` encoded. Raises TypeError."""
    return Job(**{**content, "limits": Limits(**content["limits"])})


def from_execution(done: Execution) -> Message:
    """Return an execution as plain values."""
    return {**fields_of(done), "reports": dict(done.reports)}


def from_error(error: SandboxError) -> Message:
    """Return an error's nearest known class and its message."""
    names: Sequence[type] = type(error).__mro__
    return {"kind": next(each.__name__ for each in names if each.__name__ in _ERRORS), "text": str(error)}


def to_error(content: Mapping[str, Any], node: str) -> SandboxError:
    """Return the error that `from_error` encoded, with the node's name in the message."""
    return _ERRORS.get(content["kind"], SandboxError)(f"node {node}: {content['text']}")
