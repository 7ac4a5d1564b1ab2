"""A raw HTTP server that plays what a provider sent, piece by piece, and remembers what it was asked."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A response: its pieces are written one by one; the end is clean, a cut connection, silence, or none."""

    pieces: Sequence[bytes] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    end: str = "clean"  # clean | cut | stall | comments
    content_type: str = "text/event-stream"


@dataclass(slots=True, kw_only=True)
class Asked:
    """One request as it arrived; `closed` is set when the client hung up."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    closed: asyncio.Event

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


class WireServer:
    """Answers each request with the next reply, the last one for ever."""

    def __init__(self, *replies: Reply) -> None:
        self.asked: list[Asked] = []
        self.connections = 0
        self.base_url = ""
        self._replies = list(replies)
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                asked = await _request(head, reader)
                self.asked.append(asked)
                reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
                await _play(reply, writer)
                if reply.end != "clean":
                    if reply.end == "stall":
                        await reader.read()
                        asked.closed.set()
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


async def _request(head: bytes, reader: asyncio.StreamReader) -> Asked:
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method=method, path=path, headers=headers, body=body, closed=asyncio.Event())


async def _play(reply: Reply, writer: asyncio.StreamWriter) -> None:
    headers = {"Content-Type": reply.content_type, "Transfer-Encoding": "chunked", **reply.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {reply.status} X\r\n{lines}\r\n".encode())
    for piece in reply.pieces:
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await writer.drain()
        await asyncio.sleep(0)
    while reply.end == "comments":  # until the client has gone
        writer.write(b"e\r\n: keep-alive\n\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)
    if reply.end == "clean":
        writer.write(b"0\r\n\r\n")
    await writer.drain()


@asynccontextmanager
async def serving(*replies: Reply, tls: ssl.SSLContext | None = None) -> AsyncIterator[WireServer]:
    """A server on a free port of this machine, gone afterwards."""
    wire = WireServer(*replies)
    server = await asyncio.start_server(wire.serve, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    wire.base_url = f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"
    try:
        yield wire
    finally:
        server.close()


def sse(*events: str | dict[str, Any], end: str = "\n\n") -> bytes:
    """Unnamed events, as chat completions and Gemini send them."""
    texts = (event if isinstance(event, str) else orjson.dumps(event).decode() for event in events)
    return "".join(f"data: {text}{end}" for text in texts).encode()


def named(*events: dict[str, Any]) -> bytes:
    """Events named by their type, as Anthropic and the Responses API send them."""
    return b"".join(b"event: %b\ndata: %b\n\n" % (str(e["type"]).encode(), orjson.dumps(e)) for e in events)


def pieces(stream: bytes, size: int) -> list[bytes]:
    """The stream in pieces of so many bytes."""
    return [stream[i : i + size] for i in range(0, len(stream), size)]
