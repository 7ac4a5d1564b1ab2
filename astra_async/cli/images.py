"""`astra images`: the images that tests run in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from astra_async.cli.options import config_options
from astra_async.cli.wiring import chosen_problems, data_config, resolve_named_images
from astra_async.errors import ImageError

if TYPE_CHECKING:
    from pathlib import Path


@click.group()
def images() -> None:
    """Build the images that tests run in."""


@images.command()
@config_options("problems", "projects", "column", "only", "skill", "limit", "image")
def build(*, config_file: Path | None, **given: Any) -> None:
    """Make every image that the problems need and that is not there yet."""
    config = data_config(given, config_file)
    names = dict.fromkeys(problem.image or config.image for problem in chosen_problems(config))
    for line in asyncio.run(_build(tuple(names))):
        click.echo(line)


async def _build(names: tuple[str, ...]) -> list[str]:
    from astra_async.sandbox.engine import Engine

    async with await Engine.open() as engine:
        outcomes = await resolve_named_images(engine, names, lambda text: click.echo(text, err=True))
        lines = []
        for name, outcome in outcomes.items():
            if isinstance(outcome, ImageError):
                raise outcome
            found = await engine.image(outcome) or {}
            lines.append(f"{name} = {outcome} ({int(found.get('Size', 0)) / 1e6:.0f} MB)")
        return lines
