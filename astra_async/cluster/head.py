"""The head: a Sandbox whose containers run on the nodes of a Dask cluster.

The scheduler is used only to list the members; jobs are sent directly to the nodes (`Node`). If a node is
lost, its jobs are sent to another node. Invariant: at most `slots` jobs are on nodes, and each job on one
node only.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

import dask
from dask.utils import parse_timedelta
from distributed.core import rpc
from distributed.security import Security

from astra_async.cluster import connection_to
from astra_async.cluster.messages import from_job
from astra_async.cluster.nodes import Node, NodeGone, NodeRefused
from astra_async.cluster.supply import Supply
from astra_async.errors import EngineUnavailable, ImageError, NodesLost
from astra_async.tasks import cancel, closed_on_error
from astra_async.testing.sandbox.engine_errors import both_ends
from astra_async.testing.sandbox.sweep import place_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping

    from astra_async.cluster.local import LocalCluster
    from astra_async.cluster.nodes import State
    from astra_async.errors import AstraError
    from astra_async.images.failed_images import FailedImages
    from astra_async.images.resolve import ProblemImages
    from astra_async.prepare import Prepared
    from astra_async.types import Execution, Job, Limits, Sandbox

_T = TypeVar("_T")
_LOOK_S = 1.0
_CONNECT_S = 10.0
_END_S = 10.0
_SETTLED_S = 60.0  # longest wait for more members at the start; images are not limited
_PATIENCE_S = 120.0  # longest time without a node; Dask's no-workers-timeout overrides it
_LOST_AT_MOST = 3  # nodes lost by one job before the job fails
_SUSPECT_AFTER = 2


async def members(scheduler: rpc, *, timeout_s: float) -> frozenset[str]:
    """Return the addresses of a scheduler's workers. Raises EngineUnavailable if it does not respond."""
    try:
        async with asyncio.timeout(timeout_s):
            return frozenset((await scheduler.identity())["workers"])
    except (OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        raise EngineUnavailable(
            f"no Dask scheduler responds at {scheduler.address} ({both_ends(error) or type(error).__name__});"
            " start one with `dask scheduler`"
        ) from error


@dataclass(eq=False, kw_only=True)
class ClusterSandbox:
    """See `types.RunSandbox`. `slots` changes when nodes join or leave; `on_slots` is called with it."""

    cluster: str
    run_id: str
    memory_bytes: int
    say: Callable[[str], None]
    local: LocalCluster | None = None

    def __post_init__(self) -> None:
        self.address = self.local.address if self.local else self.cluster
        security = self.local.security if self.local else Security()
        self.connection: Mapping[str, Any] = connection_to(self.address, security, "client")
        self.silence_s = float(_configured("comm.timeouts.tcp", 30.0))
        self.nodes: dict[str, Node] = {}
        self.on_slots: Callable[[int], None] = lambda _: None
        self._supply = Supply(self.say)
        self.supply = partial(self._supply.bring, connection=self.connection)
        self._patience_s = float(_configured("scheduler.no-workers-timeout", _PATIENCE_S))
        self._alone_s = 0.0
        self._scheduler_says = ""
        self._turn = asyncio.Lock()
        self._suspects = asyncio.Lock()
        self._one_alone = asyncio.Lock()
        self._changed = asyncio.Event()
        self._scheduler = rpc(self.address, timeout=_CONNECT_S, connection_args=self.connection)
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @classmethod
    async def open(
        cls, cluster: str, *, run_id: str, limits: Limits, sandboxes: int, say: Callable[[str], None]
    ) -> Self:
        """Connect to a cluster, or start `local:N`, and wait until a worker can receive images.

        Raises EngineUnavailable: no scheduler responds, or it has no usable worker.
        """
        local, wanted, memory_bytes = None, 1, limits.memory_bytes
        if cluster.startswith("local:"):
            from astra_async.cluster.local import LocalCluster

            wanted = int(cluster.partition(":")[2])
            local = await LocalCluster.start(wanted, sandboxes)
        sandbox = cls(cluster=cluster, run_id=run_id, memory_bytes=memory_bytes, say=say, local=local)
        async with closed_on_error(sandbox.close):
            await sandbox._find_members()
            if not sandbox.nodes and local is None:
                say(f"waiting for workers: `astra worker {cluster}` on each machine")
            sandbox._tasks["members"] = asyncio.create_task(sandbox._keep_up())
            await sandbox.until(lambda: sandbox._nodes("preparing"))
            await sandbox.settled(lambda: len(sandbox._nodes("preparing")) >= wanted)
        return sandbox

    @property
    def running(self) -> int:
        """Number of jobs on nodes."""
        return sum(node.busy for node in self.nodes.values())

    @property
    def slots(self) -> int:
        """Number of containers that all ready nodes can run concurrently."""
        return sum(node.slots for node in self._nodes("ready"))

    @property
    def ahead(self) -> int:
        """Number of containers that nodes were told to create in advance and whose job has not arrived."""
        return sum(node.expected for node in self.nodes.values())

    async def provide(
        self, prepared: Mapping[str, Prepared], default: str, *, failures: FailedImages, also: Iterable[str]
    ) -> tuple[dict[str, str], dict[str, AstraError], ProblemImages | None]:
        """Return images by problem, errors of problems without one, and the object that builds the rest.

        Every ready node gets the images that exist already, and `also`. Images built later are delivered when
        they are done. Raises EngineUnavailable if no node can have them.
        """
        images, failed, making = await self._supply.open(
            prepared, default, failures=failures, deliver=self._deliver
        )
        async with closed_on_error(making.close) if making else nullcontext():
            await self.bring({*images.values(), *also})
        for key, name in list(images.items()):
            if not self._supply.known[name]:
                failed[key] = ImageError(f"image {name}: no node has the image or can pull it")
                del images[key]
        return images, failed, making

    async def bring(self, images: Iterable[str]) -> None:
        """Deliver images to every usable node. Raises EngineUnavailable if no node is usable."""
        await self._supply.settle(images)
        await self.settled(lambda: not self._nodes("connecting"))
        await self.until(lambda: self.slots)
        while self._nodes("preparing"):
            await self.next_change()

    async def _deliver(self, image: str) -> None:
        """Deliver a newly built image to all ready nodes; disconnect nodes that cannot take it."""
        await self._supply.settle([image])
        there = self._nodes("ready")
        troubles = await asyncio.gather(*map(self.supply, there), return_exceptions=True)
        for node, trouble in zip(there, troubles, strict=True):
            if trouble:
                node.disconnect()

    async def image_id(self, image: str) -> str:
        """See `types.Sandbox`; the content id on which all nodes agree."""
        if image_id := self._supply.known.get(image):
            return image_id
        raise ImageError(f"image {image} is not on any node of the cluster")

    def expect(self, image: str, limits: Limits) -> None:
        """See `types.Sandbox`; the node with the largest free share creates a container in advance."""
        if ready := [node for node in self._nodes("ready") if node.expected < node.slots]:
            node = max(ready, key=lambda each: (each.slots - each.expected) / each.slots)
            node.expect(self._supply.known.get(image, image), asdict(limits))

    async def run(self, job: Job) -> Execution:
        """Run a job on a node; if the node is lost, on another one.

        Raises the node's SandboxError, NodesLost, or EngineUnavailable if there is no node.
        """
        content = from_job(replace(job, image=await self.image_id(job.image)))
        lost: list[str] = []
        while len(lost) < _LOST_AT_MOST:
            # Jobs that have lost several nodes run one at a time: only one of them can crash the other nodes.
            async with self._suspects if len(lost) >= _SUSPECT_AFTER else nullcontext():
                node = await self._place()
                try:
                    return await node.run(content)
                except NodeGone:
                    lost.append(node.name)
                finally:
                    node.taken -= 1
                    self._changed.set()
        raise NodesLost(
            f"nodes {', '.join(lost)} were lost one after the other while they ran this job;"
            " the job is not retried in this invocation"
        )

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[Sandbox]:
        """Reserve the least busy node once it is idle; other nodes continue."""
        async with self._one_alone:
            node = min(await self.until(lambda: self._nodes("ready")), key=lambda each: each.taken)
            node.reserved = True
            try:
                while node.taken:
                    await self.next_change()
                yield _OneNode(self, node)
            finally:
                node.reserved = False
                self._changed.set()

    def stop_waiting(self) -> None:
        """See `types.RunSandbox`."""
        self._patience_s = 0.0

    async def close(self) -> None:
        """Close all connections, after waiting up to _END_S for the nodes to remove the run's containers."""
        if "members" in self._tasks:
            self._tasks["members"].cancel()
        if ending := [self._tasks[node.address] for node in self.nodes.values() if node.end()]:
            await asyncio.wait(ending, timeout=_END_S)
        await cancel(*self._tasks.values())
        await self._scheduler.close_rpc()
        await self._supply.close()
        if self.local is not None:
            await self.local.stop()

    # --- callbacks from nodes (`nodes.Surroundings`) ---------------------------------------------------

    def admit(self, node: Node) -> None:
        """Refuse a node that shares its engine with a node in another process namespace.

        Each worker removes the containers of processes that it sees as dead. Raises NodeRefused.
        """
        engine, place = node.about["engine_id"], place_of(str(node.about["process"]))
        for other in self._nodes("preparing", "ready"):
            elsewhere = place_of(str(other.about["process"])) != place
            if engine and other.about["engine_id"] == engine and elsewhere:
                raise NodeRefused(
                    f"it shares its Docker Engine with {other.name}, but neither sees the other's processes"
                )

    def changed(self) -> None:
        """Wake up the tasks that wait for a node or a slot."""
        self._changed.set()
        self.on_slots(self.slots)

    # --- slots -----------------------------------------------------------------------------------------

    async def _place(self) -> Node:
        """Take a slot on a node; the caller must give it back. Raises EngineUnavailable."""
        async with self._turn:  # first come, first served
            node = await self.until(lambda: self._free)
            node.taken += 1
            return node

    @property
    def _free(self) -> Node | None:
        """The node with the largest free share, or None if none has a free slot."""
        node = max(self.nodes.values(), key=lambda each: each.free / max(1, each.slots), default=None)
        return node if node is not None and node.free > 0 else None

    # --- members ---------------------------------------------------------------------------------------

    async def _keep_up(self) -> None:
        """Follow joining and leaving members; if the scheduler is down, existing nodes stay connected."""
        clock = asyncio.get_running_loop().time
        while True:
            began_at = clock()
            await asyncio.sleep(_LOOK_S)
            try:
                await self._find_members()
                self._scheduler_says = ""
            except EngineUnavailable as error:
                self._scheduler_says = str(error)
            is_alone = not self._nodes("preparing", "ready")
            self._alone_s = self._alone_s + clock() - began_at if is_alone else 0.0

    async def _find_members(self) -> None:
        found = await members(self._scheduler, timeout_s=self.silence_s)
        for address in found - set(self.nodes):
            node = self.nodes[address] = Node(address, self)
            self._tasks[address] = asyncio.create_task(node.serve())
        for address, node in list(self.nodes.items()):
            node.is_member = address in found
            if self._tasks[address].done():
                self._tasks.pop(address).result()
                del self.nodes[address]
                self.changed()

    async def until(self, of: Callable[[], _T | None]) -> _T:
        """Wait for a true value and return it; raises EngineUnavailable after too long without any node."""
        while not (found := of()):
            if self._alone_s > self._patience_s:
                nodes = "; ".join(f"{node.name}: {node.why or node.state}" for node in self.nodes.values())
                why = nodes or self._scheduler_says or "none has joined"
                raise EngineUnavailable(
                    f"no worker of the cluster at {self.address} can run tests ({why}); start one with"
                    " `astra worker`"
                )
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self.next_change()
        return found

    async def settled(self, holds: Callable[[], bool]) -> None:
        """Wait for an optional condition, for at most _SETTLED_S seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SETTLED_S):
                await self.until(holds)

    def _nodes(self, *states: State) -> list[Node]:
        return [node for node in self.nodes.values() if node.state in states]

    async def next_change(self) -> None:
        """Wait until a node's state or free slots change."""
        self._changed.clear()
        await self._changed.wait()


@dataclass(frozen=True, slots=True)
class _OneNode:
    """A Sandbox on one reserved node; if that node is lost, on any node."""

    head: ClusterSandbox
    node: Node

    async def image_id(self, image: str) -> str:
        return await self.head.image_id(image)

    def expect(self, image: str, limits: Limits) -> None:
        """Do nothing, because no container is created in advance while a test runs alone."""

    async def run(self, job: Job) -> Execution:
        try:
            return await self.node.run(from_job(replace(job, image=await self.image_id(job.image))))
        except NodeGone:
            return await self.head.run(job)


def _configured(name: str, default: float) -> float:
    """Return a duration from Dask's configuration, in seconds."""
    value = dask.config.get(f"distributed.{name}", None)
    return default if value is None else float(parse_timedelta(value))
