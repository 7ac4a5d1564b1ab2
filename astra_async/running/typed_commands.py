"""The commands of a run as they were typed, and which of them goes on with what is missing.

run.json keeps each command with what it plans, so that nobody is told to type one that does something else: a
call with `--only` leaves other problems to the command before it.
"""

from __future__ import annotations

import operator
import os
import shlex
from typing import TYPE_CHECKING, Any

from astra_async.redaction import mask, public_url
from astra_async.running.log import now_utc

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from astra_async.config import RunConfig
    from astra_async.metrics import Metrics

Cell = tuple[str, str, str]  # model, format, problem
RECORD_ONLY = "--generate-only"


def recorded_command(config: RunConfig, problem_ids: Sequence[str]) -> dict[str, Any]:
    """`commands` of run.json for this call; nothing where there was no command line (from Python)."""
    if not config.command:
        return {}
    plan = {
        "at": now_utc(),
        "folder": os.getcwd(),  # noqa: PTH109 - as text, also where it was removed meanwhile
        "models": [model.name for model in config.models],
        "formats": list(config.formats),
        "problems": list(problem_ids),
        "samples": config.samples,
    }
    return {typed(config.command): plan}


def typed(words: Sequence[str]) -> str:
    """The words as they are typed in a shell, without what is secret."""
    return shlex.join(public_url(word) if "://" in word else mask(word) for word in words)


def without(command: str, flag: str) -> str:
    """The command without a flag that takes no value."""
    return shlex.join(word for word in shlex.split(command) if word != flag)


def missing_cells(metrics: Metrics, run: Mapping[str, Any]) -> set[Cell]:
    """Where planned samples have no verdict yet."""
    return {
        (row.model, row.format, row.problem_id)
        for model in run["models"]
        for fmt in run["formats"]
        for row in metrics.problem_rows(model["name"], fmt)
        if row.valid < row.planned
    }


def that_go_on(run: Mapping[str, Any], missing: Collection[Cell], *, answered: bool) -> list[str]:
    """The commands that together make up for what is missing: the last that can comes first.

    Where all answers are recorded, `answered`, one that only recorded them goes on without that flag.
    """
    found = []
    missing = set(missing)
    calls: Mapping[str, Mapping[str, Any]] = run.get("commands", {})
    for command, plan in sorted(calls.items(), key=lambda call: call[1]["at"], reverse=True):
        planned = (plan["models"], plan["formats"], plan["problems"])
        covered = {cell for cell in missing if all(map(operator.contains, planned, cell))}
        if covered and plan["samples"] >= run["samples"]:
            missing = missing - covered
            shown = without(command, RECORD_ONLY) if answered else command
            here = plan["folder"] == os.getcwd()  # noqa: PTH109 - as above
            found.append(shown if here else f"cd {shlex.quote(plan['folder'])} && {shown}")
    return found
