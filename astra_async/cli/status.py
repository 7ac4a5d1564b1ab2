"""`astra status`: progress of a run from its files."""

from __future__ import annotations

from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from astra_async.cli.console import json_option, open_console, say, takes_standard_output, tell, write_json
from astra_async.cli.display import Screen
from astra_async.report.answer_warnings import warnings_of_run
from astra_async.running.description import commands_to_finish
from astra_async.running.missing import sufficient_budget_usd
from astra_async.running.progress import view_of_directory
from astra_async.running.spool import owner_of
from astra_async.types.run_record import missing_answers, read_run, require_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.running.description import Cell
    from astra_async.running.progress import View


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False, exists=True))
@json_option("Write state, counts and missing samples as JSON to this file")
def status(directory: Path, *, json_path: Path | None) -> None:
    """Show progress, state and missing samples of a run; changes nothing."""
    require_run(directory)
    owner = owner_of(directory)
    view, missing = view_of_directory(directory)
    run = read_run(directory / "run.json")
    missing = missing or _of_a_next_round(run)
    warnings = (*missing_answers(directory), *warnings_of_run(directory))
    steps = _next_steps(directory, run, view, missing) if owner is None else []
    record = {"schema": 1, "directory": str(directory), "state": _state(owner, missing), "process": owner}
    record |= {"progress": asdict(view), "missing": sorted(missing), "warnings": warnings, "next": steps}
    write_json(json_path, record)
    tell_text = tell if takes_standard_output(json_path) else say
    tell_text(f"{directory}: {_state(owner, missing)}")
    console = open_console(stderr=takes_standard_output(json_path))
    console.print(Screen(view, live=owner is not None))
    for warning in warnings:
        tell_text(f"warning: {warning}")
    for line in steps:
        tell_text(line)


def _of_a_next_round(run: Mapping[str, Any]) -> set[Cell]:
    """Return the samples that a run with `--until` may still request after its planned rounds."""
    if "planned" not in (record := run.get("deciding") or {}):
        return set()
    from astra_async.report.deciding import has_open_pairs  # imports numpy, which other runs do not need

    formats = run["formats"]
    is_open = has_open_pairs(record, formats)
    return set(product(record["planned"], formats, run["problems"])) if is_open else set()


def _state(owner: int | None, missing: set[Cell]) -> str:
    if owner is not None:
        return f"running, process {owner or 'unknown'}"
    return "not running, not complete" if missing else "complete"


def _next_steps(directory: Path, run: Mapping[str, Any], view: View, missing: set[Cell]) -> list[str]:
    if not missing:
        return [f"next: astra report {directory}"]
    all_answered = view.answered == view.planned > view.final
    budget_usd = sufficient_budget_usd(directory)
    commands = commands_to_finish(run, missing, answered=all_answered, budget_usd=budget_usd)
    what = "tests the recorded answers" if all_answered else "continues the run"
    what += " with a higher budget" if budget_usd else ""
    if not commands:  # started from Python, or by an earlier version
        return [f"next: start this run again from the same program; it {what}"]
    return [f"next: {command}" for command in commands] + [
        f"      {what}; no recorded answer is requested again"
    ]
