"""An honest HTTP proxy on this machine: CONNECT and absolute addresses, names by a table, credentials."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping


class ConnectProxy:
    """Attributes: `asked`, the first line of each request; `base_url`, where it listens."""

    def __init__(self, hosts: Mapping[str, int], *, wants_credentials: bool = False) -> None:
        self.asked: list[str] = []
        self.base_url = ""
        self._hosts = hosts  # a name -> the port of this machine where it is served
        self._wants_credentials = wants_credentials
        self._serving: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: one request, then bytes both ways until either side ends."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            first = head.partition(b"\r\n")[0].decode()
            self.asked.append(first)
            if self._wants_credentials and b"proxy-authorization: basic " not in head.lower():
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                return
            method, target, _ = first.split(" ")
            host = target.removeprefix("http://").partition("/")[0].partition(":")[0]
            upstream, there = await asyncio.open_connection("127.0.0.1", self._hosts[host])
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                there.write(head)
            await asyncio.gather(_pass_on(reader, there), _pass_on(upstream, writer))
        except (OSError, asyncio.IncompleteReadError, KeyError):
            return
        finally:
            writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    finally:
        writer.close()


@asynccontextmanager
async def proxying(
    hosts: Mapping[str, int], *, wants_credentials: bool = False
) -> AsyncIterator[ConnectProxy]:
    """The proxy on a free port of this machine, gone afterwards."""
    proxy = ConnectProxy(hosts, wants_credentials=wants_credentials)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
