"""Name every container after its run and its owner, and remove containers whose owner is dead.

A container belongs to this program only if its name has the form of `container_name`. A name belongs to one
container, while labels are inherited by images and containers made from it. The labels of test containers are
for users (`docker ps --filter label=astra.run=ID`); they decide nothing, and images get no labels.

An owner is a process, named `place.pid.start time`. A place is one boot of a host and one pid namespace, and
a process can only be checked from its own place. From there, an owner is dead if no process has its pid and
its start time. From anywhere else (another host on a shared engine, a runner in its own container, after a
reboot) only containers of this run are removed: a run directory has one writer, so an earlier writer of this
run has ended.

`python -m astra_async.testing.sandbox.sweep RUN_ID` removes containers of a run that has ended. A program
that must exit within two seconds cannot wait for a slow engine, so it starts this process and exits. A
cluster worker starts one that waits for the worker's end. It removes the worker's containers however the
worker ends, even if the head never returns to that machine.
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
# Sweep three times, because the engine may still be creating the last requested containers.
_PAUSES_S = (0.5, 5.0, 20.0)
_ANY_RUN = ""
_NEEDED = ("PATH", "HOME")
_log = logging.getLogger(__name__)


class Claim(NamedTuple):
    """The run and the owner process of a container."""

    run: str
    owner: str

    @property
    def owner_is_here(self) -> bool:
        """True if the owner's process can be checked from this process."""
        return place_of(self.owner) == _place()

    @property
    def owner_is_dead(self) -> bool:
        """True if the owner is known to have ended."""
        _, pid, started = self.owner.split(".")
        return self.owner_is_here and _start_time(int(pid)) != started


def owner() -> str:
    """Return the name of this process as an owner."""
    return f"{_place()}.{os.getpid()}.{_start_time(os.getpid())}"


def place_of(owner: str) -> str:
    """Return the place from which an owner's process can be checked."""
    return owner.partition(".")[0]


def container_name(run_id: str, whose: str = "") -> str:
    """Return a new container name for a run and its owner, by default this process."""
    return f"astra_{_plain(run_id)}_{whose or owner()}_{secrets.token_hex(8)}"


def of_agents(run_id: str) -> str:
    """Return the run name for agents' containers, which are removed separately from those of the run."""
    return f"{run_id}.agents"


def claim(container: Mapping[str, Any]) -> Claim | None:
    """Return a container's run and owner from the engine's list entry, or None if it is foreign."""
    for name in container["Names"] or ():
        if found := _NAME.fullmatch(name):
            return Claim(found["run"], f"{found['place']}.{found['pid']}.{found['started']}")
    return None


async def sweep(engine: Engine, run_id: str) -> None:
    """Remove containers left by dead runs and by earlier processes of this run.

    Containers of living owners stay, including those of this process.
    """
    run = _plain(run_id)

    def is_left(whose: Claim) -> bool:
        return whose.owner_is_dead if whose.owner_is_here else whose.run == run

    await remove_all(engine, await _of(engine, is_left))


async def sweep_own(engine: Engine, run_id: str, whose: str = "") -> None:
    """Remove every container of the run that belongs to this process, or to the owner `whose`."""
    mine = Claim(_plain(run_id), whose or owner())
    await remove_all(engine, await _of(engine, lambda whose: whose == mine))


async def remove_all(engine: Engine, containers: list[str], *, level: int = logging.WARNING) -> None:
    """Remove containers concurrently with a limit; a failure is logged and does not affect the others."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def remove(container: str) -> None:
        async with gate:
            try:
                await engine.remove(container)
            except SandboxError as error:
                _log.log(level, "container %s stays: %s", container[:12], error)

    await asyncio.gather(*(remove(container) for container in containers))


def remove_later(run_id: str, environ: Mapping[str, str]) -> None:
    """Start a process that removes this process's containers of the run; never waits."""
    _start(run_id, environ, subprocess.DEVNULL)


def remove_when_this_process_ends(environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a process that removes containers of dead processes on this host after this process ends."""
    return _start(_ANY_RUN, environ, subprocess.PIPE)


def _start(run_id: str, environ: Mapping[str, str], stdin: int) -> subprocess.Popen[bytes]:
    needed = {name: value for name, value in environ.items() if name in _NEEDED or name[:7] == "DOCKER_"}
    return subprocess.Popen(
        [sys.executable, "-I", "-m", "astra_async.testing.sandbox.sweep", run_id],
        stdin=stdin,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=needed,  # API keys must not reach it
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
    """Return the ids of this program's containers that match."""
    found = [(each["Id"], claim(each)) for each in await engine.containers()]
    return [container for container, whose in found if whose is not None and wanted(whose)]


def _plain(run_id: str) -> str:
    """Return a run's id in the characters that a container's name may have."""
    return re.sub(r"[^A-Za-z0-9.-]", "-", run_id)


def _place() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = str(Path("/proc/self/ns/pid").readlink())
        named = f"{boot}:{namespace.strip('pid:[]')}"
    except OSError:  # not Linux: an owner is identified by its pid and the host's name
        named = os.uname().nodename
    return hashlib.sha256(named.encode()).hexdigest()[:16]


def _start_time(pid: int) -> str:
    """Return a process's start time in clock ticks since boot; "0" if unknown, "" if it has ended."""
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
    sys.stdin.buffer.read()  # returns when the parent process ends
    asyncio.run(_remove(sys.argv[1]))
