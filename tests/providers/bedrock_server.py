"""Bedrock as the AWS library meets it: a local HTTP server that speaks the AWS event-stream encoding."""

from __future__ import annotations

import asyncio
import struct
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from zlib import crc32

import orjson
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def frame(kind: str, body: dict[str, Any], *, message: str = "event") -> bytes:
    """One message: total length, headers length, checksum, headers, payload, checksum."""
    name = "exception" if message == "exception" else "event"
    headers = b"".join(
        struct.pack(">B", len(key)) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for key, value in (
            (f":{name}-type", kind),
            (":content-type", "application/json"),
            (":message-type", message),
        )
    )
    payload = orjson.dumps(body)
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    head = prelude + struct.pack(">I", crc32(prelude)) + headers + payload
    return head + struct.pack(">I", crc32(head))


class BedrockServer:
    """Plays one reply for ever: a stream of pieces, or an error."""

    def __init__(
        self,
        pieces: list[bytes],
        *,
        status: int = 200,
        headers: dict[str, str] | None = None,
        end: str = "clean",
        converse: dict[str, Any] | None = None,
    ) -> None:
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.base_url = ""
        self._pieces = pieces
        self._status = status
        self._headers = headers or {}
        self._end = end
        self._converse = converse

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.raw_path, dict(request.headers), orjson.loads(await request.read())))
        if self._converse is not None and request.path.endswith("/converse"):
            return web.json_response(self._converse)
        kind = "application/vnd.amazon.eventstream" if self._status == 200 else "application/json"
        response = web.StreamResponse(status=self._status, headers={"Content-Type": kind, **self._headers})
        await response.prepare(request)
        for piece in self._pieces:
            await response.write(piece)
        if self._end == "stall":
            await asyncio.Event().wait()  # until the server is cleaned up
        elif self._end == "cut" and request.transport is not None:
            request.transport.abort()
        return response


@asynccontextmanager
async def bedrock(server: BedrockServer) -> AsyncIterator[BedrockServer]:
    """The server on a free port of this machine."""
    application = web.Application()
    application.router.add_post("/{path:.*}", server.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()
