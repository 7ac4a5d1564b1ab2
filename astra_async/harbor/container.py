"""The container of a task: the task's own image, in which an agent works and the verifier runs.

It is created like the tests' containers (see `confined`): astra's first process, no engine socket, no
privileges. Two rights need consent on the command line: the engine's default capabilities with the image's
user, which is root in most images, and the network.

Services that an agent starts stay, because a verifier may need them. Only the agent's own process ends; at a
limit its process group is killed.
"""

from __future__ import annotations

import fnmatch
import io
import posixpath
import tarfile
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from astra_async.agents.workplace import MARK
from astra_async.errors import ImageError, SandboxError
from astra_async.testing.sandbox.engine_errors import both_ends, engine_call
from astra_async.testing.sandbox.execution import Command, Output, run_command
from astra_async.testing.sandbox.hardened import HOST_NAME, Fitness, confined
from astra_async.testing.sandbox.hardened import profile as seccomp_profile
from astra_async.testing.sandbox.keeper import entry_point
from astra_async.testing.sandbox.resultfiles import entries

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from astra_async.testing.sandbox.containers import Containers
    from astra_async.testing.sandbox.engine import Engine
    from astra_async.testing.sandbox.execution import Ended, Talk
    from astra_async.testing.sandbox.keeper import Keeper
    from astra_async.types.task_work import Artifact, File, TaskProfile

_KEEPER = "65532:65532"
_ROOTS = frozenset({"0", "root"})
_SHORT_S = 60.0
_UNASKED_S = 600.0  # until an agent begins, health checks included
_LAST_OUTPUT_S = 0.5  # services hold their parent's output open
_CHANGED_AT = 946_684_800  # 2000-01-01: archivers refuse years before 1980
_BRIDGE = "bridge"
_CARRIED_BYTES = 256 * 1024**2  # of one artifact
_MOST_LINKS = 100
# The command is the leader of a process group, which is killed at a limit.
_RUN = (
    MARK
    + r"""
cd -- "$2" || exit 125
[ -d "$HOME" ] || mkdir -p -- "$HOME"
exec 3>&2 2>/dev/null  # where bash tells of jobs that have ended
set -m
bash -c "$1" </dev/null 2>&3 3>&- &
exec 3>&-
wait "$!"
"""
)
# Only what bash itself provides. The first three words of such a command are bash, -c and its script.
_END = r"""
for folder in /proc/[0-9]*; do
  process=${folder#/proc/}
  [ "$process" != "$$" ] || continue
  { for number in 1 2 3; do IFS= read -r -d '' word || break; done; } <"$folder/cmdline" || continue
  case $word in *"$1"*) ;; *) continue ;; esac
  read -r -a children <"$folder/task/$process/children"
  for child in "${children[@]}"; do kill -KILL -- "-$child" || kill -KILL "$child"; done
  kill -KILL "$process"
done 2>/dev/null
exit 0
"""
_DIRECT = 'script=$1; shift; eval "$script"'
_LOOK = r"""
home=$HOME
[ -d "$home" ] && [ -w "$home" ] && [ "$home" != / ] || home=/tmp/home
printf '%s\0' "$UID" "${GROUPS[0]}" "$home"
"""
_EMPTY = r"""
for path in "$@"; do
  [ -d "${path%/*}/" ] && [ ! -L "${path%/*}" ] || rm -f -- "${path%/*}"
  rm -rf -- "$path"
done
for path in "$@"; do [ ! -e "$path" ] && [ ! -L "$path" ] || exit 1; done
"""


@dataclass(slots=True, kw_only=True)
class TaskBox:
    """A started container of a task. `output` is that of the last command of `run`, so far."""

    containers: Containers
    container: str
    keeper: Keeper
    profile: TaskProfile
    fitness: Fitness
    user: str
    image_user: str
    workdir: str
    connected: bool
    output: Output = field(default_factory=lambda: Output(0))

    @property
    def engine(self) -> Engine:
        """The engine that the container runs on."""
        return self.containers.engine

    async def run(
        self,
        text: str,
        *,
        user: str = "",
        timeout_s: float,
        variables: Mapping[str, str] | None = None,
        talk: Talk | None = None,
    ) -> Ended:
        """Run a command in the working folder until its end or a time limit, at which it is ended.

        Processes that it leaves behind live on. `talk` converses with the command (see `Command`).
        Raises SandboxError.
        """
        self.output = Output(self.profile.limits.output_bytes)
        command = Command(
            text=text,
            user=user or self.user,
            environment=variables or {},
            shell=_RUN,
            arguments=(self.workdir,),
            talk=talk,
            output=self.output,
        )
        limits = replace(self.profile.limits, timeout_s=timeout_s)
        ended = await run_command(
            self.engine, self.container, command, limits, watched=True, last_output_s=_LAST_OUTPUT_S
        )
        if ended.stopped:
            await self.end_commands(command.user)
        return ended

    async def end_commands(self, user: str = "") -> None:
        """Kill the process groups of commands that `run` has started."""
        await self.short(_END, MARK, user=user or self.user)

    async def empty(self, *paths: str) -> None:
        """Remove folders with all that is in them. Raises SandboxError if that is impossible."""
        ended = await self.short(_EMPTY, *paths, user=self.user)
        if ended.exit_code:
            ended = await self.short(_EMPTY, *paths, user="0:0")
        if ended.exit_code != 0:
            shown = both_ends(ended.output.text())
            raise SandboxError(f"The container does not let {', '.join(paths)} be removed: {shown}")

    async def written_bytes(self) -> int:
        """Return the bytes written to the container's layer and its volumes, or -1 if files prevent that.

        Volumes are only read up to the profile's limit.
        """
        state, most = await self.engine.inspect(self.container, size=True), self.profile.disk_bytes
        size = int(state.get("SizeRw", 0))
        for mount in state["Mounts"]:
            if mount["Type"] == "volume" and mount["RW"]:
                async with self.engine.packed(self.container, mount["Destination"]) as chunks:
                    while 0 <= size <= most and (chunk := await anext(chunks, b"")):
                        size += len(chunk)
        return size

    async def upload(self, files: Mapping[str, File], folders: Sequence[str] = ()) -> None:
        """Write files by their absolute paths as root, and make folders that are writable for all users."""
        await self.engine.upload(self.container, "/", _archive(files, folders))

    async def read(self, path: str, *, most_bytes: int, file_bytes: int) -> dict[str, bytes]:
        """Return the regular files below a folder by their path relative to it, but no larger ones.

        Links to them count as files. Raises SandboxError, and tarfile.TarError for a folder with more
        than `most_bytes`.
        """
        found: dict[str, bytes] = {}
        links: dict[str, str] = {}

        def keep(entry: tarfile.TarInfo) -> bool:
            return entry.isreg() and entry.size <= file_bytes

        async with self.engine.packed(self.container, path) as chunks:
            async for entry, content in entries(chunks, keep, most_bytes=most_bytes):
                name = _below(entry.name)
                if keep(entry):
                    found[name] = content
                elif entry.islnk():
                    links[name] = _below(entry.linkname)
                elif entry.issym():
                    target = posixpath.join(path, posixpath.dirname(name), entry.linkname)
                    links[name] = posixpath.relpath(target, path)
        for name, target in list(links.items())[:_MOST_LINKS]:
            first = links.get(target, target)  # a symbolic link may lead to a hard link
            found |= {name: found[first]} if first in found else {}
        return found

    async def connect(self, *, connected: bool) -> None:
        """Connect the container to the network or cut it off, if its profile has one."""
        if self.profile.network and connected != self.connected:
            what = "connect" if connected else "disconnect"
            data = {"Container": self.container} | ({} if connected else {"Force": True})
            path = f"networks/{_BRIDGE}/{what}"
            async with engine_call(f"{what} the container and its network", timeout_s=_SHORT_S, running=True):
                await self.engine.docker._query_json(path, method="POST", data=data)  # noqa: SLF001 - aiodocker lists networks only by id
            self.connected = connected

    async def short(self, script: str, *arguments: str, user: str) -> Ended:
        """Run a short script with arguments and wait for its end. Raises SandboxError."""
        command = Command(text=script, user=user, shell=_DIRECT, arguments=arguments)
        return await run_command(
            self.engine, self.container, command, replace(self.profile.limits, timeout_s=_SHORT_S)
        )


@asynccontextmanager
async def opened(
    containers: Containers,
    profile: TaskProfile,
    *,
    mounts: Sequence[Mapping[str, Any]] = (),
    users: Sequence[str] = (),
    longest_s: float = _UNASKED_S,
) -> AsyncIterator[TaskBox]:
    """Open a started container of a task; it is removed at the end.

    `users` are further users of commands in it. Without a question to its first process for `longest_s` it
    ends some minutes later (see `Keeper`). Raises ImageError: the image has no bash, or needs rights without
    the consent of --allow-root; SandboxError.
    """
    image_id = await containers.image_id(profile.image)
    about = (await containers.engine.image(image_id) or {}).get("Config") or {}
    image_user = str(about.get("User") or "0:0")
    all_users = [each or image_user for each in (profile.user, *users)]
    if not profile.rights and any(each.partition(":")[0] in _ROOTS for each in all_users):
        raise ImageError(
            "the task runs as root: give it root's usual rights in its container with --allow-root"
        )
    body = _body(image_id, profile, containers.labels, longest_s)
    body["HostConfig"]["Mounts"] = list(mounts)
    if not profile.rights and await containers.once("seccomp", containers.engine.confines_system_calls):
        body["HostConfig"]["SecurityOpt"].append(f"seccomp={seccomp_profile()}")
    async with (
        containers.removing(await containers.create_as(body)) as made,
        await containers.start(made) as keeper,
    ):
        box = TaskBox(
            containers=containers,
            container=made.container,
            keeper=keeper,
            profile=profile,
            fitness=Fitness(uid=0, gid=0, home=""),
            user=profile.user or image_user,
            image_user=image_user,
            workdir=profile.workdir or str(about.get("WorkingDir") or "/"),
            connected=profile.network,
        )
        if not profile.network:  # the engine writes none
            await box.upload({"/etc/hosts": (f"127.0.0.1 localhost {HOST_NAME}\n".encode(), 0o644)})
        else:
            await box.connect(connected=profile.connected)
        box.fitness = await _look(box)
        yield box


async def _look(box: TaskBox) -> Fitness:
    ended = await box.short(_LOOK, user=box.user)
    answer = ended.output.stdout.text().split("\0")
    if ended.exit_code or len(answer) != len(("uid", "gid", "home", "")):
        shown = both_ends(ended.output.text().replace("\0", " "))
        raise ImageError(f"image {box.profile.image}: a command as {box.user} fails: {shown}")
    uid, gid, home, _ = answer
    return Fitness(uid=int(uid), gid=int(gid), home=home)


def _body(image_id: str, profile: TaskProfile, labels: Mapping[str, str], longest_s: float) -> dict[str, Any]:
    body = confined(image_id, entry_point(longest_s), profile.limits, keeper=_KEEPER, labels=labels)
    body |= {
        "Hostname": HOST_NAME,
        "Env": [f"{name}={value}" for name, value in profile.environment.items()],
        "WorkingDir": "/",
    }
    host = body["HostConfig"]
    if profile.cpus:
        host["NanoCpus"] = int(profile.cpus * 1e9)
    if profile.rights:  # no capability is added, none is taken away; the engine's own profile of calls holds
        del host["CapDrop"]
        host["SecurityOpt"] = []
    if profile.network:
        body["NetworkDisabled"] = False
        host["NetworkMode"] = _BRIDGE
    return body


def _archive(files: Mapping[str, File], folders: Sequence[str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:", format=tarfile.GNU_FORMAT) as tar:
        for path in folders:
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o777, _CHANGED_AT
            tar.addfile(entry)
        for path, (content, mode) in files.items():
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size, entry.mode, entry.mtime = len(content), mode, _CHANGED_AT
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def _below(name: str) -> str:
    """Return an entry's path relative to the folder that the engine packed."""
    return name.strip("/").partition("/")[2]


async def packed(artifacts: Iterable[Artifact], box: TaskBox, *, most_bytes: int = _CARRIED_BYTES) -> bytes:
    """Return the artifacts of a container as a tar; missing paths are skipped.

    Only files, folders, hard links and symbolic links are copied. Raises SandboxError: an artifact has more
    than `most_bytes`.
    """
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:", format=tarfile.GNU_FORMAT) as tar:
        for artifact in artifacts:
            try:
                await _pack(artifact, box, tar, most_bytes)
            except tarfile.TarError as error:
                raise SandboxError(f"The artifact {artifact.source} cannot be copied: {error}") from error
    return content.getvalue()


async def _pack(artifact: Artifact, box: TaskBox, tar: tarfile.TarFile, most_bytes: int) -> None:
    firsts: dict[str, str | bytes] = {}  # the name of a file in the tar, or its content if it is left out
    async with box.engine.packed(box.container, artifact.source) as chunks:
        async for entry, data in entries(chunks, tarfile.TarInfo.isreg, most_bytes=most_bytes):
            below, content = _below(entry.name), data
            is_left_out = any(fnmatch.fnmatchcase(below, each) for each in artifact.exclude)
            copy = entry.replace(name=f"{artifact.source}/{below}".strip("/"), deep=False)
            copy.pax_headers = {}
            if entry.isreg():
                firsts[entry.name] = content if is_left_out else copy.name
            is_known = entry.isreg() or entry.isdir() or entry.issym() or entry.linkname in firsts
            if is_left_out or not is_known:
                continue
            if entry.islnk():
                if isinstance(first := firsts[entry.linkname], str):
                    copy.linkname = first
                else:  # the first link to a file that is left out becomes the file
                    copy.type, copy.size, content = tarfile.REGTYPE, len(first), first
                    firsts[entry.linkname] = copy.name
            tar.addfile(copy, io.BytesIO(content) if copy.isreg() else None)
