"""The container in which an agent works on one sample.

The container runs the problem's image and is hardened like the tests' containers. The project's folder has
all files that the problem shows: hidden files, version control and hackerrank.yml are left out, the visible
tests are there. If the image or an installed agent has git, the folder becomes a repository with one commit.
HOME is the tests' HOME with the agent's settings. The installed agent is mounted read-only.

The agent's process is an exec. When it ends, all processes of its user are killed. At a limit the container
is frozen, read and removed.
"""

from __future__ import annotations

import asyncio
import glob
import hashlib
import logging
import shlex
import tarfile
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from astra_async.agents.account import WITH_TOOLS, prepare_etc
from astra_async.agents.installing import INSTALLED_AT
from astra_async.agents.left_behind import FILE_BYTES, Answer, LeftBehind, ignored, unreadable
from astra_async.agents.shell import IN_PROJECT, Ran
from astra_async.asking.prompt import is_secret
from astra_async.errors import ContainerLost, ImageError, SandboxError
from astra_async.overlay import project_archive
from astra_async.tasks import cancel
from astra_async.testing.sandbox.engine_errors import HostTrouble, PathUnreachable, both_ends
from astra_async.testing.sandbox.execution import Command, Ended, Output, Talk, run_command
from astra_async.testing.sandbox.hardened import confined
from astra_async.testing.sandbox.job import delete, stopped, upload_archive
from astra_async.testing.sandbox.resultfiles import PROJECT, entries
from astra_async.types import Limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from astra_async.prepare import Prepared
    from astra_async.testing.sandbox.containers import Containers
    from astra_async.testing.sandbox.hardened import Fitness
    from astra_async.testing.sandbox.keeper import Keeper
    from astra_async.types import AgentSettings, Project

FOREVER_S = 30 * 86_400.0  # the caller keeps the time
_TREE_BYTES = 4 * 1024**3
_WRITING_S = 60.0
_COMMIT_S = 60.0
_CHUNK = 64 * 1024  # characters of one argument: 128 KiB are the most, and a character has up to four bytes
_AWAKE_S = 60.0
_KILLED = 137
_GIVEN_UP_S = 30.0
_BACKGROUND_S = 0.5
_LEFT_OUT = frozenset({".git", ".hg", ".svn", ".bzr", "_darcs", "CVS"})
_MANIFESTS = frozenset({"hackerrank.yml", "hackerrank.yaml"})
_WRITE = r"""
path=$HOME/$1
mkdir -p -- "${path%/*}" && : >"$path" || exit
shift
for part in "$@"; do printf %s "$part" >>"$path" || exit; done
"""
MARK = "# a command of an agent"  # in the script of every process group that may have to be ended
# The time limit is kept inside, since an exec that is given up ends nothing; `read` waits without a program.
_TIMED = (
    MARK
    + r"""
exec 3>&2 2>/dev/null  # where bash tells of jobs that have ended
set -m
bash -c "$1" </dev/null 2>&3 3>&- &
group=$!
exec 3>&-
{ read -rt "$2" <> <(:); kill -KILL -- "-$group"; } >/dev/null &
watch=$!
wait "$group"
status=$?
kill -KILL -- "-$watch"
exit "$status"
"""
)
_FILES = ".agent/files"  # below HOME
# One commit of the project as the agent finds it, the same in every sample. Files of the project are added
# even if its .gitignore names them, unlike the image's, such as node_modules.
_COMMIT = f"""
files=$HOME/{_FILES}
trap 'rm -f -- "$files"' EXIT
command -v git >/dev/null || exit 0
cd {shlex.quote(PROJECT)} && [ ! -e .git ] || exit 0
export GIT_AUTHOR_DATE=2000-01-01T00:00:00Z GIT_COMMITTER_DATE=2000-01-01T00:00:00Z
git init -q --template= -b main && git config user.name task && git config user.email task@localhost
git add -A || exit
git update-index --add --stdin <"$files"
git -c core.hooksPath=/dev/null commit -q --allow-empty -m "Project as given"
"""
_log = logging.getLogger(__name__)


def is_shown(prepared: Prepared, path: str) -> bool:
    """Return True if an agent may see this path."""
    hidden = prepared.policy.hidden.matches(path) or path.lower() in _MANIFESTS or is_secret(path)
    return not (hidden or _LEFT_OUT.intersection(path.split("/")))


def visible(prepared: Prepared) -> Project:
    """Return the project without files that an agent may not see."""
    files = (file for file in prepared.project.files if is_shown(prepared, file.path))
    return replace(prepared.project, files=tuple(files))


def _pattern(path: str) -> str:
    """Return a pattern for a path; for version control, a pattern for the whole folder."""
    parts = path.split("/")
    place = next((number for number, part in enumerate(parts) if part in _LEFT_OUT), None)
    if place is None or place == len(parts) - 1:
        return glob.escape(path)
    return glob.escape("/".join(parts[: place + 1])) + "/**"


def mounts_of(agent: AgentSettings) -> list[Mapping[str, Any]]:
    """Return the read-only mount of an installed agent's volume; empty if the image has the agent."""
    mount = {"Type": "volume", "Source": agent.volume, "Target": INSTALLED_AT, "ReadOnly": True}
    return [mount] if agent.volume else []


class Workplaces:
    """Opens workplaces. The files in an image's project folder are read once for each image."""

    def __init__(self, containers: Containers, limits: Limits) -> None:
        self._containers = containers
        self._limits = limits

    @asynccontextmanager
    async def open(self, image: str, prepared: Prepared, agent: AgentSettings) -> AsyncIterator[Workplace]:
        """Open a container with the project; it is removed at the end. Raises SandboxError.

        Files of the image that an agent may not see are deleted first.
        """
        project = visible(prepared)
        fitness = await self._containers.fit(image)
        image_id = await self._containers.image_id(image)
        kept = await self._containers.once(("kept", image_id), lambda: self._look(image_id))
        secret = sorted({_pattern(path) for path in kept if not is_shown(prepared, path)})
        made = await self._containers.create(image, self._limits, fitness, mounts=mounts_of(agent))
        async with self._containers.removing(made), await self._containers.start(made) as keeper:
            archive = upload_archive(project_archive(project, {}), fitness, stale=secret)
            await self._containers.engine.upload(made.container, "/", archive)
            await prepare_etc(self._containers.engine, made.container, fitness, self._limits)
            if secret and PROJECT not in fitness.contents:
                engine, limits = self._containers.engine, replace(self._limits, timeout_s=_WRITING_S)
                gone = partial(delete, engine, made.container, secret, image=image, limits=limits)
                try:
                    await gone(user=fitness.user)
                except ImageError:
                    await gone(user="0:0")  # who owns what most images hold
            place = Workplace(
                container=made.container,
                project=project,
                environment=prepared.environment,
                containers=self._containers,
                keeper=keeper,
                fitness=fitness,
                limits=self._limits,
                kept=kept,
            )
            try:
                await place.commit()
                yield place
            finally:
                await place.rest()

    async def _look(self, image_id: str) -> Mapping[str, str]:
        """Return the hashes of an image's files in the project's folder; "" for ignored files."""
        config = confined(image_id, ["bash"], Limits(), keeper="65532", labels=self._containers.labels)
        async with self._containers.removing(await self._containers.create_as(config)) as made:
            return {
                path: hashlib.sha256(content).hexdigest() if _is_asked(path, entry) else ""
                async for path, entry, content in _walk(self._containers, made.container, _is_asked)
                if entry.isreg()
            }


@dataclass(slots=True, kw_only=True)
class Workplace:
    """A running container with the project in its folder.

    `seconds` is the wall-clock limit of the agent's work. If it is None, the run's limit applies, which does
    not count model calls. `opening` has the texts with which the shell agent begins.
    """

    opening: ClassVar[tuple[str, str]] = IN_PROJECT
    container: str
    project: Project
    environment: Mapping[str, str]
    containers: Containers
    keeper: Keeper
    fitness: Fitness
    limits: Limits
    kept: Mapping[str, str] = field(default_factory=dict)
    folder: str = PROJECT
    seconds: float | None = None
    _output: Output = field(init=False, default_factory=lambda: Output(0))
    _awake: asyncio.Task[None] = field(init=False)

    def __post_init__(self) -> None:
        self._awake = asyncio.create_task(self._stay_awake())

    @property
    def home(self) -> str:
        """HOME in the container."""
        return self.fitness.home

    @property
    def user(self) -> str:
        """The agent's user in the engine's notation."""
        return self.fitness.user

    def printed(self) -> str:
        """Return the output of the agent so far."""
        return self._output.text()

    async def write(self, path: str, text: str) -> None:
        """Write a file below HOME. Raises SandboxError."""
        engine = self.containers.engine
        parts = [text[at : at + _CHUNK // 2] for at in range(0, len(text), _CHUNK // 2)]
        for at in range(0, max(len(parts), 1), 8):
            script = _WRITE if at == 0 else _WRITE.replace(': >"$path"', ":")
            command = ["bash", "-c", script, "bash", path, *parts[at : at + 8]]
            process = await engine.prepare(
                self.container, command, user=self.user, environment={"HOME": self.home}
            )
            output = b""
            async with engine.started(process) as stream, asyncio.timeout(_WRITING_S):
                while (message := await stream.read_out()) is not None:
                    output += message.data
            if await engine.exit_code(process):
                raise SandboxError(f"The agent's container cannot be made ready: {both_ends(output)}")

    async def commit(self) -> None:
        """Make the project a git repository with one commit, which agents take for granted."""
        await self.write(_FILES, "".join(f"{file.path}\n" for file in self.project.files))
        environment = {**self.environment, "HOME": self.home}
        asked = Command(text=WITH_TOOLS + _COMMIT, user=self.user, environment=environment)
        ended = await self._ran(asked, _COMMIT_S)
        if ended.exit_code:
            _log.debug("no git repository in the agent's container: %s", both_ends(ended.output.text()))

    async def run(self, command: str, variables: Mapping[str, str], talk: Talk | None = None) -> Ended:
        """Run the agent to its end, with every process that it started. The caller keeps the time limit.

        `talk` converses with the agent (see `Command`).
        """
        self._output = Output(self.limits.output_bytes)
        asked = Command(
            text=f"{WITH_TOOLS}cd {shlex.quote(self.folder)} && {command}",
            user=self.user,
            environment={**self.environment, **variables},
            talk=talk,
            output=self._output,
        )
        return await self._ran(asked, FOREVER_S)

    async def shell(self, command: str, timeout_s: float) -> Ran:
        """Run one command of an agent that works from this process. At the limit its process group is killed.

        Background processes keep running. Raises SandboxError.
        """
        asked = Command(
            text=f"cd {shlex.quote(self.folder)}\n{command}",
            user=self.user,
            environment=self.environment,
            shell=_TIMED,
            arguments=(f"{timeout_s:.1f}",),
        )
        ended = await self._ran(asked, timeout_s + _GIVEN_UP_S, last_output_s=_BACKGROUND_S)
        if ended.stopped:  # the command has escaped its time limit, or filled the disk
            nothing = Command(text="true", user=self.user)
            await run_command(self.containers.engine, self.container, nothing, self.limits)
        timed_out = ended.stopped == "time" or (ended.exit_code == _KILLED and ended.duration_s > timeout_s)
        output = ended.output.text()
        if ended.stopped == "disk":
            output += "\n[the limit of the disk was reached; every process was killed]"
        return Ran(exit_code=ended.exit_code, output=output, timed_out=timed_out)

    async def _ran(self, asked: Command, timeout_s: float, **options: Any) -> Ended:
        engine, limits = self.containers.engine, replace(self.limits, timeout_s=timeout_s)
        return await run_command(
            engine, self.container, asked, limits, watched=self.fitness.layered, **options
        )

    async def _stay_awake(self) -> None:
        """Keep the first process alive while the agent works; it ends if it gets no request for long."""
        while True:
            await asyncio.sleep(_AWAKE_S)
            try:
                await self.keeper.ask()
            except ContainerLost:
                return  # the agent's runner raises the error

    async def rest(self) -> None:
        """Stop the keep-alive, because only one task may talk to the first process at a time."""
        await cancel(self._awake)

    async def keep(self, path: Path) -> None:
        """Keep files beside the answer, at `path`: a project's container has no such files."""

    async def left(self) -> Answer:
        """Stop all processes and return the agent's answer from the project's folder.

        Any state of the folder is an answer. Raises ContainerLost or SandboxError if the container or the
        engine is gone.
        """
        engine = self.containers.engine
        await self.rest()
        with suppress(ContainerLost):
            await stopped(engine, self.container, self.keeper, self.fitness, self.limits)
            answer = await self._read()
            # A tmpfs is lost with its container: then an empty folder is not the agent's work.
            if (await engine.inspect(self.container))["State"]["Running"]:
                return answer
        if await engine.ran_out_of_memory(self.container):
            return unreadable("the container ran out of memory, and all in it was lost")
        raise ContainerLost("The agent's container was killed from outside (engine restarted?)")

    async def _read(self) -> Answer:
        found = LeftBehind({file.path: file for file in self.project.files}, self.kept)
        try:
            async for path, entry, content in _walk(self.containers, self.container, found.wants):
                if entry.islnk():
                    found.link(path, _inside(entry.linkname))
                else:
                    found.take(path, entry, content)
        except (PathUnreachable, tarfile.TarError) as error:
            return unreadable(both_ends(error))
        except (HostTrouble, ContainerLost):
            raise
        except SandboxError as error:
            if not (await self.containers.engine.inspect(self.container))["State"]["Running"]:
                raise ContainerLost(str(error)) from error
            return unreadable(both_ends(error))
        return found.answer()


def _is_asked(path: str, entry: tarfile.TarInfo) -> bool:
    return entry.isreg() and entry.size <= FILE_BYTES and not ignored(path)


def _inside(name: str) -> str:
    """Return a tar entry's path relative to the project's folder; "" for the folder itself."""
    return name.strip("/").partition("/")[2]


async def _walk(
    containers: Containers, container: str, wants: Callable[[str, tarfile.TarInfo], bool]
) -> AsyncIterator[tuple[str, tarfile.TarInfo, bytes]]:
    """Yield every entry below the project's folder with its relative path."""
    async with containers.engine.packed(container, PROJECT) as chunks:
        found = entries(chunks, lambda entry: wants(_inside(entry.name), entry), most_bytes=_TREE_BYTES)
        async for entry, content in found:
            if path := _inside(entry.name):
                yield path, entry, content
