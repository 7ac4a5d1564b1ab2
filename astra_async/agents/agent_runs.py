"""Run agents, each in its own container and within its limits, and collect their answers.

Agents have their own slots, limited by memory instead of cores, because an agent mostly waits for its model.
All agents together with the test containers must fit into the machine.

An agent's clock stops while a model call is in flight, since the provider's speed, rate limits and pauses
are not the agent's doing. However an agent ends (by itself, with an error, at a limit), the files in the
project's folder are its answer. Errors of the provider, the engine or this program are raised instead, and
the next attempt starts with the recorded calls.

Invariant: when `ask` returns or raises, the sample's containers are removed and its token is invalid. After a
kill the next process removes the containers (see `sandbox.sweep`).
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol, Self

from astra_async.agents import shell
from astra_async.agents.acp import converse
from astra_async.agents.model_calls import BodyRefused
from astra_async.agents.relay import PORT, relayed
from astra_async.agents.session_log import artifacts_file, keep_session_log, session_log
from astra_async.agents.workplace import Workplaces
from astra_async.errors import ContainerLost, SandboxError
from astra_async.images.base_image import ensure_base
from astra_async.tasks import Closing, cancel, closed_on_error
from astra_async.testing.sandbox.containers import Containers
from astra_async.testing.sandbox.engine import Engine
from astra_async.testing.sandbox.engine_errors import both_ends
from astra_async.testing.sandbox.sweep import of_agents
from astra_async.types import AgentWork, Completion, Limits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from astra_async.agents.gateway.gateway_server import Gateway
    from astra_async.agents.left_behind import Answer
    from astra_async.agents.model_calls import AgentCalls
    from astra_async.agents.workplace import Workplace
    from astra_async.prepare import Prepared
    from astra_async.testing.sandbox.execution import Ended
    from astra_async.types import AgentEnd, AgentLimits, AgentSettings, SampleKey

BASE_URL = f"http://127.0.0.1:{PORT}"
# The hungriest agent took 590 MB; with it a project's own tests run there.
LIMITS = Limits(memory_bytes=2 * 1024**3, disk_bytes=1024**3)
_SHARE_OF_MEMORY = 0.8
_PROMPT = ".agent/task.md"  # below HOME
_LEAST_S = 0.2


def most_slots(memory_bytes: int, *, machine_bytes: int, graders_bytes: int) -> int:
    """Return the number of agents that fit, with the test containers, into 80 % of the memory; at least 1."""
    return max(1, int((_SHARE_OF_MEMORY * machine_bytes - graders_bytes) // memory_bytes))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    end: AgentEnd
    own_s: float = 0.0
    exit_code: int | None = None
    output: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agents:
    """The agents of a run with their limits. `at_once` is the highest number of agents at a time, if given.

    `places` opens the containers: for projects (`Workplaces`) or for tasks (`TaskPlaces`). `keeps_artifacts`:
    files that a sample leaves beside its answer are kept.
    """

    settings: tuple[AgentSettings, ...]
    limits: AgentLimits
    container: Limits = LIMITS
    at_once: int | None = None
    places: Callable[[Containers, Limits], Places] = Workplaces
    keeps_artifacts: bool = False


class Places(Protocol):
    """Opener of the containers in which agents work."""

    def open(
        self, image: str, prepared: Prepared, agent: AgentSettings
    ) -> AbstractAsyncContextManager[Workplace]:
        """Open a container for an agent; it is removed at the end. Raises SandboxError."""
        ...


class AgentRuns(Closing):
    """Runs agents, at most `slots` at a time. `waiting` and `running` are numbers of samples."""

    def __init__(self, agents: Agents, gateway: Gateway, containers: Containers, *, slots: int) -> None:
        self.slots = slots
        self.on_slots: Callable[[int], None] = lambda _: (
            None
        )  # never called: one engine's slots do not change
        self.waiting = 0
        self.running = 0
        self._containers = containers
        self._agents = {agent.name: agent for agent in agents.settings}
        self._limits = agents.limits
        self._keeps_artifacts = agents.keeps_artifacts
        self._gateway = gateway
        self._places = agents.places(
            containers, replace(agents.container, timeout_s=60 * agents.limits.minutes)
        )
        self._free = asyncio.Semaphore(slots)
        self._stopping = asyncio.Event()

    @classmethod
    async def open(
        cls,
        run_id: str,
        agents: Agents,
        gateway: Gateway,
        *,
        graders_bytes: int = 0,
        docker_host: str | None = None,
        whose: str = "",
    ) -> Self:
        """Connect to the engine and remove the containers of dead runs.

        No more are at work at once than fit into the memory of the engine's machine beside graders'
        containers of `graders_bytes` altogether. Where the containers are another process's (`whose`), it is
        that one who removes what is left there. Raises EngineUnavailable: no Docker Engine answers.
        """
        own_id = of_agents(run_id)
        engine = await (Engine.open(docker_host) if whose else Containers.swept(own_id, docker_host))
        async with closed_on_error(engine.close):
            machine_bytes = int((await engine.info()).get("MemTotal") or 0)
        each_bytes = agents.container.memory_bytes
        most = most_slots(each_bytes, machine_bytes=machine_bytes, graders_bytes=graders_bytes)
        slots = min(agents.at_once or most, most) if machine_bytes else agents.at_once or 1
        containers = Containers(engine, run_id=own_id, spare=slots, whose=whose)
        return cls(agents, gateway, containers, slots=slots)

    async def close(self) -> None:
        """Remove all agents' containers and disconnect."""
        self.stop()
        await self._containers.close()

    def stop(self) -> None:
        """Stop running agents; no further agent starts."""
        self._stopping.set()

    async def ask(
        self, key: SampleKey, prepared: Prepared, image: str, calls: AgentCalls, prompt: str
    ) -> Completion:
        """Let the key's agent work on a problem, after waiting for a free slot.

        Raises ProviderError: its model could not be reached; SandboxError: its container could not be run,
        the run is being stopped, or the agent never spoke to its model.
        """
        self.waiting += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        self.running += 1
        try:
            if self._stopping.is_set():
                raise SandboxError("The run is being stopped: no agent begins")
            return await self._asked(self._agents[key.format], prepared, image, calls, prompt)
        finally:
            self.running -= 1
            self._free.release()

    async def _asked(
        self, agent: AgentSettings, prepared: Prepared, image: str, calls: AgentCalls, prompt: str
    ) -> Completion:
        began = time.monotonic()
        async with self._places.open(image, prepared, agent) as place:
            if agent.speaks:
                outcome = await self._installed(agent, place, calls, prompt)
            else:
                ran = _ended(place.run(agent.command, {}), calls) if agent.command else None
                work = ran or self._in_shell(place, calls, prompt)
                outcome = await self._within_limits(work, calls, place)
            _raise_trouble(agent, calls, outcome)
            log = session_log(calls.log.path.parent, calls.key)
            await keep_session_log(log, place, agent.logs, outcome.output)
            try:
                left = await place.left()
                answer = await asyncio.to_thread(left.chosen, prepared.policy.refusal)
            finally:
                if self._keeps_artifacts:
                    await place.keep(artifacts_file(calls.log.path.parent, calls.key))
        return _completion(agent, calls, outcome, answer, latency_s=time.monotonic() - began)

    async def _installed(
        self, agent: AgentSettings, place: Workplace, calls: AgentCalls, prompt: str
    ) -> _Outcome:
        """Run an agent that is a program in the container, connected to the gateway."""
        fill = _Fill(prompt, calls, home=place.home)
        for path, text in {_PROMPT: prompt, **{p: fill.quoted(t) for p, t in agent.files.items()}}.items():
            await place.write(path, text)
        variables = {name: fill.plain(text) for name, text in agent.variables.items()}
        talk = partial(converse, prompt=prompt, folder=place.folder) if agent.acp else None
        base = await self._containers.once("base image", self._base_image)
        with self._gateway.admit(calls):
            async with relayed(self._containers, base, place.container, self._gateway.socket) as relay:
                work = place.run(fill.command(agent.command), variables, talk)
                return await self._within_limits(_ended(work, calls), calls, place, lost=relay.lost)

    async def _within_limits(
        self,
        work: Awaitable[_Outcome],
        calls: AgentCalls,
        place: Workplace,
        *,
        lost: asyncio.Event | None = None,
    ) -> _Outcome:
        """Return the outcome of the work, or the limit that was reached first; then the work is cancelled."""
        began, before_s = time.monotonic(), calls.model_s

        def own_s() -> float:
            return max(0.0, time.monotonic() - began - (calls.model_s - before_s))

        working = asyncio.ensure_future(work)
        events = [calls.ended, self._stopping, *([lost] if lost else [])]
        waits = [asyncio.ensure_future(event.wait()) for event in events]
        try:
            while not working.done() and not any(event.is_set() for event in events):
                left_s = 60 * self._limits.minutes - own_s()
                if place.seconds is not None:
                    left_s = place.seconds - (time.monotonic() - began)
                if left_s <= 0:
                    return _Outcome(end="time", own_s=own_s(), output=place.printed())
                wait_s = max(left_s, _LEAST_S)  # the clock may stand still
                await asyncio.wait({working, *waits}, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            if self._stopping.is_set():
                raise SandboxError(
                    "The run is being stopped; the next run continues from the agent's last call"
                )
            # At a limit the gateway refuses requests, and the agent may end because of that.
            if calls.end is not None or calls.trouble is not None:
                return _Outcome(end=calls.end or "crashed", own_s=own_s(), output=place.printed())
            if working.done():
                return replace(working.result(), own_s=own_s())
            raise ContainerLost("The connection from the agent's container to its model was lost")
        finally:
            await cancel(working, *waits)

    async def _in_shell(self, place: Workplace, calls: AgentCalls, prompt: str) -> _Outcome:
        run = partial(place.shell, timeout_s=shell.COMMAND_TIMEOUT_S)
        try:
            end = await shell.work(prompt, calls, run, opening=place.opening)
        except BodyRefused as refused:
            return _Outcome(end="crashed", output=f"the provider refuses the request: {refused}")
        return _Outcome(end=end)

    async def _base_image(self) -> str:
        base = await ensure_base(self._containers.engine, progress=lambda _: None)
        return await self._containers.image_id(base)


class _Fill:
    """Values of {prompt}, {prompt_file}, {model}, {base_url} and {token} in an agent's settings."""

    def __init__(self, prompt: str, calls: AgentCalls, *, home: str) -> None:
        file = str(PurePosixPath(home, _PROMPT))
        self._values = {
            "{prompt}": prompt,
            "{prompt_file}": file,
            "{model}": calls.settings.model,
            "{base_url}": BASE_URL,
            "{token}": calls.token,
        }
        self._prompt = f'"$(cat {shlex.quote(file)})"'

    def command(self, text: str) -> str:
        """Fill in a bash command: each value is quoted and therefore one word."""
        words = {name: shlex.quote(value) for name, value in self._values.items()}
        return _replaced(text, words | {"{prompt}": self._prompt})

    def quoted(self, text: str) -> str:
        """Fill in a text file: values are escaped for the quoted strings of JSON and TOML."""
        return _replaced(text, {name: json.dumps(value)[1:-1] for name, value in self._values.items()})

    def plain(self, text: str) -> str:
        """Fill in an environment variable: values are inserted unchanged."""
        return _replaced(text, self._values)


def _replaced(text: str, values: Mapping[str, str]) -> str:
    """Replace all names in one pass, because a value may contain another name."""
    return re.sub("|".join(map(re.escape, values)), lambda found: values[found[0]], text)


async def _ended(work: Awaitable[Ended], calls: AgentCalls) -> _Outcome:
    """Return the outcome of a command. Some agents end with an error if the context is full."""
    ended = await work
    error: AgentEnd = "crashed" if calls.too_long is None else "context"
    return _Outcome(
        end="done" if ended.exit_code == 0 else error,
        exit_code=ended.exit_code,
        output=f"{ended.stopped} limit; " * bool(ended.stopped) + ended.output.text(),
    )


def _raise_trouble(agent: AgentSettings, calls: AgentCalls, outcome: _Outcome) -> None:
    """Raise the error of the model's provider, or an error if the agent never called its model."""
    if calls.trouble is not None:
        raise calls.trouble
    if not (calls.steps or calls.end or (agent.command and not agent.speaks)):  # a command may need no model
        raise SandboxError(
            f"Agent {agent.name} {agent.version} never called its model (it ended: {outcome.end}, exit code"
            f" {outcome.exit_code}); it printed: {both_ends(outcome.output) or 'nothing'}"
        )


def _completion(
    agent: AgentSettings, calls: AgentCalls, outcome: _Outcome, answer: Answer, *, latency_s: float
) -> Completion:
    work = AgentWork(
        agent=agent.name,
        version=agent.version,
        end=outcome.end,
        exit_code=outcome.exit_code,
        steps=calls.steps,
        replayed=calls.replayed,
        repeated_usd=calls.repeated_usd,
        model_s=calls.model_s + calls.replayed_s,
        own_s=outcome.own_s,
        translated=calls.translated,
        removed=tuple(calls.removed),
        left_out=answer.left_out,
        lost=answer.lost,
        output_tail=both_ends(outcome.output) if outcome.end == "crashed" else "",
    )
    return Completion(
        text=answer.text,
        finish_reason="stop",
        usage=calls.usage,
        returned_model=calls.settings.model,
        latency_s=latency_s,
        attempts=calls.steps,
        cost_usd=calls.cost_usd,
        cost_estimated=calls.cost_estimated,
        agent=work,
    )
