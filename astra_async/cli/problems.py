"""`astra problems`: what was loaded, and Table 1 of the paper computed from it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from astra_async.cli.options import config_options
from astra_async.cli.wiring import data_config, load_problem_set, ready_problems
from astra_async.problems import select

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.config import RunConfig
    from astra_async.prepare import Prepared
    from astra_async.problems import ProblemSet


@click.command()
@config_options("problems", "projects", "column", "only", "skill", "limit")
def problems(*, config_file: Path | None, **given: Any) -> int:
    """Show the problems that were loaded, how columns were read, and the paper's Table 1 of them."""
    config = data_config(given, config_file)
    found = load_problem_set(config.problems, config.projects, config.columns)
    return asyncio.run(_show(config, found))


async def _show(config: RunConfig, found: ProblemSet) -> int:
    from rich.console import Console
    from rich.table import Table

    chosen = select(found.problems, only=config.only, skill=config.skill, limit=config.limit)
    ready, failed = await ready_problems(config, chosen)
    console = Console()
    columns = ", ".join(
        field if field == header else f"{field} = {header!r}" for field, header in found.columns.items()
    )
    console.print(f"columns: {columns}", markup=False, highlight=False)
    if found.unused:
        console.print(f"not used: {', '.join(found.unused)}", markup=False, highlight=False)
    for warning in found.warnings:
        console.print(f"warning: {warning}", markup=False, highlight=False)
    table = Table("id", "name", "main skill", "sub-skills", "tests", "files", "characters", "image")
    for problem in chosen:
        if problem.id in ready:
            table.add_row(*_row(ready[problem.id]))
    console.print(table)
    _print_table_1(ready, console)
    for error in failed.values():
        console.print(str(error), style="red", markup=False, highlight=False)
    for item in ready.values():
        for warning in item.warnings:
            console.print(f"{item.problem.id}: {warning}", style="yellow", markup=False, highlight=False)
    return 1 if failed else 0


def _row(item: Prepared) -> tuple[str, ...]:
    problem, prompt = item.problem, next(iter(item.prompts.values()))
    return (
        problem.id,
        problem.name,
        problem.main_skill,
        ", ".join(problem.sub_skills),
        str(len(problem.tests) or "?"),
        str(len(prompt.files)),
        str(len(prompt.text)),
        problem.image,
    )
