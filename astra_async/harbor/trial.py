"""A sample of a task: an agent works in the task's container, then the verifier's reward is its score.

A container's state cannot be moved, so work and verification are one step. The verifier's outcome
(`TaskPlace.left`) is recorded as the sample's answer. If the run is killed before that, the sample starts
again in a fresh container with its recorded model calls.

A verifier that writes no finite reward, or takes too long, says nothing about the agent. It runs once more,
and then the sample is missing. A reward of 0 without a test report may come from a failed download: see
`TaskPlaces._believes_zero`. If the agent left its container in a state in which the verifier cannot run
(`Spoiled`), the score is 0.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import logging
import tarfile
from collections import defaultdict
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from astra_async.agents.account import PROFILE, WITH_TOOLS
from astra_async.agents.left_behind import Answer
from astra_async.agents.session_log import write_beside
from astra_async.agents.shell import IN_TASK
from astra_async.agents.workplace import FOREVER_S, Workplace, mounts_of
from astra_async.errors import ContainerLost, EngineUnavailable, SandboxError, StorageError
from astra_async.harbor.container import TaskBox, opened, packed
from astra_async.harbor.verified import Verified, answer_of, outcome, printed_in
from astra_async.redaction import mask
from astra_async.testing.sandbox.engine_errors import HostTrouble, both_ends
from astra_async.types import AGENT_MINUTES, Project
from astra_async.types.task_work import NOP, ORACLE, Artifact

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from astra_async.prepare import Prepared
    from astra_async.testing.sandbox.containers import Containers
    from astra_async.testing.sandbox.execution import Ended, Talk
    from astra_async.types import AgentSettings
    from astra_async.types.task_work import Health

TESTS, SOLUTION, VERIFIER_LOGS = "/tests", "/solution", "/logs/verifier"
_LOGS = ("/logs", "/logs/agent", VERIFIER_LOGS, "/logs/artifacts")
_SANDBOXED = {"IS_SANDBOX": "1"}  # Claude Code refuses to work as root without
_TRIES = 2  # of a verifier that gives no reward
_log = logging.getLogger(__name__)
_LOG_BYTES, _LOG_FILE_BYTES = 256 * 1024**2, 16 * 1024**2
_KEPT_BYTES = 64 * 1024**2  # limit for each artifact that --keep-artifacts keeps


class Spoiled(SandboxError):  # noqa: N818 - a state of the container
    """The agent left its container in a state in which the verifier cannot run; the message says why."""


@asynccontextmanager
async def spoiling(box: TaskBox) -> AsyncIterator[None]:
    """Raise Spoiled for an error in the block that the state of a running container causes.

    Lost connections, timeouts and shortages of the engine's host are raised unchanged.
    """
    try:
        yield
    except (HostTrouble, ContainerLost, EngineUnavailable):
        raise
    except SandboxError as error:
        is_slow = isinstance(error.__cause__, TimeoutError)
        if is_slow or not (await box.engine.inspect(box.container))["State"]["Running"]:
            raise
        raise Spoiled(str(error)) from error


@dataclass(slots=True, kw_only=True)
class TaskPlace(Workplace):
    """The container in which an agent works on a task."""

    opening: ClassVar[tuple[str, str]] = IN_TASK
    box: TaskBox
    places: TaskPlaces
    prepared: Prepared
    verifier_files: Mapping[str, bytes] = field(default_factory=dict)  # by path, with its output

    @property
    def user(self) -> str:
        """The agent's user, as the engine wants it."""
        return self.box.user

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
        return Answer(text=answer_of(await self.places.verified(self)))

    async def keep(self, path: Path) -> None:
        """Write /logs and the task's artifacts as a compressed tar. Errors are logged only."""
        assert self.prepared.task is not None  # noqa: S101 - every place has a task
        others = [each for each in self.prepared.task.artifacts if not each.source.startswith("/logs/")]
        logs = Artifact(source="/logs", exclude=("verifier", "verifier/*"))  # may be in another container
        try:
            content = io.BytesIO(await packed((logs, *others), self.box, most_bytes=_KEPT_BYTES))
            with tarfile.open(fileobj=content, mode="a:") as tar:
                for name, file in self.verifier_files.items():
                    entry = tarfile.TarInfo(name.lstrip("/"))
                    entry.size = len(file)
                    tar.addfile(entry, io.BytesIO(file))
            await asyncio.to_thread(write_beside, path, gzip.compress(content.getbuffer(), mtime=0))
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
        is_oracle = agent.name == ORACLE.name
        if is_oracle and ORACLE.command not in task.solution:
            raise SandboxError("the task has no solution/solve.sh, which the oracle runs")
        profile = replace(task.agent, image=image)
        async with opened(
            self._containers, profile, mounts=mounts_of(agent), users=(task.verifier_user,)
        ) as box:
            started = {f"{box.workdir.rstrip('/')}/{path}": file for path, file in task.started_with.items()}
            started |= {PROFILE: (WITH_TOOLS.encode(), 0o644)} if agent.volume else {}
            await box.upload(started | (dict(task.solution) if is_oracle else {}), folders=_LOGS)
            if task.health:
                await _wait_until_healthy(box, task.health)
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
            await self._settle(place)
            return await self._verified(place)

    async def _settle(self, place: TaskPlace) -> None:
        """Make a container ready for its verifier after the agent has ended. Raises SandboxError."""
        box, most = place.box, place.box.profile.disk_bytes
        async with spoiling(box):
            await box.end_commands()
            await self._collect(place)
            written = await box.written_bytes()
            if not 0 <= written <= most:
                raise Spoiled(f"more than {most // 1024**2:,} MB (storage_mb) were written")
        box.profile = replace(box.profile, disk_bytes=written + most)  # the verifier's own share

    async def _collect(self, place: TaskPlace) -> None:
        """Run the commands of `[[verifier.collect]]`. Their failures are only logged, as in Harbor."""
        prepared = place.prepared
        assert prepared.task is not None  # noqa: S101 - every place has a task
        for each in prepared.task.collecting:
            user = each.user or place.box.image_user
            ended = await place.box.run(each.command, user=user, timeout_s=each.timeout_s)
            if ended.stopped or ended.exit_code:
                why = f"limit of {ended.stopped}" if ended.stopped else f"exit code {ended.exit_code}"
                shown = both_ends(f"{why} {ended.output.text()}")
                about = f"a command of [[verifier.collect]] fails ({each.command}): {shown}"
                _log.warning("%s: %s", prepared.problem.id, about)

    async def verified(self, place: TaskPlace) -> Verified:
        """Run the verifier and return its outcome; the score is 0 if the agent left a spoiled container.

        Raises SandboxError: the verifier gives no reward, or a 0 that is not believed.
        """
        try:
            await self._settle(place)
            return await self._believed(place)
        except Spoiled as error:
            async with self.open(place.box.profile.image, place.prepared, NOP):
                pass  # a new container of the task starts: the engine is not the cause
            output = f"The score is 0: the agent left a container in which the verifier cannot run: {error}"
            return Verified(rewards={}, score=0.0, output=output)

    async def _believed(self, place: TaskPlace) -> Verified:
        verified = await self._verified(place)
        if verified.is_doubtful:
            verified = await self._verified(place)
        if verified.is_doubtful and not await self._believes_zero(place):
            raise SandboxError(
                "The verifier's reward is 0 without a test report, and neither an agent that does nothing nor"
                " the task's solution shows that the verifier works: a download may have failed;"
                f" {printed_in(verified.exit_code, verified.output)}"
            )
        return verified

    async def _believes_zero(self, place: TaskPlace) -> bool:
        """Return True if a reward of 0 without a test report is the agent's result.

        | the verifier now                                    | the reward of 0 |
        |-----------------------------------------------------|-----------------|
        | writes a report after an agent that does nothing    | counts          |
        | gives the oracle the full reward without a report   | counts          |
        | does neither, or the task has no solution           | is not believed |
        """
        prepared, image = place.prepared, place.box.profile.image
        assert prepared.task is not None  # noqa: S101 - every place has a task
        task_id = prepared.problem.id

        async def attempt(agent: AgentSettings) -> Verified | None:
            try:
                return await self.tried(image, prepared, agent)
            except EngineUnavailable:
                raise
            except SandboxError:
                return None  # a verifier that gives no reward wrote no report

        async with self._doubting[task_id]:  # the samples of a task learn this from each other
            if task_id in self._without_report:
                return True
            nop = await attempt(NOP)
            if nop and nop.has_report:
                return True
            oracle = await attempt(ORACLE) if prepared.task.solution else None
            if oracle and oracle.score == 1 and not oracle.has_report:
                self._without_report.add(task_id)
                return True
            return False

    async def _verified(self, place: TaskPlace) -> Verified:
        failure = SandboxError()
        for _ in range(_TRIES):
            try:
                found = await self._try(place)
                if isinstance(found, Verified):
                    return found
                failure = SandboxError(f"The verifier gives no reward: {found}")
            except Spoiled as error:
                failure = error
        raise failure

    async def _try(self, place: TaskPlace) -> Verified | str:
        """Return the verifier's outcome, or the reason for its failure."""
        task = place.prepared.task
        assert task is not None  # noqa: S101 - every place has a task
        async with AsyncExitStack() as stack:
            box = place.box
            if task.verifier is None:
                await box.connect(connected=task.verifier_connected)
                await stack.enter_async_context(spoiling(box))
                await box.empty(TESTS, VERIFIER_LOGS)
            else:
                async with spoiling(box):
                    content = await packed(task.artifacts, box)
                separate = replace(task.verifier, image=task.verifier.image or box.profile.image)
                opening = opened(self._containers, separate, longest_s=task.verifier_s)
                box = await stack.enter_async_context(opening)
                await box.upload({}, folders=_LOGS)
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
            try:
                files = await box.read(VERIFIER_LOGS, most_bytes=_LOG_BYTES, file_bytes=_LOG_FILE_BYTES)
            except tarfile.TarError as error:
                return f"{VERIFIER_LOGS} cannot be read: {error}"
            image_id = await self._containers.image_id(box.profile.image)
        output = ended.output.text()
        kept = {"test-stdout.txt": mask(output).encode()} | files
        place.verifier_files = {f"{VERIFIER_LOGS}/{name}": content for name, content in kept.items()}
        if ended.stopped:
            why = f"it was stopped at its limit of {ended.stopped} after {ended.duration_s:.0f} s"
            return f"{why}; {printed_in(None, output)}"
        about = {"exit_code": ended.exit_code, "seconds": ended.duration_s}
        found = outcome(files, task.reward_range, output=output, image_id=image_id, **about)
        return f"{found}; {printed_in(ended.exit_code, output)}" if isinstance(found, str) else found


async def _wait_until_healthy(box: TaskBox, health: Health) -> None:
    """Wait until a health check succeeds. Raises SandboxError if every try fails."""
    shown = ""
    for number in range(max(1, health.tries)):
        if number:
            await asyncio.sleep(health.interval_s)
        ended = await box.run(health.command, user=box.image_user, timeout_s=health.timeout_s)
        if ended.exit_code == 0:
            return
        shown = both_ends(ended.output.text())
    raise SandboxError(f"The task's health check fails: {shown or 'it prints nothing'}")
