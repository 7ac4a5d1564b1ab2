"""What earlier calls of a run recorded, and the verdicts of identical solutions.

With `--reuse-identical` the same files are graded once.
"""

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
    """Gathers, in the one pass that opening makes over the final lines, all that a further call needs.

    Attributes:
        repeated: solutions whose time-out was repeated; `turns_repeated` those of turns.
        ended: samples and turns after whose final line nothing more is said to the model.
        first: the first sample with each solution; empty unless such verdicts are used again.
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
        """One final line, of a sample or of a turn."""
        solved = Solved(record["problem_id"], record.get("solution_sha256", ""))
        if TIMEOUT_REPEATED in record.get("repairs", ()):
            (self.turns_repeated if is_turn else self.repeated).append(solved)
        if self.turns and is_last(record["failure"]):
            self.ended.add(read_turn_key(record) if is_turn else read_key(record))
        is_scored = record["status"] == "scored"
        if is_turn:
            return
        names = ("model", "format", "problem_id", "passed", "total", "status", "failure")
        # A key of an older run directory may have two lines, of which the last counts.
        self._counted[read_key(record)] = tuple(map(record.__getitem__, names))
        if self.reuse_identical and is_scored and not record.get("note", "").startswith(REUSED):
            self.first.setdefault(solved, read_key(record))

    def count_into(self, metrics: Metrics) -> None:
        """Add every line; what was gathered for this is given up."""
        for *counted, status, failure in self._counted.values():
            metrics.add(*counted, status=status, failure=failure)
        self._counted.clear()


class EarlierVerdicts:
    """The first verdict on each solution of a run; a solution that is being graded is waited for.

    Solutions are the same when the files applied to the problem's project are, whoever wrote them. A
    time-out is not used again: it may have been the machine's. `first` is what earlier calls graded. A turn
    uses a sample's verdict again, or another turn's; a sample never a turn's: its line is the same without.
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
        """The final line of an equal sample, or None: then this one is graded and recorded within.

        `release` gives back the turn to read while an equal one is graded, so that others are read.
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
    """The note of a line whose verdict is another sample's, or a turn's of another."""
    other = (first.model, first.format) != (key.model, key.format)
    return f"{REUSED}{first.sample} reused" + (f" ({first.model}, {first.format})" if other else "")
