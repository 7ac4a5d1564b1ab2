"""`astra problems`: what was loaded, and Table 1 of the paper computed from it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from astra_async.cli.console import open_console, tell
from astra_async.cli.options import config_options
from astra_async.integrity.javascript_runner import javascript_runner
from astra_async.integrity.twin import survey
from astra_async.problems import select
from astra_async.problems.prepare import problem_description
from astra_async.running.wiring import data_config, load_problem_set, ready_problems

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.config import RunConfig
    from astra_async.problems import ProblemSet
    from astra_async.problems.prepare import Prepared
    from astra_async.report.dataset import ProblemFacts


@click.command()
@config_options("problems", "projects", "column", "only", "skill", "limit")
def problems(*, config_file: Path | None, **given: Any) -> int:
    """Show the problems that were loaded, how columns were read, and the paper's Table 1 of them."""
    config = data_config(given, config_file)
    found = load_problem_set(config.problems, config.projects, config.columns)
    return asyncio.run(_show(config, found))


async def _show(config: RunConfig, found: ProblemSet) -> int:
    from rich.table import Table

    from astra_async.report.dataset import table_1
    from astra_async.report.text import render_terminal

    chosen = select(found.problems, only=config.only, skill=config.skill, limit=config.limit)
    ready, failed = await ready_problems(config, chosen, tell)
    console = open_console()
    columns = ", ".join(
        field if field == header else f"{field} = {header!r}" for field, header in found.columns.items()
    )
    console.print(f"columns: {columns}")
    if found.unused:
        console.print(f"not used: {', '.join(found.unused)}")
    for warning in found.warnings:
        console.print(f"warning: {warning}")
    table = Table("id", "name", "main skill", "sub-skills", "tests", "twin", "files", "characters", "image")
    for problem in chosen:
        if problem.id in ready:
            table.add_row(*_row(ready[problem.id]))
    console.print(table)
    render_terminal([table_1([_facts(item) for item in ready.values()])], console)
    for error in failed.values():
        console.print(str(error), style="red")
    for item in ready.values():
        for warning in item.warnings:
            console.print(f"{item.problem.id}: {warning}", style="yellow")
    return 1 if failed else 0


def _row(item: Prepared) -> tuple[str, ...]:
    problem, prompt = item.problem, next(iter(item.prompts.values()))
    return (
        problem.id,
        problem.name,
        problem.main_skill,
        ", ".join(problem.sub_skills),
        str(len(problem.tests) or "?"),
        _twin(item),
        str(len(prompt.files)),
        str(len(prompt.text)),
        problem.image,
    )


def _twin(item: Prepared) -> str:
    """What the test files are written for, how many of their tests a twin can name, and how many not."""
    known = survey(item.policy)
    if not known.texts:
        return "none"
    unnamed = f", {len(known.left_out)} unnamed" if known.left_out else ""
    runner = " and ".join(known.runners) or javascript_runner(item.problem, item.project) or "by globals"
    return f"{runner} {len(known.titles)}{unnamed}"


def _facts(item: Prepared) -> ProblemFacts:
    """The problem's row of Table 1, as a report reads it from run.json."""
    from astra_async.report.dataset import facts_of
    from astra_async.report.settings import problem_info

    about = problem_description(item)
    return facts_of(problem_info(item.problem.id, about), about["total"])
