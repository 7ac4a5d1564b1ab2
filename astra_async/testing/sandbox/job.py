"""One job in a started container, from upload to reports: run the tests, say what happened.

The tests are an exec of their own user beside a first process of another one (see `keeper`); the engine knows
the command's exit code. Whose fault is a container that died? Nothing of the tests can end the first process
but the want of memory, and then the engine says so. All else came from outside (a restarted engine, `docker
kill`) and is ContainerLost, as is every broken connection, and a host out of memory that took a process of
the tests. Nothing that the tests print, write or leave as a status makes trouble of ours: what the engine
cannot follow is a report not read.

A report is read when nothing of the tests can change it any more: the command's shell ends by killing every
process of its user; where the first process sees others all the same, the container is frozen.
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
# IPv4 only: a server that listens on 127.0.0.1 is then found by every client that asks for localhost.
_HOSTS = f"127.0.0.1 localhost {HOST_NAME}\n".encode()
_PROJECT = PROJECT.lstrip("/")


def upload_archive(archive: bytes, fitness: Fitness, *, stale: Sequence[str] = ()) -> bytes:
    """`archive` (a tar relative to the project's root) moved into its folder, owned by the tests' user.

    The result is to be unpacked at the container's root and brings `/etc/hosts`, and below the project what
    an image keeps in folders that are hidden by ours (see `looking`). Files that match `stale`, paths and
    globs relative to the project, are left out.

    Header format: POSIX.1-1988 ustar.

    Raises:
        ValueError: this is no whole tar archive.
    """
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
            return below + _copied(archive, user, old)
        folders.add(f"{_PROJECT}/{name}".rstrip("/").rpartition("/")[0])
        end = at + _BLOCK + -(-_size(patched, at) // _BLOCK) * _BLOCK
        if old.file(name) and patched[at + 156] != _FOLDER:
            left_out.append(slice(at, end))
        at = end
    if at > len(patched):
        raise ValueError("The project's archive is cut off")
    for each in reversed(left_out):
        del patched[each]
    return below + _front(folders, user) + patched


def _patch(archive: bytearray, at: int, user: tuple[int, int]) -> bool:
    """Rewrite the header at `at`; False, and nothing done, when a patch cannot express it."""
    name = f"{_PROJECT}/".encode() + archive[at : at + _NAME_BYTES].rstrip(b"\0")
    has_name_prefix = archive[at + 345]
    if archive[at + 156] not in _PATCHABLE or has_name_prefix or len(name) > _NAME_BYTES:
        return False
    archive[at : at + _NAME_BYTES] = name.ljust(_NAME_BYTES, b"\0")
    archive[at + 108 : at + 124] = _number(user[0]) + _number(user[1])
    archive[at + 148 : at + 156] = b" " * 8  # the checksum counts its own field as blanks
    archive[at + 148 : at + 156] = b"%06o\0 " % sum(archive[at : at + _BLOCK])
    return True


def _size(archive: bytearray, at: int) -> int:
    digits = archive[at + 124 : at + 136].strip(b" \0")
    return int(digits, 8) if digits else 0


def _number(value: int) -> bytes:
    """An owner's field: octal, or GNU's base-256 form for numbers too large for that."""
    return b"%07o\0" % value if value <= _USTAR_MAX else b"\x80" + struct.pack(">Q", value)[1:]


def _copied(archive: bytes, user: tuple[int, int], old: Wanted) -> bytes:
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
    return _front(folders, user) + copy.getvalue()


def _front(folders: set[str], user: tuple[int, int]) -> bytes:
    """/etc/hosts, then entries for the project's folders and all that lie between them, outer ones first."""
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


_ENDING = (0.0, 0.01, 0.05)  # seconds until the first process is asked whether it is alone
_FREEZING = (0.0, 0.2, 1.0)  # seconds before each try to freeze a container
_DYING = (0.0, 0.2, 0.5, 1.0, 2.0)
_KILLING_S = 60.0
_ROOM_FOR_OURS = 16
_NOT_STOPPED = "processes that the tests left behind could not be stopped, so no report was read"
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
        ContainerLost: it ended through no doing of its own.
        ImageError: the image cannot run it.
        SandboxError: any other trouble of the engine.
    """
    command = Command(text=job.command, user=fitness.user, environment=job.environment)
    gone = (*job.result_files, *map(glob.escape, job.deleted))
    stale = [path for path in map(inside_project, gone) if path]
    await engine.upload(container, "/", upload_archive(job.archive, fitness, stale=stale))
    if stale and PROJECT not in fitness.contents:
        await delete(engine, container, stale, image=job.image, limits=job.limits, user=fitness.user)
    ended = await run_command(engine, container, command, job.limits, watched=fitness.layered)
    seen = await _last_look(engine, container, keeper)
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


async def _last_look(engine: Engine, container: str, keeper: Keeper) -> Seen | None:
    """What the first process sees after the tests; None when it died for want of memory.

    Raises:
        ContainerLost: it died of anything else.
    """
    last = Seen(others=1, memory_kills=0, limit_reached=False)
    for pause_s in _ENDING:
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
            return last  # too busy with the tests' processes to answer: there are some
        last = seen
        if not seen.others:
            break
    return last


async def stopped(engine: Engine, container: str, keeper: Keeper, fitness: Fitness, limits: Limits) -> bool:
    """Whether every process of the tests is frozen, or else killed, now."""
    for pause_s in _FREEZING:
        await asyncio.sleep(pause_s)
        try:
            await engine.pause(container)
        except ContainerLost:
            raise
        except SandboxError as error:  # no freezer (rootless engines), or very busy processes
            _log.info("container %s is not frozen: %s", container[:12], error)
            if isinstance(error.__cause__, TimeoutError):
                return False  # it may yet be frozen: nothing more can be started there
        else:
            return True
    # The command's shell, once more: all that it does after a command that does nothing is to kill.
    nothing = Command(text="true", user=fitness.user)
    try:
        await engine.allow_processes(container, limits.processes + _ROOM_FOR_OURS)
        await run_command(engine, container, nothing, Limits(timeout_s=_KILLING_S))
    except ContainerLost:
        raise
    except SandboxError as error:
        _log.info("the processes of container %s are not killed: %s", container[:12], error)
    for pause_s in _DYING:
        await asyncio.sleep(pause_s)
        seen = await keeper.ask()
        if seen is not None and not seen.others:
            return True
    return False


async def delete(
    engine: Engine, container: str, paths: Sequence[str], *, image: str, limits: Limits, user: str
) -> None:
    """Delete files, paths and globs below the project's folder, that the image holds and must not.

    Nothing of the tests, or of an agent, has run yet. Raises ImageError, or SandboxError.
    """
    command = Command(text="", user=user, shell=_DELETE, arguments=tuple(paths))
    ended = await run_command(engine, container, command, limits)
    if ended.stopped:
        raise SandboxError(f"Deleting files that image {image} holds took over {limits.timeout_s:.0f} s")
    if ended.exit_code:
        shown = both_ends(ended.output.text())
        raise ImageError(
            f"Image {image} holds a file that has to go and that the run's user cannot delete: {shown}"
        )
