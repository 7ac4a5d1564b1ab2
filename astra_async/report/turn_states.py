"""How samples went on after feedback: the lines of turn_results.jsonl beside the first answers.

A sample's *state* after turn r is what the files are worth that stand then. An answer that cannot be used
changes none of them, and a sample that has ended (all tests passed, or nothing more could be said) stays as
it is. The state of a turn that is missing is not known, and neither is any after it: nothing is put in its
place.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from astra_async.report.packed_row import FAILURES, STATUSES, number_in
from astra_async.report.packing import lines_of
from astra_async.stats.spread import pass_at
from astra_async.types import TurnKey, is_last
from astra_async.types.records import (
    Disbelieved,
    Flaw,
    counting,
    read_line,
    read_result,
    read_turn_key,
    repeated,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from astra_async.report.entries import Entry, Floats
    from astra_async.report.load import Run
    from astra_async.types import AnswerKey, Failure

TURN_RESULTS = "turn_results.jsonl"
# How a sample comes to its end; see `Course.end`.
End = Literal["first", "later", "stalled", "oscillating", "out_of_turns", "broken_off", "missing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnState:
    """One graded answer of a sample. `passed` holds the tests that passed, by name and occurrence.

    `tokens` are input and output of the final attempt; `cost_usd` is None when no price is known;
    `seconds` are those of the answer and of its tests.
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
        """Whether all tests passed."""
        return self.failure is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """One sample from its first answer on, of at most `most` further turns. `problem` is a place."""

    problem: int
    most: int
    answers: tuple[TurnState, ...]

    @property
    def ended(self) -> bool:
        """Whether nothing of it is missing."""
        return is_last(self.answers[-1].failure) or len(self.answers) > self.most

    def state(self, turn: int) -> TurnState | None:
        """The answer whose files stand after a turn; None for none, and where that is not `known`."""
        there = self.answers[: turn + 1] if self.known(turn) else ()
        return next((answer for answer in reversed(there) if answer.usable), None)

    def known(self, turn: int) -> bool:
        """Whether the state after a turn is known."""
        return turn < len(self.answers) or self.ended

    @property
    def end(self) -> End:
        """How it ended.

        `first` and `later`: all tests passed; `broken_off`: nothing more could be said (the context was
        full); `missing`: a turn has no result yet. The rest used all turns:
        `stalled` when the last one changed no test, `oscillating` when a set of passed tests came back
        after another one, else `out_of_turns`.
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
    """All samples of one entry that have a first result, for `turns` further turns."""

    entry: Entry
    turns: int
    all: tuple[Course, ...]

    def complete(self, turn: int) -> bool:
        """Whether no sample lacks anything up to this turn."""
        return self.entry.complete and all(course.known(turn) for course in self.all)

    def scores(self, turn: int) -> Floats:
        """Share of tests that pass after a turn, by problem: mean of its samples; NaN where none is known."""
        return self._means(turn, lambda state: len(state.passed) / state.total)

    def solved(self, turn: int) -> Floats:
        """Share of each problem's samples that pass all tests after a turn; NaN where none is known."""
        return self._means(turn, lambda state: float(state.solved))

    def blind(self, turn: int) -> Floats:
        """Unbiased pass@(turn + 1) of a problem's first answers alone; NaN where there are fewer of them."""
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


def courses_of(entries: Sequence[Entry]) -> tuple[tuple[Courses, ...], tuple[str, ...]]:
    """The entries whose runs had further turns, and a warning for everything that was ignored.

    Of runs with different numbers of turns the smallest counts. Raises ConflictError as `load_run`.
    """
    runs = {id(run): run for entry in entries for run, _ in entry.parts if run.settings.turns}
    lines: dict[int, dict[TurnKey, dict[str, Any]]] = {}
    warnings: list[str] = []
    for number, run in runs.items():
        lines[number], ignored = read_turns(run)
        warnings += [f"{run.directory}: {warning}" for warning in ignored]
    found = []
    for entry in entries:
        turns = min(run.settings.turns for run, _ in entry.parts)
        if turns and entry.summary.valid:
            found.append(Courses(entry=entry, turns=turns, all=tuple(_courses(entry, turns, lines))))
    return tuple(found), tuple(warnings)


def read_turns(run: Run) -> tuple[dict[TurnKey, dict[str, Any]], list[str]]:
    """A run's further turns, and what was ignored. Raises ConflictError for lines that contradict."""
    path = run.directory / TURN_RESULTS
    found: dict[AnswerKey, tuple[int, bytes]] = {}
    disbelieved, warnings = Disbelieved(TURN_RESULTS, read_turn_key), list[str]()
    for number, _, line in lines_of(path):
        try:
            key = read_result(line, path, number)[0].key
        except Flaw as flaw:
            disbelieved.add(number, flaw, line)
            continue
        earlier, before = found.setdefault(key, (number, line))
        if earlier == number:
            continue
        counts = counting(before, line)
        if counts is None:
            warnings.append(repeated(path, (earlier, number), (before, line)))
        elif counts is line:
            found[key] = number, line
    records = {key: read_line(line) for key, (_, line) in found.items() if isinstance(key, TurnKey)}
    return records, [*warnings, *disbelieved.warnings(found.__contains__)]


def _courses(
    entry: Entry, turns: int, lines: Mapping[int, Mapping[TurnKey, Mapping[str, Any]]]
) -> Iterator[Course]:
    for run, rows in entry.rows_by_run():
        for row in rows:
            problem = run.problems[row["problem"]]
            key = entry.model, entry.format, problem, int(row["sample"])
            later = [lines[id(run)].get(TurnKey(*key, turn)) for turn in range(1, turns + 1)]
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
    """A first answer after which nothing was said, from its columns: which tests passed is not asked."""
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
