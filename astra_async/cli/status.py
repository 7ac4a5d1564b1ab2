"""`astra status`: how a run stands, from its files alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from astra_async.cli.console import open_console, say
from astra_async.cli.display import Screen
from astra_async.running.ownership import owner_of
from astra_async.running.progress import view_of_directory
from astra_async.running.typed_commands import that_go_on
from astra_async.types.records import read_run, require_run

if TYPE_CHECKING:
    from astra_async.running.progress import View
    from astra_async.running.typed_commands import Cell


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False, exists=True))
def status(directory: Path) -> None:
    """Show how far a run is, whether it is running, finished or was killed; changes nothing."""
    require_run(directory)
    owner = owner_of(directory)
    view, missing = view_of_directory(directory)
    say(f"{directory}: {_state(owner, view)}")
    open_console().print(Screen(view, live=owner is not None))
    if owner is None:
        for line in _next_steps(directory, view, missing):
            say(line)


def _state(owner: int | None, view: View) -> str:
    if owner is not None:
        return f"running, process {owner or 'unknown'}"
    return "complete" if view.final == view.planned else "not running, not complete"


def _next_steps(directory: Path, view: View, missing: set[Cell]) -> list[str]:
    if view.final == view.planned:
        return [f"next: astra report {directory}"]
    all_answered = view.answered == view.planned
    commands = that_go_on(read_run(directory / "run.json"), missing, answered=all_answered)
    what = "tests the recorded answers" if all_answered else "goes on where it stopped"
    if not commands:  # begun from Python, or by an earlier version
        return [f"next: what began this run, once more, {what}"]
    return [f"next: {command}" for command in commands] + [f"      {what}; nothing is asked for twice"]
