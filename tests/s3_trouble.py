"""Proxy before an S3 server that delivers objects slowly, in part or not at all."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from threaded_server import ThreadedServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Way = Callable[[asyncio.StreamWriter, bytes], Awaitable[None]]
    # (path, how often it was asked for, from 1) -> how the answer is handed over
    Script = Callable[[str, int], Way]

_PIECES = 20


class S3Trouble(ThreadedServer):
    """Asks the server behind, and hands its answers over as its script says.

    Attributes:
        url: for AWS_ENDPOINT_URL_S3.
        asked: requests by path.
    """

    def __init__(self, behind: str, script: Script) -> None:
        super().__init__()
        self.url = ""
        self.script = script
        self.asked: Counter[str] = Counter()
        parts = urlsplit(behind)
        self._behind = str(parts.hostname), parts.port or 80

    async def listen(self) -> asyncio.Server:
        listening = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        return listening

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")  # a GET has no body; each connection has one request
            path = head.split(b" ")[1].decode()
            self.asked[path] += 1
            answer = await self._answer_of_the_server(head)
            await self.script(path, self.asked[path])(writer, answer)
        writer.close()

    async def _answer_of_the_server(self, head: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(*self._behind)
        lines = [line for line in head.split(b"\r\n") if line and not line.lower().startswith(b"connection:")]
        writer.write(b"\r\n".join([*lines, b"Connection: close", b"", b""]))
        answer = await reader.read()
        writer.close()
        return answer


async def whole(writer: asyncio.StreamWriter, answer: bytes) -> None:
    """Forward the response unchanged."""
    writer.write(answer)
    await writer.drain()


def trickled(seconds: float) -> Way:
    """Forward the response in small pieces."""

    async def hand_over(writer: asyncio.StreamWriter, answer: bytes) -> None:
        size = -(-len(answer) // _PIECES)
        for start in range(0, len(answer), size):
            writer.write(answer[start : start + size])
            await writer.drain()
            await asyncio.sleep(seconds / _PIECES)

    return hand_over


async def cut(writer: asyncio.StreamWriter, answer: bytes) -> None:
    """Send the head and a part of the body."""
    head, end, body = answer.partition(b"\r\n\r\n")
    writer.write(head + end + body[: len(body) // 2])
    await writer.drain()
    writer.transport.abort()


async def expired(writer: asyncio.StreamWriter, _: bytes) -> None:
    """Refuse expired credentials."""
    text = b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"
    head = b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/xml\r\nConnection: close\r\nContent-Length: "
    writer.write(head + b"%d\r\n\r\n%b" % (len(text), text))
    await writer.drain()
