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


def write_and_print(directories: Sequence[Path], out: Path, *, full: bool = False) -> None:
    """Write the report and print its leaderboard (or all tables), the page's path last."""
    from astra_async.report import build_report, print_leaderboard, print_report
    from astra_async.report.write import write_built

    console = open_console()
    built = build_report(directories)
    (print_report if full else print_leaderboard)(built, console)
    click.echo(write_built(built, out).index)
