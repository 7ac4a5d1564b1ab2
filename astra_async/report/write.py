"""All files of a report: the page, Markdown, figures, and its data.

Tables and samples as CSV have raw values, all digits, UTF-8, line feeds only.
"""

from __future__ import annotations

import csv
import gzip
import io
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from astra_async.errors import StorageError
from astra_async.metrics import harmless
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
_GZIP_LEVEL = 1  # a sixth of the size; more would take longer than everything else here
_CHUNK = 20_000  # rows turned into Python objects at a time


def write_built(report: Report, out: Path, *, pictures: bool = False) -> Path:
    """Write all files, with `pictures` PNGs too; the page to open. Raises StorageError, UsageError."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        return _write(report, out, pictures=pictures)
    except OSError as error:
        raise StorageError(
            f"{error.filename or out}: {error.strerror}; make room or choose another --out"
        ) from error


def write_tables(out: Path, report: Report) -> None:
    """Write every table as CSV, and all of them with titles, notes and columns into report.json."""
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
        writer.writerow([harmless(name) for name in csv_header(table.columns)])
        writer.writerows([harmless(cell) for cell in csv_row(row, table.columns)] for row in table.rows)


def write_runs(path: Path, entries: Sequence[Entry]) -> None:
    """Write one row for each sample, `status` is `missing` for those without a result; packed if `.gz`."""
    with _text_file(path) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(RUN_COLUMNS)
        for entry in entries:
            for run, rows in entry.rows_by_run():
                for start in range(0, len(rows), _CHUNK):
                    columns = _run_columns(entry, run, rows[start : start + _CHUNK])
                    # At once: many small pieces take longer to pack than the packing.
                    stream.write("".join(f"{','.join(row)}\n" for row in zip(*columns, strict=True)))
            writer.writerows(_missing_rows(entry))


def _write(report: Report, out: Path, *, pictures: bool) -> Path:
    index = out / "index.html"
    plots = draw_all(report)
    figures = out / "plots"
    figures.mkdir(exist_ok=True)
    for plot in plots:
        (figures / f"{plot.name}.svg").write_text(plot.svg, encoding="utf-8")
        (figures / f"{plot.name}.png").unlink(missing_ok=True)  # of an earlier report
        if pictures:
            (figures / f"{plot.name}.png").write_bytes(png(plot))
    index.write_text(page_html(report, plots), encoding="utf-8")
    (out / "report.md").write_text(_report_markdown(report, plots), encoding="utf-8")
    write_tables(out, report)
    for name in ("runs.csv", "runs.csv.gz"):  # a longer run may have changed the name
        (out / name).unlink(missing_ok=True)
    write_runs(out / report.runs_file, report.entries)
    return index


def _report_markdown(report: Report, plots: Sequence[Plot]) -> str:
    parts = ["# ASTRA report", ""]
    if report.simulated:
        parts += ["**These models are simulated: the numbers say nothing about any real model.**", ""]
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
    """The cells of many rows by column, as they stand in CSV."""
    made: dict[str, NDArray[Any]] = {
        **dict.fromkeys(("model", "format"), np.zeros(len(rows), int)),
        "score": rows["passed"] / rows["total"],
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
                key = (harmless(entry.label), entry.format, harmless(run.problems[problem]), sample)
                yield (*key, "missing", *(None,) * rest)


def _cells(values: NDArray[Any], names: Sequence[Value] | None) -> list[str]:
    """The values, or what they are the numbers of; each that differs is written out once."""
    distinct, places = np.unique(values, return_inverse=True)
    found = [_cell(value if names is None else names[value]) for value in distinct.tolist()]
    return list(np.array(found, dtype=object)[places].tolist())


def _cell(value: Value) -> str:
    """As CSV has it: nothing for None and NaN, quotes where they are needed."""
    if isinstance(value, str):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow([harmless(value), None])
        return text.getvalue().removesuffix(",\n")
    return "" if value is None or value != value else str(value)  # noqa: PLR0124 - NaN
