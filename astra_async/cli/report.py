"""`astra report`, `compare`, `plan` and `export`: what recorded lines show, and to whom, without Docker."""

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
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Default: report/ in the first."
)
@click.option("--all", "everything", is_flag=True, help="Print every table, not the leaderboard only.")
@click.option("--png", "pictures", is_flag=True, help="Every plot also as a PNG picture.")
def report(directories: tuple[Path, ...], *, out: Path | None, everything: bool, pictures: bool) -> None:
    """Write tables, plots and one HTML page from one or several run directories; print what they show."""
    write_and_print(directories, out or directories[0] / "report", everything=everything, pictures=pictures)


@click.command()
@click.argument("directories", type=_RUN, nargs=-1, required=True, metavar="A [B]")
@click.option(
    "--models",
    nargs=2,
    metavar="A B",
    help="Compare these two, MODEL or 'MODEL (FORMAT)': of one run, or one of each run.",
)
@json_option("Where the tables go with all digits")
def compare(directories: tuple[Path, ...], *, models: tuple[str, str] | None, json_path: Path | None) -> None:
    """Compare two runs of the same problems, or two models of one: what is better, and how sure that is."""
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
            f"{directories[0]} alone: name another run, or two of its models with --models A B"
            f" (it has {', '.join(model['name'] for model in run.get('models', [])) or 'none'})"
        )
    one, other = models or (None, None)
    return Side(directory=directories[0], model=one), Side(directory=directories[-1], model=other)


@click.command()
@click.argument("directory", type=_RUN)
@click.option("--target-se", type=float, required=True, metavar="POINTS", help="Standard error wanted.")
@json_option("Where the tables go with all digits")
def plan(directory: Path, *, target_se: float, json_path: Path | None) -> None:
    """Say from a pilot run how many samples or problems a precise mean score takes."""
    from astra_async.report.precision import plan_run
    from astra_async.report.text import print_findings

    found = plan_run(directory, target_se)
    target = {"directory": str(directory), "target_se_points": target_se}
    write_json(json_path, target | found.record())
    print_findings(found, open_console(stderr=takes_standard_output(json_path)))


def write_and_print(
    directories: Sequence[Path], out: Path, *, everything: bool = False, pictures: bool = False
) -> None:
    """Write the report and print its conclusions and leaderboard (or all tables), the page's path last."""
    from astra_async.report.tables import build_report
    from astra_async.report.text import print_report
    from astra_async.report.write import write_built

    console = open_console()
    built = build_report(directories)
    print_report(built, console, everything=everything)
    index = write_built(built, out, pictures=pictures)
    if not everything:
        say(f"Every table: astra report {' '.join(map(str, directories))} --all, or the page")
    say(index)


@click.command()
@click.argument("directories", type=_RUN, nargs=-1, required=True)
@click.option("--to", "target", type=click.Choice(_TARGETS), required=True, help="The format.")
@click.option("--out", type=click.Path(path_type=Path), help="File or folder; DIR/export/ if not given.")
@click.option(
    "--with-answers",
    is_flag=True,
    help="Answers too, and for inspect prompts and agents' steps (not in junit).",
)
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
    place = out or directories[0] / "export" / ("junit.xml" if target == "junit" else target)
    place.parent.mkdir(parents=True, exist_ok=True)
    _export(runs, target, place, with_answers=with_answers, min_pass=min_pass)
    missing = sum(len(run.missing) for run in runs)
    if missing:
        tell(f"{missing} planned samples have no result and are not in it as 0")
    if not with_answers and target not in {"junit", "atif"}:
        tell("prompts and answers are not in it; --with-answers puts them in")
    say(str(place))


def _export(runs: tuple[Run, ...], target: str, place: Path, *, with_answers: bool, min_pass: float) -> None:
    match target:
        case "junit":
            from astra_async.export.junit import write_junit

            write_junit(runs, place, min_pass=min_pass)
        case "atif":
            from astra_async.export.atif import write_atif

            if not write_atif(runs, place):
                raise UsageError("no sample of an agent is there: --to atif is for runs with --agent")
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
