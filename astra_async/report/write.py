"""Writing of all files of a report: HTML page, Markdown, figures and data.

CSV files have raw values with all digits, in UTF-8 with line feeds.
"""

from __future__ import annotations

import csv
import gzip
import io
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from astra_async.errors import StorageError
from astra_async.metrics import escape_formula
from astra_async.report.packed_row import FAILURES, FINISHES, STATUSES
from astra_async.report.page import page_html
from astra_async.report.plots import draw_all, png
from astra_async.report.table import csv_header, csv_row, described
from astra_async.report.text import escaped, markdown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import TextIO

    from numpy.typing import NDArray

    from astra_async.report.entries import Entry
    from astra_async.report.load import Run
    from astra_async.report.plots.style import Plot
    from astra_async.report.table import Table
    from astra_async.report.tables import Report

    Value = str | int | float | None

_KEY = ("model", "format", "problem_id", "sample")
_TEXTS = ("repairs", "suspicions", "returned_model", "image")
RUN_COLUMNS = (
    *_KEY,
    *("status", "failure", "passed", "total", "score", "perfect", "finish_reason", "timed_out"),
    *("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "cost_usd", "cost_estimated"),
    *("attempts", "ttft_s", "latency_s", "test_s", "input_characters", "output_characters"),
    *("files_changed", "lines_written", "extra_tests", "dropped"),
    *_TEXTS,
)
_GZIP_LEVEL = 1  # reduces the size to a sixth; higher levels take longer than the whole report
_CHUNK = 20_000  # rows converted to Python objects at a time


def write_built(report: Report, out: Path, *, pictures: bool = False) -> Path:
    """Write all files and return the path of the page; with `pictures` figures are also written as PNG.

    Raises StorageError if a file cannot be written, UsageError as `draw_all` and `png`.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        return _write(report, out, pictures=pictures)
    except OSError as error:
        raise StorageError(
            f"{error.filename or out}: {error.strerror}; make room or choose another --out"
        ) from error


def write_tables(out: Path, report: Report) -> None:
    """Write every table as CSV, and all tables with titles, notes and columns into report.json."""
    (out / "tables").mkdir(exist_ok=True)
    for table in report.data().values():
        write_table(out / table.file, table)
    content = orjson.dumps(report_record(report), option=orjson.OPT_APPEND_NEWLINE)
    (out / "report.json").write_bytes(content)


def report_record(report: Report) -> dict[str, Any]:
    """Return the content of report.json."""
    return {
        "schema": 1,
        "complete": report.complete,
        "simulated": report.simulated,
        "conclusions": report.conclusions,
        "warnings": report.warnings,
        "tables": {name: described(table) for name, table in report.data().items()},
    }


def write_table(path: Path, table: Table) -> None:
    """Write one table; an interval becomes two columns."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([escape_formula(name) for name in csv_header(table.columns)])
        writer.writerows([escape_formula(cell) for cell in csv_row(row, table.columns)] for row in table.rows)


def write_runs(path: Path, entries: Sequence[Entry]) -> None:
    """Write one row for each planned sample, compressed if the path ends with `.gz`.

    The `status` of a sample without a result is `missing`.
    """
    with _text_file(path) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(RUN_COLUMNS)
        for entry in entries:
            for run, rows in entry.rows_by_run():
                for start in range(0, len(rows), _CHUNK):
                    columns = _run_columns(entry, run, rows[start : start + _CHUNK])
                    # One write for a chunk: many small writes to gzip take longer than the compression.
                    stream.write("".join(f"{','.join(row)}\n" for row in zip(*columns, strict=True)))
            writer.writerows(_missing_rows(entry))


def _write(report: Report, out: Path, *, pictures: bool) -> Path:
    index = out / "index.html"
    plots = draw_all(report)
    figures = out / "plots"
    figures.mkdir(exist_ok=True)
    for plot in plots:
        (figures / f"{plot.name}.svg").write_text(plot.svg, encoding="utf-8")
        (figures / f"{plot.name}.png").unlink(missing_ok=True)  # from an earlier report
        if pictures:
            (figures / f"{plot.name}.png").write_bytes(png(plot))
    index.write_text(page_html(report, plots), encoding="utf-8")
    (out / "report.md").write_text(_report_markdown(report, plots), encoding="utf-8")
    write_tables(out, report)
    for name in ("runs.csv", "runs.csv.gz"):  # the name depends on the number of samples
        (out / name).unlink(missing_ok=True)
    write_runs(out / report.runs_file, report.entries)
    return index


def _report_markdown(report: Report, plots: Sequence[Plot]) -> str:
    parts = ["# ASTRA report", ""]
    if report.simulated:
        parts += ["**These models are simulated. The numbers do not describe any real model.**", ""]
    if not report.complete:
        parts += ["**Incomplete: some planned samples have no result yet.**", ""]
    parts += [line for warning in report.warnings for line in (f"Warning: {escaped(warning)}", "")]
    figures = {plot.name: plot for plot in plots}
    for section in report.sections:
        parts += [f"## {section.title}", "", section.text, ""]
        for plot in (figures[name] for name in section.plots if name in figures):
            parts += [f"![{escaped(plot.alt)}](plots/{plot.name}.svg)", ""]
        parts += [markdown(table) for table in section.tables if table.rows]
    return "\n".join(parts)


def _text_file(path: Path) -> TextIO:
    if path.suffix != ".gz":
        return path.open("w", encoding="utf-8", newline="")
    packed = gzip.GzipFile(path, "wb", compresslevel=_GZIP_LEVEL, mtime=0)
    return io.TextIOWrapper(packed, encoding="utf-8", newline="")


def _run_columns(entry: Entry, run: Run, rows: NDArray[np.void]) -> Iterator[list[str]]:
    """Yield the CSV cells of many rows, column by column."""
    made: dict[str, NDArray[Any]] = {
        **dict.fromkeys(("model", "format"), np.zeros(len(rows), int)),
        "score": rows["score"],
        "perfect": (rows["passed"] == rows["total"]).astype(int),
    }
    numbered: dict[str, tuple[str, Sequence[Value]]] = {
        "model": ("model", (entry.label,)),
        "format": ("format", (entry.format,)),
        "problem_id": ("problem", run.problems),
        "status": ("status", STATUSES),
        "failure": ("failure", FAILURES),
        "finish_reason": ("finish", FINISHES),
        **{name: (name, run.texts) for name in _TEXTS},
    }
    for name in RUN_COLUMNS:
        field, names = numbered.get(name, (name, None))
        yield _cells(made[field] if field in made else rows[field], names)


def _missing_rows(entry: Entry) -> Iterator[tuple[object, ...]]:
    rest = len(RUN_COLUMNS) - len(_KEY) - 1
    for run, pair in entry.parts:
        for number, problem, sample in run.missing.tolist():
            if number == pair:
                key = (
                    escape_formula(entry.label),
                    entry.format,
                    escape_formula(run.problems[problem]),
                    sample,
                )
                yield (*key, "missing", *(None,) * rest)


def _cells(values: NDArray[Any], names: Sequence[Value] | None) -> list[str]:
    """Return the CSV cells of values, or of `names` at these indexes; each distinct cell is built once."""
    distinct, places = np.unique(values, return_inverse=True)
    found = [_cell(value if names is None else names[value]) for value in distinct.tolist()]
    return list(np.array(found, dtype=object)[places].tolist())


def _cell(value: Value) -> str:
    """Return a value as a CSV cell: empty for None and NaN, quoted if needed."""
    if isinstance(value, str):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow([escape_formula(value), None])
        return text.getvalue().removesuffix(",\n")
    return "" if value is None or value != value else str(value)  # noqa: PLR0124 - NaN
