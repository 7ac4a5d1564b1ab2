"""`astra report`, `astra compare`, `astra plan`: conclusions from recorded lines, without Docker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from astra_async.cli.console import json_option, open_console, say, takes_standard_output, write_json
from astra_async.errors import UsageError
from astra_async.types.records import read_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.report.compare import Side

_RUN = click.Path(path_type=Path, file_okay=False, exists=True)


@click.command()
@click.argument("directories", type=_RUN, nargs=-1, required=True)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Default: report/ in the first."
)
@click.option("--all", "everything", is_flag=True, help="Print every table, not the leaderboard only.")
def report(directories: tuple[Path, ...], *, out: Path | None, everything: bool) -> None:
    """Write tables, plots and one HTML page from one or several run directories; print what they show."""
    write_and_print(directories, out or directories[0] / "report", everything=everything)


@click.command()
@click.argument("directories", type=_RUN, nargs=-1, required=True, metavar="A [B]")
@click.option(
    "--models", nargs=2, metavar="A B", help="Compare these two models: of one run, or one of each run."
)
@json_option("Where the tables go with all digits")
def compare(directories: tuple[Path, ...], *, models: tuple[str, str] | None, json_path: Path | None) -> None:
    """Compare two runs of the same problems, or two models of one: what is better, and what of it is real."""
    from astra_async.report.compare import compare_runs
    from astra_async.report.text import print_findings

    before, after = _sides(directories, models)
    found = compare_runs(before, after)
    write_json(json_path, {"a": str(before), "b": str(after), **found.record()})
    print_findings(found, open_console(stderr=takes_standard_output(json_path)))


def _sides(directories: Sequence[Path], models: tuple[str, str] | None) -> tuple[Side, Side]:
    from astra_async.report.compare import Side

    if len(directories) > 2:  # noqa: PLR2004 - a pair
        raise UsageError(f"{len(directories)} directories: give two runs, or one and --models A B")
    if len(directories) == 1 and models is None:
        raise UsageError(
            f"{directories[0]} alone: name another run, or two of its models with --models A B"
            f" (it has {', '.join(_models(directories[0])) or 'none'})"
        )
    one, other = models or (None, None)
    return Side(directory=directories[0], model=one), Side(directory=directories[-1], model=other)


@click.command()
@click.argument("directory", type=_RUN)
@click.option("--target-se", type=float, required=True, metavar="POINTS", help="Standard error wanted.")
@json_option("Where the tables go with all digits")
def plan(directory: Path, *, target_se: float, json_path: Path | None) -> None:
    """Say from a pilot run how many samples or problems a wanted precision of the mean score takes."""
    from astra_async.report.precision import plan_run
    from astra_async.report.text import print_findings

    found = plan_run(directory, target_se)
    target = {"directory": str(directory), "target_se_points": target_se}
    write_json(json_path, target | found.record())
    print_findings(found, open_console(stderr=takes_standard_output(json_path)))


def _models(directory: Path) -> list[str]:
    try:
        return [model["name"] for model in read_run(directory / "run.json").get("models", [])]
    except FileNotFoundError as error:
        raise UsageError(f"{directory}: no run.json there; name a run directory") from error


def write_and_print(directories: Sequence[Path], out: Path, *, everything: bool = False) -> None:
    """Write the report and print its conclusions and leaderboard (or all tables), the page's path last."""
    from astra_async.report.tables import build_report
    from astra_async.report.text import print_report
    from astra_async.report.write import write_built

    console = open_console()
    built = build_report(directories)
    print_report(built, console, everything=everything)
    index = write_built(built, out)
    if not everything:
        say(f"Every table: astra report {' '.join(map(str, directories))} --all, or the page")
    say(index)
