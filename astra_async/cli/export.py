"""`astra export`: a run in other tools' formats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from astra_async.cli.console import say, tell

if TYPE_CHECKING:
    from astra_async.report.load import Run

_RUN = click.Path(path_type=Path, file_okay=False, exists=True)
_DEFAULTS = {"inspect": "inspect", "parquet": "parquet", "hf": "hf", "eee": "eee", "junit": "junit.xml"}


@click.command()
@click.argument("directories", type=_RUN, nargs=-1, required=True)
@click.option("--to", "target", type=click.Choice(list(_DEFAULTS)), required=True, help="The format.")
@click.option("--out", type=click.Path(path_type=Path), help="File or folder; DIR/export/ if not given.")
@click.option("--with-answers", is_flag=True, help="The models' answers too (not in junit).")
@click.option(
    "--min-pass",
    type=click.FloatRange(0, 1),
    default=1.0,
    help="junit: share of a problem's samples that have to pass all tests.",
)
def export(
    directories: tuple[Path, ...], *, target: str, out: Path | None, with_answers: bool, min_pass: float
) -> None:
    """Write one or several runs for inspect_ai, pandas, the hub, every_eval_ever or continuous integration.

    Missing samples are absent, null or errors there, never 0.
    """
    from astra_async.report.load import load_run

    runs = tuple(load_run(directory) for directory in directories)
    for run in runs:
        for warning in run.warnings:
            tell(f"warning: {warning}")
    place = out or directories[0] / "export" / _DEFAULTS[target]
    place.parent.mkdir(parents=True, exist_ok=True)
    _write(runs, target, place, with_answers=with_answers, min_pass=min_pass)
    missing = sum(len(run.missing) for run in runs)
    if missing:
        tell(f"{missing} planned samples have no result and are not in it as 0")
    say(str(place))


def _write(runs: tuple[Run, ...], target: str, place: Path, *, with_answers: bool, min_pass: float) -> None:
    match target:
        case "junit":
            from astra_async.export.junit import write_junit

            write_junit(runs, place, min_pass=min_pass)
        case "inspect":
            from astra_async.export.inspect_log import write_inspect

            write_inspect(runs, place, with_answers=with_answers)
        case "eee":
            from astra_async.export.every_eval_ever import write_every_eval_ever

            for left_out in write_every_eval_ever(runs, place, with_answers=with_answers):
                tell(left_out)
        case _:
            from astra_async.export.parquet import write_parquet

            write_parquet(runs, place, with_answers=with_answers)
