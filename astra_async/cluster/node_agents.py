"""Agents on nodes: their containers run on the nodes' engines, everything else in this process.

Each engine is reached through the node's worker (`EngineTunnel`). An agent's model calls arrive over an
attached stream of the engine, so no API key leaves the head. The containers are labelled with the worker's
name. The worker removes them, whatever happens to the head; if the worker is killed, its helper process
removes them.

Invariant: if several nodes share an engine, only one of them has agents at a time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

from astra_async.agents.installing import bring
from astra_async.cluster.engine_tunnel import EngineTunnel
from astra_async.errors import ContainerLost, EngineUnavailable, SandboxError
from astra_async.tasks import cancel, closed_on_error
from astra_async.testing.sandbox.engine import Engine
from astra_async.testing.sandbox.engine_errors import both_ends

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from astra_async.agents.agent_runs import AgentRuns, Agents
    from astra_async.agents.model_calls import AgentCalls
    from astra_async.cluster.head import ClusterSandbox
    from astra_async.cluster.nodes import Node
    from astra_async.prepare import Prepared
    from astra_async.types import Completion, SampleKey

    # `AgentRuns.open` without the arguments that depend on the engine: docker_host, whose, graders_bytes.
    OpensRuns = Callable[..., Awaitable[AgentRuns]]

_AGAIN_S = 30.0


class ClusterAgents:
    """Same interface as `AgentRuns`, on all nodes of a cluster.

    Volumes of installed agents are copied from the head's engine to those of the nodes.
    """

    def __init__(self, head: ClusterSandbox, opens: OpensRuns, agents: Agents) -> None:
        self.waiting = 0
        self.on_slots: Callable[[int], None] = lambda _: None  # called when a node joins
        self._head = head
        self._opens = opens
        self._volumes = {agent.volume for agent in agents.settings if agent.volume}
        self._at_once = agents.at_once
        self._runs: dict[Node, AgentRuns] = {}
        self._engines: set[str] = set()
        self._stopped = False
        self._turn = asyncio.Lock()
        self._taken: dict[Node, int] = {}
        self._tasks: dict[Node, asyncio.Task[None]] = {}
        self._following = asyncio.create_task(self._follow())

    @classmethod
    async def open(cls, head: ClusterSandbox, opens: OpensRuns, agents: Agents) -> Self:
        """Prepare the current nodes. Raises EngineUnavailable if there is none."""
        opened = cls(head, opens, agents)
        async with closed_on_error(opened.close):
            await head.until(lambda: opened._runs)
            await head.settled(lambda: len(opened._runs) >= len(opened._engines_ready()))
        return opened

    @property
    def running(self) -> int:
        """Number of samples that agents are working on."""
        return sum(runs.running for runs in self._runs.values())

    @property
    def slots(self) -> int:
        """Number of agents that can work concurrently on the current nodes."""
        here = sum(runs.slots for runs in self._runs.values())
        return min(here, self._at_once or here)

    def stop(self) -> None:
        """See `AgentRuns.stop`."""
        self._stopped = True
        for runs in self._runs.values():
            runs.stop()

    async def close(self) -> None:
        """Remove all containers made for agents."""
        await cancel(self._following, *self._tasks.values())

    async def ask(
        self, key: SampleKey, prepared: Prepared, image: str, calls: AgentCalls, prompt: str
    ) -> Completion:
        """See `AgentRuns.ask`; uses the node with most free slots. Raises ContainerLost if it is lost."""
        node, runs = await self._place()
        try:
            image_id = await self._head.image_id(image)
            return await runs.ask(key, prepared, image_id, calls, prompt)
        except ContainerLost as error:
            raise ContainerLost(f"node {node.name}: {error}") from error
        except SandboxError as error:
            if self._runs.get(node) is runs and not isinstance(error, EngineUnavailable):
                raise
            raise ContainerLost(f"node {node.name} was lost while an agent worked there ({error})") from error
        finally:
            self._taken[node] -= 1
            self._head.changed()

    def _engines_ready(self) -> set[str]:
        return {node.about["engine_id"] for node in self._head.nodes.values() if node.state == "ready"}

    # --- nodes -----------------------------------------------------------------------------------------

    async def _place(self) -> tuple[Node, AgentRuns]:
        """Take a slot on a node and return its runs. Raises EngineUnavailable."""
        self.waiting += 1
        try:
            async with self._turn:  # first come, first served
                node = await self._head.until(lambda: self._free)
                self._taken[node] = self._taken.get(node, 0) + 1
                return node, self._runs[node]
        finally:
            self.waiting -= 1

    @property
    def _free(self) -> Node | None:
        if self._at_once is not None and sum(self._taken.values()) >= self._at_once:
            return None
        free = {node: runs.slots - self._taken.get(node, 0) for node, runs in self._runs.items()}
        node = max(free, key=free.__getitem__, default=None)
        return node if node is not None and free[node] > 0 else None

    async def _follow(self) -> None:
        """Run one task for each node that is a member of the cluster."""
        while True:
            self._tasks = {node: task for node, task in self._tasks.items() if not task.done()}
            for node in self._head.nodes.values():
                if node not in self._tasks:
                    self._tasks[node] = asyncio.create_task(self._serve(node))
            await self._head.next_change()

    async def _serve(self, node: Node) -> None:
        while self._head.nodes.get(node.address) is node:
            engine = str(node.about.get("engine_id")) if node.state == "ready" else ""
            if engine and engine not in self._engines:
                self._engines.add(engine)
                try:
                    await self._open_on(node)
                except Exception as error:  # noqa: BLE001 - an error of one node must not affect others
                    self._head.say(f"node {node.name} cannot run agents now: {both_ends(error)}")
                    await asyncio.sleep(_AGAIN_S)
                finally:
                    self._engines.discard(engine)
                    self._head.changed()
            else:
                await self._head.next_change()

    async def _open_on(self, node: Node) -> None:
        """Run agents on a node until the node is lost."""
        head, same = self._head, node.about["engine_id"]
        sharing = [each for each in head.nodes.values() if each.about.get("engine_id") == same]
        graders = sum(each.slots for each in sharing if each.state in ("preparing", "ready"))
        async with EngineTunnel(node.address, head.run_id, head.connection) as tunnel:
            if self._volumes:
                async with await Engine.open() as ours, await Engine.open(tunnel.docker_host) as theirs:
                    for volume in self._volumes:
                        await bring(volume, ours, theirs)
            opened = await self._opens(
                docker_host=tunnel.docker_host,
                whose=str(node.about["process"]),
                graders_bytes=graders * head.memory_bytes,
            )
            async with opened as runs:
                if self._stopped:
                    runs.stop()
                self._runs[node] = runs
                self.on_slots(self.slots)
                try:
                    head.changed()
                    while node.state == "ready":
                        await head.next_change()
                finally:
                    del self._runs[node]
                # The node is lost: cut its connections, so that its samples start again elsewhere.
                await tunnel.cut()
                runs.stop()
                while self._taken.get(node):
                    await head.next_change()
