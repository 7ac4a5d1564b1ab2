"""`astra report`, `astra compare`, `astra plan`: conclusions from recorded lines, without Docker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from astra_async.cli.console import open_console

if TYPE_CHECKING:
    from collections.abc import Sequence

_RUN = click.Path(path_type=Path, file_okay=False, exists=True)


@click.command()
@click.argument("directories", type=_RUN, nargs=-1, required=True)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Default: report/ in the first."
)
def report(directories: tuple[Path, ...], *, out: Path | None) -> None:
    """Write tables, plots and one HTML page from one or several run directories."""
    write_and_print(directories, out or directories[0] / "report", full=True)


@click.command()
@click.argument("before", type=_RUN)
@click.argument("after", type=_RUN)
def compare(before: Path, after: Path) -> None:
    """Compare two runs of the same problems, paired: what got better, what got worse, which is real."""
    from astra_async.report import compare_runs, print_comparison

    print_comparison(compare_runs(before, after), open_console())


@click.command()
@click.argument("directory", type=_RUN)
@click.option("--target-se", type=float, required=True, metavar="POINTS", help="Standard error wanted.")
def plan(directory: Path, *, target_se: float) -> None:
    """Say from a pilot run how many samples or problems a wanted precision of the mean score takes."""
    from astra_async.report import plan_run, print_plan

    print_plan(plan_run(directory, target_se), open_console())


def write_and_print(directories: Sequence[Path], out: Path, *, full: bool = False) -> None:
    """Write the report and print its leaderboard (or all tables), the page's path last."""
    from astra_async.report import build_report, print_leaderboard, print_report
    from astra_async.report.write import write_built

    console = open_console()
    built = build_report(directories)
    (print_report if full else print_leaderboard)(built, console)
    click.echo(write_built(built, out).index)
