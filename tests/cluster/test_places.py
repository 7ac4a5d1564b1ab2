"""Who gets which place: several nodes that answer over real connections, and a head between them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, cast

import pytest
from distributed.core import Server, Status

from astra_async.cluster.head import ClusterSandbox
from astra_async.cluster.messages import TESTS, Stream, from_execution, unpack
from astra_async.errors import EngineUnavailable, NodesLost
from astra_async.testing.sandbox.containers import Containers, Made
from astra_async.testing.sandbox.sweep import owner, place_of
from astra_async.types import Execution, Job, Limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from distributed.comm import Comm

    from astra_async.testing.sandbox.engine import Engine

JOB = Job(image="i", archive=b"a", command="true")


class ToyNode:
    """Runs two jobs at a time by waiting; a job `kill` ends the connection."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.running = 0
        self.most = 0
        self.killed = 0
        self.slow = asyncio.Event()
        self.slow.set()

    async def serve(self, comm: Comm, hello: bytes) -> Status:
        stream, asked = Stream(comm), unpack(hello)
        place = {"name": self.name, "process": f"boot:1:{self.name}:2", "engine_id": self.name}
        known = {"messages": asked["messages"], "version": asked["version"]}
        stream.send("about", slots=2, trouble="", **place, **known)
        tasks = set()
        try:
            while True:
                for message in await stream.receive():
                    if message["op"] == "images":
                        stream.send("images", found=dict.fromkeys(message["wanted"], "sha256:1"))
                    elif message["op"] == "run":
                        tasks.add(asyncio.create_task(self.answer(stream, message)))
                    elif message["op"] == "end":
                        stream.abort()
        except OSError:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.running = 0
            await stream.close()
        return Status.dont_reply

    async def answer(self, stream: Stream, message: dict[str, object]) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        job = message["job"]
        assert isinstance(job, dict)
        if job["command"] == "kill":
            self.killed += 1
            stream.abort()
            return
        await self.slow.wait()
        await asyncio.sleep(0.01)
        self.running -= 1
        done = from_execution(Execution(exit_code=0, duration_s=0.1))
        stream.send("done", number=message["number"], execution=done)


@asynccontextmanager
async def a_cluster(*nodes: ToyNode) -> AsyncIterator[ClusterSandbox]:
    async with AsyncExitStack() as stack:
        addresses: list[str] = []

        async def identity() -> dict[str, object]:
            return {"workers": dict.fromkeys(addresses, "")}

        for node in nodes:
            server = await stack.enter_async_context(Server({TESTS: node.serve, "identity": identity}))
            await server.listen("tcp://127.0.0.1:0")
            addresses.append(server.address)
        sandbox = await ClusterSandbox.open(
            addresses[0], run_id="r", limits=Limits(), sandboxes=1, say=lambda _: None
        )
        stack.push_async_callback(sandbox.close)
        await sandbox.bring(["i"])
        yield sandbox


async def test_no_node_has_more_jobs_than_places_and_all_have_some() -> None:
    nodes = [ToyNode(name) for name in "abc"]
    async with a_cluster(*nodes) as sandbox:
        assert sandbox.slots == 6
        done = await asyncio.gather(*(sandbox.run(JOB) for _ in range(40)))
        assert {each.node for each in done} == {"a", "b", "c"}
        assert [node.most for node in nodes] == [2, 2, 2]
        assert (sandbox.running, sandbox._turn.locked()) == (0, False)


async def test_a_run_that_is_alone_has_one_node_and_the_others_go_on() -> None:

    async def alone_among(sandbox: ClusterSandbox, count: int) -> tuple[str, set[str]]:
        assert sandbox.alone is not None
        async with sandbox.alone() as machine:
            beside = [asyncio.create_task(sandbox.run(JOB)) for _ in range(count)]
            own = await machine.run(JOB)
            return own.node, {each.node for each in await asyncio.gather(*beside)}

    nodes = [ToyNode(name) for name in "ab"]
    async with a_cluster(*nodes) as sandbox:
        for node in nodes:
            node.slow.clear()
        before = [asyncio.create_task(sandbox.run(JOB)) for _ in range(4)]
        await asyncio.sleep(0.1)
        entered = asyncio.create_task(alone_among(sandbox, 6))
        await asyncio.sleep(0.1)
        assert not entered.done()
        for node in nodes:
            node.slow.set()
        await asyncio.gather(*before)
        own, others = await entered
        assert others == {"a", "b"} - {own}


async def test_a_job_that_ends_every_connection_is_given_up_and_takes_no_other_with_it() -> None:
    nodes = [ToyNode(name) for name in "ab"]
    async with a_cluster(*nodes) as sandbox:
        killer = Job(image="i", archive=b"a", command="kill")
        jobs = [sandbox.run(JOB) for _ in range(20)]
        bad, *good = await asyncio.gather(sandbox.run(killer), *jobs, return_exceptions=True)
        assert isinstance(bad, NodesLost)
        assert sum(node.killed for node in nodes) == 3
        assert all(isinstance(each, Execution) for each in good)


async def test_a_cancelled_job_gives_its_place_back() -> None:
    node = ToyNode("a")
    async with a_cluster(node) as sandbox:
        node.slow.clear()
        jobs = [asyncio.create_task(sandbox.run(JOB)) for _ in range(4)]
        await asyncio.sleep(0.1)
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        node.slow.set()
        done = await asyncio.gather(*(sandbox.run(JOB) for _ in range(4)))
        assert len(done) == 4


async def test_a_scheduler_that_is_not_there_is_named() -> None:
    with pytest.raises(EngineUnavailable, match=r"no Dask scheduler responds at tcp://127\.0\.0\.1:1 "):
        await ClusterSandbox.open(
            "tcp://127.0.0.1:1", run_id="r", limits=Limits(), sandboxes=1, say=lambda _: None
        )


def test_workers_of_one_host_see_each_other_and_of_another_do_not() -> None:
    mine = owner()
    place, pid, started = mine.split(".")
    assert place_of(mine) == place_of(f"{place}.{int(pid) + 1}.{started}") == place
    assert place_of(f"{'0' * 16}.{pid}.{started}") != place


class LostEngine:
    """An engine that does not answer."""

    async def remove(self, _: str) -> None:
        raise EngineUnavailable("No Docker Engine answers; start one")

    async def containers(self, *_: str) -> None:
        raise EngineUnavailable("No Docker Engine answers; start one")

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(("whose", "warnings"), [("", 3), ("boot:1:node:2", 0)])
async def test_only_the_owner_of_containers_warns_about_those_that_remain(
    whose: str, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A lost node's worker or watchdog removes its containers, so the user of the head has nothing to do."""
    containers = Containers(cast("Engine", LostEngine()), run_id="run", spare=0, whose=whose)
    async with containers.removing(Made("0123456789ab")):
        pass
    await containers.close()
    assert len([each for each in caplog.records if each.levelname == "WARNING"]) == warnings
