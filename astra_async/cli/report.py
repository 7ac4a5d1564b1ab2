"""`astra report`, `compare`, `plan` and `export`: evaluate recorded lines, without Docker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from astra_async.cli.console import json_option, open_console, say, takes_standard_output, tell, write_json
from astra_async.errors import UsageError
from astra_async.types.run_record import read_run, require_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.report.compare import Side
    from astra_async.report.load import Run

_RUN = click.Path(path_type=Path, file_okay=False, exists=True)
_TARGETS = ("inspect", "parquet", "hf", "eee", "junit", "atif")


@click.command()
@click.argument("directories", type=_RUN, nargs=-1, required=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write. Default: report/ in the run directory; for several, in the current folder.",
)
@click.option("--all", "everything", is_flag=True, help="Print every table instead of the leaderboard.")
@click.option("--png", "pictures", is_flag=True, help="Also write every plot as PNG.")
@json_option("Write report.json also to this file")
def report(directories: tuple[Path, ...], *, out: Path | None, json_path: Path | None, **how: bool) -> None:
    """Write tables, plots and an HTML page from run directories; print the conclusions."""
    default = directories[0] / "report" if len(directories) == 1 else Path("report")
    write_and_print(directories, out or default, json_path=json_path, **how)


@click.command()
@click.argument("directories", type=_RUN, nargs=-1, required=True, metavar="A [B]")
@click.option(
    "--models",
    nargs=2,
    metavar="A B",
    help="Models to compare, MODEL or 'MODEL (FORMAT)': two of one run, or one of each run.",
)
@json_option("Write the tables with all digits as JSON to this file")
def compare(directories: tuple[Path, ...], *, models: tuple[str, str] | None, json_path: Path | None) -> None:
    """Compare two runs on the same problems, or two models of one run, with tests and intervals."""
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
        require_run(directories[0])
        run = read_run(directories[0] / "run.json")
        raise UsageError(
            f"only {directories[0]} is given: add another run, or two models with --models A B"
            f" (it has {', '.join(model['name'] for model in run.get('models', [])) or 'none'})"
        )
    one, other = models or (None, None)
    return Side(directory=directories[0], model=one), Side(directory=directories[-1], model=other)


@click.command()
@click.argument("directory", type=_RUN)
@click.option(
    "--target-se",
    type=float,
    required=True,
    metavar="POINTS",
    help="Target standard error of the mean score, in points.",
)
@json_option("Write the tables with all digits as JSON to this file")
def plan(directory: Path, *, target_se: float, json_path: Path | None) -> None:
    """Calculate from a pilot run the samples or problems for a target standard error."""
    from astra_async.report.precision import plan_run
    from astra_async.report.text import print_findings

    found = plan_run(directory, target_se)
    target = {"directory": str(directory), "target_se_points": target_se}
    write_json(json_path, target | found.record())
    print_findings(found, open_console(stderr=takes_standard_output(json_path)))


def write_and_print(
    directories: Sequence[Path],
    out: Path,
    *,
    json_path: Path | None = None,
    everything: bool = False,
    pictures: bool = False,
) -> None:
    """Write the report; print its conclusions, its leaderboard or all tables, and the page's path."""
    from astra_async.report.tables import build_report
    from astra_async.report.text import print_report
    from astra_async.report.write import report_record, write_built

    is_json = takes_standard_output(json_path)
    built = build_report(directories)
    print_report(built, open_console(stderr=is_json), everything=everything)
    index = write_built(built, out, pictures=pictures)
    write_json(json_path, report_record(built))
    tell_text = tell if is_json else say
    if not everything:
        tell_text(f"Every table: astra report {' '.join(map(str, directories))} --all, or the page")
    tell_text(str(index))


@click.command()
@click.argument("directories", type=_RUN, nargs=-1, required=True)
@click.option("--to", "target", type=click.Choice(_TARGETS), required=True, help="Format of the export.")
@click.option("--out", type=click.Path(path_type=Path), help="File or folder to write. Default: DIR/export/.")
@click.option(
    "--with-answers",
    is_flag=True,
    help="Include answers; for inspect also prompts and steps of agents (not for junit).",
)
@click.option(
    "--min-pass",
    type=click.FloatRange(0, 1),
    default=1.0,
    help="junit: required share of samples that pass all tests, from 0 to 1.",
)
def export(
    directories: tuple[Path, ...], *, target: str, out: Path | None, with_answers: bool, min_pass: float
) -> None:
    """Export runs for inspect_ai, pandas, the hub, every_eval_ever or continuous integration.

    Missing samples are omitted, null or errors, never 0.
    """
    from astra_async.report.load import load_run

    runs = tuple(load_run(directory) for directory in directories)
    for run in runs:
        for warning in run.warnings:
            tell(f"warning: {warning}")
    place = out or directories[0] / "export" / ("junit.xml" if target == "junit" else target)
    place.parent.mkdir(parents=True, exist_ok=True)
    _export(runs, target, place, with_answers=with_answers, min_pass=min_pass)
    missing = sum(len(run.missing) for run in runs)
    if missing:
        tell(f"{missing} planned samples have no result and are not exported as 0")
    if not with_answers and target not in {"junit", "atif"}:
        tell("prompts and answers are not exported; add --with-answers to include them")
    say(str(place))


def _export(runs: tuple[Run, ...], target: str, place: Path, *, with_answers: bool, min_pass: float) -> None:
    match target:
        case "junit":
            from astra_async.export.junit import write_junit

            write_junit(runs, place, min_pass=min_pass)
        case "atif":
            from astra_async.export.atif import write_atif

            if not write_atif(runs, place):
                raise UsageError("the run has no samples of agents: --to atif needs a run with --agent")
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
