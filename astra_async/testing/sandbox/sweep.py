"""Names every container after its run and its owner, and removes those that a dead owner left.

A container is this program's only by a name of the form that `container_name` gives: a name is one
container's own, while labels pass to whatever is made from it or from its image. The labels of test
containers are for people (`docker ps --filter label=astra.run=ID`); nothing is decided by them, and images
get none.

An owner is a process, named `place.pid.start time`, its place a boot of a host and a pid namespace. It is
judged only from where it can be seen: from the same place. An owner seen from there is
dead when no process has its pid and its start time. From anywhere else (another host on a shared
engine, a runner in a container of its own, before a reboot) only this run's own containers are
removed: a run directory has one writer, so whoever else wrote to this run has gone.

`python -m astra_async.testing.sandbox.sweep RUN_ID` removes containers of a run that has ended. A program
that must stop within two seconds cannot wait for an engine that takes longer to remove a container: it starts
this process and goes. A worker of a cluster has one beside it that waits for its end: whatever kills the
worker, no head need come back to its machine for the containers to go.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
import secrets
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from astra_async.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from astra_async.testing.sandbox.engine import Engine

RUN_LABEL = "astra.run"
OWNER_LABEL = "astra.owner"
LABELS = frozenset({RUN_LABEL, OWNER_LABEL})
_NAME = re.compile(
    r"/astra_(?P<run>[A-Za-z0-9.-]+)_(?P<place>[0-9a-f]{16})\.(?P<pid>\d+)\.(?P<started>\d+)_[0-9a-f]{16}"
)
_AT_ONCE = 16
_START_TIME = 19  # field 22 of proc(5) stat, counted after the command's closing parenthesis
# Twice more: the engine may still be creating what it was asked for last.
_PAUSES_S = (0.5, 5.0, 20.0)
_ANY_RUN = ""
_NEEDED = ("PATH", "HOME")
_log = logging.getLogger(__name__)


class Claim(NamedTuple):
    """Whose a container is: a run's, and a process's."""

    run: str
    owner: str

    @property
    def owner_is_here(self) -> bool:
        """Whether the owner could be seen from here if it lived."""
        return place_of(self.owner) == _place()

    @property
    def owner_is_dead(self) -> bool:
        """Whether it is known to have ended."""
        _, pid, started = self.owner.split(".")
        return self.owner_is_here and _start_time(int(pid)) != started


def owner() -> str:
    """The name of this process as an owner."""
    return f"{_place()}.{os.getpid()}.{_start_time(os.getpid())}"


def place_of(owner: str) -> str:
    """Where an owner's process can be seen from."""
    return owner.partition(".")[0]


def container_name(run_id: str, whose: str = "") -> str:
    """A name for a new container of a run, which says that it is this process's, or whose else."""
    return f"astra_{_plain(run_id)}_{whose or owner()}_{secrets.token_hex(8)}"


def of_agents(run_id: str) -> str:
    """The name by which agents' containers are a run's: whoever closes removes all that bear one name."""
    return f"{run_id}.agents"


def claim(container: Mapping[str, Any]) -> Claim | None:
    """Whose a container is, by its entry in the engine's list; None: not this program's."""
    for name in container["Names"] or ():
        if found := _NAME.fullmatch(name):
            return Claim(found["run"], f"{found['place']}.{found['pid']}.{found['started']}")
    return None


async def sweep(engine: Engine, run_id: str) -> None:
    """Remove what dead runs, and earlier processes of this run, left behind.

    Containers of living owners stay, this process's own too: those it removes itself.
    """
    run = _plain(run_id)

    def is_left(whose: Claim) -> bool:
        return whose.owner_is_dead if whose.owner_is_here else whose.run == run

    await remove_all(engine, await _of(engine, is_left))


async def sweep_own(engine: Engine, run_id: str, whose: str = "") -> None:
    """Remove every container that this process, or another owner, has for the run."""
    mine = Claim(_plain(run_id), whose or owner())
    await remove_all(engine, await _of(engine, lambda whose: whose == mine))


async def remove_all(engine: Engine, containers: list[str]) -> None:
    """Remove containers, a bounded number at once. One failure stops no other."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def remove(container: str) -> None:
        async with gate:
            try:
                await engine.remove(container)
            except SandboxError as error:
                _log.warning("container %s stays: %s", container[:12], error)

    await asyncio.gather(*(remove(container) for container in containers))


def remove_later(run_id: str, environ: Mapping[str, str]) -> None:
    """Begin to remove what this process made for the run and leaves behind; never waits."""
    _start(run_id, environ, subprocess.DEVNULL)


def remove_when_this_process_ends(environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """A process that removes what dead processes of this host left, once this one has ended, however."""
    return _start(_ANY_RUN, environ, subprocess.PIPE)


def _start(run_id: str, environ: Mapping[str, str], stdin: int) -> subprocess.Popen[bytes]:
    needed = {name: value for name, value in environ.items() if name in _NEEDED or name[:7] == "DOCKER_"}
    return subprocess.Popen(
        [sys.executable, "-I", "-m", "astra_async.testing.sandbox.sweep", run_id],
        stdin=stdin,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=needed,  # no key reaches it
        start_new_session=True,
    )


async def _remove(run_id: str) -> None:
    from astra_async.testing.sandbox.engine import Engine

    for pause_s in _PAUSES_S:
        await asyncio.sleep(pause_s)
        try:
            async with await Engine.open(answers_within_s=60.0) as engine:
                await sweep(engine, run_id)
        except SandboxError:
            continue  # the next run on this directory sweeps as well


async def _of(engine: Engine, wanted: Callable[[Claim], bool]) -> list[str]:
    """Ids of this program's containers that are wanted."""
    found = [(each["Id"], claim(each)) for each in await engine.containers()]
    return [container for container, whose in found if whose is not None and wanted(whose)]


def _plain(run_id: str) -> str:
    """A run's id as a container's name can hold it."""
    return re.sub(r"[^A-Za-z0-9.-]", "-", run_id)


def _place() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = str(Path("/proc/self/ns/pid").readlink())
        named = f"{boot}:{namespace.strip('pid:[]')}"
    except OSError:  # no Linux: an owner is judged by its pid alone, on hosts of the same name
        named = os.uname().nodename
    return hashlib.sha256(named.encode()).hexdigest()[:16]


def _start_time(pid: int) -> str:
    """When a process started, in clock ticks since boot; "0" if that cannot be known, "" if it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except FileNotFoundError:
        return "" if Path("/proc/self").exists() else _alive_without_proc(pid)
    except ProcessLookupError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[_START_TIME]


def _alive_without_proc(pid: int) -> str:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "0"


if __name__ == "__main__":
    os.chdir("/")
    sys.stdin.buffer.read()  # ends when the process does that began this one
    asyncio.run(_remove(sys.argv[1]))
