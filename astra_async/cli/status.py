"""`astra status`: how a run stands, from its files alone."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from astra_async.cli.console import open_console, say
from astra_async.cli.display import Screen
from astra_async.report.answer_warnings import warnings_of_run
from astra_async.running.description import that_go_on
from astra_async.running.held import owner_of
from astra_async.running.progress import view_of_directory
from astra_async.types.run_record import missing_answers, read_run, require_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.running.description import Cell
    from astra_async.running.progress import View


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False, exists=True))
def status(directory: Path) -> None:
    """Show how far a run is, whether it is running, finished or was killed; changes nothing."""
    require_run(directory)
    owner = owner_of(directory)
    view, missing = view_of_directory(directory)
    run = read_run(directory / "run.json")
    missing = missing or _of_a_next_round(run)
    say(f"{directory}: {_state(owner, missing)}")
    open_console().print(Screen(view, live=owner is not None))
    for warning in (*missing_answers(directory), *warnings_of_run(directory)):
        say(f"warning: {warning}")
    if owner is None:
        for line in _next_steps(directory, run, view, missing):
            say(line)


def _of_a_next_round(run: Mapping[str, Any]) -> set[Cell]:
    """What a run with `--until` may ask for yet although all that is planned is there."""
    if "planned" not in (record := run.get("deciding") or {}):
        return set()
    from astra_async.report.deciding import has_open_pairs  # numpy, which no other run needs

    formats = run["formats"]
    return (
        set(product(record["planned"], formats, run["problems"]))
        if has_open_pairs(record, formats)
        else set()
    )


def _state(owner: int | None, missing: set[Cell]) -> str:
    if owner is not None:
        return f"running, process {owner or 'unknown'}"
    return "not running, not complete" if missing else "complete"


def _next_steps(directory: Path, run: Mapping[str, Any], view: View, missing: set[Cell]) -> list[str]:
    if not missing:
        return [f"next: astra report {directory}"]
    all_answered = view.answered == view.planned > view.final
    commands = that_go_on(run, missing, answered=all_answered)
    what = "tests the recorded answers" if all_answered else "goes on where it stopped"
    if not commands:  # begun from Python, or by an earlier version
        return [f"next: what began this run, once more, {what}"]
    return [f"next: {command}" for command in commands] + [f"      {what}; nothing is asked for twice"]
