"""Results of follow-up turns: the lines of turn_results.jsonl, joined with the first answers.

The *state* of a sample after turn r is the graded result of its files after that turn. An unusable answer
changes no files and therefore keeps the state. A sample that has ended (all tests passed, or the context is
full) keeps its state in later turns. If a turn has no result yet, its state and all later states are unknown.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from astra_async.report.packed_row import FAILURES, STATUSES, number_in
from astra_async.stats.spread import pass_at
from astra_async.types import TurnKey, is_last

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from astra_async.report.entries import Entry, Floats
    from astra_async.types import Failure

# Reasons for the end of a sample; see `Course.end`.
End = Literal["first", "later", "stalled", "oscillating", "out_of_turns", "broken_off", "missing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnState:
    """One graded answer of a sample.

    Attributes:
        usable: True if a solution could be read from the answer.
        passed: tests that passed, by name and occurrence of that name.
        total: number of expected tests.
        tokens: input and output tokens of the final attempt.
        cost_usd: None if no price is known.
        seconds: duration of the request and of the tests.
    """

    usable: bool
    failure: Failure | None
    passed: frozenset[tuple[str, int]]
    total: int
    solution: str
    tokens: float
    cost_usd: float | None
    seconds: float

    @property
    def solved(self) -> bool:
        """True if all tests passed."""
        return self.failure is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """All answers of one sample, with at most `most` follow-up turns; `problem` is an index."""

    problem: int
    most: int
    answers: tuple[TurnState, ...]

    @property
    def ended(self) -> bool:
        """True if no turn of the sample is missing."""
        return is_last(self.answers[-1].failure) or len(self.answers) > self.most

    def state(self, turn: int) -> TurnState | None:
        """Return the last usable answer up to and including a turn; None without one or if not `known`."""
        there = self.answers[: turn + 1] if self.known(turn) else ()
        return next((answer for answer in reversed(there) if answer.usable), None)

    def known(self, turn: int) -> bool:
        """Return True if the state after a turn is known."""
        return turn < len(self.answers) or self.ended

    @property
    def end(self) -> End:
        """Reason for the end of the sample.

        `first`, `later`: all tests passed, in the first or a later answer. `broken_off`: no further turn was
        possible, because the context was full. `missing`: a turn has no result yet. The other values mean
        that all turns were used: `stalled` if the last turn changed no test outcome, `oscillating` if a set
        of passed tests occurred again after a different set, `out_of_turns` otherwise.
        """
        if not self.ended:
            return "missing"
        if is_last(self.answers[-1].failure):
            solved: End = "first" if len(self.answers) == 1 else "later"
            return solved if self.answers[-1].solved else "broken_off"
        sets = [state.passed if (state := self.state(turn)) else None for turn in range(len(self.answers))]
        if len(sets) > 1 and sets[-1] == sets[-2]:
            return "stalled"
        changes = [each for place, each in enumerate(sets) if place == 0 or each != sets[place - 1]]
        return "oscillating" if len(set(changes)) < len(changes) else "out_of_turns"


@dataclass(frozen=True, slots=True, kw_only=True)
class Courses:
    """All samples of one entry with a first result, and their follow-up turns (at most `turns`)."""

    entry: Entry
    turns: int
    all: tuple[Course, ...]

    def complete(self, turn: int) -> bool:
        """Return True if no planned sample or turn is missing up to this turn."""
        return self.entry.complete and all(course.known(turn) for course in self.all)

    def scores(self, turn: int) -> Floats:
        """Return each problem's mean share of passed tests after a turn; NaN if no state is known."""
        return self._means(turn, lambda state: len(state.passed) / state.total)

    def solved(self, turn: int) -> Floats:
        """Return each problem's share of samples solved after a turn; NaN if no state is known."""
        return self._means(turn, lambda state: float(state.solved))

    @property
    def missing(self) -> list[tuple[str, str, str]]:
        """Model, format and problem of each sample with a missing turn."""
        entry = self.entry
        return [
            (entry.model, entry.format, entry.problem_ids[course.problem])
            for course in self.all
            if course.end == "missing"
        ]

    @property
    def last_score(self) -> float | None:
        """Mean score after the last follow-up turn, over problems with a known state; None without any."""
        scores = self.scores(self.turns)
        known = scores[~np.isnan(scores)]
        return math.fsum(known) / len(known) if len(known) else None

    def blind(self, turn: int) -> Floats:
        """Return each problem's unbiased pass@(turn + 1) of first answers; NaN with too few answers."""
        pairs = zip(self.entry.valid.tolist(), self.entry.perfect.tolist(), strict=True)
        return np.array([pass_at(turn + 1, k, c) if k > turn else np.nan for k, c in pairs])

    def _means(self, turn: int, worth: Any) -> Floats:
        sums, counts = np.zeros(len(self.entry.valid)), np.zeros(len(self.entry.valid))
        for course in self.all:
            if course.known(turn):
                state = course.state(turn)
                sums[course.problem] += worth(state) if state else 0.0
                counts[course.problem] += 1
        with np.errstate(invalid="ignore"):
            return sums / np.where(counts > 0, counts, np.nan)


def courses_of(entries: Sequence[Entry]) -> tuple[Courses, ...]:
    """Return the courses of entries with follow-up turns.

    If runs of an entry have different numbers of turns, the smallest is used.
    """
    found = []
    for entry in entries:
        turns = min(run.settings.turns for run, _ in entry.parts)
        if turns and entry.summary.valid:
            found.append(Courses(entry=entry, turns=turns, all=tuple(_courses(entry, turns))))
    return tuple(found)


def _courses(entry: Entry, turns: int) -> Iterator[Course]:
    for run, rows in entry.rows_by_run():
        for row in rows:
            problem = run.problems[row["problem"]]
            key = entry.model, entry.format, problem, int(row["sample"])
            later = [run.turns.get(TurnKey(*key, turn)) for turn in range(1, turns + 1)]
            answers = [_answer(run.line(row)) if any(later) else _answer_of(row)]
            for line in later:
                if line is None or is_last(answers[-1].failure):
                    break
                answers.append(_answer(line))
            yield Course(problem=entry.places[problem], most=turns, answers=tuple(answers))


def _answer(line: Mapping[str, Any]) -> TurnState:
    usage = line.get("usage") or {}
    seen: defaultdict[str, int] = defaultdict(int)
    passed = set()
    for test in line.get("tests", ()):
        seen[test["name"]] += 1
        if test["outcome"] == "passed":
            passed.add((test["name"], seen[test["name"]]))
    return TurnState(
        usable=line["status"] == "scored",
        failure=line["failure"],
        passed=frozenset(passed) or _numbered(line["passed"]),
        total=line["total"],
        solution=line.get("solution_sha256", ""),
        tokens=(usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0),
        cost_usd=_usd(number_in(line.get("cost_usd"))),
        seconds=(line.get("latency_s") or 0.0) + line.get("test_s", 0.0),
    )


def _answer_of(row: np.void) -> TurnState:
    """Return a first answer without follow-up turns from its packed row.

    The names of passed tests are not needed then, so `passed` has numbered placeholders.
    """
    tokens = np.nan_to_num([row["input_tokens"], row["output_tokens"]])
    return TurnState(
        usable=STATUSES[row["status"]] == "scored",
        failure=FAILURES[row["failure"]],
        passed=_numbered(int(row["passed"])),
        total=int(row["total"]),
        solution="",
        tokens=float(tokens.sum()),
        cost_usd=_usd(float(row["cost_usd"])),
        seconds=float(np.nan_to_num(row["latency_s"]) + row["test_s"]),
    )


def _usd(cost: float) -> float | None:
    return None if math.isnan(cost) else cost


def _numbered(passed: int) -> frozenset[tuple[str, int]]:
    return frozenset(("", number) for number in range(passed))
