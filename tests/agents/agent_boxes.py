"""What tests of agents' containers share: a started container, and a server on a unix socket."""

from __future__ import annotations

import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from astra_async.images.base_image import ensure_base
from astra_async.testing.sandbox.containers import Containers
from astra_async.testing.sandbox.execution import Command, run_command
from astra_async.types import Limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LIMITS = Limits(timeout_s=120.0, memory_bytes=1024**3)
USER = "1000:1000"


@asynccontextmanager
async def containers() -> AsyncIterator[tuple[Containers, str]]:
    """Containers of a run of their own, and the base image."""
    run_id = f"agent-test-{secrets.token_hex(4)}"
    async with Containers(await Containers.swept(run_id), run_id=run_id, spare=1) as made:
        yield made, await made.image_id(await ensure_base(made.engine, progress=print))


@asynccontextmanager
async def started(boxes: Containers, base: str) -> AsyncIterator[str]:
    """A hardened container of the base image that has begun."""
    fitness = await boxes.fit(base)
    async with (
        boxes.removing(await boxes.create(base, LIMITS, fitness)) as made,
        await boxes.start(made),
    ):
        yield made.container


async def said(boxes: Containers, container: str, command: str) -> str:
    """What a command of the agent's user prints."""
    ended = await run_command(boxes.engine, container, Command(text=command, user=USER), LIMITS)
    assert ended.stopped is None
    return ended.output.text()
