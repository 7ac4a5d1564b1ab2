"""`astra problems` for a folder of Harbor tasks: images, limits, and the tasks that are left out."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from astra_async.cli.console import open_console, takes_standard_output, write_json
from astra_async.errors import ImageError, ProblemsError
from astra_async.harbor.environment import agent_image
from astra_async.harbor.task import TaskSet, read_tasks
from astra_async.harbor.task_preparation import error_in_variables
from astra_async.listing import grouped_by_text
from astra_async.problems import select
from astra_async.types import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from astra_async.config import RunConfig
    from astra_async.harbor.task import HarborTask

_COLUMNS = ("id", "image", "CPUs", "memory", "storage", "network", "user", "agent time", "verifier time")
_GIGABYTE = 1024


async def show_tasks(config: RunConfig, json_path: Path | None) -> int:
    """Print the tasks that --problems names, and write them as JSON if asked; 1 if none can run.

    Raises ProblemsError if a task is invalid, UsageError if --only names an unknown task.
    """
    found = await asyncio.to_thread(read_tasks, Path(config.problems))
    problems = [
        Problem(id=task.id, statement=task.instruction, project=str(task.folder)) for task in found.tasks
    ]
    chosen = {each.id for each in select(problems, only=config.only, skill=config.skill, limit=config.limit)}
    tasks = [task for task in found.tasks if task.id in chosen]
    records, invalid = await asyncio.to_thread(_records, tasks)
    usable = tuple(task for task in found.tasks if task.id not in invalid)
    found = TaskSet(tasks=usable, left_out={**found.left_out, **invalid})
    warnings = [found.summary] if found.left_out else []
    warnings += grouped_by_text((task.id, text) for task in tasks for text in task.warnings)
    warnings += grouped_by_text((task.id, text) for task in tasks if (text := error_in_variables(task)))
    left_out = dict(found.left_out)
    write_json(json_path, {"schema": 1, "tasks": records, "left_out": left_out, "warnings": warnings})
    console = open_console(stderr=takes_standard_output(json_path))
    _print(records, console)
    for line in (*(f"warning: {each}" for each in warnings), *grouped_by_text(found.left_out.items())):
        console.print(line, soft_wrap=True, markup=False)
    return 0 if found.tasks else 1


def _records(tasks: Sequence[HarborTask]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the records of tasks, and the errors of the others by their ids."""
    records, invalid = [], {}
    for task in tasks:
        try:
            records.append(_record(task))
        except (ProblemsError, ImageError) as error:
            invalid[task.id] = f"invalid: {error}"
    return records, invalid


def _record(task: HarborTask) -> dict[str, Any]:
    """Return what `--json` writes of a task (docs/formats.md): sizes in MB, times in seconds."""
    environment, agent, verifier = task.config.environment, task.config.agent, task.config.verifier
    image, build = agent_image(task)
    return {
        "id": task.id,
        "sha256": task.sha256,
        "image": image,
        "is_built": build is not None,
        "cpus": environment.cpus,
        "memory_mb": environment.memory_mb,
        "storage_mb": environment.storage_mb,
        "agent": {"network": task.agent_network, "user": agent.user, "timeout_s": agent.timeout_sec},
        "verifier": {
            "network": task.verifier_network,
            "user": verifier.user,
            "timeout_s": verifier.timeout_sec,
            "mode": "separate" if task.is_separate else "shared",
        },
        "has_solution": task.has_solution,
    }


def _print(records: list[dict[str, Any]], console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(*_COLUMNS)
    for record in records:
        table.add_row(*map(Text, _row(record)))
    console.print(table)


def _row(record: Mapping[str, Any]) -> tuple[str, ...]:
    agent, verifier = record["agent"], record["verifier"]

    def both(key: str) -> str:
        """Return the agent's setting, and the verifier's if it differs."""
        of_agent, of_verifier = ("" if each[key] is None else str(each[key]) for each in (agent, verifier))
        return of_agent if of_agent == of_verifier else f"{of_agent or 'image'} / {of_verifier or 'image'}"

    return (
        record["id"],
        "Dockerfile" if record["is_built"] else record["image"],
        _shown(record["cpus"]),
        _size(record["memory_mb"]),
        _size(record["storage_mb"]),
        both("network"),
        both("user"),
        _shown(agent["timeout_s"], " s"),
        _shown(verifier["timeout_s"], " s") + (", separate" if verifier["mode"] == "separate" else ""),
    )


def _shown(value: float | None, unit: str = "") -> str:
    return "" if value is None else f"{value:g}{unit}"


def _size(megabytes: int | None) -> str:
    return "" if megabytes is None else f"{megabytes / _GIGABYTE:g} GB"
