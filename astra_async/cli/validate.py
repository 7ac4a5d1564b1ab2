"""`astra validate`: check that problems are fit for measuring models."""

from __future__ import annotations

import asyncio
import statistics
from contextlib import AsyncExitStack
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from astra_async.cli.click_options import config_options, problems_argument
from astra_async.cli.console import json_option, open_console, say, takes_standard_output, tell, write_json
from astra_async.errors import ImageError
from astra_async.images.resolve import ProblemImages
from astra_async.listing import grouped_by_text
from astra_async.options import BUNDLED
from astra_async.running.problem_set import (
    cache_root,
    chosen_problems,
    data_config,
    ready_problems,
    warnings_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from astra_async.config import RunConfig
    from astra_async.errors import AstraError
    from astra_async.prepare import Prepared
    from astra_async.testing.sandbox.engine import Engine
    from astra_async.testing.validation import Candidate, Repetitions, Validation, Validator
    from astra_async.types import Problem


@click.command()
@config_options(
    *("problems", "projects", "column", "skills", "only", "skill", "limit", "image", "retry_images"),
    *("sandboxes", "allow_root", "allow_network", "timeout_multiplier", "reward_range"),
)
@click.option(
    "--repeat",
    type=click.IntRange(1),
    default=1,
    metavar="M",
    help="Runs of each test suite, to find flaky tests [default: 1].",
)
@json_option("Write the details as JSON to this file", Path("validation.json"))
@problems_argument
def validate(*, config_file: Path | None, repeat: int, json_path: Path, **given: Any) -> int:
    """Test each problem with its untouched project, reference and faulty answers; exit with 1 if unfit."""
    config = data_config(given, config_file)
    covered: dict[str, int] = {}
    found = asyncio.run(_validate(config, repeat, covered))
    records = [
        asdict(fitness) | {"verdict": fitness.verdict, "audit_tests": covered.get(fitness.problem_id)}
        for fitness in found
    ]
    write_json(json_path, records)
    _print(found, covered, open_console(stderr=takes_standard_output(json_path)))
    if not takes_standard_output(json_path):
        say(json_path)
    return 1 if any(fitness.reasons for fitness in found) else 0


async def _validate(config: RunConfig, repeat: int, covered: dict[str, int]) -> list[Validation]:
    """Check all problems; `covered` receives the number of auditable tests of each problem."""
    from astra_async.audit.auditor import Auditor
    from astra_async.images.failed_images import FailedImages
    from astra_async.testing.expected import Expectations
    from astra_async.testing.installed_modules import InstalledModules
    from astra_async.testing.sandbox.docker_sandbox import DockerSandbox
    from astra_async.testing.validation import Validator, together

    problems = await chosen_problems(config, tell)
    prepared, failed = await ready_problems(config, problems, tell)
    for warning in warnings_of(prepared):
        tell(f"warning: {warning}")
    failures = FailedImages(cache_root(), retry=config.retry_images)
    if any(problem.task for problem in problems):
        from astra_async.harbor.task_validation import validate_tasks

        found = await validate_tasks(
            prepared, at_once=config.sandboxes, repeat=repeat, failures=failures, say=tell
        )
        return _in_order(found, problems, failed)
    with TemporaryDirectory(prefix="astra-validate-") as folder:
        async with AsyncExitStack() as stack:
            sandbox = await stack.enter_async_context(
                await DockerSandbox.open(run_id="validate", slots=config.sandboxes)
            )
            images = await ProblemImages.open(
                sandbox.engine,
                prepared,
                config.image,
                tell,
                failures=failures,
            )
            stack.push_async_callback(images.close)
            cache = cache_root() / "expected"
            installed = InstalledModules(cache, sandbox, config.limits)
            learned = Expectations(
                Path(folder) / "expected.json", cache, sandbox, config.limits, installed=installed
            )
            validator = Validator(
                sandbox=sandbox,
                expectations=learned,
                limits=config.limits,
                repeat=repeat,
                on_tried=_say_passed,
            )
            auditor = Auditor(sandbox=sandbox, limits=config.limits, expectations=learned)

            async def check(item: Prepared) -> Validation:
                fitness = await _check(validator, item, images, _faulty(config, item.problem.id))
                if not fitness.reasons:
                    item = await learned.fitted(item, fitness.image)
                    covered[item.problem.id] = len((await auditor.suites(item, fitness.image)).tests)
                return fitness

            checks = [check(item) for item in prepared.values()]
            found = await together(checks)
            sizes = {image: await _size_bytes(sandbox.engine, image) for image in set(images.ready.values())}
    found = [replace(fitness, image_bytes=sizes.get(fitness.image)) for fitness in found]
    return _in_order(found, problems, failed)


def _in_order(
    found: Sequence[Validation], problems: Sequence[Problem], failed: Mapping[str, AstraError]
) -> list[Validation]:
    """Return one validation for each problem, also for those that could not be made ready."""
    from astra_async.testing.validation import Validation

    unready = [
        Validation(problem_id=name, reasons=(str(error).removeprefix(f"problem {name}: "),))
        for name, error in failed.items()
    ]
    order = {problem.id: number for number, problem in enumerate(problems)}
    return sorted([*found, *unready], key=lambda fitness: order[fitness.problem_id])


async def _check(
    validator: Validator, prepared: Prepared, images: ProblemImages, faulty: Sequence[Candidate]
) -> Validation:
    """Check one problem when its image exists, while other images are built. Raises EngineUnavailable."""
    from astra_async.testing.validation import Validation

    try:
        image = await images.of(prepared.problem.id)
    except ImageError as error:
        return Validation(problem_id=prepared.problem.id, reasons=(str(error),))
    return await validator.check(prepared, image, faulty)


async def _size_bytes(engine: Engine, image: str) -> int | None:
    found = await engine.image(image)
    return int(found["Size"]) if found else None


def _faulty(config: RunConfig, problem_id: str) -> Sequence[Candidate]:
    """Return the faulty answers of the bundled problems with their known scores."""
    from astra_async.bundled import load_answers
    from astra_async.testing.validation import Candidate
    from astra_async.types import Solution

    answers = load_answers(problem_id) if config.problems == BUNDLED else None
    return [
        Candidate(name=each.name, solution=Solution(files=each.files), expected_passed=each.expected_passed)
        for each in (answers.faulty if answers else ())
    ]


def _say_passed(problem_id: str, each: Repetitions) -> None:
    passed = "/".join(map(str, each.passed))
    tell(f"{problem_id} {each.name}: {passed} of {each.total} ({statistics.median(each.seconds):.1f} s)")


def _print(found: Sequence[Validation], covered: Mapping[str, int], console: Any) -> None:
    from rich.table import Table

    rows: list[dict[str, str]] = []
    for fitness in found:
        tried = {each.name: each for each in fitness.tried}
        faulty = [each for each in fitness.tried if each.expected_passed is not None]
        seconds = [value for each in fitness.tried for value in each.seconds]
        row = {
            "problem": fitness.problem_id,
            "T": str(fitness.total or ""),
            "audit": str(covered.get(fitness.problem_id, "")),
            "learned from": fitness.learned_from,
        }
        for name in ("untouched", "reference", "oracle", "nop"):
            row[name] = "/".join(map(str, dict.fromkeys(tried[name].passed))) if name in tried else ""
        right = sum(set(each.passed) == {each.expected_passed} for each in faulty)
        row["faulty"] = f"{right}/{len(faulty)}" if faulty else ""
        row["seconds"] = f"{statistics.median(seconds):.1f}" if seconds else ""
        row["image MB"] = f"{fitness.image_bytes / 1e6:,.0f}" if fitness.image_bytes else ""
        rows.append(row | {"verdict": fitness.verdict})
    columns = [name for name in rows[0] if any(row[name] for row in rows)] if rows else []
    table = Table(*columns)
    for row in rows:
        table.add_row(*(row[name] or "-" for name in columns))
    console.print(table)
    said = [(each.problem_id, line) for each in found for line in (*each.reasons, *each.remarks)]
    for line in grouped_by_text(said):
        console.print(line, soft_wrap=True, markup=False)
