"""Incremental packing of result lines into arrays, one fixed-size row for each sample.

A million lines take about 150 MB. Texts are interned; answers and output stay on disk and are read by
`offset` and `length`. Every planned sample has a fixed row in one array ordered by (model and format,
problem, sample), so no computed value depends on the order of the lines.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from astra_async.errors import ConflictError
from astra_async.files import read_at, scan
from astra_async.metrics import REWARD_PARTS, Metrics, Sums, planned_samples
from astra_async.report.packed_row import FAILURES, PACK, ROW_DTYPE, STATUSES, values
from astra_async.types import SampleKey
from astra_async.types.records import Disbelieved, Flaw, counting, read_result, repeated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from astra_async.report.run_settings import RunSettings
    from astra_async.types import AnswerKey, Failure, Result, Status

_OUTCOMES: Mapping[str, tuple[Status | Failure | None, ...]] = {"status": STATUSES, "failure": FAILURES}
_RECORD = np.dtype((np.void, ROW_DTYPE.itemsize))

Place = tuple[int, int, int]  # numbers of pair, problem and sample


class _Numbers(dict[str, int]):
    """Map from texts to numbers; a new text gets the next number at its first lookup."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


class Columns:
    """A run's result lines as arrays; lines may be added while other code reads the arrays.

    Attributes:
        places: one packed row for each sample, indexed by pair, problem and sample; `present` is 1 if its
        line
            was read.
        planned: mask of planned samples by pair and sample. pairs, problems, texts: numbers used in the rows,
        by name. verdicts: by number in the field `verdict`: problem number, names of its tests, and passed
        tests (bit i
            for the i-th test). Number 0 is a sample without tests.
        started_at, finished_at: earliest start and latest end of the samples, as recorded.
    """

    def __init__(self, settings: RunSettings, path: Path) -> None:
        pairs = [(model, answer_format) for model in settings.models for answer_format in settings.formats]
        self.path = path
        self.pairs = {pair: number for number, pair in enumerate(pairs)}
        self.problems = {problem: number for number, problem in enumerate(settings.problems)}
        self.samples = settings.samples
        self.texts = _Numbers({"": 0})
        self.verdicts: list[tuple[int, tuple[str, ...], int]] = [(-1, (), 0)]
        self.update_plan(settings)
        self._metrics = Metrics(self._plan)
        self._totals: dict[int, int] = {}
        self.started_at = ""
        self.finished_at = ""
        self._settings_warnings = settings.warnings
        self._warnings: list[str] = []
        self._disbelieved = Disbelieved("results.jsonl")
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}  # interned: many verdicts share their names
        self._numbers: dict[tuple[int, tuple[str, ...], int], int] = {}
        # np.zeros allocates no memory until a row is written; a plan may be much larger than the results.
        shape = len(self.pairs), len(self.problems), settings.samples
        places = np.zeros(math.prod(shape) * PACK.size, dtype=np.uint8)
        self._buffer = memoryview(places)  # type: ignore[arg-type]  # numpy's stubs lack the buffer
        self.places = places.view(ROW_DTYPE).reshape(shape)
        self._unplanned = 0
        self._first_unplanned = ""

    def update_plan(self, settings: RunSettings) -> None:
        """Update the planned samples of each model, which `--until` changes with each round."""
        samples = [planned_samples(settings.deciding, model, settings.samples) for model, _ in self.pairs]
        plan = zip(self.pairs, samples, strict=True)
        self._plan = {pair: dict.fromkeys(self.problems, k) for pair, k in plan}
        self.planned = np.arange(settings.samples) < np.array(samples, dtype=int).reshape(-1, 1)

    def read(self, number: int, offset: int, line: bytes) -> None:
        """Pack one line; an invalid line becomes a warning.

        Raises ConflictError if the line contradicts an earlier line or the plan; the line is not packed then.
        """
        try:
            result, tests = read_result(line, self.path, number)
            place = self.place(result)
            if place is None:
                self._note_unplanned(result.key)
                return
            at = ((place[0] * len(self.problems) + place[1]) * self.samples + place[2]) * PACK.size
            if self._buffer[at] and not self._replaces_first(number, line, place):
                return
            verdict = self._verdict(place[1], tests.names, tests.passed) if tests.names else 0
            fields = values(result, tests, verdict, self.texts)
            packed = PACK.pack(1, *place, *fields, offset, len(line))
            if self._totals.get(place[1]) != result.total:
                self._note_total(result, place[1])
            self._buffer[at : at + PACK.size] = packed
            self._note_times(result)
        except Flaw as flaw:
            self._disbelieved.add(number, flaw, line)
        except (ValueError, OverflowError, struct.error) as error:
            self._disbelieved.add(number, Flaw(f"malformed ({error})"), line)

    def place(self, key: AnswerKey | Result) -> Place | None:
        """Return the index of a sample in `places`; None if the sample is not planned."""
        pair, problem = self.pairs.get((key.model, key.format)), self.problems.get(key.problem_id)
        if pair is not None and problem is not None and key.sample < self.samples:
            return pair, problem, key.sample
        return None

    def warnings(self) -> Iterator[str]:
        """Yield one line for each kind of ignored input."""
        yield from self._settings_warnings
        yield from self._warnings
        yield from self._disbelieved.warnings(self._is_present)
        if self._unplanned:
            yield (
                f"results.jsonl: {self._unplanned} lines are ignored because run.json does not plan their "
                f"samples (first: {self._first_unplanned})"
            )

    def rows(self, *, in_place: bool = False) -> NDArray[np.void]:
        """Return the rows of the lines read, sorted by pair, problem and sample.

        The result is a view if no sample is missing. With `in_place` the rows are compacted in place to save
        memory, and this object must not be used afterwards.
        """
        rows: NDArray[np.void] = self.places.reshape(-1)
        present = self.places["present"] == 1
        if not in_place or bool(present.all()):
            return rows if bool(present.all()) else self.places[present]
        count = 0
        for pieces in self.rows_by_pair():
            rows[count : count + len(pieces)].view(_RECORD)[:] = pieces.view(_RECORD)
            count += len(pieces)
        return rows[:count]

    def rows_by_pair(self) -> Iterator[NDArray[np.void]]:
        """Yield copies of the rows of the lines read, one array for each pair."""
        for places in self.places:
            yield places[places["present"] == 1]

    def plan(self) -> list[Any]:
        """Return the meaning of the numbers of pairs, problems and samples, as JSON values."""
        return [[list(pair) for pair in self.pairs], list(self.problems), self.samples]

    def state(self) -> dict[str, Any]:
        """Return everything except the rows, as JSON values for `restore`."""
        return {
            "texts": list(self.texts),
            "verdicts": self.verdicts,
            "totals": list(self._totals.items()),
            "times": [self.started_at, self.finished_at],
            "warnings": self._warnings,
            "disbelieved": self._disbelieved.noted,
            "unplanned": [self._unplanned, self._first_unplanned],
        }

    def put(self, rows: NDArray[np.void]) -> None:
        """Store rows that another process packed from the same lines.

        Raises ValueError if the plan was different.
        """
        key = tuple(rows[name].astype(np.int64) for name in ("pair", "problem", "sample"))
        numbers = np.ravel_multi_index(key, self.places.shape)
        # Copied as blocks of bytes, because numpy copies structured rows field by field.
        self.places.reshape(-1).view(_RECORD)[numbers] = rows.view(_RECORD)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the `state` of another reader of the same lines, before any line is read.

        Raises LookupError, TypeError or ValueError for an invalid state; this object must not be used then.
        """
        self.texts = _Numbers({str(text): number for number, text in enumerate(state["texts"])})
        for problem, names, passed in state["verdicts"][1:]:
            self._verdict(problem, tuple(names), passed)
        for problem, total in state["totals"]:
            self._totals[problem] = total
            self._metrics.check_total(list(self.problems)[problem], total, "")
        self.started_at, self.finished_at = state["times"]
        self._warnings += state["warnings"]
        self._disbelieved.noted = [
            (number, why, SampleKey(*key) if key else None) for number, why, key in state["disbelieved"]
        ]
        self._unplanned, self._first_unplanned = state["unplanned"]

    def metrics(self) -> Metrics:
        """Return the paper's metrics over the lines read."""
        metrics = Metrics(self._plan)
        present, rewarded = self.places["present"] == 1, self.places["rewarded"] == 1
        millionths = np.rint(self.places["score"] * REWARD_PARTS)
        passed = np.where(rewarded, millionths, self.places["passed"]).astype(np.int64)
        perfect = present & (self.places["passed"] == self.places["total"])
        parts = np.where(rewarded.any(axis=2), REWARD_PARTS, 1).tolist()
        sums = [each.sum(axis=2).tolist() for each in (present, passed, passed * passed, perfect)]
        for (pair, number), (problem, place) in product(self.pairs.items(), self.problems.items()):
            counted = Sums(*(each[number][place] for each in sums))
            if counted.valid:
                counted.parts = parts[number][place]
                metrics.add_sums(pair, problem, self._totals[place], counted)
        for (pair, number), (name, words) in product(self.pairs.items(), _OUTCOMES.items()):
            counts = np.bincount(self.places[name][number][present[number]], minlength=len(words)).tolist()
            metrics.add_outcomes(pair, dict(zip(words, counts, strict=True)))
        return metrics

    def outcomes(self) -> dict[tuple[str, tuple[str, ...]], Counter[int]]:
        """Return by (problem, names of its tests) the number of samples for each set of passed tests."""
        found: dict[tuple[str, tuple[str, ...]], Counter[int]] = {}
        names = list(self.problems)
        often = np.bincount(self.places["verdict"].reshape(-1), minlength=len(self.verdicts)).tolist()
        for (problem, tests, passed), count in zip(self.verdicts[1:], often[1:], strict=True):
            found.setdefault((names[problem], tests), Counter())[passed] = count
        return found

    def _note_unplanned(self, key: AnswerKey) -> None:
        self._unplanned += 1
        self._first_unplanned = self._first_unplanned or str(key)

    def _is_present(self, key: AnswerKey) -> bool:
        place = self.place(key)
        return place is not None and bool(self.places[place]["present"])

    def _note_total(self, result: Result, problem: int) -> None:
        """Invariant: all packed lines of a problem count the same number of tests."""
        try:
            self._metrics.check_total(result.problem_id, result.total, f"{result.model}/{result.format}")
        except ConflictError as error:
            raise ConflictError(f"{self.path}: {error}") from error
        self._totals[problem] = result.total

    def _note_times(self, result: Result) -> None:
        started, finished = result.started_at, result.finished_at
        if started and (not self.started_at or started < self.started_at):
            self.started_at = started
        self.finished_at = max(self.finished_at, finished)

    def _verdict(self, problem: int, names: tuple[str, ...], passed: int) -> int:
        verdict = problem, self._names.setdefault(names, names), passed
        number = self._numbers.setdefault(verdict, len(self.verdicts))
        if number == len(self.verdicts):
            self.verdicts.append(verdict)
        return number

    def _replaces_first(self, number: int, line: bytes, place: Place) -> bool:
        """Return True if a second line of a sample replaces the first.

        Return False and add a warning if the second line repeats the first. Raises ConflictError if the lines
        contradict each other.
        """
        row = self.places[place]
        offset = int(row["offset"])
        first = read_at(self.path, offset, int(row["length"]))
        counts = counting(first, line)
        if counts is None:
            earlier = next(line for line, there, _ in scan(self.path) if there == offset)
            self._warnings.append(repeated(self.path, (earlier, number), (first, line)))
        return counts is line
