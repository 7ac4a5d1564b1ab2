"""From result lines to conclusions: tables, CSV files, plots and one HTML page.

    settings, load, entries      run directories as arrays
    table                        one table, whatever becomes of it
    pairwise, paired_table, conclusions
                                 two models on the same problems, and what may be said of them
    leaderboard, by_skill ...    one file for each question a report answers
    turn_states, turn_tables, turn_prices
                                 what feedback is worth
    tables                       all of them, in the order of reading
    text, csvs, plots, page      what people and programs get to see
    compare, precision           `astra compare` and `astra plan`

This module's functions import the rest when called: numpy, scipy and matplotlib cost a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

    from astra_async.report.compare import RunComparison, Side
    from astra_async.report.precision import RunPlan
    from astra_async.report.tables import Report

_FOR_LOOKING_UP = ("problems", "tests", "curves", "inputs", "fingerprints", "turn_skills")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPaths:
    """What was written: the page to open first, and all files."""

    index: Path
    files: tuple[Path, ...]


def build_report(directories: Sequence[Path]) -> Report:
    """Load run directories and work out every table; raises UsageError or ConflictError."""
    from astra_async.report import tables

    return tables.build_report(directories)


def print_leaderboard(report: Report, console: Console) -> None:
    """Print the conclusions and the leaderboard: the end of a run, and `astra report` in short."""
    from astra_async.report.text import render_terminal

    _print_head(report, console)
    render_terminal(report.sections[0].tables[:1], console)


def print_report(report: Report, console: Console) -> None:
    """Print the tables that people read; those for looking things up are on the page and in the files."""
    from astra_async.report.text import render_terminal

    _print_head(report, console)
    render_terminal([table for table in report.tables() if table.name not in _FOR_LOOKING_UP], console)


def compare_runs(a: Path | Side, b: Path | Side) -> RunComparison:
    """Compare B against A, paired: two runs, or with `compare.Side` one model each, also of one run.

    Raises UsageError or ConflictError.
    """
    from astra_async.report import compare

    return compare.compare_runs(a, b)


def print_comparison(comparison: RunComparison, console: Console) -> None:
    """Print what got better, what got worse and which of it is real."""
    from astra_async.report.text import render_terminal

    _print_warnings(comparison.warnings, console)
    _print_conclusions(comparison.conclusions, console)
    render_terminal(comparison.tables(), console)


def plan_run(directory: Path, target_se_points: float) -> RunPlan:
    """From a pilot, what a wanted precision takes; raises UsageError or ConflictError."""
    from astra_async.report import precision

    return precision.plan_run(directory, target_se_points)


def print_plan(plan: RunPlan, console: Console) -> None:
    """Print the pilot's variances and the sizes that reach the target."""
    from astra_async.report.text import render_terminal

    _print_warnings(plan.warnings, console)
    _print_conclusions(plan.conclusions, console)
    render_terminal(plan.tables(), console)


def tables_for_programs(found: RunComparison | RunPlan) -> dict[str, Any]:
    """Conclusions, warnings, and each table by its name with title, notes and rows, fit for JSON."""
    from astra_async.report.table import records

    return {
        "conclusions": found.conclusions,
        "warnings": found.warnings,
        "tables": {
            table.name: {"title": table.title, "notes": table.notes, "rows": records(table)}
            for table in found.tables()
        },
    }


def _print_head(report: Report, console: Console) -> None:
    _print_warnings(report.warnings, console)
    if report.simulated:
        console.print(
            "These models are simulated: the numbers say nothing about any real model.", style="bold"
        )
    _print_conclusions(report.conclusions, console)


def _print_conclusions(sentences: Sequence[str], console: Console) -> None:
    for sentence in sentences:
        console.print(sentence, markup=False, highlight=False)
    if sentences:
        console.print()


def _print_warnings(warnings: Sequence[str], console: Console) -> None:
    for warning in warnings:
        console.print(f"warning: {warning}", style="yellow", markup=False, highlight=False)
