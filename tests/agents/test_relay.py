"""Connections from a container without network to a socket of ours, in real containers."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from agent_boxes import containers, said, started

from astra_async.agents.relay import PORT, Relay, relayed
from astra_async.errors import ImageError
from astra_async.images.base_image import build_image
from build_context import context
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from astra_async.testing.sandbox.containers import Containers

    Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

pytestmark = pytest.mark.docker

# Sends a number of equal bytes, ends its side, and prints what it gets back.
CLIENT = r"""
use strict; use Socket;
my ($number, $bytes) = @ARGV;
socket(my $s, PF_INET, SOCK_STREAM, 0); connect($s, sockaddr_in(PORT, INADDR_LOOPBACK)) or die "connect: $!";
if (!fork) {
    my $text = chr(65 + $number % 26) x 65536;
    for (my $left = $bytes; $left > 0; ) {
        my $put = syswrite($s, $text, $left < 65536 ? $left : 65536) or die $!;
        $left -= $put;
    }
    shutdown($s, 1); exit;
}
while (sysread($s, my $got, 65536)) { print $got }
""".replace("PORT", str(PORT))


@asynccontextmanager
async def relay_to(serve: Serve, tmp_path: Path) -> AsyncIterator[tuple[Containers, str, Relay]]:
    """A started container whose loopback port leads to a server of this process."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    socket = tmp_path / "gateway"
    server = await asyncio.start_unix_server(handle, socket)
    async with (
        server,
        asyncio.timeout(PATIENCE_S),
        containers() as (boxes, base),
        started(boxes, base) as box,
        relayed(boxes, base, box, socket) as relay,
    ):
        yield boxes, box, relay


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65536):
        writer.write(piece)
        await writer.drain()


async def test_many_connections_carry_megabytes_both_ways_and_end_by_halves(tmp_path: Path) -> None:
    async with relay_to(echo, tmp_path) as (boxes, box, _):
        sizes = [3_000_001, *range(24), 70_000]
        command = "\n".join(
            [f"cat >/tmp/client.pl <<'END'\n{CLIENT}\nEND"]
            + [f"perl /tmp/client.pl {n} {size} | sha256sum >/tmp/{n} &" for n, size in enumerate(sizes)]
            + ["wait", f"for n in {{0..{len(sizes) - 1}}}; do cut -c -64 /tmp/$n; done"]
        )
        wanted = [hashlib.sha256(bytes([65 + n % 26]) * size).hexdigest() for n, size in enumerate(sizes)]
        assert (await said(boxes, box, command)).split() == wanted


async def test_events_arrive_one_by_one_and_a_silent_reader_holds_up_nobody(tmp_path: Path) -> None:
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        if await reader.readline() == b"flood\n":
            while True:
                writer.write(bytes(65536))
                await writer.drain()
                sent += 65536
        for number in range(5):
            writer.write(b"data: %d\n" % number)  # the next one only when this one has arrived
            assert await reader.readline() == b"got %d\n" % number

    command = f"""
        exec 3<>/dev/tcp/127.0.0.1/{PORT}; echo flood >&3; sleep 1
        exec 4<>/dev/tcp/127.0.0.1/{PORT}; echo events >&4
        while read -r -u 4 word number; do echo "$number"; echo "got $number" >&4; done
    """

    async with relay_to(serve, tmp_path) as (boxes, box, _):
        assert (await said(boxes, box, command)).split() == list("01234")
        assert sent < 4 * 1024**2  # windows and the kernel's buffers, and no more


async def test_an_agent_sees_an_open_port_and_nothing_else(tmp_path: Path) -> None:
    async with relay_to(echo, tmp_path) as (boxes, box, _):
        assert "perl" not in await said(boxes, box, "cat /proc/*/cmdline | tr '\\0' ' '")
        assert (await said(boxes, box, "ls /sys/class/net")).split() == ["lo"]
        assert await said(boxes, box, "find / -type s 2>/dev/null") == ""
        assert "fail" in await said(boxes, box, "(echo >/dev/tcp/10.0.0.1/80) 2>/dev/null || echo fail")


async def test_a_gateway_that_is_not_there_is_a_connection_that_breaks(tmp_path: Path) -> None:
    async with relay_to(echo, tmp_path) as (boxes, box, relay):
        (tmp_path / "gateway").unlink()
        command = f"exec 3<>/dev/tcp/127.0.0.1/{PORT}; read -r -u 3 word || echo over"
        assert "over" in await said(boxes, box, command)
        assert not relay.lost.is_set()


async def test_a_relay_that_was_killed_is_seen(tmp_path: Path) -> None:
    async with relay_to(echo, tmp_path) as (boxes, box, relay):
        every, mode = await boxes.engine.containers(), f"container:{box}"
        (mine,) = [each for each in every if each["HostConfig"]["NetworkMode"] == mode]
        await boxes.engine.remove(str(mine["Id"]))
        await relay.lost.wait()


async def test_a_base_image_without_perl_is_said_with_the_remedy(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), containers() as (boxes, base), started(boxes, base) as box:
        name = f"astra-test-no-perl:{secrets.token_hex(4)}"
        without = context(f"FROM {base}\nRUN rm -f /usr/bin/perl\n")
        await build_image(boxes.engine, without, tag=name, arguments={}, progress=print)
        try:
            with pytest.raises(ImageError, match=r"no perl.*ASTRA_BASE_IMAGE"):
                async with relayed(boxes, name, box, tmp_path / "gateway"):
                    pass
        finally:
            await boxes.engine.remove_image(name)
