"""The problem set itself: Table 1 of the paper, computed from the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from astra_async.report.by_skill import problem_infos
from astra_async.report.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from astra_async.report.entries import Entry
    from astra_async.report.settings import ProblemInfo
    from astra_async.report.table import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemFacts:
    """One problem's row of the averages; None where nothing is known of it.

    The last three are of the reference's files that the project takes over: no model's answer is counted, for
    every model writes another one.
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
            Column("statistic", "Statistic"),
            Column("value", "Value", "number"),
            Column("paper", "Paper (v1)", "number"),
        ),
        rows=cells,
        notes=tuple(_notes(rows)),
    )


def _notes(rows: Sequence[ProblemFacts]) -> Iterator[str]:
    yield "Averages over the problems for which the quantity is known."
    known = sum(row.output_characters is not None for row in rows)
    yield (
        "Output characters, lines of code and modified files are those of the reference solution, which is "
        f"known of {known} of {len(rows)} problems."
    )


def facts_of_all(entries: Sequence[Entry]) -> list[ProblemFacts]:
    """What run.json tells of each problem, with the T that its samples were graded against."""
    totals = {
        problem: float(total)
        for entry in entries
        for problem, total in zip(entry.problem_ids, entry.totals, strict=True)
        if not np.isnan(total)
    }
    return [facts_of(info, totals.get(problem)) for problem, info in problem_infos(entries).items()]


def facts_of(info: ProblemInfo, tests: float | None) -> ProblemFacts:
    """One problem's row of the averages."""
    return ProblemFacts(
        main_skill=info.main_skill,
        sub_skills=info.sub_skills,
        tests=tests,
        input_files=info.input_files,
        input_characters=info.input_characters,
        statement_characters=info.statement_characters,
        output_characters=info.output_characters,
        lines_written=info.lines_written,
        files_changed=info.files_changed,
    )


def _average(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
