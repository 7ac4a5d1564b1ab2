"""First process of every container: it keeps the container running and reports its state.

It runs as a separate user, holds no secrets and starts no processes. The tests are an `exec` of another user:
they cannot signal or trace it, read its memory or write to its output. If it is killed, the cause was outside
the container or the container's lack of memory, and the engine knows which.

Only this program writes to its standard input. Its protocol answers every line with one line:

    QUESTION PROCESSES KILLS REACHED

QUESTION is the received line, PROCESSES the number of other processes, KILLS the number of processes killed
for lack of memory, and REACHED is not 0 if the container's own memory limit was reached. Docker's OOMKilled
does not say whose memory was exhausted: under cgroup v2, and under v1 if a parent of the container has a
limit, it is also set if the host ran out of memory. The container's cgroup shows that case: processes were
killed, but its own limit was never reached (v2: `oom` in memory.events; v1: the maximum usage, because newer
kernels no longer count in memory.failcnt).

The container ends with this process. The process ends at the end of its input (this program was killed, so
the engine closes it), or if no question arrived for longer than a run may take (the connection broke
silently). It uses only bash builtins, so that it needs no other process and no other program of the image.
Five times a second it stops waiting for input, so that bash can reap orphans. A line that arrives at that
moment may be lost, so questions are numbered and repeated.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from astra_async.errors import ContainerLost
from astra_async.tasks import Closing, cancel, closed_on_error
from astra_async.testing.sandbox.engine_errors import engine_call

if TYPE_CHECKING:
    from aiodocker.stream import Stream

    from astra_async.testing.sandbox.engine import Engine

# Fields of a create request: the first process's input ends when our connection closes.
HELD = dict.fromkeys(("OpenStdin", "StdinOnce", "AttachStdin", "AttachStdout", "AttachStderr"), True)
GRACE_S = 300  # for the upload, queueing in the engine, and reading reports
_ANSWER_S = 20.0
_AGAIN_S = 0.3
_CALL_S = 60.0

# The process ignores all signals, like `sleep infinity` as process 1, because root may send some.
SCRIPT = r"""
trap '' {1..16} {18..31}  # 17 is SIGCHLD
shopt -s nullglob
ends=0
until=$((SECONDS + $1))
while [ "$SECONDS" -lt "$until" ]; do
  IFS= read -r -t 0.2 line
  status=$?
  # Above 128: timeout. Any other status: the input has ended, or the end of an orphan interrupted `read`.
  if [ "$status" -gt 128 ]; then
    ends=0
    continue
  elif [ "$status" != 0 ]; then
    ends=$((ends + 1))
    [ "$ends" -lt 5 ] || break
    continue
  fi
  ends=0
  until=$((SECONDS + $1))
  kills=0 reached=0 group=/sys/fs/cgroup
  if [ -r "$group/memory.events" ]; then
    while read -r name value; do
      case $name in oom_kill) kills=$value ;; oom) reached=$value ;; esac
    done <"$group/memory.events"
  elif [ -r "$group/memory/memory.oom_control" ]; then
    group=$group/memory
    while read -r name value; do
      case $name in oom_kill) kills=$value ;; esac
    done <"$group/memory.oom_control"
    read -r limit <"$group/memory.limit_in_bytes"
    read -r most <"$group/memory.max_usage_in_bytes"
    [ "$((limit - most))" -gt 4194304 ] || reached=1
  fi
  processes=(/proc/[0-9]*)
  printf '%s %s %s %s\n' "$line" "$((${#processes[@]} - 1))" "$kills" "$reached"
done
"""


def entry_point(longest_s: float) -> list[str]:
    """Return the first process's command, for a run of at most `longest_s` seconds."""
    return ["bash", "-c", SCRIPT, "bash", str(int(longest_s) + GRACE_S)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """State reported by the first process. `others` counts all other processes, including zombies."""

    others: int
    memory_kills: int
    limit_reached: bool


class Keeper(Closing):
    """Connection to the first process of a started container; must be closed."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._received = bytearray()
        self._asked = 0

    @classmethod
    async def start(cls, engine: Engine, container: str) -> Self:
        """Start a created container and connect to its first process.

        Raises:
            ContainerLost: the container was removed from outside.
            ImageError: the image has no bash.
        """
        stream = await engine.attach(container)
        keeper = cls(stream)
        async with closed_on_error(keeper.close):
            await engine.start(container)
        return keeper

    async def close(self) -> None:
        """Close the connection, which ends the container."""
        with suppress(AssertionError):  # raised by aiodocker if the connection is already closed
            await self._stream.close()

    @property
    def gone(self) -> bool:
        """True if the connection has ended, which happens when the container ends."""
        response = self._stream._resp  # noqa: SLF001 - aiodocker has no public method for it
        return response is None or response.connection is None or response.connection.transport is None

    async def ask(self) -> Seen | None:
        """Return the current state, or None if the tests' load prevents an answer in time.

        Raises:
            ContainerLost: the first process has ended.
        """
        self._asked += 1
        reading = asyncio.create_task(self._answer())
        try:
            async with asyncio.timeout(_ANSWER_S):
                while not reading.done():
                    async with engine_call("ask the first process", timeout_s=_CALL_S, running=True):
                        await self._stream.write_in(b"%d\n" % self._asked)
                    await asyncio.wait({reading}, timeout=_AGAIN_S)
        except TimeoutError:
            return None
        finally:
            await cancel(reading)
        return reading.result()

    async def _answer(self) -> Seen:
        """Return the answer to the latest question; ignore late answers to earlier ones."""
        async with engine_call("read from the first process", timeout_s=None, running=True):
            while True:
                message = await self._stream.read_out()
                if message is None:
                    raise ContainerLost("The container's first process has ended")
                self._received += message.data
                found = re.search(rb"^%d (\d+) (\d+) (\d+)\n" % self._asked, self._received, re.MULTILINE)
                if found:
                    others, kills, reached = map(int, found.groups())
                    del self._received[: found.end()]
                    return Seen(others=others, memory_kills=kills, limit_reached=bool(reached))
