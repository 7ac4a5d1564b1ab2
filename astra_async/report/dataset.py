"""The problem set itself: Table 1 of the paper, computed from the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from astra_async.report.skills import problem_infos
from astra_async.report.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from astra_async.report.entries import Entry
    from astra_async.report.table import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemFacts:
    """One problem's row of the averages; None where nothing is known of it.

    The last three are about solutions: of the reference where there is one, else of the models' answers.
    """

    main_skill: str = ""
    sub_skills: tuple[str, ...] = ()
    tests: float | None = None
    input_files: float | None = None
    input_characters: float | None = None
    statement_characters: float | None = None
    output_characters: float | None = None
    lines_written: float | None = None
    files_changed: float | None = None


_AVERAGES = {
    "tests": "Average number of test cases",
    "input_files": "Average input files",
    "input_characters": "Average input characters",
    "statement_characters": "Average problem statement characters",
    "output_characters": "Average output characters",
    "lines_written": "Average lines of solution code",
    "files_changed": "Average modified files",
}
_PAPER = (65, 10, 34, 6.7, 12, 22_863, 718, 2_744, 84, 2.3)


def table_1(rows: Sequence[ProblemFacts]) -> Table:
    """Key statistics of a problem set (table 1), with the paper's own beside them."""
    values: list[tuple[str, float | None]] = [
        ("Project questions", len(rows)),
        ("Main skill categories", len({row.main_skill for row in rows if row.main_skill})),
        ("Sub-skill categories", len({skill for row in rows for skill in row.sub_skills})),
        *((title, _average(getattr(row, name) for row in rows)) for name, title in _AVERAGES.items()),
    ]
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        (title, value, paper) for (title, value), paper in zip(values, _PAPER, strict=True)
    )
    return Table(
        name="table_1",
        title="Key statistics of the problems",
        columns=(
            Column(name="statistic", title="Statistic"),
            Column(name="value", title="Value", kind="number"),
            Column(name="paper", title="Paper (v1)", kind="number"),
        ),
        rows=cells,
        notes=("Averages over the problems for which the quantity is known.",),
    )


def facts_of(entries: Sequence[Entry]) -> list[ProblemFacts]:
    """What a run knows of its problems; solutions are the models' samples that passed all tests."""
    solved = _solved(entries)
    totals = {
        problem: float(total)
        for entry in entries
        for problem, total in zip(entry.problem_ids, entry.totals, strict=True)
        if not np.isnan(total)
    }
    return [
        ProblemFacts(
            main_skill=info.main_skill,
            sub_skills=info.sub_skills,
            tests=totals.get(problem),
            input_files=info.input_files,
            input_characters=info.input_characters,
            statement_characters=info.statement_characters,
            **dict(zip(_SOLUTION, solved.get(problem, (None, None, None)), strict=True)),
        )
        for problem, info in problem_infos(entries).items()
    ]


_SOLUTION = ("output_characters", "lines_written", "files_changed")


def _solved(entries: Sequence[Entry]) -> dict[str, tuple[float, float, float]]:
    """Means of the perfect samples of each problem, over all entries."""
    sums: dict[str, np.ndarray] = {}
    for entry in entries:
        for run, rows in entry.rows_by_run():
            perfect = rows[rows["passed"] == rows["total"]]
            for number in np.unique(perfect["problem"]).tolist():
                mine = perfect[perfect["problem"] == number]
                part = np.array([len(mine), *(mine[name].sum() for name in _SOLUTION)], dtype=float)
                name = run.problems[number]
                sums[name] = sums.get(name, np.zeros(4)) + part
    return {
        name: (float(part[1] / part[0]), float(part[2] / part[0]), float(part[3] / part[0]))
        for name, part in sums.items()
    }


def _average(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
