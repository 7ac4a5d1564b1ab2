"""Test messages and output of a graded sample, prepared for recording.

Both come from a container, so they are truncated, and secrets in them are masked (see `redaction`).
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
MAX_MESSAGES = 100_000  # characters, for all messages of one sample
_MARGIN = 4096  # characters masked beyond the cut, so that a key at the cut is masked completely
_LONG = 8_000  # characters; masking more takes over 1 ms and runs in a thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Recorded messages and output of one test run.

    Attributes:
        tests: the expected tests with their messages.
        output: head and tail of the output.
        output_bytes: size of the full output.
        stderr_lines: half-open ranges of output lines that came from standard error.
    """

    tests: tuple[NamedOutcome, ...]
    output: str = ""
    output_bytes: int = 0
    stderr_lines: tuple[tuple[int, int], ...] = ()


async def evidence_of(examined: Examined, *, with_output: bool) -> Evidence:
    """Return the evidence of a scored test run; long texts are masked in a thread."""
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
    """Return half-open ranges of output lines that came from standard error; empty if unknown.

    The streams are interleaved differently in every run, so only separate streams are reproducible.
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
    """Move the lines of standard error behind all other lines, and drop blank lines among them."""
    lines, late = output.split("\n"), {at for first, end in ranges for at in range(first, end)}
    others = [line for at, line in enumerate(lines) if at not in late]
    return "\n".join([*others, *(lines[at] for at in sorted(late) if at < len(lines) and lines[at].strip())])


def _masked_tests(tests: Iterable[NamedOutcome]) -> Iterator[NamedOutcome]:
    """Mask and truncate the messages; limit their total length, because a project may have many tests."""
    room = MAX_MESSAGES
    for test in tests:
        message = mask(test.message)[: min(room, MAX_MESSAGE)] if test.message and room > 0 else ""
        room -= len(message)
        yield test if message == test.message else msgspec.structs.replace(test, message=message)


def head_and_tail(output: str, output_bytes: int) -> str:
    """Mask keys in an output; if it exceeds MAX_OUTPUT_BYTES, replace its middle by a note.

    `output_bytes` is the size of the full output, because `output` may already be truncated.
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
    """Return the masked start of an output (the masked end if `length` is negative), plus a margin.

    Invariant: a key that the truncation cuts in two is within the margin, which the caller drops. Masking
    shortens the text, so the input is extended until the result is long enough.
    """
    most = abs(length) + _MARGIN
    while True:
        masked = mask(output[:most] if length > 0 else output[-most:])
        if len(masked) >= abs(length) + _MARGIN or most >= len(output):
            return masked
        most *= 2


def _left_out(count: int) -> str:
    return f"\n[... {count}{LEFT_OUT}\n"
