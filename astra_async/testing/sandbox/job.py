"""Run one job in a started container: upload, tests, reports.

The tests are an exec of their own user, next to a first process of another user (see `keeper`). The engine
knows the exit code of the exec. Only a lack of memory in the container can make the tests end the first
process, and the engine reports that. Every other end of a container came from outside (a restarted engine,
`docker kill`) and raises ContainerLost, like a broken connection, or a host out of memory that killed a
process of the tests. Output, files and exit codes of the tests never raise an infrastructure error: a path
that the engine cannot follow is a report that was not read.

Reports are read after the tests can no longer change them. The command's shell ends by killing every process
of its user. If the first process still sees other processes, the container is frozen.
"""

from __future__ import annotations

import asyncio
import glob
import io
import logging
import struct
import tarfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from astra_async.errors import ContainerLost, ImageError, SandboxError
from astra_async.testing.sandbox.engine_errors import both_ends
from astra_async.testing.sandbox.execution import Command, run_command
from astra_async.testing.sandbox.hardened import HOST_NAME
from astra_async.testing.sandbox.keeper import Seen
from astra_async.testing.sandbox.resultfiles import PROJECT, Wanted, inside_project, read_reports
from astra_async.types import Execution, Limits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from astra_async.testing.sandbox.engine import Engine
    from astra_async.testing.sandbox.hardened import Fitness
    from astra_async.testing.sandbox.keeper import Keeper
    from astra_async.types import Job


_BLOCK = 512
_NAME_BYTES = 100
_PATCHABLE = frozenset(b"\0" + tarfile.REGTYPE + tarfile.DIRTYPE + tarfile.SYMTYPE)
_FOLDER = tarfile.DIRTYPE[0]
_USTAR_MAX = 0o7777777
_CHANGED_AT = 946_684_800  # 2000-01-01: archivers refuse years before 1980
# IPv4 only: then every client that resolves localhost reaches a server that listens on 127.0.0.1.
_HOSTS = f"127.0.0.1 localhost {HOST_NAME}\n".encode()
_PROJECT = PROJECT.lstrip("/")


def upload_archive(archive: bytes, fitness: Fitness, *, stale: Sequence[str] = ()) -> bytes:
    """Move `archive` (a tar relative to the project's root) into the project's folder; set its owner."""
    user, old = (fitness.uid, fitness.gid), Wanted(stale)
    below = b"".join(
        entry
        for entries in {**fitness.overlaid, **fitness.contents}.values()
        for name, entry in entries.items()
        if not (name.startswith(f"{_PROJECT}/") and old.file(name.removeprefix(f"{_PROJECT}/")))
    )
    patched = bytearray(archive)
    folders = {_PROJECT}
    left_out: list[slice] = []
    at = 0
    while at + _BLOCK <= len(patched) and patched[at]:
        name = patched[at : at + _NAME_BYTES].rstrip(b"\0").decode(errors="surrogateescape")
        if not _patch(patched, at, user):
            return below + _rewritten(archive, user, old)
        folders.add(f"{_PROJECT}/{name}".rstrip("/").rpartition("/")[0])
        end = at + _BLOCK + -(-_size(patched, at) // _BLOCK) * _BLOCK
        if old.file(name) and patched[at + 156] != _FOLDER:
            left_out.append(slice(at, end))
        at = end
    if at > len(patched):
        raise ValueError("The project's archive is cut off")
    for each in reversed(left_out):
        del patched[each]
    return below + _leading_entries(folders, user) + patched


def _patch(archive: bytearray, at: int, user: tuple[int, int]) -> bool:
    """Rewrite the header at `at`; return False, without changes, if a patch cannot express the new header."""
    name = f"{_PROJECT}/".encode() + archive[at : at + _NAME_BYTES].rstrip(b"\0")
    has_name_prefix = archive[at + 345]
    if archive[at + 156] not in _PATCHABLE or has_name_prefix or len(name) > _NAME_BYTES:
        return False
    archive[at : at + _NAME_BYTES] = name.ljust(_NAME_BYTES, b"\0")
    archive[at + 108 : at + 124] = _number(user[0]) + _number(user[1])
    archive[at + 148 : at + 156] = b" " * 8  # the checksum is computed with blanks in its own field
    archive[at + 148 : at + 156] = b"%06o\0 " % sum(archive[at : at + _BLOCK])
    return True


def _size(archive: bytearray, at: int) -> int:
    digits = archive[at + 124 : at + 136].strip(b" \0")
    return int(digits, 8) if digits else 0


def _number(value: int) -> bytes:
    """Return an owner field: octal, or GNU's base-256 form for larger numbers."""
    return b"%07o\0" % value if value <= _USTAR_MAX else b"\x80" + struct.pack(">Q", value)[1:]


def _rewritten(archive: bytes, user: tuple[int, int], old: Wanted) -> bytes:
    copy = io.BytesIO()
    folders = {_PROJECT}
    try:
        with (
            tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as source,
            tarfile.open(fileobj=copy, mode="w:", format=tarfile.GNU_FORMAT) as target,
        ):
            for entry in source:
                if old.file(entry.name) and not entry.isdir():
                    continue
                entry.name = f"{_PROJECT}/{entry.name}"
                entry.uid, entry.gid = user
                entry.pax_headers = {}
                folders.add(entry.name.rpartition("/")[0])
                if entry.islnk():
                    entry.linkname = f"{_PROJECT}/{entry.linkname}"
                target.addfile(entry, source.extractfile(entry) if entry.isreg() else None)
    except tarfile.TarError as error:
        raise ValueError(f"The project's archive cannot be read: {error}") from error
    return _leading_entries(folders, user) + copy.getvalue()


def _leading_entries(folders: set[str], user: tuple[int, int]) -> bytes:
    """Return tar entries for /etc/hosts and the project's folders with all parents, outer ones first."""
    paths = {
        str(path)
        for folder in folders
        for path in PurePosixPath(folder, "x").parents
        if path.is_relative_to(_PROJECT)
    }
    hosts = tarfile.TarInfo("etc/hosts")
    hosts.size, hosts.mtime = len(_HOSTS), _CHANGED_AT
    headers = [hosts.tobuf(), _HOSTS.ljust(_BLOCK, b"\0")]
    for path in sorted(paths):
        entry = tarfile.TarInfo(path)
        entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, _CHANGED_AT
        entry.uid, entry.gid = user
        headers.append(entry.tobuf(tarfile.GNU_FORMAT, errors="surrogateescape"))
    return b"".join(headers)


_QUESTION_PAUSES_S = (0.0, 0.01, 0.05)  # seconds before each question to the first process
_FREEZE_PAUSES_S = (0.0, 0.2, 1.0)  # seconds before each try to freeze a container
_KILL_PAUSES_S = (0.0, 0.2, 0.5, 1.0, 2.0)
_KILLING_S = 60.0
_EXTRA_PROCESSES = 16
_NOT_STOPPED = "processes left by the tests could not be stopped, so no report was read"
_log = logging.getLogger(__name__)

_DELETE = r"""
shopt -s globstar nullglob dotglob
IFS=
for pattern in "$@"; do
  for path in $pattern; do
    [ -L "$path" ] || { [ -e "$path" ] && [ ! -d "$path" ]; } || continue
    rm -f -- "$path" || exit
  done
done
"""


async def execute(engine: Engine, container: str, job: Job, *, keeper: Keeper, fitness: Fitness) -> Execution:
    """Upload the job's project, run its tests and read their reports; the caller removes the container.

    Raises:
        ContainerLost: the container was ended from outside.
        ImageError: the image cannot run the job.
        SandboxError: any other engine error.
    """
    command = Command(text=job.command, user=fitness.user, environment=job.environment)
    gone = (*job.result_files, *map(glob.escape, job.deleted))
    stale = [path for path in map(inside_project, gone) if path]
    await engine.upload(container, "/", upload_archive(job.archive, fitness, stale=stale))
    if stale and PROJECT not in fitness.contents:
        await delete(engine, container, stale, image=job.image, limits=job.limits, user=fitness.user)
    ended = await run_command(engine, container, command, job.limits, watched=fitness.layered)
    seen = await _final_state(engine, container, keeper)
    if seen is not None and seen.memory_kills and not seen.limit_reached:
        raise ContainerLost(
            "A process of the tests was killed because the Docker host ran out of memory, not the container;"
            " run fewer containers at once (--sandboxes) or give the host more memory"
        )
    reports: Mapping[str, bytes] = {}
    problems: Sequence[str] = ()
    if seen is not None:
        still = not (seen.others or ended.stopped) or await stopped(
            engine, container, keeper, fitness, job.limits
        )
        problems = [_NOT_STOPPED]
        if still:
            reports, problems = await read_reports(
                engine, container, job.result_files, job.limits.report_bytes
            )
    return Execution(
        exit_code=ended.exit_code,
        timed_out=ended.stopped == "time",
        out_of_memory=seen is None or seen.memory_kills > 0,
        failed_limit="disk" if ended.stopped == "disk" else None,
        disk_watched=fitness.layered,
        duration_s=ended.duration_s,
        output=ended.output.text(),
        stdout=ended.output.stdout.text(),
        output_bytes=ended.output.total,
        reports=reports,
        report_problems=tuple(problems),
    )


async def _final_state(engine: Engine, container: str, keeper: Keeper) -> Seen | None:
    """Ask the first process for its state after the tests; return None if it died for lack of memory.

    Raises:
        ContainerLost: it died for any other reason.
    """
    last = Seen(others=1, memory_kills=0, limit_reached=False)
    for pause_s in _QUESTION_PAUSES_S:
        await asyncio.sleep(pause_s)
        try:
            seen = await keeper.ask()
        except ContainerLost:
            if await engine.ran_out_of_memory(container):
                return None
            raise ContainerLost(
                "The container was killed from outside (engine restarted, host out of memory?)"
            ) from None
        if seen is None:
            return last  # no answer, because the tests' processes are still running
        last = seen
        if not seen.others:
            break
    return last


async def stopped(engine: Engine, container: str, keeper: Keeper, fitness: Fitness, limits: Limits) -> bool:
    """Freeze every process of the tests, or else kill them; return True on success."""
    for pause_s in _FREEZE_PAUSES_S:
        await asyncio.sleep(pause_s)
        try:
            await engine.pause(container)
        except ContainerLost:
            raise
        except SandboxError as error:  # no cgroup freezer (rootless engines), or very busy processes
            _log.info("container %s is not frozen: %s", container[:12], error)
            if isinstance(error.__cause__, TimeoutError):
                return False  # the freeze may still succeed, and then no further exec can be started
        else:
            return True
    # Run the shell with an empty command: the shell then only kills all processes of the user.
    nothing = Command(text="true", user=fitness.user)
    try:
        await engine.allow_processes(container, limits.processes + _EXTRA_PROCESSES)
        await run_command(engine, container, nothing, Limits(timeout_s=_KILLING_S))
    except ContainerLost:
        raise
    except SandboxError as error:
        _log.info("the processes of container %s are not killed: %s", container[:12], error)
    for pause_s in _KILL_PAUSES_S:
        await asyncio.sleep(pause_s)
        seen = await keeper.ask()
        if seen is not None and not seen.others:
            return True
    return False


async def delete(
    engine: Engine, container: str, paths: Sequence[str], *, image: str, limits: Limits, user: str
) -> None:
    """Delete files of the image below the project's folder that match paths or globs.

    Call this before any command of the tests or of an agent has run. Raises ImageError or SandboxError.
    """
    command = Command(text="", user=user, shell=_DELETE, arguments=tuple(paths))
    ended = await run_command(engine, container, command, limits)
    if ended.stopped:
        raise SandboxError(f"Deleting result files from image {image} took over {limits.timeout_s:.0f} s")
    if ended.exit_code:
        shown = both_ends(ended.output.text())
        raise ImageError(
            f"Image {image} holds a file that must be deleted, but the run's user cannot delete it: {shown}"
        )
