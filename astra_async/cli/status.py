"""`astra status`: how a run stands, from its files alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from astra_async.cli.console import open_console, say
from astra_async.cli.display import Screen
from astra_async.running.ownership import owner_of
from astra_async.running.progress import view_of_directory
from astra_async.types.records import require_run

if TYPE_CHECKING:
    from astra_async.running.progress import View


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False, exists=True))
def status(directory: Path) -> None:
    """Show how far a run is, whether it is running, finished or was killed; changes nothing."""
    require_run(directory)
    owner, view = owner_of(directory), view_of_directory(directory)
    say(f"{directory}: {_state(owner, view)}")
    open_console().print(Screen(view, live=owner is not None))
    if owner is None:
        say(_next_step(directory, view))


def _state(owner: int | None, view: View) -> str:
    if owner is not None:
        return f"running, process {owner or 'unknown'}"
    return "complete" if view.final == view.planned else "not running, not complete"


def _next_step(directory: Path, view: View) -> str:
    if view.final == view.planned:
        return f"next: astra report {directory}"
    if view.answered == view.planned:
        return "next: the `astra run` command of this directory without --generate-only grades the answers"
    return "next: the `astra run` command of this directory, once more, goes on where it stopped"
