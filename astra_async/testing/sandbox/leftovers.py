"""`python -m astra_async.testing.sandbox.leftovers RUN_ID`: removes containers of a run that has ended.

A program that must stop within two seconds cannot wait for an engine that takes longer to remove a
container: it starts this process and goes. A worker of a cluster has one beside it that waits for its end:
whatever kills the worker, no head need come back to its machine for the containers to go.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from astra_async.errors import SandboxError
from astra_async.testing.sandbox.sweep import sweep

if TYPE_CHECKING:
    from collections.abc import Mapping

# Twice more: the engine may still be creating what it was asked for last.
_PAUSES_S = (0.5, 5.0, 20.0)
_ANY_RUN = ""
_NEEDED = ("PATH", "HOME")


def remove_later(run_id: str, environ: Mapping[str, str]) -> None:
    """Begin to remove what this process made for the run and leaves behind; never waits."""
    _start(run_id, environ, subprocess.DEVNULL)


def remove_when_this_process_ends(environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """A process that removes what dead processes of this host left, once this one has ended, however."""
    return _start(_ANY_RUN, environ, subprocess.PIPE)


def _start(run_id: str, environ: Mapping[str, str], stdin: int) -> subprocess.Popen[bytes]:
    needed = {name: value for name, value in environ.items() if name in _NEEDED or name[:7] == "DOCKER_"}
    return subprocess.Popen(
        [sys.executable, "-I", "-m", "astra_async.testing.sandbox.leftovers", run_id],
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


if __name__ == "__main__":
    os.chdir("/")
    sys.stdin.buffer.read()  # ends when the process does that began this one
    asyncio.run(_remove(sys.argv[1]))
