"""Samples that are answered by agents: the request log, gateway and containers, open during a run.

Each model request of an agent is recorded in calls.jsonl before the agent receives the response. After a
kill, the sample is therefore resumed from its recorded requests, and calls.jsonl contains the complete cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from astra_async.agents.agent_runs import AgentRuns, Agents
from astra_async.agents.call_log import CallLog
from astra_async.agents.gateway.gateway_server import Gateway
from astra_async.agents.model_calls import AgentCalls
from astra_async.errors import ContainerLost
from astra_async.running.model_pools import close_later

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AsyncExitStack

    from astra_async.cluster.head import ClusterSandbox
    from astra_async.cluster.node_agents import ClusterAgents
    from astra_async.config import RunConfig
    from astra_async.prepare import Prepared
    from astra_async.running.directory import RunDirectory
    from astra_async.running.model_pools import ModelPool
    from astra_async.types import AgentLimits, Completion, ModelRequest, ModelSettings
    from astra_async.types.task_work import TaskWork

_TRIES = 3  # attempts for a sample whose container is lost


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAsking:
    """Runs agents for samples.

    Attributes:
        runs: agent containers on this machine or on a cluster.
        log: log of the agents' model requests (calls.jsonl).
        models: model settings by name.
        record_event: `RunDirectory.record_event`.
    """

    runs: AgentRuns | ClusterAgents
    log: CallLog
    models: Mapping[str, ModelSettings]
    limits: AgentLimits
    record_event: Callable[..., None]

    async def ask(self, request: ModelRequest, prepared: Prepared, image: str, pool: ModelPool) -> Completion:
        """Run the agent of `request.key` and return its answer, with the usage and cost of all its requests.

        If its container is lost, the agent is restarted from its recorded requests; on a cluster, this may
        be on another node. `request` is the request that would get a single answer without an agent.

        Raises ProviderError, SandboxError or StorageError. The sample is missing then, and the next
        invocation resumes it from its recorded requests.
        """
        for _ in range(_TRIES - 1):
            try:
                return await self._try(request, prepared, image, pool)
            except ContainerLost as error:
                self.record_event("sandbox_retry", request.key, detail=str(error), seconds=0.0)
        return await self._try(request, prepared, image, pool)

    async def _try(
        self, request: ModelRequest, prepared: Prepared, image: str, pool: ModelPool
    ) -> Completion:
        key = request.key.first
        calls = AgentCalls(
            key,
            pool=pool,
            settings=self.models[key.model],
            log=self.log,
            limits=self.limits,
            seed=request.seed,
            sample_header=request.sample_header,
        )
        try:
            return await self.runs.ask(key, prepared, image, calls, request.prompt)
        finally:
            await calls.close()


async def open_agents(
    config: RunConfig,
    directory: RunDirectory,
    stack: AsyncExitStack,
    say: Callable[[str], None],
    *,
    cluster: ClusterSandbox | None,
    tasks: Sequence[TaskWork] = (),
) -> AgentAsking:
    """Open the agents' request log, gateway and containers; they are closed with `stack`.

    `tasks` are the tasks of the run; empty for a run of projects.
    """
    log = CallLog(directory.calls.path, directory.calls, directory.keep)
    gateway = Gateway()
    await gateway.start()
    close_later(stack, say, "the agents' gateway", gateway.close)
    agents = Agents(settings=config.agents, limits=config.agent_limits, at_once=config.agents_at_once)
    if tasks:
        from astra_async.harbor.trial import TaskPlaces

        memory_bytes = max(task.agent.memory_bytes for task in tasks)
        container = replace(agents.container, memory_bytes=memory_bytes)
        agents = replace(
            agents,
            container=container,
            places=lambda made, _: TaskPlaces(made),
            keeps_artifacts=config.keep_artifacts,
        )
    opens = partial(AgentRuns.open, directory.run_id, agents, gateway)
    runs: AgentRuns | ClusterAgents
    if cluster:
        from astra_async.cluster.node_agents import ClusterAgents

        runs = await ClusterAgents.open(cluster, opens, agents)
    else:
        graders_bytes = 0 if tasks else config.sandboxes * config.limits.memory_bytes
        runs = await opens(graders_bytes=graders_bytes)
    close_later(stack, say, "the agents' containers", runs.close)
    return AgentAsking(
        runs=runs,
        log=log,
        models={model.name: model for model in config.models},
        limits=config.agent_limits,
        record_event=directory.record_event,
    )
