"""The first process of every container: it keeps the container open and tells what only it can know.

It runs as a user of its own, holds no secret and starts nothing. The tests are an `exec` of another user:
they can neither signal nor trace it, nor read its memory or write to its output. Whatever kills it came from
outside or was the container's own want of memory, and the engine knows which.

Its standard input is ours alone. To every line it answers with one of its own:

    QUESTION PROCESSES KILLS REACHED

the line itself, how many processes there are besides itself, how many the kernel killed for want of memory,
and whether the container's own limit was reached. Docker's OOMKilled does not say whose memory was short:
under cgroup v2, and under v1 where a parent of the container has a limit, it is set for a host that ran out
of memory as well. The container's own cgroup knows: processes were killed, and its own limit was never
reached (v2: `oom` in memory.events; v1: the maximum of its usage, since newer kernels do not count in
memory.failcnt).

The container ends with it, and it ends when its input does (this program was killed: the engine closes it) or
when nobody has asked for longer than a run may take (the connection was cut in silence). It uses nothing but
bash's own commands, so that it needs no process and no program of the image besides bash. It looks up from
its input five times a second, which is when bash collects orphans that have ended; a line that comes in that
very moment may be lost, so questions are numbered and repeated.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from astra_async.errors import ContainerLost
from astra_async.tasks import Closing, cancel
from astra_async.testing.sandbox.engine_errors import engine_call

if TYPE_CHECKING:
    from aiodocker.stream import Stream

    from astra_async.testing.sandbox.engine import Engine

# In the body of a create request: the first process ends when our connection does.
HELD = dict.fromkeys(("OpenStdin", "StdinOnce", "AttachStdin", "AttachStdout", "AttachStderr"), True)
GRACE_S = 300  # an upload, a queue in the engine, the reading of reports
_ANSWER_S = 20.0
_AGAIN_S = 0.3
_CALL_S = 60.0

SCRIPT = r"""
shopt -s nullglob
ends=0
until=$((SECONDS + $1))
while [ "$SECONDS" -lt "$until" ]; do
  IFS= read -r -t 0.2 line
  status=$?
  # Above 128: nothing came in time. Else the input has ended, or an orphan's end came between.
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
    """The command of a container whose run takes at most so many seconds."""
    return ["bash", "-c", SCRIPT, "bash", str(int(longest_s) + GRACE_S)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the first process sees. `others` are processes besides itself, zombies among them."""

    others: int
    memory_kills: int
    limit_reached: bool


class Keeper(Closing):
    """Our end of a started container's first process; to be closed."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._received = bytearray()
        self._asked = 0

    @classmethod
    async def start(cls, engine: Engine, container: str) -> Self:
        """Start a created container and hold its first process.

        Raises:
            ContainerLost: somebody removed the container.
            ImageError: the image has no bash.
        """
        stream = await engine.attach(container)
        keeper = cls(stream)
        try:
            await engine.start(container)
        except BaseException:
            await keeper.close()
            raise
        return keeper

    async def close(self) -> None:
        """Let go of it: the container ends."""
        with suppress(AssertionError):  # aiodocker's, when the connection has gone already
            await self._stream.close()

    @property
    def gone(self) -> bool:
        """Whether our connection to it has ended, as it does when the container ends."""
        response = self._stream._resp  # noqa: SLF001 - aiodocker tells only those who read
        return response is None or response.connection is None or response.connection.transport is None

    async def ask(self) -> Seen | None:
        """What it sees now; None when it takes too long, since the tests' processes take all there is.

        Raises:
            ContainerLost: it is gone.
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
        """The answer to the latest question; late ones to earlier questions are passed over."""
        async with engine_call("hear the first process", timeout_s=None, running=True):
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
