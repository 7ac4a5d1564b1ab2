"""A sample of a task: an agent works in the task's container, then the verifier's reward is its score.

A container's state cannot be moved, so work and verification are one step. The verifier's outcome
(`TaskPlace.left`) is recorded as the sample's answer. If the run is killed before that, the sample starts
again in a fresh container with its recorded model calls.

A verifier that writes no finite reward, or takes too long, says nothing about the agent. It runs once more,
and then the sample is missing. A reward of 0 without a test report may come from a failed download: see
`TaskPlaces._believes_zero`.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import tarfile
from collections import defaultdict
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from astra_async.agents.account import PROFILE, WITH_TOOLS
from astra_async.agents.left_behind import Answer
from astra_async.agents.session_log import write_beside
from astra_async.agents.shell import IN_TASK
from astra_async.agents.workplace import FOREVER_S, Workplace, mounts_of
from astra_async.errors import SandboxError, StorageError
from astra_async.harbor.container import TaskBox, healthy, opened, packed
from astra_async.harbor.verified import Verified, answer_of, outcome
from astra_async.testing.sandbox.engine_errors import both_ends
from astra_async.types import AGENT_MINUTES, Project
from astra_async.types.task_work import NOP, ORACLE, Artifact

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from astra_async.prepare import Prepared
    from astra_async.testing.sandbox.containers import Containers
    from astra_async.testing.sandbox.execution import Ended, Talk
    from astra_async.types import AgentSettings

TESTS, SOLUTION, VERIFIER_LOGS = "/tests", "/solution", "/logs/verifier"
_LOGS = ("/logs", "/logs/agent", VERIFIER_LOGS, "/logs/artifacts")
_SANDBOXED = {"IS_SANDBOX": "1"}  # Claude Code refuses to work as root without
_TRIES = 2  # of a verifier that gives no reward
_log = logging.getLogger(__name__)
_LOG_BYTES, _LOG_FILE_BYTES = 256 * 1024**2, 16 * 1024**2
_KEPT_BYTES = 64 * 1024**2  # of each artifact that --keep-artifacts keeps


@dataclass(slots=True, kw_only=True)
class TaskPlace(Workplace):
    """The container in which an agent works on a task."""

    opening: ClassVar[tuple[str, str]] = IN_TASK
    box: TaskBox
    places: TaskPlaces
    prepared: Prepared

    @property
    def user(self) -> str:
        """The agent's user, as the engine wants it."""
        return self.box.user

    async def commit(self) -> None:
        """Leave the working folder as it is: a task's verifier may look at its version control."""

    async def run(self, command: str, variables: Mapping[str, str], talk: Talk | None = None) -> Ended:
        """Run the agent to its end. The caller keeps the time limit. Services that the agent starts stay."""
        variables = {**self.environment, **variables}
        return await self.box.run(WITH_TOOLS + command, timeout_s=FOREVER_S, variables=variables, talk=talk)

    def printed(self) -> str:
        """Return the output of the agent so far."""
        return self.box.output.text()

    async def timed(self, command: str) -> None:
        """Run a command as the agent does, within the task's time limit."""
        limit_s = self.seconds or 60 * AGENT_MINUTES
        await self.box.run(command, timeout_s=limit_s, variables=self.environment)

    async def left(self) -> Answer:
        """End the agent's own process and return the verifier's outcome.

        Raises SandboxError: the verifier gives no reward; ContainerLost.
        """
        await self.box.end_commands()
        await self.places.collect(self)
        verified = await self.places.verified(self)
        return Answer(text=answer_of(verified))

    async def keep(self, path: Path) -> None:
        """Write /logs and the task's artifacts as a compressed tar. Errors are logged only."""
        assert self.prepared.task is not None  # noqa: S101 - every place has a task
        others = [each for each in self.prepared.task.artifacts if not each.source.startswith("/logs/")]
        try:
            content = await packed((Artifact(source="/logs"), *others), self.box, most_bytes=_KEPT_BYTES)
            await asyncio.to_thread(write_beside, path, gzip.compress(content, mtime=0))
        except (SandboxError, StorageError) as error:
            _log.warning("the artifacts of a sample are not kept: %s", error)


class TaskPlaces:
    """Opens the containers in which agents work on tasks (see `agents.workplace.Workplaces` for projects)."""

    def __init__(self, containers: Containers) -> None:
        self._containers = containers
        self._without_report: set[str] = set()  # tasks whose verifier writes no test report
        self._doubting: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # by task

    @asynccontextmanager
    async def open(self, image: str, prepared: Prepared, agent: AgentSettings) -> AsyncIterator[TaskPlace]:
        """Open a container for an agent and wait for its health check; it is removed at the end.

        Raises SandboxError.
        """
        task = prepared.task
        assert task is not None  # noqa: S101 - only tasks are opened here
        profile = replace(task.agent, image=image)
        async with opened(
            self._containers, profile, mounts=mounts_of(agent), users=(task.verifier_user,)
        ) as box:
            is_oracle = agent.name == ORACLE.name
            started = {f"{box.workdir.rstrip('/')}/{path}": file for path, file in task.started_with.items()}
            started |= {PROFILE: (WITH_TOOLS.encode(), 0o644)} if agent.volume else {}
            await box.upload(started | (dict(task.solution) if is_oracle else {}), folders=_LOGS)
            if task.health:
                await healthy(box, task.health)
            variables = {**_SANDBOXED, "HOME": box.fitness.home}
            variables |= task.solution_variables if is_oracle else {}
            place = TaskPlace(
                container=box.container,
                project=Project(files=(), sha256=""),
                environment=variables,
                containers=self._containers,
                keeper=box.keeper,
                fitness=box.fitness,
                limits=profile.limits,
                folder=box.workdir,
                seconds=task.agent_s,
                box=box,
                places=self,
                prepared=prepared,
            )
            try:
                yield place
            finally:
                await place.rest()

    async def image_bytes(self, image: str) -> int | None:
        """Return the size of an image on disk; None if the engine does not know the image."""
        found = await self._containers.engine.image(image)
        return int(found["Size"]) if found else None

    async def tried(self, image: str, prepared: Prepared, agent: AgentSettings) -> Verified:
        """Return the verifier's outcome after an agent that calls no model (ORACLE, NOP)."""
        async with self.open(image, prepared, agent) as place:
            await place.timed(agent.command)
            await self.collect(place)
            return await self._verified(place)

    async def collect(self, place: TaskPlace) -> None:
        """Run the commands of `[[verifier.collect]]`. Their failures are only logged, as in Harbor."""
        assert place.prepared.task is not None  # noqa: S101 - every place has a task
        for each in place.prepared.task.collecting:
            user = each.user or place.box.image_user
            ended = await place.box.run(each.command, user=user, timeout_s=each.timeout_s)
            if ended.stopped or ended.exit_code:
                why = f"limit of {ended.stopped}" if ended.stopped else f"exit code {ended.exit_code}"
                shown = both_ends(f"{why} {ended.output.text()}")
                _log.warning(
                    "%s: a command of [[verifier.collect]] fails (%s): %s",
                    place.prepared.problem.id,
                    each.command,
                    shown,
                )

    async def verified(self, place: TaskPlace) -> Verified:
        """Run the verifier and return its outcome.

        Raises SandboxError: it gives no reward, or a 0 that is not believed.
        """
        verified = await self._verified(place)
        if verified.score == 0 and not verified.has_report and not await self._believes_zero(place):
            raise SandboxError(
                "The verifier's reward is 0 and it wrote no test report, nor does it after an agent that does"
                " nothing: a download may have failed"
            )
        return verified

    async def _believes_zero(self, place: TaskPlace) -> bool:
        """Return True if a reward of 0 without a test report is the agent's result.

        If the verifier writes a report now after an agent that does nothing, the verifier works. If the
        oracle gets the full reward without a report, this verifier never writes one.
        """
        prepared, image = place.prepared, place.box.profile.image
        assert prepared.task is not None  # noqa: S101 - every place has a task
        task_id = prepared.problem.id
        async with self._doubting[task_id]:  # the samples of a task learn this from each other
            if task_id in self._without_report:
                return True
            if (await self.tried(image, prepared, NOP)).has_report:
                return True
            oracle = await self.tried(image, prepared, ORACLE) if prepared.task.solution else None
            if oracle is None or (oracle.score == 1 and not oracle.has_report):
                self._without_report.add(task_id)
                return True
            return False

    async def _verified(self, place: TaskPlace) -> Verified:
        why = ""
        for _ in range(_TRIES):
            found = await self._try(place)
            if isinstance(found, Verified):
                return found
            why = found
        raise SandboxError(f"The verifier gives no reward: {why}")

    async def _try(self, place: TaskPlace) -> Verified | str:
        """Return the verifier's outcome, or the reason for its failure."""
        task = place.prepared.task
        assert task is not None  # noqa: S101 - every place has a task
        async with AsyncExitStack() as stack:
            box = place.box
            if task.verifier is None:
                await box.empty(TESTS, VERIFIER_LOGS)
                await box.connect(connected=task.verifier_connected)
            else:
                image = task.verifier.image or box.profile.image
                separate = replace(task.verifier, image=image)
                opening = opened(self._containers, separate, longest_s=task.verifier_s)
                box = await stack.enter_async_context(opening)
                await box.upload({}, folders=_LOGS)
                content = await packed(task.artifacts, place.box)
                await box.engine.upload(box.container, "/", content)
            await box.upload(task.tests, folders=(VERIFIER_LOGS,))
            if not task.tests:  # they are part of the verifier's image
                await box.short('chmod +x -- "$1"', f"{TESTS}/test.sh", user="0:0")
            ended = await box.run(
                f"{TESTS}/test.sh",
                user=task.verifier_user or box.image_user,
                timeout_s=task.verifier_s,
                variables=task.verifier_variables,
            )
            if ended.stopped:
                return f"it was stopped at its limit of {ended.stopped} after {ended.duration_s:.0f} s"
            try:
                files = await box.read(VERIFIER_LOGS, most_bytes=_LOG_BYTES, file_bytes=_LOG_FILE_BYTES)
            except tarfile.TarError as error:
                return f"{VERIFIER_LOGS} cannot be read: {error}"
            image_id = await self._containers.image_id(box.profile.image)
        return outcome(
            files,
            task.reward_range,
            exit_code=ended.exit_code,
            seconds=ended.duration_s,
            output=ended.output.text(),
            image_id=image_id,
        )
