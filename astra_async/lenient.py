"""The slow repairs of an answer, in a process of their own with a deadline.

A repairing parser can take seconds on a few hundred kilobytes of broken JSON; on the event loop it
would stall every other sample. The helper is started for the answers that need it (a few in a
hundred), gets the answer on standard input and is bounded in CPU time and memory, so that the outcome
does not depend on how busy the machine is.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from typing import Any, cast, get_args

from astra_async.runlog import decode, encode
from astra_async.solution import parse_leniently
from astra_async.types import FinishReason, Format, Solution, Unusable

CPU_S = 10
MEMORY_BYTES = 2 * 1024**3
WALL_S = 120.0  # only a machine that is all but standing still gets here


class LenientParser:
    """Runs `solution.parse_leniently` in a helper process, one answer at a time."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Semaphore(1)

    async def parse(self, text: str, fmt: Format, finish_reason: FinishReason) -> Solution | Unusable:
        """The lenient parser's outcome; running out of time or memory is a format error."""
        async with self._one_at_a_time:
            answer = await _ask_helper(encode([text, fmt, finish_reason]))
        if answer is None:
            return Unusable(
                failure="format_error",
                reason=f"repairing the answer took over {CPU_S} s of CPU time or too much memory",
            )
        return _decoded(decode(answer))


async def _ask_helper(request: bytes) -> bytes | None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-m", "astra_async.lenient"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},  # no key reaches the helper
    )
    try:
        async with asyncio.timeout(WALL_S):
            answer, _ = await process.communicate(request)
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return answer if process.returncode == 0 and answer else None


def _decoded(record: dict[str, Any]) -> Solution | Unusable:
    repairs = tuple(record.pop("repairs"))
    if "files" in record:
        return Solution(files=record["files"], repairs=repairs)
    return Unusable(**record, repairs=repairs)


def _serve() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    text, fmt, finish_reason = decode(sys.stdin.buffer.read())
    if fmt not in get_args(Format):
        raise SystemExit(2)
    outcome = parse_leniently(text, cast("Format", fmt), finish_reason)
    sys.stdout.buffer.write(encode(outcome))


if __name__ == "__main__":
    _serve()
