"""What travels between the head and a worker: lists of plain messages over one Dask connection.

The contents are packed here and reach Dask as bytes. Names in them were chosen by code under test, and
Dask gives a meaning of its own to some keys of a dictionary.
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

# Names of our handlers on a Dask worker.
TESTS, ABOUT, LOAD, ENGINE = "astra-tests", "astra-about", "astra-load", "astra-engine"
VERSION = 2  # of these messages
_CONNECT_S = 10.0

Message = dict[str, Any]
_ERRORS = {kind.__name__: kind for kind in (SandboxError, ContainerLost, EngineUnavailable, ImageError)}


@contextlib.asynccontextmanager
async def connected(address: str, connection: Mapping[str, Any]) -> AsyncIterator[Comm]:
    """A connection to a worker, cut in the end; Dask reads nothing of what it carries. Raises OSError."""
    comm = await connect(address, timeout=_CONNECT_S, deserialize=False, **connection)
    try:
        yield comm
    finally:
        comm.abort()


class Stream:
    """Messages both ways, in order; `send` never waits, and what piles up goes in one write."""

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self._outgoing: list[bytes] = []
        self._more = asyncio.Event()
        self._writing = asyncio.create_task(self._write())

    def send(self, op: str, **content: object) -> None:
        """Send a message; nothing happens once the connection is gone, which `receive` tells."""
        self._outgoing.append(pack({"op": op, **content}))
        self._more.set()

    async def receive(self) -> list[Message]:
        """The next messages. Raises OSError when the connection is gone."""
        packed = await self._comm.read()
        return [unpack(each) for each in packed]

    def abort(self) -> None:
        """Cut the connection."""
        self._comm.abort()

    async def close(self) -> None:
        """Cut the connection; messages that were not sent are dropped."""
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
                self.abort()  # whoever reads learns of it
                return


def pack(content: Mapping[str, Any]) -> bytes:
    """A dictionary of plain values as bytes; lone surrogates in its texts survive."""
    packed: bytes = msgpack.packb(content, unicode_errors="surrogatepass")
    return packed


def unpack(packed: bytes) -> Message:
    """What `pack` made; raises ValueError for anything else. Nothing in it is executed."""
    content = msgpack.unpackb(packed, unicode_errors="surrogatepass", use_list=False)
    if not isinstance(content, dict):
        raise ValueError("not a message of astra's")  # noqa: TRY004 - foreign data, as msgpack's own errors
    return content


def from_job(job: Job) -> Message:
    """A job as plain values."""
    return {**fields_of(job), "environment": dict(job.environment), "limits": asdict(job.limits)}


def to_job(content: Mapping[str, Any]) -> Job:
    """The job that `from_job` described. Raises TypeError."""
    return Job(**{**content, "limits": Limits(**content["limits"])})


def from_execution(done: Execution) -> Message:
    """What happened as plain values."""
    return {**fields_of(done), "reports": dict(done.reports)}


def from_error(error: SandboxError) -> Message:
    """An error's branch of the tree and its message."""
    names: Sequence[type] = type(error).__mro__
    return {"kind": next(each.__name__ for each in names if each.__name__ in _ERRORS), "text": str(error)}


def to_error(content: Mapping[str, Any], node: str) -> SandboxError:
    """The error that `from_error` described, naming the node."""
    return _ERRORS.get(content["kind"], SandboxError)(f"node {node}: {content['text']}")
