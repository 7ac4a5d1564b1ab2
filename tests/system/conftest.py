"""What the tests of the whole program stand on."""

from __future__ import annotations

import asyncio

import pytest


@pytest.fixture(scope="session")
def tiny_image() -> str:
    """The base image: a Debian with bash and coreutils, made if it is not there."""
    from astra_async.images.base_image import ensure_base
    from astra_async.testing.sandbox.engine import Engine

    async def ensure() -> str:
        async with await Engine.open() as engine:
            return await ensure_base(engine, progress=print)

    return asyncio.run(ensure())
