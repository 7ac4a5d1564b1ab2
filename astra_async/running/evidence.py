"""What a run of the tests leaves for people to read: messages and output, fit for a record.

Both come out of a container: they are cut to a length and masked like other foreign text (see `redaction`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from astra_async.redaction import mask
from astra_async.report_text import MAX_MESSAGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from astra_async.testing.verdict import Examined
    from astra_async.types import NamedOutcome

MAX_OUTPUT_BYTES = 64 * 1024
LEFT_OUT = " bytes of output left out ...]"
MAX_MESSAGES = 100_000  # characters of one sample's messages together
_MARGIN = 4096  # characters masked beyond the cut, so that no half of a key is left there
_LONG = 8_000  # characters to mask, beyond which it leaves the event loop: about 1 ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The expected tests with their messages; head and tail of the output, and the bytes of all of it.

    `stderr_lines` are ranges of lines (first, behind the last) of the output that came by standard error.
    """

    tests: tuple[NamedOutcome, ...]
    output: str = ""
    output_bytes: int = 0
    stderr_lines: tuple[tuple[int, int], ...] = ()


async def evidence_of(examined: Examined, *, with_output: bool) -> Evidence:
    """What is worth keeping of a scored run."""
    output = examined.tested.execution.output if with_output else ""
    size = min(len(output), MAX_OUTPUT_BYTES) + sum(len(test.message) for test in examined.verdict.tests)
    if size > _LONG:
        return await asyncio.to_thread(_evidence, examined, output)
    return _evidence(examined, output)


def _evidence(examined: Examined, output: str) -> Evidence:
    execution = examined.tested.execution
    kept = head_and_tail(output, execution.output_bytes)
    is_whole = len(output.encode(errors="replace")) <= MAX_OUTPUT_BYTES
    return Evidence(
        tests=tuple(_masked_tests(examined.verdict.tests)),
        output=kept,
        output_bytes=execution.output_bytes,
        stderr_lines=stderr_lines(kept, mask(execution.stdout)) if is_whole else (),
    )


def stderr_lines(output: str, stdout: str) -> tuple[tuple[int, int], ...]:
    """Which lines of an output are none of standard output's, as ranges; none where that cannot be told.

    Both streams come as the machine had time for them: only apart are they the same in every run.
    """
    left = deque(stdout.split("\n"))
    ranges: list[tuple[int, int]] = []
    for number, line in enumerate(output.split("\n")):
        if left and line == left[0]:
            left.popleft()
        elif ranges and ranges[-1][1] == number:
            ranges[-1] = (ranges[-1][0], number + 1)
        else:
            ranges.append((number, number + 1))
    return () if any(left) else tuple(ranges)


def stderr_last(output: str, ranges: Iterable[Sequence[int]]) -> str:
    """An output with the lines of standard error behind all others, blank ones among them left out."""
    lines, late = output.split("\n"), {at for first, end in ranges for at in range(first, end)}
    others = [line for at, line in enumerate(lines) if at not in late]
    return "\n".join([*others, *(lines[at] for at in sorted(late) if at < len(lines) and lines[at].strip())])


def _masked_tests(tests: Iterable[NamedOutcome]) -> Iterator[NamedOutcome]:
    """With messages masked, as long as there is room for them: a project may have thousands of tests."""
    room = MAX_MESSAGES
    for test in tests:
        message = mask(test.message)[: min(room, MAX_MESSAGE)] if test.message and room > 0 else ""
        room -= len(message)
        yield test if message == test.message else msgspec.structs.replace(test, message=message)


def head_and_tail(output: str, output_bytes: int) -> str:
    """An output as it came, keys masked, with a line for its middle where it has over MAX_OUTPUT_BYTES.

    `output_bytes` counts what the program printed, of which `output` may be head and tail already.
    """
    if len(output) <= MAX_OUTPUT_BYTES:
        masked = mask(output)
        if len(masked.encode(errors="replace")) <= MAX_OUTPUT_BYTES:
            return masked
    half = (MAX_OUTPUT_BYTES - len(_left_out(2**63))) // 2
    head = _masked(output, half).encode(errors="replace")[:half].decode(errors="ignore")
    tail = _masked(output, -half).encode(errors="replace")[-half:].decode(errors="ignore")
    return head + _left_out(max(0, output_bytes - 2 * half)) + tail


def _masked(output: str, length: int) -> str:
    """The beginning, or the end where `length` is negative, with so much more that no key in it is cut.

    What is cut lies within the margin at the end that is not kept, however much masking takes away.
    """
    most = abs(length) + _MARGIN
    while True:
        masked = mask(output[:most] if length > 0 else output[-most:])
        if len(masked) >= abs(length) + _MARGIN or most >= len(output):
            return masked
        most *= 2


def _left_out(count: int) -> str:
    return f"\n[... {count}{LEFT_OUT}\n"
