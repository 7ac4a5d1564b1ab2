"""`astra audit`: re-run recorded solutions against mutated tests."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from astra_async.cli import EXIT_INCOMPLETE
from astra_async.cli.click_options import config_options
from astra_async.cli.console import say, tell
from astra_async.errors import UsageError
from astra_async.running.directory import opened_run
from astra_async.running.problem_set import data_config
from astra_async.types.run_record import require_run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from astra_async.audit.auditor import AuditTally, RecordedSolution
    from astra_async.config import RunConfig
    from astra_async.types import SampleKey


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--model", "models", multiple=True, metavar="NAME", help="Select a model; may be repeated.")
@click.option(
    "--sample",
    "samples",
    multiple=True,
    type=int,
    metavar="N",
    help="Select sample number N (from 0); may be repeated.",
)
@click.option("--again", is_flag=True, help="Also repeat earlier audits.")
@click.option("--fail-on-flag", is_flag=True, help="Exit with 1 if a solution is flagged.")
@config_options("problems", "projects", "column", "only", "image", "retry_images", "sandboxes")
def audit(
    directory: Path,
    *,
    models: tuple[str, ...],
    samples: tuple[int, ...],
    again: bool,
    fail_on_flag: bool,
    config_file: Path | None,
    **given: Any,
) -> int:
    """Run the graded solutions of DIRECTORY against mutated tests and write audit.jsonl.

    A solution is flagged if it passes both the original and the mutated form of a test. Scores do not
    change. The same command resumes and skips audited solutions.
    """
    require_run(directory)
    only = given["only"]

    def chosen(key: SampleKey) -> bool:
        fits = not models or key.model in models, not samples or key.sample in samples
        return all(fits) and (not only or key.problem_id in only)

    config = _config(directory, given, config_file)
    flagged, errors = asyncio.run(audit_directory(directory, config, chosen, again=again))
    if errors or (flagged and fail_on_flag):
        return EXIT_INCOMPLETE
    return 0


async def audit_directory(
    directory: Path,
    config: RunConfig,
    chosen: Callable[[SampleKey], bool] = lambda _: True,
    *,
    again: bool = False,
) -> tuple[int, int]:
    """Audit a run directory, print the result, and return the numbers of flagged and of failed solutions."""
    from astra_async.audit.auditor import audit as run_audit
    from astra_async.audit.auditor import not_audited, recorded_solutions

    solutions = recorded_solutions(directory, chosen)
    waiting = solutions if again else not_audited(directory, solutions)
    tell(f"{directory}: {len(waiting)} solutions to audit, {len(solutions) - len(waiting)} audited before")
    if not waiting:
        return _flagged(directory, solutions), 0
    tally = await run_audit(directory, config, waiting, tell)
    return _print(directory, solutions, tally)


def _config(directory: Path, given: dict[str, Any], config_file: Path | None) -> RunConfig:
    run = opened_run(directory / "run.json")
    if "call" not in run:
        raise UsageError(f"{directory} is not a run directory: run.json is missing")
    recorded = {**run["call"], "only": list(run["problems"])}
    return data_config(given, config_file, recorded=recorded)


def _print(directory: Path, solutions: Sequence[RecordedSolution], tally: AuditTally) -> tuple[int, int]:
    flagged, errors = _flagged(directory, solutions), sum(tally.errors.values())
    counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(tally.outcomes.items()))
    say(f"{directory}: audited now: {counts or 'none'}; {tally.seconds:.0f} s of container time")
    for reason, count in sorted(tally.errors.items()):
        tell(f"not audited: {count} ({reason})")
    if errors:
        say(f"{errors} solutions could not be audited; try again with: astra audit {directory}")
    if flagged:
        say(f"flagged: {flagged} of {len(solutions)} solutions; the evidence: astra report {directory} --all")
    return flagged, errors


def _flagged(directory: Path, solutions: Sequence[RecordedSolution]) -> int:
    from astra_async.report.audited import read_audit

    lines = read_audit(directory)
    return sum(each.key in lines and lines[each.key].outcome == "flagged" for each in solutions)
