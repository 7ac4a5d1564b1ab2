"""A node as the head sees it, against a real Dask server that answers as a worker would."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pytest
from distributed.core import Server, Status

from astra_async.cluster.messages import (
    TESTS,
    VERSION,
    Stream,
    from_execution,
    from_job,
    pack,
    to_job,
    unpack,
)
from astra_async.cluster.nodes import Node, NodeGone, NodeRefused
from astra_async.cluster.supply import Supply
from astra_async.errors import ContainerLost, ImageError
from astra_async.running.admission import FairPermits
from astra_async.types import Execution, Job, Limits
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from distributed.comm import Comm

JOB = Job(image="i", archive=b"\0\xff", command="true", environment={"A": "b"}, limits=Limits(timeout_s=1.0))
# What code under test may call its report, and print: names that Dask gives a meaning, half a character.
DONE = Execution(
    exit_code=0, duration_s=0.5, output="\ud800", reports={"__Pickled__": b"x", "__Serialized__": b"y"}
)


@dataclass
class Head:
    """The part of the head that a node uses."""

    run_id: str = "r"
    memory_bytes: int = 1
    connection: Mapping[str, Any] = field(default_factory=dict)
    silence_s: float = 30.0
    said: list[str] = field(default_factory=list)

    async def supply(self, node: Node) -> None:
        return None

    def admit(self, node: Node) -> None:
        return None

    def changed(self) -> None:
        return None

    def say(self, text: str) -> None:
        self.said.append(text)


def about(**fields: object) -> dict[str, object]:
    known = {"messages": VERSION, "version": version("astra_async"), "name": "n", "process": "b:1:2:3"}
    return {**known, "slots": 2, "engine_id": "e", "trouble": "", **fields}


@asynccontextmanager
async def a_node(
    head: Head, told: Mapping[str, object], answer: Callable[[Stream, dict[str, Any]], None]
) -> AsyncIterator[Node]:
    """A node whose worker tells this about itself and answers messages so."""

    async def serve(comm: Comm, hello: bytes) -> Status:
        assert unpack(hello)["run_id"] == "r"
        stream = Stream(comm)
        stream.send("about", **told)
        try:
            while True:
                for message in await stream.receive():
                    answer(stream, message)
        except OSError:
            await stream.close()
        return Status.dont_reply

    handlers = {TESTS: serve} if told else {}
    async with Server(handlers) as server:
        await server.listen("tcp://127.0.0.1:0")
        node = Node(server.address, head)
        serving = asyncio.create_task(node.serve())
        try:
            yield node
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.01)


def silent(stream: Stream, message: dict[str, Any]) -> None:
    """Say nothing at all."""


async def test_jobs_and_results_arrive_as_they_were_whatever_names_are_in_them() -> None:
    assert to_job(unpack(pack(from_job(JOB)))) == JOB
    assert Execution(**unpack(pack(from_execution(DONE)))) == DONE

    def answer(stream: Stream, message: dict[str, Any]) -> None:
        if message["op"] == "run":
            assert to_job(message["job"]) == JOB
            stream.send("done", number=message["number"], execution=from_execution(DONE))

    async with a_node(Head(), about(), answer) as node:
        await until(lambda: node.state == "ready")
        done = await node.run(from_job(JOB))
        assert (done.node, done.reports, done.output) == ("n", DONE.reports, DONE.output)
        assert node.busy == 0


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (about(version="0.0.1"), "it has astra_async 0.0.1"),
        (about(messages=99), "another message format"),
        ({}, "a Dask worker without astra"),
    ],
)
async def test_a_worker_that_does_not_fit_is_refused_by_name(told: Mapping[str, object], why: str) -> None:
    head = Head()
    async with a_node(head, told, silent) as node:
        await until(lambda: node.state == "refused")
        assert why in node.why
        assert head.said == [f"worker {node.name} ({node.address}) is refused: {node.why}"]
        with pytest.raises(NodeGone):
            await node.run(from_job(JOB))


async def test_trouble_of_a_container_comes_back_as_what_it_is_and_names_the_node() -> None:
    def answer(stream: Stream, message: dict[str, Any]) -> None:
        if message["op"] == "run":
            stream.send("failed", number=message["number"], kind="ContainerLost", text="it vanished")

    async with a_node(Head(), about(), answer) as node:
        await until(lambda: node.state == "ready")
        for _ in range(3):
            assert node.free == 2
            with pytest.raises(ContainerLost, match="node n: it vanished"):
                await node.run(from_job(JOB))
        assert node.free == 0  # it would draw every job to itself


async def test_a_node_that_leaves_or_falls_silent_gives_its_jobs_back() -> None:
    def leaves(stream: Stream, message: dict[str, Any]) -> None:
        if message["op"] == "run":
            stream.send("left", text="its engine is away")

    async def check(answer: Callable[[Stream, dict[str, Any]], None], silence_s: float, why: str) -> None:
        head = Head(silence_s=silence_s)
        async with a_node(head, about(), answer) as node:
            await until(lambda: node.state == "ready")
            with pytest.raises(NodeGone):
                await node.run(from_job(JOB))
            assert any(why in line for line in head.said)

    await check(leaves, 30.0, "its engine is away")
    await check(silent, 2.0, "silent for 2 s")


@dataclass
class Holding:
    """A node that has these images."""

    has: Mapping[str, str]
    name: str = "n"
    address: str = "tcp://n"

    async def images(self, wanted: Mapping[str, str], pulled: tuple[str, ...]) -> Mapping[str, str]:
        return {name: self.has.get(name, "") for name in wanted}


async def test_two_contents_under_one_name_are_refused_and_what_nobody_has_is_no_nodes_fault() -> None:
    supply = Supply(lambda _: None)
    supply.known = {"a": "", "b": ""}
    supply._settled.set()
    await supply.bring(Holding({"a": "sha256:1"}), {})  # type: ignore[arg-type]
    assert supply.known == {"a": "sha256:1", "b": ""}
    with pytest.raises(NodeRefused, match=r"its image a is sha256:2, but other nodes have sha256:1"):
        await supply.bring(Holding({"a": "sha256:2"}), {})  # type: ignore[arg-type]


async def test_a_node_that_joins_gets_what_comes_meanwhile_as_well() -> None:
    supply = Supply(lambda _: None)
    node = Holding({"a": "sha256:1", "late": "sha256:2"})

    async def images(wanted: Mapping[str, str], pulled: tuple[str, ...]) -> Mapping[str, str]:
        asked.append(tuple(wanted))
        if wanted.keys() == {"a"}:
            await supply.settle(["late"])
        return await Holding.images(node, wanted, pulled)

    asked: list[tuple[str, ...]] = []
    node.images = images  # type: ignore[method-assign]
    await supply.settle(["a"])
    await supply.bring(node, {})  # type: ignore[arg-type]
    assert asked == [("a",), ("late",)]
    assert supply.known == {"a": "sha256:1", "late": "sha256:2"}


async def test_places_come_and_go_with_the_nodes() -> None:
    permits = FairPermits(1)
    held: list[int] = []
    leave = asyncio.Event()

    async def hold(number: int) -> None:
        async with permits.permit("m"):
            held.append(number)
            await leave.wait()

    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(hold(number))
        await asyncio.sleep(0)
        assert held == [0]
        permits.resize(3)
        await asyncio.sleep(0.01)
        assert held == [0, 1, 2]
        permits.resize(1)
        await asyncio.sleep(0.01)
        assert held == [0, 1, 2]
        leave.set()
    assert held == [0, 1, 2, 3]
    assert permits._free == 1


def test_an_error_keeps_its_branch_of_the_tree() -> None:
    from astra_async.cluster.messages import from_error, to_error
    from astra_async.testing.sandbox.engine_errors import HostTrouble

    assert isinstance(to_error(unpack(pack(from_error(ImageError("x")))), "n"), ImageError)
    assert str(to_error(from_error(HostTrouble("the disk is full")), "n")) == "node n: the disk is full"
