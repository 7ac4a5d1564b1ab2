"""Tables on problems and tests.

A test that no sample passes may be broken. A test that every sample passes does not distinguish models. Two
tests with equal outcomes in every sample may test the same thing. The tables list these cases for review.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import compress
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from astra_async.report.table import ENTRY_COLUMNS, Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from astra_async.report.entries import Entry
    from astra_async.report.load import Run
    from astra_async.report.run_settings import ProblemInfo
    from astra_async.report.table import Cell

_FEWEST = 20  # minimum number of samples for a finding on a test
_AVERAGES = {  # title, and the paper's value
    "tests": ("Average number of test cases", 6.7),
    "input_files": ("Average input files", 12),
    "input_characters": ("Average input characters", 22_863),
    "statement_characters": ("Average problem statement characters", 718),
    "output_characters": ("Average output characters", 2_744),
    "lines_written": ("Average lines of solution code", 84),
    "files_changed": ("Average modified files", 2.3),
}


def problem_infos(entries: Sequence[Entry]) -> dict[str, ProblemInfo]:
    """Return the problems of all entries by id, in the order of the plans."""
    return {
        problem: info
        for entry in entries
        for run, _ in entry.parts
        for problem, info in run.settings.problems.items()
    }


def problems_table(entries: Sequence[Entry]) -> Table:
    """Return one row for each problem of each entry, over valid samples."""
    columns = (
        *ENTRY_COLUMNS,
        Column("problem_id", "Problem"),
        Column("name", "Name"),
        Column("main_skill", "Main skill"),
        Column("planned", "k", "count", help="samples planned"),
        Column("valid", "Valid", "count", help="samples with a result"),
        Column("perfect", "Perfect", "count", help="samples that passed all tests"),
        Column("total", "T", "count", help="expected tests"),
        Column("mean_tests_passed", "Tests passed, mean", "number"),
        Column("mean_score", "Mean score %", "percent"),
        Column("pass_at_1", "Pass@1 %", "percent"),
        Column("sd", "SD", "score", help="ddof = 0"),
    )
    items = (item for entry in entries for item in _of_problems(entry))
    note = "Over the valid samples of each problem; SD with ddof = 0."
    return Table.of("problems", "Problems", columns, items, notes=(note,))


def table_1(rows: Sequence[ProblemInfo]) -> Table:
    """Return key statistics of a problem set and the paper's values (paper, table 1)."""
    known = sum(row.output_characters is not None for row in rows)
    counted = (
        ("Project questions", len(rows), 65),
        ("Main skill categories", len({row.main_skill for row in rows if row.main_skill}), 10),
        ("Sub-skill categories", len({skill for row in rows for skill in row.sub_skills}), 34),
    )
    averages = (
        (title, _average(getattr(row, name) for row in rows), paper)
        for name, (title, paper) in _AVERAGES.items()
    )
    columns = (
        Column("statistic", "Statistic"),
        Column("value", "Value", "number"),
        Column("paper", "Paper (v1)", "number"),
    )
    notes = (
        "An average is over the problems with a known value.",
        (
            "Output characters, lines of code and modified files are those of the reference solution;"
            f" {known} of {len(rows)} problems have one."
        ),
    )
    title = "Key statistics of the problems"
    return Table(name="table_1", title=title, columns=columns, rows=(*counted, *averages), notes=notes)


def problems_of(entries: Sequence[Entry]) -> list[ProblemInfo]:
    """Return each problem's description from run.json, with the number of tests (T) from the samples."""
    totals = {
        problem: float(total)
        for entry in entries
        for problem, total in zip(entry.problem_ids, entry.totals, strict=True)
        if not np.isnan(total)
    }
    return [replace(info, tests=totals.get(problem)) for problem, info in problem_infos(entries).items()]


def difficulty(runs: Sequence[Run], entries: Sequence[Entry]) -> Table:
    """Return one row for each problem over all entries, the lowest mean score first."""
    solutions = _solutions(runs)
    items: list[dict[str, Any]] = [
        {"problem_id": problem, "models": len(means), "mean_score": math.fsum(means) / len(means)}
        | {"least": min(means), "most": max(means)}
        | solutions[problem]
        for problem, means in _means(entries).items()
    ]
    items.sort(key=itemgetter("mean_score", "problem_id"))
    columns = (
        Column("problem_id", "Problem"),
        Column("models", "Models", "count", help="with results; each format counts separately"),
        Column("mean_score", "Mean score %", "percent", help="mean over the models"),
        Column("least", "Lowest %", "percent", help="mean score of a model"),
        Column("most", "Highest %", "percent", help="mean score of a model"),
        Column("samples", "Samples", "count"),
        Column("solutions", "Solutions", "count", help="samples with a usable solution"),
        Column("distinct", "Distinct", "count", help="solutions with different files"),
    )
    return Table.of("difficulty", "Difficulty of the problems", columns, items)


def test_rates(runs: Sequence[Run]) -> Table:
    """Return each test's pass rate over all samples of all models, with findings."""
    columns = (
        Column("problem_id", "Problem"),
        Column("test", "Test"),
        Column("samples", "Samples", "count", help="graded samples of all models"),
        Column("passed", "Passed %", "percent"),
        Column("finding", "Finding"),
    )
    items = (
        {"problem_id": problem, **item}
        for run in runs
        for untouched in (passed_untouched(run.directory),)
        for (problem, names), passed in run.outcomes.items()
        for item in _of_tests(names, passed, untouched.get(problem, frozenset()))
    )
    note = (
        f'Findings need at least {_FEWEST} samples. "No sample passes": check that the test can pass.'
        ' "Every sample passes": the test does not distinguish models. "The untouched project'
        ' passes": the test'
        ' passes without any solution (found with any number of samples). "Agrees with": both tests have the'
        " same outcome in every sample."
    )
    return Table.of("tests", "Tests over all models", columns, items, notes=(note,))


def passed_untouched(directory: Path) -> dict[str, frozenset[str]]:
    """Return by problem the names of tests that the untouched project passes, from expected.json."""
    try:
        stored = orjson.loads((directory / "expected.json").read_bytes())
        return {problem: frozenset(of.get("untouched_tests", ())) for problem, of in stored.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def provisional_tests(directory: Path) -> dict[str, str]:
    """Return the problems whose expected tests are not confirmed by a complete test run, with the reason."""
    try:
        stored = orjson.loads((directory / "expected.json").read_bytes())
        return {problem: of["provisional"] for problem, of in stored.items() if of.get("provisional")}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def _of_problems(entry: Entry) -> Iterator[dict[str, Cell]]:
    infos = problem_infos([entry])
    for problem, place in entry.places.items():
        valid, total, mean = int(entry.valid[place]), float(entry.totals[place]), float(entry.means[place])
        yield {
            **entry.cells,
            "problem_id": problem,
            "name": infos[problem].name,
            "main_skill": infos[problem].main_skill,
            "planned": int(entry.planned[place]),
            "valid": valid,
            "perfect": int(entry.perfect[place]),
            "total": int(total) if valid else None,
            "mean_tests_passed": mean * total if valid else None,
            "mean_score": mean if valid else None,
            "pass_at_1": float(entry.passes[place]) if valid else None,
            "sd": float(entry.sds[place]) if valid else None,
        }


def _average(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _means(entries: Sequence[Entry]) -> dict[str, list[float]]:
    """Return by problem the mean scores of the entries with a valid sample of it."""
    found: dict[str, list[float]] = {}
    for entry in entries:
        for problem, valid, mean in zip(entry.problem_ids, entry.valid, entry.means.tolist(), strict=True):
            if valid:
                found.setdefault(problem, []).append(mean)
    return found


def _solutions(runs: Sequence[Run]) -> dict[str, dict[str, int]]:
    """Return by problem the numbers of samples, of usable solutions and of distinct solutions."""
    found: dict[str, list[NDArray[np.uint64]]] = {}
    for run in runs:
        for number, problem in enumerate(run.problems):
            # Copied, because a view would keep all rows of the problem in memory.
            found.setdefault(problem, []).append(run.problem_rows(number)["solution"].copy())
    counts = {}
    for problem, parts in found.items():
        solutions = np.concatenate(parts)
        usable = solutions[solutions != 0]
        distinct = len(np.unique(usable))
        counts[problem] = {"samples": len(solutions), "solutions": len(usable), "distinct": distinct}
    return counts


def _of_tests(
    names: Sequence[str], passed: Mapping[int, int], untouched: frozenset[str]
) -> Iterator[dict[str, Cell]]:
    """Yield a row for each test.

    `passed` maps a set of passed tests (bit i is the i-th of `names`) to its number of samples.
    """
    samples = sum(passed.values())
    known: dict[tuple[bool, ...], str] = {}
    for place, name in enumerate(names):
        hits = tuple(bool(bits >> place & 1) for bits in passed)
        rate = sum(compress(passed.values(), hits)) / samples
        alike = known.setdefault(hits, name) if name not in known.values() else name
        notes = ["the untouched project passes"] if name in untouched else []
        notes += filter(None, [_finding(samples, rate, alike if alike != name else "")])
        yield {"test": name, "samples": samples, "passed": rate, "finding": "; ".join(notes)}


def _finding(samples: int, rate: float, alike: str) -> str:
    if samples < _FEWEST:
        return ""
    if rate in (0, 1):
        return "every sample passes" if rate else "no sample passes"
    return alike and f"agrees with {alike}"
