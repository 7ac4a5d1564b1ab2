"""One created container from upload to reports: run the command inside its limits, say what happened.

Whose fault is an exit code of 137? Process 1 of the container is our own script, which nobody inside
can kill. It is the time-out's or the disk limit's when we sent the kill; the memory limit's when the
engine says OOMKilled; the command's own when process 1 lived to print its mark (see `script`). What is
left came from outside (a restarted engine, `docker kill`, the host out of memory) and is ContainerLost,
as is every broken connection while the command runs, and a host out of memory that took a process of the
command and left process 1 to say so.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from astra_async.errors import ContainerLost, ImageError, SandboxError
from astra_async.testing.sandbox.engine_errors import engine_call, one_line
from astra_async.testing.sandbox.output import Output
from astra_async.testing.sandbox.resultfiles import inside_project, read_reports
from astra_async.testing.sandbox.script import HOST_STARVED, STALE_KEPT, orders
from astra_async.types import Execution, Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiodocker.stream import Stream

    from astra_async.testing.sandbox.engine import Engine
    from astra_async.types import Job

_KILLED = 137  # 128 + SIGKILL
_KILL_S = 60.0
_LAST_OUTPUT_S = 10.0
_DISK_CHECK_S = 1.0
_UNKNOWN_SIZES = 3
_FREE_OUTPUT_BYTES = 128 * 1024**2
_PACED_OUTPUT_BYTES = 4 * 1024**2
_OUTPUT_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a container's command ended. `stopped` names the limit for which we killed it."""

    exit_code: int
    stopped: str | None
    duration_s: float
    output: Output


async def execute(engine: Engine, container: str, job: Job) -> Execution:
    """Run the job in a container that has its project, and read its reports; the caller removes it.

    Raises:
        ContainerLost: it ended through no doing of its own.
        ImageError: the image cannot run it.
        SandboxError: any other trouble of the engine.
    """
    mark = secrets.token_hex(16)
    result_files = [path for path in map(inside_project, job.result_files) if path]
    todo = orders(job.command, mark=mark, environment=job.environment, result_files=result_files)
    ended = await run_orders(engine, container, todo, job.limits)
    state = await engine.inspect(container)
    out_of_memory = bool(state["State"]["OOMKilled"])
    marked = ended.output.take_mark(mark.encode())
    if ended.exit_code == STALE_KEPT and marked:
        shown = one_line(ended.output.combined.text())
        raise ImageError(f"Image {job.image} holds a result file that the run's user cannot delete: {shown}")
    if ended.exit_code == HOST_STARVED and marked:
        raise ContainerLost(
            "A process of the tests was killed because the Docker host ran out of memory, not the container;"
            " run fewer containers at once (--sandboxes) or give the host more memory"
        )
    if ended.exit_code == _KILLED and not (ended.stopped or out_of_memory or marked):
        raise ContainerLost("The container was killed from outside (engine restarted, host out of memory?)")
    reports, problems = await read_reports(engine, container, job.result_files, job.limits.report_bytes)
    return _execution(ended, state, reports, problems)


async def run_orders(engine: Engine, container: str, todo: bytes, limits: Limits) -> Ended:
    """Start a created container, give its script the orders, and see it to its end."""
    output = Output(limits.output_bytes)
    async with engine.attached(container) as stream:
        await engine.start(container)
        started = time.monotonic()
        drain = asyncio.create_task(_drain(stream, output))
        try:
            async with engine_call("give the container its orders", timeout_s=_KILL_S, running=True):
                await stream.write_in(todo)
            exit_code, stopped = await _see_to_its_end(engine, container, limits)
            duration_s = time.monotonic() - started
            # Process 1 is dead, so the stream ends by itself; an engine that forgets it must not hang us.
            await asyncio.wait({drain}, timeout=_LAST_OUTPUT_S)
        finally:
            await _cancelled(drain)
    if drain.done() and not drain.cancelled():
        drain.result()
    return Ended(exit_code=exit_code, stopped=stopped, duration_s=duration_s, output=output)


async def _see_to_its_end(engine: Engine, container: str, limits: Limits) -> tuple[int, str | None]:
    """The exit code, and the limit for which the container had to be killed."""
    end = asyncio.create_task(engine.wait(container))
    full = asyncio.create_task(_disk_full(engine, container, limits.disk_bytes))
    try:
        await asyncio.wait({end, full}, timeout=limits.timeout_s, return_when=asyncio.FIRST_COMPLETED)
        stopped = None
        if not end.done():
            stopped = "time"
            if full.done():
                full.result()
                stopped = "disk"
            if not await engine.kill(container):
                stopped = None
            async with engine_call("end the container", timeout_s=_KILL_S, running=True):
                await asyncio.shield(end)
        return end.result(), stopped
    finally:
        await _cancelled(end, full)


async def _disk_full(engine: Engine, container: str, limit: int) -> None:
    """Return when the container has written more than `limit` bytes to its own layer.

    Also when the engine can repeatedly not tell how much: it walks the layer's files, and only the code
    under test can make that impossible (with a path longer than PATH_MAX).
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
        # The engine counts file by file (3 us each): many small files must not keep it busy.
        pause_s = max(_DISK_CHECK_S, 5 * (time.monotonic() - asked))


async def _drain(stream: Stream, output: Output) -> None:
    # Never stops reading, since a full pipe would block the container; but endless output is read at a
    # pace that leaves the event loop to others (2.5 ms of CPU for a megabyte).
    due = _FREE_OUTPUT_BYTES
    async with engine_call("read the container's output", timeout_s=None, running=True):
        while (message := await stream.read_out()) is not None:
            output.feed(message.stream, message.data)
            if output.combined.total > due:
                due = output.combined.total + _PACED_OUTPUT_BYTES
                await asyncio.sleep(_OUTPUT_PAUSE_S)


async def _cancelled(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _execution(
    ended: Ended, state: Mapping[str, Any], reports: Mapping[str, bytes], problems: list[str]
) -> Execution:
    return Execution(
        exit_code=ended.exit_code,
        timed_out=ended.stopped == "time",
        out_of_memory=bool(state["State"]["OOMKilled"]),
        failed_limit="disk" if ended.stopped == "disk" else None,
        duration_s=ended.duration_s,
        output=ended.output.combined.text(),
        stdout=ended.output.stdout.text(),
        output_bytes=ended.output.combined.total,
        reports=reports,
        report_problems=tuple(problems),
        image_id=str(state["Image"]),
    )
