"""`astra images`: the images that tests run in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from astra_async.cli.click_options import config_options
from astra_async.cli.console import say, tell
from astra_async.images.failed_images import FailedImages
from astra_async.images.resolve import ProblemImages
from astra_async.running.problem_set import cache_root, chosen_problems, data_config, ready_problems

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from astra_async.config import RunConfig
    from astra_async.testing.sandbox.engine import Engine


@click.group()
def images() -> None:
    """Build the images that tests run in."""


@images.command()
@config_options("problems", "projects", "column", "skills", "only", "skill", "limit", "image", "retry_images")
def build(*, config_file: Path | None, **given: Any) -> int:
    """Make every image that the problems need and that is not there yet; exit 1 if one cannot be made."""
    return 0 if asyncio.run(_build(data_config(given, config_file))) else 1


async def _build(config: RunConfig) -> bool:
    """Whether every problem has its image now; what fails is told when it happens."""
    from astra_async.testing.sandbox.engine import Engine

    prepared, unready = await ready_problems(config, await chosen_problems(config, tell), tell)
    async with await Engine.open() as engine:
        failures = FailedImages(cache_root(), retry=config.retry_images)
        images = await ProblemImages.open(engine, prepared, config.image, tell, failures=failures)
        try:
            await images.all_decided()
        finally:
            await images.close()
        for line in await _lines(engine, images.ready):
            say(line)
    for problem_id, error in unready.items():
        tell(f"{problem_id}: {error}")
    return not (unready or images.failed)


async def _lines(engine: Engine, found: Mapping[str, str]) -> list[str]:
    lines = []
    for image in dict.fromkeys(found.values()):
        problems = ", ".join(problem_id for problem_id, name in found.items() if name == image)
        size_bytes = int((await engine.image(image) or {}).get("Size", 0))
        lines.append(f"{image} ({size_bytes / 1e6:.0f} MB): {problems}")
    return lines
