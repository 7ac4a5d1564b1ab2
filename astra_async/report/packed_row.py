"""A sample's result as one record of numbers: its fields, and the numbers that stand for words."""

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
AGENT_ENDS: tuple[AgentEnd | None, ...] = (None, *get_args(AgentEnd))  # None: no agent's
STATUSES: tuple[Status, ...] = ("scored", "no_solution")

# Fields that are packed as they are: counts, or 0, and numbers, or NaN, where nothing is recorded.
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
    ("reused", "B"),  # the verdict is another sample's: the tests did not run
    *((name, "B") for name in ("timed_out", "cost_estimated")),
    *((name, "I") for name in (*_COUNTS, "extra_tests", "dropped")),
    *((name, "d") for name in (*_TOKENS, *_NUMBERS)),
    # these six are numbers of texts in `packing.Columns.texts`
    *((name, "I") for name in ("repairs", "suspicions", "prompt", "image", "node", "returned_model")),
    ("solution", "Q"),  # leading 60 bits of solution_sha256; 0 without a solution
    ("outcomes", "I"),  # checksum of the outcomes in their order, to see equal answers graded differently
    ("verdict", "I"),  # number in `packing.Columns.verdicts`
    ("finished", "d"),  # seconds since 1970, NaN when not recorded
    ("offset", "Q"),
    ("length", "I"),
)
PACK = struct.Struct("=" + "".join(code for _, code in _ROW))
ROW_DTYPE = np.dtype([(name, f"={code}") for name, code in _ROW])
# Changes when the numbers of a row would mean something else; the last is raised by hand where `values` is.
ROW_MEANING = repr((_ROW, FAILURES, FINISHES, STATUSES, AGENT_ENDS, 1))
_NAN = float("nan")
_NO_AGENT = _NAN, _NAN, _NAN  # its steps and seconds
_AGENT_END_NUMBERS: Mapping[str | None, int] = {end: number for number, end in enumerate(AGENT_ENDS)}
_STATUS_NUMBERS = {status: number for number, status in enumerate(STATUSES)}
_FAILURE_NUMBERS = {failure: number for number, failure in enumerate(FAILURES)}
_FINISH_NUMBERS = {finish: number for number, finish in enumerate(FINISHES)}


def values(
    result: Result, tests: Outcomes, verdict: int, texts: Mapping[str, int]
) -> tuple[int | float, ...]:
    """The fields of a record after its place; `verdict` is the number of the tests' outcomes."""
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
    """A number of a record, NaN for what is not recorded, and for what is no finite number."""
    return _NAN if value is None or not math.isfinite(value) else value


def _seconds(text: str) -> float:
    """Seconds since 1970; NaN for what is no time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return _NAN
