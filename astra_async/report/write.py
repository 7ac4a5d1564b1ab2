"""All files of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astra_async.errors import StorageError
from astra_async.report import ReportPaths
from astra_async.report.csvs import runs_file, write_runs, write_tables
from astra_async.report.page import page_html
from astra_async.report.plots import draw_all
from astra_async.report.text import escaped, markdown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from astra_async.report.plots.style import Plot
    from astra_async.report.tables import Report


def write_built(report: Report, out: Path) -> ReportPaths:
    """Write index.html, report.md and the CSV files; raises StorageError."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        return _write(report, out)
    except OSError as error:
        raise StorageError(
            f"{error.filename or out}: {error.strerror}; make room or choose another --out"
        ) from error


def _write(report: Report, out: Path) -> ReportPaths:
    index = out / "index.html"
    plots = draw_all(report)
    figures = out / "plots"
    figures.mkdir(exist_ok=True)
    for plot in plots:
        (figures / f"{plot.name}.svg").write_text(plot.svg, encoding="utf-8")
        (figures / f"{plot.name}.png").write_bytes(plot.png)
    index.write_text(page_html(report, plots), encoding="utf-8")
    (out / "report.md").write_text(_report_markdown(report, plots), encoding="utf-8")
    write_tables(out, report)
    for name in ("runs.csv", "runs.csv.gz"):  # a longer run may have changed the name
        (out / name).unlink(missing_ok=True)
    write_runs(out / runs_file(report.entries), report.entries)
    return ReportPaths(index=index, files=tuple(sorted(path for path in out.rglob("*") if path.is_file())))


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
