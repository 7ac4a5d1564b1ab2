"""An engine on another machine, over TCP and over ssh, with more containers than connections or sessions."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sandbox_jobs import own_containers, tar

from astra_async.agents.relay import PORT, relayed
from astra_async.errors import EngineUnavailable
from astra_async.testing.sandbox.containers import Containers
from astra_async.testing.sandbox.docker_sandbox import DockerSandbox
from astra_async.testing.sandbox.engine import Engine
from astra_async.testing.sandbox.execution import Command, run_command
from astra_async.types import Job, Limits
from threaded_server import answers_at
from waiting import awaited

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

SOCKET = "/var/run/docker.sock"
SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
AT_ONCE = 64


@contextlib.asynccontextmanager
async def over_tcp() -> AsyncIterator[str]:
    """The address of a relay to the machine's engine, as one that listens on TCP would have it."""
    relayed: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
            writer.write_eof()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_unix_connection(SOCKET)
        try:
            await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))
        finally:
            there[1].close()
            writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(relay(reader, writer))
        relayed.add(task)
        task.add_done_callback(relayed.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in list(relayed):
            task.cancel()
        await asyncio.gather(*relayed, return_exceptions=True)


def job(image: str, command: str) -> Job:
    files = tar({"a": b"a"})
    limits = Limits(timeout_s=600.0, memory_bytes=128 * 2**20)
    return Job(image=image, archive=files, command=command, result_files=("unit.xml",), limits=limits)


async def many_at_once(address: str, image: str, at_once: int) -> None:
    """So many containers whose tests all run at the same moment, each to its own report."""
    command = (
        "for i in {1..1200}; do [ -e go ] && break; read -r -t 0.5 <> <(:); done; echo $HOSTNAME > unit.xml"
    )
    async with await DockerSandbox.open(run_id="remote", slots=at_once, docker_host=address) as sandbox:
        jobs = [asyncio.create_task(sandbox.run(job(image, command))) for _ in range(at_once)]
        released: set[str] = set()
        async with asyncio.timeout(580):
            while len(released) < at_once:
                for ended in (each for each in jobs if each.done()):
                    ended.result()  # trouble of one is told at once
                running = set(await own_containers(sandbox.engine, running_only=True))
                if len(released) == 0 and len(running) < at_once:
                    await asyncio.sleep(0.5)
                    continue
                for container in running - released:
                    with contextlib.suppress(Exception):
                        await sandbox.engine.upload(container, "/", tar({"projects/challenge/go": b""}))
                        released.add(container)
            ends = await asyncio.gather(*jobs)
        assert [end.reports for end in ends] == [{"unit.xml": b"sandbox\n"}] * at_once


@pytest.mark.docker
def test_an_engine_over_tcp_takes_more_containers_than_a_client_has_connections(image: str) -> None:
    async def check() -> None:
        async with over_tcp() as address:
            await many_at_once(address, image, AT_ONCE)

    asyncio.run(check())


@pytest.fixture
def ssh_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An ssh server of this machine, to which the ssh client found on PATH has a key."""
    if not Path(SSHD).exists() or os.geteuid() != 0:
        pytest.skip("needs root and an ssh server")
    Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    shutil.copy(tmp_path / "user.pub", tmp_path / "authorized")
    options = (
        *(f"HostKey={tmp_path}/host", f"AuthorizedKeysFile={tmp_path}/authorized", "StrictModes=no"),
        *("UsePAM=no", "PermitRootLogin=yes", f"PidFile={tmp_path}/pid", "ListenAddress=127.0.0.1"),
    )
    flags = [part for option in options for part in ("-o", option)]
    server = subprocess.Popen([SSHD, "-D", "-e", "-f", "/dev/null", "-p", str(port), *flags])
    known = tmp_path / "known"
    known.write_text(f"[127.0.0.1]:{port} {(tmp_path / 'host.pub').read_text()}")
    programs = tmp_path / "bin"
    programs.mkdir()
    client = programs / "ssh"
    client.write_text(
        f"#!/bin/sh\nexec {shutil.which('ssh')} -F /dev/null -i {tmp_path}/user"
        f' -o UserKnownHostsFile={known} "$@"\n'
    )
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    try:
        awaited(lambda: answers_at(port) or server.poll() is not None, "the ssh server")
        yield f"ssh://root@127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


@pytest.mark.docker
async def test_an_engine_over_ssh_takes_more_containers_than_a_server_has_sessions(
    image: str, ssh_host: str
) -> None:
    await many_at_once(ssh_host, image, 16)


async def through_a_relay(address: str, image: str, tmp_path: Path) -> None:
    """From a container without network on an engine elsewhere to a socket of this process, and back."""

    async def upper(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        writer.close()

    gateway = tmp_path / "gateway"
    text = "x" * 500_000
    command = f"exec 3<>/dev/tcp/127.0.0.1/{PORT}; printf '%{len(text)}s\\n' x >&3; cat <&3 | wc -c"
    engine = await Containers.swept("relay", address)
    server = await asyncio.start_unix_server(upper, gateway, limit=2**20)
    async with server, Containers(engine, run_id="relay", spare=1) as boxes:
        fitness = await boxes.fit(image)
        limits = Limits(timeout_s=600.0, memory_bytes=128 * 2**20)
        async with (
            boxes.removing(await boxes.create(image, limits, fitness)) as made,
            await boxes.start(made),
            relayed(boxes, await boxes.image_id(image), made.container, gateway),
        ):
            asked = Command(text=command, user=fitness.user)
            ended = await run_command(engine, made.container, asked, limits)
            assert ended.output.text() == f"{len(text) + 1}\n"


@pytest.mark.docker
async def test_an_agent_on_an_engine_over_tcp_reaches_this_process(image: str, tmp_path: Path) -> None:
    async with over_tcp() as address:
        await through_a_relay(address, image, tmp_path)


@pytest.mark.docker
async def test_an_agent_on_an_engine_over_ssh_reaches_this_process(
    image: str, ssh_host: str, tmp_path: Path
) -> None:
    await through_a_relay(ssh_host, image, tmp_path)


@pytest.mark.docker
async def test_a_tunnel_that_broke_is_opened_again(image: str, ssh_host: str) -> None:
    async with await DockerSandbox.open(run_id="tunnel", slots=1, docker_host=ssh_host) as sandbox:
        assert (await sandbox.run(job(image, "true"))).exit_code == 0
        tunnel = sandbox.engine._tunnel
        assert tunnel is not None
        assert tunnel._ssh is not None
        tunnel._ssh.kill()
        await tunnel._ssh.wait()
        assert (await sandbox.run(job(image, "exit 3"))).exit_code == 3


@pytest.mark.parametrize(
    "address", ["ssh://", "ssh://-oProxyCommand=x", "ssh://u:secret@h", "ssh://h:port", "ssh://127.0.0.1:1"]
)
async def test_an_ssh_address_that_leads_nowhere_is_named(address: str) -> None:
    with pytest.raises(EngineUnavailable) as raised:
        (await Engine.open(address))
    assert "secret" not in str(raised.value)
