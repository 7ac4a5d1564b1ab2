"""Each problem under each model: the columns of DIR/problems.csv, with the problem's skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astra_async.report.table import WHO, Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from astra_async.report.entries import Entry
    from astra_async.report.table import Cell

_COLUMNS = (
    *WHO,
    Column("problem_id", "Problem"),
    Column("name", "Name"),
    Column("main_skill", "Main skill"),
    Column("planned", "k", "count", help="samples planned"),
    Column("valid", "Valid", "count", help="samples with a result"),
    Column("perfect", "Perfect", "count", help="samples that passed all tests"),
    Column("total", "T", "count", help="tests that count"),
    Column("mean_tests_passed", "Tests passed, mean", "number"),
    Column("mean_score", "Mean score %", "percent"),
    Column("pass_at_1", "Pass@1 %", "percent"),
    Column("sd", "SD", "score", help="ddof = 0"),
)


def problems_table(entries: Sequence[Entry]) -> Table:
    """One row for each problem of each entry, over its valid samples."""
    return Table(
        name="problems",
        title="Problems",
        columns=_COLUMNS,
        rows=tuple(row for entry in entries for row in _rows(entry)),
        notes=("Over the valid samples of each problem; SD with ddof = 0.",),
    )


def _rows(entry: Entry) -> Iterator[tuple[Cell, ...]]:
    infos = {problem: run.settings.problems[problem] for run, _ in entry.parts for problem in run.problems}
    columns = (
        entry.problem_ids,
        entry.planned.tolist(),
        entry.valid.tolist(),
        entry.perfect.tolist(),
        entry.totals.tolist(),
        entry.means.tolist(),
        entry.passes.tolist(),
        entry.sds.tolist(),
    )
    for problem, planned, valid, perfect, total, mean, passed, sd in zip(*columns, strict=True):
        yield (
            *entry.who,
            problem,
            infos[problem].name,
            infos[problem].main_skill,
            planned,
            valid,
            perfect,
            int(total) if valid else None,
            mean * total if valid else None,
            mean if valid else None,
            passed if valid else None,
            sd if valid else None,
        )
