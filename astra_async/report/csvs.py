"""Tables as CSV: raw values, all digits, UTF-8, line feeds only."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from astra_async.report.load import FAILURES, FINISHES, STATUSES
from astra_async.report.table import csv_header, csv_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from astra_async.report.entries import Entry
    from astra_async.report.load import Run
    from astra_async.report.table import Table

_KEY = ("model", "format", "problem_id", "sample")
_COUNTS = ("passed", "total")
_NUMBERS = (
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cost_usd",
    "cost_estimated",
    "attempts",
    "ttft_s",
    "latency_s",
    "test_s",
    "input_characters",
    "output_characters",
    "files_changed",
    "lines_written",
    "extra_tests",
    "dropped",
)
_TEXTS = ("repairs", "suspicions", "returned_model", "image")
RUN_COLUMNS = (
    *_KEY,
    "status",
    "failure",
    *_COUNTS,
    "score",
    "perfect",
    "finish_reason",
    "timed_out",
    *_NUMBERS,
    *_TEXTS,
)
_CHUNK = 50_000  # rows turned into Python objects at a time


def write_table(path: Path, table: Table) -> None:
    """Write one table; an interval becomes two columns."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(csv_header(table.columns))
        writer.writerows(csv_row(row, table.columns) for row in table.rows)


def write_runs(path: Path, entries: Sequence[Entry]) -> None:
    """Write runs.csv: one row for each sample, `status` is `missing` for those without a result."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(RUN_COLUMNS)
        for entry in entries:
            for run, rows in entry.rows_by_run():
                for start in range(0, len(rows), _CHUNK):
                    writer.writerows(_run_rows(entry, run, rows[start : start + _CHUNK]))
            writer.writerows(_missing_rows(entry))


def _run_rows(entry: Entry, run: Run, rows: NDArray[np.void]) -> Iterator[tuple[object, ...]]:
    def column(name: str) -> list[object]:
        values: list[object] = rows[name].tolist()
        return values

    def named(name: str, names: Sequence[object]) -> Iterator[object]:
        return (names[number] for number in rows[name].tolist())

    passed, total = rows["passed"].tolist(), rows["total"].tolist()
    return zip(
        [entry.label] * len(rows),
        [entry.format] * len(rows),
        named("problem", run.problems),
        column("sample"),
        named("status", STATUSES),
        named("failure", FAILURES),
        passed,
        total,
        [p / t for p, t in zip(passed, total, strict=True)],
        [int(p == t) for p, t in zip(passed, total, strict=True)],
        named("finish", FINISHES),
        column("timed_out"),
        *([_empty_if_nan(value) for value in column(name)] for name in _NUMBERS),
        *(named(name, run.texts) for name in _TEXTS),
        strict=True,
    )


def _missing_rows(entry: Entry) -> Iterator[tuple[object, ...]]:
    rest = len(RUN_COLUMNS) - len(_KEY) - 1
    for run, pair in entry.parts:
        for number, problem, sample in run.missing.tolist():
            if number == pair:
                key = (entry.label, entry.format, run.problems[problem], sample)
                yield (*key, "missing", *(None,) * rest)


def _empty_if_nan(value: object) -> object:
    return None if value != value else value  # noqa: PLR0124 - NaN is the one value unequal to itself
