"""Agents on the nodes of a cluster: their containers there, their calls, their keys and the money here."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import tarfile
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from small_cluster import IMAGE, SmallCluster, a_run, check_nothing_left

from astra_async.agents.installing import INSTALLED_AT, _holding, _marker, bring, installed
from astra_async.agents.relay import PORT, relayed
from astra_async.cluster.engine_tunnel import EngineTunnel
from astra_async.cluster.head import ClusterSandbox
from astra_async.images.base_image import ensure_base
from astra_async.images.build import temporary_container
from astra_async.testing.sandbox.containers import Containers
from astra_async.testing.sandbox.engine import Engine
from astra_async.testing.sandbox.execution import Command, run_command
from astra_async.testing.sandbox.sweep import RUN_LABEL
from astra_async.types import Limits
from nasty_server import STREAM, NastyServer, event
from private_engine import needs_own_engine
from waiting import awaited
from whole_runs import finished

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from nasty_server import Behaviour, Connection
    from private_engine import PrivateEngine

pytestmark = [pytest.mark.docker, pytest.mark.seconds(25), needs_own_engine]
Engines = tuple["PrivateEngine", "PrivateEngine"]
VOLUME = f"astra-agent_toy_1_{'a' * 64}"


def uses(name: str, **arguments: str) -> Behaviour:
    """An answer that calls a tool."""
    call = {"name": name, "arguments": json.dumps(arguments)}
    delta: Any = {"tool_calls": [{"index": 0, "id": f"call-{name}", "type": "function", "function": call}]}
    done = b"data: [DONE]\n\n"

    async def behave(connection: Connection) -> None:
        ending = event({}, "tool_calls") + b"%x\r\n%b\r\n0\r\n\r\n" % (len(done), done)
        await connection.send(STREAM + event(delta) + ending)
        connection.answered = True

    return behave


def works(_: str, attempt: int) -> Behaviour:
    """Writes the answer, slowly, then submits."""
    return uses("shell", command="sleep 20; echo 3 > src/answer.txt") if attempt == 1 else uses("submit")


def test_an_agent_whose_node_is_lost_goes_on_elsewhere_and_nothing_is_asked_twice(
    tmp_path: Path, engines: Engines
) -> None:
    with NastyServer(works) as server, SmallCluster(tmp_path) as cluster:
        cluster.start_worker("one", engines[0])
        cluster.start_worker("two", engines[1])
        cluster.await_members()
        named = {"ASTRA_BASE_IMAGE": IMAGE}
        run = a_run(tmp_path / "run", server, cluster.address, engines[0], samples=2, environ=named)
        run.options = (*run.options, "--agent", "shell")
        process = run.start()
        awaited(lambda: server.answered, "an agent's first call", while_runs=process)
        worker = next(name for name, engine in zip(("one", "two"), engines, strict=True) if at_work(engine))
        cluster.workers[worker].kill()
        finished(process, 0)
        results = run.lines("results.jsonl")
        assert [(line["format"], line["passed"], line["agent"]["steps"]) for line in results] == [
            ("shell", 3, 2)
        ] * 2
        assert sum(line["agent"]["replayed"] for line in results) > 0
        assert set(server.asked.values()) == {2}
        assert "sandbox_retry" in run.kinds()
        check_nothing_left(engines)


@pytest.mark.seconds(60)
def test_a_node_that_joins_late_gets_as_many_agents_as_it_has_slots(tmp_path: Path, engines: Engines) -> None:
    """Both engines may have one id, so the second node gets agents only when the first is lost."""
    with NastyServer(works) as server, SmallCluster(tmp_path) as cluster:
        cluster.start_worker("full", engines[0], sandboxes=50)  # tests leave memory for one agent only
        cluster.await_members()
        named = {"ASTRA_BASE_IMAGE": IMAGE}
        run = a_run(tmp_path / "run", server, cluster.address, engines[0], samples=6, environ=named)
        run.options = (*run.options, "--agent", "shell", "--agents-at-once", "4")
        process = run.start()
        awaited(lambda: server.answered, "an agent's first call", while_runs=process)
        cluster.start_worker("free", engines[1], sandboxes=1)
        cluster.await_members()
        cluster.workers["full"].kill()
        awaited(lambda: len(server.asked) >= 4, "four agents at once", while_runs=process)
        assert not run.lines("results.jsonl")
        finished(process, 0)
        assert len(run.lines("results.jsonl")) == 6
        check_nothing_left(engines)


def at_work(engine: PrivateEngine) -> list[str]:
    """Containers that a run has made for agents there."""

    async def ask() -> list[str]:
        async with await Engine.open(engine.host) as opened:
            found = await opened.containers(RUN_LABEL)
        return [each["Id"] for each in found if each["Labels"][RUN_LABEL].endswith(".agents")]

    return asyncio.run(ask())


def through_a_node(
    folder: Path, engine: PrivateEngine, images: list[str], work: Callable[[str], Coroutine[Any, Any, None]]
) -> None:
    """Work with a node's engine at the address that leads there through its worker."""

    async def check(address: str) -> None:
        head = await ClusterSandbox.open(address, run_id="way", limits=Limits(), sandboxes=1, say=print)
        try:
            await head.bring(images)
            (node,) = head.nodes.values()
            async with EngineTunnel(node.address, head.run_id, head.connection) as tunnel:
                await work(tunnel.docker_host)
        finally:
            await head.close()

    with SmallCluster(folder) as cluster:
        cluster.start_worker("node", engine)
        cluster.await_members()
        asyncio.run(check(cluster.address))


def test_what_is_installed_on_the_heads_engine_is_brought_to_a_node_whole(
    tmp_path: Path, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASTRA_BASE_IMAGE", IMAGE)
    monkeypatch.setenv("DOCKER_HOST", engines[0].host)
    content = os.urandom(3_000_000)

    async def install(engine: Engine) -> None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:") as tar:
            program = tarfile.TarInfo("bin/toy")
            program.size, program.mode = len(content), 0o755
            tar.addfile(program, io.BytesIO(content))
            link = tarfile.TarInfo("toy")
            link.type, link.linkname = tarfile.SYMTYPE, "bin/toy"
            tar.addfile(link)
        async with temporary_container(engine, _holding(IMAGE, VOLUME)) as container:
            await engine.upload(container, INSTALLED_AT, packed.getvalue())
            await engine.upload(container, INSTALLED_AT, _marker())

    async def check(docker_host: str) -> None:
        async with await Engine.open() as ours, await Engine.open(docker_host) as theirs:
            await install(ours)
            try:
                await bring(VOLUME, ours, theirs)
                assert [each.name for each in await installed(theirs)] == ["toy"]
                assert await files(theirs) == await files(ours)
                await bring(VOLUME, ours, theirs)  # there already
            finally:
                await ours.remove_volume(VOLUME)
                await theirs.remove_volume(VOLUME)

    async def files(engine: Engine) -> list[tuple[str, bytes, int, str, bytes]]:
        packed = io.BytesIO()
        async with (
            temporary_container(engine, _holding(IMAGE, VOLUME)) as container,
            engine.packed(container, INSTALLED_AT) as chunks,
        ):
            async for chunk in chunks:
                packed.write(chunk)
        packed.seek(0)
        with tarfile.open(fileobj=packed) as tar:
            return sorted(
                (each.name, each.type, each.mode, each.linkname, held.read())
                for each in tar
                for held in [cast("io.BytesIO", tar.extractfile(each)) if each.isreg() else io.BytesIO()]
            )

    async def give_image() -> None:
        async with (
            await Engine.open() as ours,
            await Engine.open(engines[1].host) as theirs,
            contextlib.aclosing(ours.export([IMAGE])) as pieces,
        ):
            await theirs.load(pieces)

    asyncio.run(give_image())
    through_a_node(tmp_path, engines[1], [IMAGE], check)


def test_an_agent_on_a_node_reaches_this_process(tmp_path: Path) -> None:
    """From a container without network to a socket of ours: through the relay, the engine and the worker."""
    text = "x" * 500_000
    command = f"exec 3<>/dev/tcp/127.0.0.1/{PORT}; printf '%{len(text)}s\\n' x >&3; cat <&3 | wc -c"

    async def upper(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        writer.close()

    async def check(docker_host: str) -> None:
        gateway = tmp_path / "gateway"
        server = await asyncio.start_unix_server(upper, gateway, limit=2**20)
        engine = await Engine.open(docker_host)
        async with server, Containers(engine, run_id="way.agents", spare=1) as boxes:
            base = await boxes.image_id(await ensure_base(engine, progress=print))
            fitness = await boxes.fit(base)
            limits = Limits(timeout_s=600.0, memory_bytes=128 * 2**20)
            async with (
                boxes.removing(await boxes.create(base, limits, fitness)) as made,
                await boxes.start(made),
                relayed(boxes, base, made.container, gateway),
            ):
                ended = await run_command(
                    engine, made.container, Command(text=command, user=fitness.user), limits
                )
                assert ended.output.text() == f"{len(text) + 1}\n"

    async def base() -> str:
        async with await Engine.open() as engine:
            return await ensure_base(engine, progress=print)

    host = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    through_a_node(tmp_path, cast("Any", SimpleNamespace(host=host)), [asyncio.run(base())], check)
