"""Is a task fit to measure an agent? Its oracle gets the full reward, and an agent that does nothing less."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from astra_async.errors import EngineUnavailable, SandboxError
from astra_async.harbor.trial import TaskPlaces
from astra_async.images.resolve import ProblemImages
from astra_async.testing.sandbox.containers import Containers
from astra_async.testing.validation import Repetitions, Validation, together
from astra_async.types.task_work import NOP, ORACLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from astra_async.images.failed_images import FailedImages
    from astra_async.prepare import Prepared


async def validate_tasks(
    prepared: Mapping[str, Prepared],
    *,
    at_once: int,
    repeat: int,
    failures: FailedImages,
    say: Callable[[str], None],
) -> list[Validation]:
    """Try all tasks, `at_once` containers at a time. Raises EngineUnavailable."""
    engine = await Containers.swept("validate")
    async with Containers(engine, run_id="validate", spare=0) as containers:
        images = await ProblemImages.open(engine, prepared, "", say, failures=failures)
        try:
            places, free = TaskPlaces(containers), asyncio.Semaphore(at_once)

            async def check(item: Prepared) -> Validation:
                try:
                    image = await images.of(item.problem.id)
                    async with free:
                        return await _check(places, item, image, repeat, say)
                except EngineUnavailable:
                    raise
                except SandboxError as error:
                    return Validation(problem_id=item.problem.id, reasons=(str(error),))

            return await together([check(item) for item in prepared.values()])
        finally:
            await images.close()


async def _check(
    places: TaskPlaces, item: Prepared, image: str, repeat: int, say: Callable[[str], None]
) -> Validation:
    task_id, tried = item.problem.id, []
    for agent in (ORACLE, NOP):
        if agent is ORACLE and not (item.task and item.task.solution):
            continue
        found = [await places.tried(image, item, agent) for _ in range(repeat)]
        scores = tuple(int(each.score) if each.score in (0, 1) else each.score for each in found)
        say(f"{task_id} {agent.name}: score {' / '.join(map(str, scores))}")
        seconds = tuple(each.seconds for each in found)
        tried.append(Repetitions(name=agent.name, passed=scores, total=1, seconds=seconds))
    size = await places.image_bytes(image)
    return Validation(
        problem_id=task_id,
        image=image,
        image_bytes=size,
        tried=tuple(tried),
        reasons=tuple(reason for each in tried if (reason := _reason(each))),
    )


def _reason(each: Repetitions) -> str:
    """Return why a task is unfit; empty if it is fit."""
    scores = " / ".join(map(str, each.passed))
    if len(set(each.passed)) > 1:
        return f"{each.name}: repetitions differ: score {scores}"
    if each.name == ORACLE.name and each.passed[0] < 1:
        return f"the oracle's score is {scores}, not 1"
    if each.name == NOP.name and each.passed[0] == 1:
        return "an agent that does nothing gets the full reward"
    return ""
