"""`astra report`, `astra compare`, `astra plan`: conclusions from recorded lines, without Docker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from astra_async.cli.console import open_console, say
from astra_async.cli.json_file import json_option, takes_standard_output, write_json

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
@json_option("Where the tables go with all digits")
def compare(before: Path, after: Path, *, json_path: Path | None) -> None:
    """Compare two runs of the same problems, paired: what got better, what got worse, which is real."""
    from astra_async.report import compare_runs, print_comparison, tables_for_programs

    found = compare_runs(before, after)
    write_json(json_path, {"a": str(before), "b": str(after), **tables_for_programs(found)})
    print_comparison(found, open_console(stderr=takes_standard_output(json_path)))


@click.command()
@click.argument("directory", type=_RUN)
@click.option("--target-se", type=float, required=True, metavar="POINTS", help="Standard error wanted.")
@json_option("Where the tables go with all digits")
def plan(directory: Path, *, target_se: float, json_path: Path | None) -> None:
    """Say from a pilot run how many samples or problems a wanted precision of the mean score takes."""
    from astra_async.report import plan_run, print_plan, tables_for_programs

    found = plan_run(directory, target_se)
    target = {"directory": str(directory), "target_se_points": target_se}
    write_json(json_path, target | tables_for_programs(found))
    print_plan(found, open_console(stderr=takes_standard_output(json_path)))


def write_and_print(directories: Sequence[Path], out: Path, *, full: bool = False) -> None:
    """Write the report and print its leaderboard (or all tables), the page's path last."""
    from astra_async.report import build_report, print_leaderboard, print_report
    from astra_async.report.write import write_built

    console = open_console()
    built = build_report(directories)
    (print_report if full else print_leaderboard)(built, console)
    say(write_built(built, out).index)
