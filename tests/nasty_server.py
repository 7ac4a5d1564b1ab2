"""Chat-completions server with scripted faults, in a thread of the test process.

Samples are told apart by `x-astra-sample`, which simulated models get: run `simulated/steady` against it.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from small_problems import solution
from threaded_server import ThreadedServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Behaviour = Callable[["Connection"], Awaitable[None]]
    # (sample as PROBLEM/SAMPLE, attempt from 1) -> what to do
    Script = Callable[[str, int], Behaviour]

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class NastyServer(ThreadedServer):
    """Server that answers by its script.

    Attributes:
        asked: requests by sample.
        bodies: what each request held, as it came.
        answered: whole answers delivered, by sample.
    """

    def __init__(self, script: Script) -> None:
        super().__init__()
        self.script = script
        self.asked: Counter[str] = Counter()
        self.bodies: list[bytes] = []
        self.answered: Counter[str] = Counter()
        self.base_url = ""
        self.port = 0

    async def listen(self) -> asyncio.Server:
        listening = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
        self.port = listening.sockets[0].getsockname()[1]
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        return listening

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                headers = dict(line.lower().split(": ", 1) for line in head.splitlines()[1:] if line)
                body = await reader.readexactly(int(headers["content-length"]))
                sample = headers.get("x-astra-sample", "//p/0").split("/", 2)[2]
                self.asked[sample] += 1
                self.bodies.append(body)
                connection = Connection(reader, writer)
                await self.script(sample, self.asked[sample])(connection)
                self.answered[sample] += connection.answered
        writer.close()


class Connection:
    """Response to one request; `answered` is True after a complete answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.answered = False

    async def send(self, data: bytes) -> None:
        """Send bytes; raises ConnectionError after the client has disconnected."""
        self.writer.write(data)
        await self.writer.drain()

    async def begin(self) -> None:
        """Send the head and the first words of a stream."""
        await self.send(STREAM + event({"content": "<solution>"}))

    async def until_gone(self) -> None:
        """Wait until the client disconnects."""
        await self.reader.read()
        self.writer.close()


def event(delta: dict[str, str], finish: str | None = None) -> bytes:
    """Send one server-sent event as an HTTP chunk."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    data = b"data: %b\n\n" % json.dumps({"id": "c", "model": "nasty-1", "choices": [choice]}).encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


def answers(text: str = solution(3), after_s: float = 0.0) -> Behaviour:
    """Send a complete answer."""

    async def behave(connection: Connection) -> None:
        await asyncio.sleep(after_s)
        done = b"data: [DONE]\n\n"
        ending = event({}, "stop") + b"%x\r\n%b\r\n0\r\n\r\n" % (len(done), done)
        await connection.send(STREAM + event({"content": text}) + ending)
        connection.answered = True

    return behave


def refuses(status: int, **headers: str) -> Behaviour:
    """Send an error status with the provider's error body."""

    async def behave(connection: Connection) -> None:
        body = json.dumps({"error": {"message": "not now", "type": "server_error"}}).encode()
        lines = {"content-type": "application/json", "content-length": str(len(body)), **headers}
        head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items())
        await connection.send(f"HTTP/1.1 {status} No\r\n{head}\r\n".encode() + body)

    return behave


async def falls_silent(connection: Connection) -> None:
    """Begin an answer, then send nothing more."""
    await connection.begin()
    await connection.until_gone()


async def says_nothing(connection: Connection) -> None:
    """Accept the request and never respond."""
    await connection.until_gone()


async def never_ends(connection: Connection) -> None:
    """Stream text until the client disconnects."""
    await connection.begin()
    while True:
        await connection.send(event({"content": "x" * 60_000}))


async def trickles(connection: Connection) -> None:
    """Send comments, which reset idle timers, and never an answer."""
    await connection.begin()
    while True:
        await connection.send(b"8\r\n: wait\n\n\r\n")
        await asyncio.sleep(0.1)


async def resets(connection: Connection) -> None:
    """Reset the connection during the answer."""
    await connection.begin()
    _reset(connection.writer)


async def resets_at_once(connection: Connection) -> None:
    """Reset the connection before the answer."""
    _reset(connection.writer)


async def cuts(connection: Connection) -> None:
    """End the stream without an error and without its end mark."""
    await connection.begin()
    await connection.send(b"0\r\n\r\n")


def _reset(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
