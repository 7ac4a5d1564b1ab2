"""What all models together say of the problems: how hard each is, how alike its solutions, which tests tell.

A test that nobody ever passes may be broken, one that everybody passes tells nothing, and two that always
agree count one thing twice; a person has to look.
"""

from __future__ import annotations

import math
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
import orjson

from astra_async.report.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from astra_async.report.entries import Entry
    from astra_async.report.load import Run
    from astra_async.report.table import Cell

_FEWEST = 20  # samples before a test's rate says anything about the test


def difficulty(runs: Sequence[Run], entries: Sequence[Entry]) -> Table:
    """One row for each problem over all entries, the hardest first."""
    solutions = _solutions(runs)
    rows = [
        (problem, len(means), math.fsum(means) / len(means), min(means), max(means), *solutions[problem])
        for problem, means in _means(entries).items()
    ]
    rows.sort(key=lambda row: (row[2], row[0]))
    return Table(
        name="difficulty",
        title="Difficulty of the problems",
        columns=(
            Column("problem_id", "Problem"),
            Column("models", "Models", "count", help="with results, formats apart"),
            Column("mean_score", "Mean score %", "percent", help="mean over the models"),
            Column("least", "Lowest %", "percent", help="of a model's mean scores"),
            Column("most", "Highest %", "percent", help="of a model's mean scores"),
            Column("samples", "Samples", "count"),
            Column("solutions", "Solutions", "count", help="samples with a usable solution"),
            Column("distinct", "Distinct", "count", help="different sets of files"),
        ),
        rows=tuple(rows),
    )


def telling_tests(runs: Sequence[Run]) -> Table:
    """The share of all samples that passed each test, and what that reveals, where it reveals something."""
    return Table(
        name="tests",
        title="Tests over all models",
        columns=(
            Column("problem_id", "Problem"),
            Column("test", "Test"),
            Column("samples", "Samples", "count", help="graded ones, of all models"),
            Column("passed", "Passed %", "percent"),
            Column("finding", "Finding"),
        ),
        rows=tuple(
            row
            for run in runs
            for untouched in (passed_untouched(run.directory),)
            for (problem, names), passed in run.outcomes.items()
            for row in _test_rows(problem, names, passed, untouched.get(problem, frozenset()))
        ),
        notes=(
            (
                f"Findings from {_FEWEST} samples on. Nobody passes: look whether the test can be passed."
                " Everybody passes: it separates no two models. The untouched project passes: it asks for"
                " nothing new, whatever the number of samples. Agrees with: the two always passed and failed"
                " together."
            ),
        ),
    )


def passed_untouched(directory: Path) -> dict[str, frozenset[str]]:
    """Names of the tests that the untouched project passes, by problem, as far as a run has learned them.

    Nothing for a directory whose expected.json is absent, damaged or of an earlier version.
    """
    try:
        stored = orjson.loads((directory / "expected.json").read_bytes())
        return {problem: frozenset(of.get("untouched_tests", ())) for problem, of in stored.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _means(entries: Sequence[Entry]) -> dict[str, list[float]]:
    """The mean scores of each begun problem, one for each entry that has begun it."""
    found: dict[str, list[float]] = {}
    for entry in entries:
        for problem, valid, mean in zip(entry.problem_ids, entry.valid, entry.means.tolist(), strict=True):
            if valid:
                found.setdefault(problem, []).append(mean)
    return found


def _solutions(runs: Sequence[Run]) -> dict[str, tuple[int, int, int]]:
    """Samples, usable solutions and different ones among these, for each problem."""
    found: dict[str, list[NDArray[np.uint64]]] = {}
    for run in runs:
        for number, problem in enumerate(run.problems):
            found.setdefault(problem, []).append(run.problem_rows(number)["solution"])
    counts = {}
    for problem, parts in found.items():
        solutions = np.concatenate(parts)
        usable = solutions[solutions != 0]
        counts[problem] = len(solutions), len(usable), len(np.unique(usable))
    return counts


def _test_rows(
    problem: str, names: Sequence[str], passed: Mapping[int, int], untouched: frozenset[str]
) -> Iterator[tuple[Cell, ...]]:
    """`passed` counts the samples by the tests that they passed, as bits in the order of `names`."""
    samples = sum(passed.values())
    known: dict[tuple[bool, ...], str] = {}
    for place, name in enumerate(names):
        hits = tuple(bool(bits >> place & 1) for bits in passed)
        rate = sum(compress(passed.values(), hits)) / samples
        twin = known.setdefault(hits, name) if name not in known.values() else name
        told = ["the untouched project passes"] if name in untouched else []
        told += filter(None, [_finding(samples, rate, twin if twin != name else "")])
        yield problem, name, samples, rate, "; ".join(told)


def _finding(samples: int, rate: float, twin: str) -> str:
    if samples < _FEWEST:
        return ""
    if rate in (0, 1):
        return "everybody passes" if rate else "nobody passes"
    return f"agrees with {twin}" if twin else ""
