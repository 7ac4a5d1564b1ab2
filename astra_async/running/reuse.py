"""Recorded final lines of earlier invocations, and reuse of verdicts (`--reuse-identical`)."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from astra_async.testing.timeouts import TIMEOUT_REPEATED
from astra_async.testing.verdict import Solved
from astra_async.types import REUSED, is_last
from astra_async.types.records import read_key, read_turn_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from astra_async.metrics import Metrics
    from astra_async.running.directory import RunDirectory
    from astra_async.types import AnswerKey, SampleKey


@dataclass(eq=False, kw_only=True)
class Recorded:
    """Data collected from the recorded final lines when a run directory is opened.

    Attributes:
        repeated: solutions that were tested again after a timeout.
        turns_repeated: the same for solutions of follow-up turns.
        ended: samples and follow-up turns that no further turn may follow.
        first: the first sample with each solution; empty without `reuse_identical`.
    """

    reuse_identical: bool
    turns: bool = False

    def __post_init__(self) -> None:
        self.repeated: list[Solved] = []
        self.turns_repeated: list[Solved] = []
        self.ended: set[AnswerKey] = set()
        self.first: dict[Solved, SampleKey] = {}
        self._counted: dict[AnswerKey, tuple[Any, ...]] = {}

    def add(self, record: Mapping[str, Any], *, is_turn: bool = False) -> None:
        """Add a final line of a sample or a follow-up turn."""
        solved = Solved(record["problem_id"], record.get("solution_sha256", ""))
        if TIMEOUT_REPEATED in record.get("repairs", ()):
            (self.turns_repeated if is_turn else self.repeated).append(solved)
        if self.turns and is_last(record["failure"]):
            self.ended.add(read_turn_key(record) if is_turn else read_key(record))
        is_scored = record["status"] == "scored"
        if is_turn:
            return
        names = ("model", "format", "problem_id", "passed", "total", "status", "failure")
        # In directories of older versions, a key may have two lines; the last one counts.
        reward = None if record.get("rewards") is None else record["score"]
        self._counted[read_key(record)] = (*map(record.__getitem__, names), reward)
        if self.reuse_identical and is_scored and not record.get("note", "").startswith(REUSED):
            self.first.setdefault(solved, read_key(record))

    def count_into(self, metrics: Metrics) -> None:
        """Add the collected scores to `metrics`, and free their memory."""
        for *counted, status, failure, reward in self._counted.values():
            metrics.add(*counted, reward=reward, status=status, failure=failure)
        self._counted.clear()


class EarlierVerdicts:
    """First verdict on each solution of a run, for reuse by identical solutions.

    Solutions are identical if the files applied to the problem's project are equal, regardless of the model.
    Timeouts are not reused, because a busy machine may have caused them. `first` contains the solutions
    graded by earlier invocations. A follow-up turn can reuse the verdict of a sample or of another turn. A
    sample never reuses the verdict of a turn, so its final line does not depend on whether the run has turns.
    """

    def __init__(self, directory: RunDirectory, first: Mapping[Solved, SampleKey]) -> None:
        self._directory = directory
        self._first: dict[Solved, AnswerKey] = dict(first)
        self._first_turn: dict[Solved, AnswerKey] = {}
        self._locks: dict[Solved, asyncio.Lock] = {}

    @asynccontextmanager
    async def equal(
        self, key: AnswerKey, solution_sha256: str, release: Callable[[], Awaitable[None]]
    ) -> AsyncIterator[Mapping[str, Any] | None]:
        """Yield the final line of an identical solution; if None, the caller grades and records this one.

        If an identical solution is being graded, call `release` to free the caller's parsing slot, and wait
        for the verdict.
        """
        solved = Solved(key.problem_id, solution_sha256)
        lock = self._locks.setdefault(solved, asyncio.Lock())
        if lock.locked():
            await release()
        async with lock:
            first = self._first.get(solved) or (self._first_turn.get(solved) if key.turn else None)
            record = self._directory.result(first) if first else None
            if record is not None and record["failure"] == "timeout":
                record = None
            yield record
            if record is None:
                (self._first_turn if key.turn else self._first)[solved] = key


def note_of_reuse(key: AnswerKey, first: SampleKey) -> str:
    """Return the note for a final line with a reused verdict, naming the graded sample."""
    other = (first.model, first.format) != (key.model, key.format)
    return f"{REUSED}{first.sample} reused" + (f" ({first.model}, {first.format})" if other else "")
