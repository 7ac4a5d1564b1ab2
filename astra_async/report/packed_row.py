"""Binary layout of a packed result row, and the numbers that encode statuses, failures and other words."""

from __future__ import annotations

import math
import struct
from datetime import datetime
from typing import TYPE_CHECKING, get_args

import numpy as np

from astra_async.types import REUSED, AgentEnd, Failure, FinishReason, Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import Result
    from astra_async.types.records import Outcomes

FAILURES: tuple[Failure | None, ...] = (None, *get_args(Failure))
FINISHES: tuple[FinishReason, ...] = get_args(FinishReason)
AGENT_ENDS: tuple[AgentEnd | None, ...] = (None, *get_args(AgentEnd))  # None: not an agent's sample
STATUSES: tuple[Status, ...] = ("scored", "no_solution")

# Fields packed without encoding. An unrecorded count is 0; an unrecorded number is NaN.
_COUNTS = ("attempts", "input_characters", "output_characters", "files_changed", "lines_written")
_TOKENS = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
_NUMBERS = ("exit_code", "cost_usd", "ttft_s", "latency_s", "test_s", "steps", "model_s", "own_s")
_ROW: tuple[tuple[str, str], ...] = (  # name and type of each packed field, in the order of `values`
    ("present", "B"),
    *((name, "I") for name in ("pair", "problem", "sample", "passed", "total")),
    ("score", "d"),
    ("rewarded", "B"),  # the score is a task's reward
    *((name, "B") for name in ("status", "failure", "finish")),
    ("agent_end", "B"),  # number in AGENT_ENDS
    ("reused", "B"),  # 1 if the verdict was copied from an equal solution, without running tests
    *((name, "B") for name in ("timed_out", "cost_estimated")),
    *((name, "I") for name in (*_COUNTS, "extra_tests", "dropped")),
    *((name, "d") for name in (*_TOKENS, *_NUMBERS)),
    # The next six fields are numbers of texts in `packing.Columns.texts`.
    *((name, "I") for name in ("repairs", "suspicions", "prompt", "image", "node", "returned_model")),
    ("solution", "Q"),  # leading 60 bits of solution_sha256; 0 without a solution
    (
        "outcomes",
        "I",
    ),  # checksum of the outcomes in their order, to detect equal solutions graded differently
    ("verdict", "I"),  # number in `packing.Columns.verdicts`
    ("finished", "d"),  # seconds since 1970; NaN if not recorded
    ("offset", "Q"),
    ("length", "I"),
)
PACK = struct.Struct("=" + "".join(code for _, code in _ROW))
ROW_DTYPE = np.dtype([(name, f"={code}") for name, code in _ROW])
# Compared with a stored value, so that files with another meaning of the numbers are not read. The last
# number must be increased whenever `values` changes.
ROW_MEANING = repr((_ROW, FAILURES, FINISHES, STATUSES, AGENT_ENDS, 1))
_NAN = float("nan")
_NO_AGENT = _NAN, _NAN, _NAN  # steps, model_s, own_s
_AGENT_END_NUMBERS: Mapping[str | None, int] = {end: number for number, end in enumerate(AGENT_ENDS)}
_STATUS_NUMBERS = {status: number for number, status in enumerate(STATUSES)}
_FAILURE_NUMBERS = {failure: number for number, failure in enumerate(FAILURES)}
_FINISH_NUMBERS = {finish: number for number, finish in enumerate(FINISHES)}


def values(
    result: Result, tests: Outcomes, verdict: int, texts: Mapping[str, int]
) -> tuple[int | float, ...]:
    """Return the fields of a row from `passed` to `finished`; `verdict` is a number in `Columns.verdicts`."""
    usage, agent = result.usage, result.agent
    return (
        result.passed,
        result.total,
        result.exact_score,
        result.rewards is not None,
        _STATUS_NUMBERS[result.status],
        _FAILURE_NUMBERS[result.failure],
        _FINISH_NUMBERS[result.finish_reason],
        _AGENT_END_NUMBERS.get(agent.end, 0) if agent else 0,
        result.note.startswith(REUSED),
        result.timed_out,
        result.cost_estimated,
        result.attempts,
        result.input_characters,
        result.output_characters,
        result.files_changed,
        result.lines_written,
        len(result.extra_tests),
        len(result.dropped),
        *[
            _NAN if value is None else value
            for value in (
                usage.input_tokens,
                usage.cached_tokens,
                usage.output_tokens,
                usage.reasoning_tokens,
                result.exit_code,
                result.cost_usd,
                result.ttft_s,
                result.latency_s,
            )
        ],
        result.test_s,
        *((agent.steps, agent.model_s, agent.own_s) if agent else _NO_AGENT),
        texts[";".join(result.repairs)] if result.repairs else 0,
        texts[";".join(result.suspicions)] if result.suspicions else 0,
        texts[result.prompt_sha256],
        texts[result.image_id],
        texts[result.node],
        texts[result.returned_model],
        int(result.solution_sha256[:15], 16) if result.solution_sha256 else 0,
        tests.checksum,
        verdict,
        _seconds(result.finished_at),
    )


def number_in(value: float | None) -> float:
    """Return a recorded number; NaN if the number is missing or not finite."""
    return _NAN if value is None or not math.isfinite(value) else value


def _seconds(text: str) -> float:
    """Parse an ISO 8601 time into seconds since 1970; NaN for an invalid text."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return _NAN
