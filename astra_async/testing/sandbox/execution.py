"""Run one command in a started container, within its limits.

The command is an exec next to the first process (see `keeper`), so the engine knows its exit code. The
command's shell ends by killing every process of its user.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from astra_async.errors import ContainerLost, SandboxError
from astra_async.tasks import cancel
from astra_async.testing.sandbox.engine_errors import engine_call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiodocker.stream import Stream

    from astra_async.testing.sandbox.engine import Engine
    from astra_async.types import Limits


_STDOUT, _STDERR = 1, 2
_LONGEST_LINE = 64 * 1024  # bytes; longer unfinished lines are split


class Clipped:
    """Buffer that keeps the first and the last `limit // 2` bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def feed(self, data: bytes) -> None:
        """Add the next bytes of the stream."""
        self.total += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._half:  # trim rarely, so that each byte is moved about once
            del self._tail[: -self._half]

    def text(self) -> str:
        """Return the kept bytes as text, with a line that gives the number of omitted bytes."""
        tail = self._tail[-self._half :]
        left_out = self.total - len(self._head) - len(tail)
        if not left_out:
            return (self._head + tail).decode("utf-8", errors="replace")
        mark = f"\n[... {left_out} bytes of output left out ...]\n"
        return self._head.decode("utf-8", errors="replace") + mark + tail.decode("utf-8", errors="replace")


class Output:
    """Combined output line by line in order of arrival, and standard output alone, both clipped.

    Docker delivers both streams in fragments that depend on the machine's load. Lines are kept whole;
    otherwise fragments of the two streams would be mixed within a line, differently in each run.
    """

    def __init__(self, limit: int) -> None:
        self.total = 0  # bytes
        self.stdout = Clipped(limit)
        self._lines = Clipped(limit)
        self._begun = {_STDOUT: bytearray()}  # by stream

    def feed(self, stream: int, data: bytes) -> None:
        """Add one frame of Docker's stream (1: standard output, 2: standard error, 3: the engine's own)."""
        self.total += len(data)
        if stream == _STDOUT:
            self.stdout.feed(data)
        begun = self._begun.setdefault(stream, bytearray())
        begun += data
        whole = begun.rfind(b"\n", len(begun) - len(data)) + 1
        if not whole and len(begun) > _LONGEST_LINE:
            whole = len(begun)
        self._lines.feed(bytes(begun[:whole]))
        del begun[:whole]

    def text(self) -> str:
        """Return all output so far; unfinished lines come last, standard output first."""
        lines = deepcopy(self._lines)
        lines.feed(b"\n".join(filter(None, self._begun.values())))
        return lines.text()


_LAST_OUTPUT_S = 10.0
_BEGINNING_S = 60.0
_MOST_UNREAD = 16  # pieces of standard output, each of at most 64 KiB
_OVERLOOKED_END_S = 2.0
_DISK_CHECK_S = 1.0
_UNKNOWN_SIZES = 3
_FREE_OUTPUT_BYTES = 128 * 1024**2
_PACED_OUTPUT_BYTES = 4 * 1024**2
_OUTPUT_PAUSE_S = 0.05
_ARGUMENT_LIMIT = 128 * 1024  # MAX_ARG_STRLEN of Linux: one argument of a process
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

# kill -1 signals every process of the user except the caller, atomically, so that no fork can escape. The
# traps keep the shell alive if a script signals its process group. Ignored signals would be inherited.
_SHELL = r"""
trap : HUP INT TERM
[ -d "$HOME" ] || mkdir -p -- "$HOME"
bash -c "$1" </dev/null
status=$?
kill -KILL -1 2>/dev/null
exit "$status"
"""


class Dialog:
    """Standard output and input of a running command, for a conversation with it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        # Bounded, so that a command whose output nobody reads is blocked.
        self._came: asyncio.Queue[bytes] = asyncio.Queue(_MOST_UNREAD)

    async def read(self) -> bytes:
        """Return the next piece of standard output; b"" at its end."""
        return await self._came.get()

    async def write(self, content: bytes) -> None:
        """Write to standard input. Raises ContainerLost."""
        async with engine_call("write to the command", timeout_s=None, running=True):
            await self._stream.write_in(content)

    async def feed(self, content: bytes) -> None:
        """Add a piece of standard output; b"" ends it."""
        await self._came.put(content)


# Returns "" if the conversation is complete, else the reason of its end.
Talk = Callable[[Dialog], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Command to run, its user and group (numeric, or names of the image) and its environment variables.

    `shell` is the bash script that runs the command; it gets `text` and `arguments` as its arguments. `talk`
    converses with the command, whose standard input is empty otherwise. `output` collects the output, also
    if `run_command` is cancelled.
    """

    text: str
    user: str
    environment: Mapping[str, str] = field(default_factory=dict)
    shell: str = _SHELL
    arguments: tuple[str, ...] = ()
    talk: Talk | None = None
    output: Output | None = None

    @property
    def line(self) -> list[str]:
        """The command line of the exec."""
        shell = self.shell.replace(" </dev/null", " <&0") if self.talk else self.shell
        return ["bash", "-c", shell, "bash", self.text, *self.arguments]

    def __post_init__(self) -> None:
        """Raise SandboxError if a process cannot be started with this command or environment."""
        wrong = [name for name in self.environment if not _NAME.match(name)]
        if wrong:
            raise SandboxError(f"{wrong[0]!r} is not a valid name of an environment variable")
        for part in (self.text, *(f"{name}={value}" for name, value in self.environment.items())):
            if len(part.encode(errors="surrogateescape")) >= _ARGUMENT_LIMIT or "\0" in part:
                raise SandboxError(
                    "The command or its environment is longer than 128 KiB, or holds a NUL byte"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Outcome of a command. `stopped` names the exceeded limit; such a command may still be running."""

    exit_code: int | None
    stopped: str | None
    duration_s: float
    output: Output


async def run_command(
    engine: Engine,
    container: str,
    command: Command,
    limits: Limits,
    *,
    watched: bool = False,
    last_output_s: float = _LAST_OUTPUT_S,
) -> Ended:
    """Run a command in a started container until it ends or exceeds a limit.

    The end of a conversation (`Command.talk`) counts as the command's end, with exit code 0 or 1; the
    command may still be running. `watched` also enforces the limit on the size of the container's layer.
    `last_output_s` limits the seconds for reading further output if child processes keep the stream open.
    """
    output = command.output or Output(limits.output_bytes)
    process = await engine.prepare(
        container,
        command.line,
        user=command.user,
        environment=command.environment,
        stdin=command.talk is not None,
    )
    async with engine.started(process) as stream:
        started = time.monotonic()
        dialog = Dialog(stream) if command.talk else None
        drain = asyncio.create_task(_drain(stream, output, dialog))
        ending = asyncio.create_task(
            _wait_for_end(engine, container, process, drain, limits, watched=watched)
        )
        talking = [asyncio.ensure_future(command.talk(dialog))] if command.talk and dialog else []
        try:
            await asyncio.wait({ending, *talking}, return_when=asyncio.FIRST_COMPLETED)
            exit_code, stopped = ending.result() if ending.done() else (None, None)
            duration_s = time.monotonic() - started
            if not stopped:
                # The stream normally ends now; the timeout covers an engine that keeps it open.
                await asyncio.wait({drain, *talking}, timeout=last_output_s if ending.done() else 0)
            if talking and talking[0].done() and not stopped:
                why = talking[0].result()
                output.feed(_STDERR, why.encode())
                exit_code = 1 if why else 0
        finally:
            await cancel(drain, ending, *talking)
    if drain.done() and not drain.cancelled():
        drain.result()
    return Ended(exit_code=exit_code, stopped=stopped, duration_s=duration_s, output=output)


async def _wait_for_end(
    engine: Engine, container: str, process: str, drain: asyncio.Task[None], limits: Limits, *, watched: bool
) -> tuple[int | None, str | None]:
    """Return the exit code, or the limit that was exceeded first."""
    end = asyncio.create_task(_end(engine, container, process, drain))
    full = asyncio.create_task(_disk_full(engine, container, limits.disk_bytes)) if watched else None
    try:
        waited = {end, full} if full else {end}
        asked = time.monotonic()
        while True:
            await asyncio.wait(waited, timeout=limits.timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if end.done():
                return end.result(), None
            if full and full.done():
                full.result()
                return None, "disk"
            # If the engine is still starting the command, its time has not begun, and it must not be frozen.
            # If it has ended, it ended in time, even if a slow engine reports the exit code late.
            phase = await _phase(engine, process)
            if phase == "ended":
                return await end, None
            if phase == "runs":
                return None, "time"
            if time.monotonic() > asked + _BEGINNING_S:
                raise SandboxError(f"Docker Engine did not begin the command within {_BEGINNING_S:.0f} s")
    finally:
        await cancel(end, *([full] if full else []))


async def _phase(engine: Engine, process: str) -> Literal["begins", "runs", "ended"]:
    try:
        if not await engine.has_begun(process):
            return "begins"
        return "runs" if await engine.exit_code(process) is None else "ended"
    except SandboxError as error:
        if isinstance(error.__cause__, TimeoutError):
            raise
        return "runs"  # the engine forgets execs of a dead container; `_final_state` detects that case


async def _end(engine: Engine, container: str, process: str, drain: asyncio.Task[None]) -> int | None:
    """Wait for the command's end and return its exit code; return None if the container ended.

    The output usually ends with the command. But a command can close its output and keep running, and a child
    process can keep it open.
    """
    while True:
        await asyncio.wait({drain}, timeout=_OVERLOOKED_END_S)
        try:
            code = await engine.exit_code(process)
        except ContainerLost:
            raise
        except SandboxError:  # the engine forgets the execs of a dead container
            if not (await engine.inspect(container))["State"]["Running"]:
                return None
            code = None
        if code is not None:
            return code
        if drain.done():
            await asyncio.sleep(_OUTPUT_PAUSE_S)


async def _disk_full(engine: Engine, container: str, limit: int) -> None:
    """Return when the container has written more than `limit` bytes to its own layer.

    Return also if the engine repeatedly cannot determine the size. The engine walks the layer's files, and
    only the code under test can make that fail (with a path longer than PATH_MAX).
    """
    unknown = 0
    pause_s = _DISK_CHECK_S
    while unknown < _UNKNOWN_SIZES:
        await asyncio.sleep(pause_s)
        asked = time.monotonic()
        try:
            state = await engine.inspect(container, size=True)
        except ContainerLost:
            raise
        except SandboxError:
            continue  # a busy engine: ask again
        size = state.get("SizeRw", 0)
        if size > limit:
            return
        unknown = unknown + 1 if size < 0 else 0
        # The engine takes 3 us for each file: wait longer between checks if there are many files.
        pause_s = max(_DISK_CHECK_S, 5 * (time.monotonic() - asked))


async def _drain(stream: Stream, output: Output, dialog: Dialog | None) -> None:
    # Always keep reading, because a full pipe would block the container. Endless output is read slowly, so
    # that other tasks of the event loop can run (2.5 ms of CPU for a megabyte).
    due = _FREE_OUTPUT_BYTES
    async with engine_call("read the container's output", timeout_s=None, running=True):
        while (message := await stream.read_out()) is not None:
            output.feed(message.stream, message.data)
            if dialog and message.stream == _STDOUT:
                await dialog.feed(message.data)
            if output.total > due:
                due = output.total + _PACED_OUTPUT_BYTES
                await asyncio.sleep(_OUTPUT_PAUSE_S)
    if dialog:
        await dialog.feed(b"")
