"""`astra problems`: what was loaded, and Table 1 of the paper computed from it."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from astra_async.cli.console import json_option, open_console, takes_standard_output, tell, write_json
from astra_async.cli.options import config_options
from astra_async.integrity.javascript_runner import javascript_runner
from astra_async.integrity.twin import survey
from astra_async.problems import select
from astra_async.problems.fetch.locations import shown, split_pin
from astra_async.problems.prepare import problem_description
from astra_async.running.wiring import data_config, load_problem_set, ready_problems

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from astra_async.config import RunConfig
    from astra_async.errors import AstraError
    from astra_async.problems import ProblemSet
    from astra_async.problems.prepare import Prepared
    from astra_async.report.load import ProblemInfo
    from astra_async.types import Problem


@click.command()
@config_options("problems", "projects", "column", "skills", "only", "skill", "limit")
@json_option("Where the same goes for programs")
def problems(*, config_file: Path | None, json_path: Path | None, **given: Any) -> int:
    """Show the problems that were loaded, how columns were read, and the paper's Table 1 of them."""
    return asyncio.run(show_problems(data_config(given, config_file), json_path))


async def show_problems(config: RunConfig, json_path: Path | None = None) -> int:
    """Print the problems of a configuration, write them as JSON if asked; 1 if one cannot be used."""
    found = await load_problem_set(config)
    chosen = select(found.problems, only=config.only, skill=config.skill, limit=config.limit)
    ready, failed = await ready_problems(config, chosen, tell)
    write_json(json_path, _record(found, chosen, ready, failed))
    _print(found, chosen, ready, failed, open_console(stderr=takes_standard_output(json_path)))
    return 1 if failed else 0


def _print(
    found: ProblemSet,
    chosen: Sequence[Problem],
    ready: Mapping[str, Prepared],
    failed: Mapping[str, AstraError],
    console: Console,
) -> None:
    from rich.table import Table

    from astra_async.report.problem_tables import table_1
    from astra_async.report.text import render_terminal

    columns = ", ".join(
        field if field == header else f"{field} = {header!r}" for field, header in found.columns.items()
    )
    console.print(f"columns: {columns}")
    if found.unused:
        console.print(f"not used: {', '.join(found.unused)}")
    for warning in found.warnings:
        console.print(f"warning: {warning}", soft_wrap=True)
    table = Table("id", "name", "main skill", "sub-skills", "tests", "twin", "files", "characters", "image")
    for problem in chosen:
        if problem.id in ready:
            table.add_row(*_row(ready[problem.id]))
    console.print(table)
    render_terminal([table_1([_facts(item) for item in ready.values()])], console)
    for error in failed.values():
        console.print(str(error), style="red", soft_wrap=True)
    for item in ready.values():
        for warning in item.warnings:
            console.print(f"{item.problem.id}: {warning}", style="yellow", soft_wrap=True)


def _record(
    found: ProblemSet,
    chosen: Sequence[Problem],
    ready: Mapping[str, Prepared],
    failed: Mapping[str, AstraError],
) -> dict[str, Any]:
    """What `--json` writes (docs/formats.md)."""
    from astra_async.report.problem_tables import table_1
    from astra_async.report.table import described

    return {
        "schema": 1,
        "columns": dict(found.columns),
        "unused": list(found.unused),
        "warnings": list(found.warnings),
        "problems": [
            _problem_record(problem, ready.get(problem.id), failed.get(problem.id)) for problem in chosen
        ],
        "table_1": described(table_1([_facts(item) for item in ready.values()])),
    }


def _problem_record(problem: Problem, item: Prepared | None, error: AstraError | None) -> dict[str, Any]:
    record: dict[str, Any] = {"id": problem.id, "error": str(error) if error else None}
    if item is None:
        return record | {"name": problem.name or problem.id, "warnings": []}
    problem = item.problem
    location, pinned = split_pin(problem.project)
    return record | {
        **problem_description(item),
        "project": shown(location),
        "project_pinned_sha256": pinned or None,
        "test_command": problem.test_command,
        "result_files": list(problem.result_files),
        "tests": [asdict(test) for test in problem.tests],
        "image": problem.image,
        "timeout_s": problem.timeout_s,
        "readonly_paths": list(problem.readonly_paths),
        "hidden_paths": list(problem.hidden_paths),
        "has_reference": item.reference is not None,
        "twin": _twin(item),
        "warnings": list(item.warnings),
    }


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


def _facts(item: Prepared) -> ProblemInfo:
    """The problem's row of Table 1, as a report reads it from run.json."""
    from astra_async.report.load import problem_info

    about = problem_description(item)
    return replace(problem_info(item.problem.id, about), tests=about["total"])
