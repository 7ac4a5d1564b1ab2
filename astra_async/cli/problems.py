"""`astra problems`: show the loaded problems and Table 1. `astra fetch`: download and pin a published set."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from astra_async.cli.click_options import config_options, problems_argument
from astra_async.cli.console import json_option, open_console, say, takes_standard_output, tell, write_json
from astra_async.errors import UsageError
from astra_async.listing import some
from astra_async.prepare import problem_description
from astra_async.problems import select
from astra_async.problems.fetch.locations import shown, split_pin
from astra_async.problems.fetched_folder import LOCK_NAME
from astra_async.problems.sources import Source, parse_source, short_name
from astra_async.running.problem_set import data_config, load_problem_set, open_store, ready_problems, wanted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from astra_async.config import RunConfig
    from astra_async.errors import AstraError
    from astra_async.prepare import Prepared
    from astra_async.problems import ProblemSet
    from astra_async.problems.fetched_folder import FetchResult, Lock
    from astra_async.report.run_settings import ProblemInfo
    from astra_async.types import Problem

_HASH_SHOWN = 12


@click.command()
@config_options("problems", "projects", "column", "skills", "only", "skill", "limit")
@json_option("Write the result as JSON to this file")
@problems_argument
def problems(*, config_file: Path | None, json_path: Path | None, **given: Any) -> int:
    """Show the loaded problems, the field of each column, and the paper's Table 1."""
    from astra_async.cli.task_listing import show_tasks
    from astra_async.harbor.task import is_task_folder

    config = data_config(given, config_file)
    show = show_tasks if is_task_folder(Path(config.problems)) else show_problems
    return asyncio.run(show(config, json_path))


async def show_problems(config: RunConfig, json_path: Path | None = None) -> int:
    """Print the problems and write the JSON file; return 1 if a problem cannot be used."""
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
    table = Table("id", "name", "main skill", "sub-skills", "tests", "files", "characters", "image")
    for problem in chosen:
        if problem.id in ready:
            table.add_row(*_row(ready[problem.id]))
    console.print(table)
    render_terminal([table_1([_facts(item) for item in ready.values()])], console)
    if doubtful := [item.problem.id for item in ready.values() if item.reference is None]:
        console.print(
            f"T is provisional for {len(doubtful)} of {len(ready)} problems ({some(doubtful)}) until a run"
            " confirms it; add a reference"
        )
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
    """Return the content of `--json` (docs/formats.md)."""
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
        "image": problem.image,
        "timeout_s": problem.timeout_s,
        "readonly_paths": list(problem.readonly_paths),
        "hidden_paths": list(problem.hidden_paths),
        "has_reference": item.reference is not None,
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
        str(len(prompt.files)),
        str(len(prompt.text)),
        problem.image,
    )


def _facts(item: Prepared) -> ProblemInfo:
    """Return the problem's values for Table 1, in the form of run.json."""
    from astra_async.report.run_settings import problem_info

    about = problem_description(item)
    return replace(problem_info(item.problem.id, about), tests=about["total"])


@click.command()
@click.argument("source")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder to write. Default: the name of the set.",
)
@click.option("--registry", metavar="FILE|URL", help="Registry of harbor:NAME. Default: Harbor's own.")
@click.option(
    "--update", is_flag=True, help="Fetch the current state of the source and replace the pinned state."
)
@config_options("projects", "column", "skills")
def fetch(
    source: str,
    *,
    out: Path | None,
    registry: str | None,
    update: bool,
    config_file: Path | None,
    **given: Any,
) -> int:
    """Fetch a set of problems into a folder: CSV, archives, and a lock file with revision and hashes.

    SOURCE is astra-v1 (the paper's questions), hf:OWNER/NAME[@REVISION][/FILE.csv], harbor:NAME[@VERSION]
    (tasks of a registry), or the address of a CSV. The same command resumes, and needs no network when the
    set is complete. Then use `--problems DIR`.
    """
    from astra_async.problems.fetch.hub import hub_of

    if source.startswith("harbor:"):
        return _fetch_tasks(source.removeprefix("harbor:"), out, registry)
    config = data_config(given, config_file)
    found = parse_source(source, hub_of(os.environ).endpoint)
    if found is None:
        raise UsageError(
            f"{source}: write astra-v1, hf:OWNER/NAME or https://...; for a CSV on this machine use"
            " --problems without fetching"
        )
    folder = out or Path(short_name(source, found))
    try:
        collected = asyncio.run(_collect(config, found, folder, update=update))
    except KeyboardInterrupt:
        tell(f"stopped; fetched files are in {folder}; run the same command again to continue")
        raise
    _say_collected(collected, folder, source)
    shown = replace(config, problems=str(folder), projects=None, columns={}, skills=None)
    code = asyncio.run(show_problems(shown))
    say(f"next: astra run --problems {folder} ...")
    return 1 if collected.failed else code


def _fetch_tasks(wanted: str, out: Path | None, registry: str | None) -> int:
    from astra_async.harbor.registry import LOCK_NAME, REGISTRY, dataset_in, fetch_dataset, read_registry
    from astra_async.harbor.task import read_tasks

    dataset = dataset_in(read_registry(registry or REGISTRY), wanted)
    folder = out or Path(dataset.name)
    lock = fetch_dataset(dataset, folder, tell)
    say(f"{lock.dataset} {lock.version}: {len(lock.tasks)} tasks, pinned in {folder / LOCK_NAME}")
    if summary := read_tasks(folder).summary:
        tell(f"warning: {summary}")
    say(f"next: astra problems --problems {folder}")
    return 0


async def _collect(config: RunConfig, source: Source, folder: Path, *, update: bool) -> FetchResult:
    from astra_async.problems.collect import collect

    async with open_store(config) as store:
        return await collect(source, folder, store, wanted(config), update=update, say=tell)


def _say_collected(collected: FetchResult, folder: Path, source: str) -> None:
    lock = collected.lock
    for error in collected.failed:
        tell(f"astra: {error}")
    if collected.failed:
        files = len({each.problem_id for each in collected.failed})
        tell(f"{files} problems are incomplete; try again with: astra fetch {source} --out {folder}")
    if collected.changed:
        tell(f"changed since the last fetch: {', '.join(collected.changed)}")
    if collected.newer:
        tell(
            f"the hub holds a newer revision, {collected.newer[:_HASH_SHOWN]}; --update takes it"
            f" (pinned: {lock.revision[:_HASH_SHOWN]})"
        )
    archives = {each.path: each.size_bytes for each in lock.files}
    say(f"{lock.source}{f' at revision {lock.revision}' if lock.revision else ''}")
    say(f"{lock.csv}, {len(archives)} archives, {sum(archives.values()) / 1e6:.1f} MB; pinned in {LOCK_NAME}")
    say(f"licence: {_licence(lock)}")


def _licence(lock: Lock) -> str:
    access = "; ".join(
        text
        for holds, text in (
            (lock.gated, "gated: its terms were accepted for the account of the token"),
            (lock.private, "private: not for others"),
        )
        if holds
    )
    if lock.licence is None:
        licence = "unknown (a web address states none); ask the publisher before you pass it on"
    else:
        licence = lock.licence or "none stated by the publisher; ask before you pass it on"
    return f"{licence}; {access}" if access else licence
