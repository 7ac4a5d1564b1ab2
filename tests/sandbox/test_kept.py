"""What `astra clean` finds on a real engine: things made of astra's images are their makers'."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest

from astra_async.images.base_image import build_image
from astra_async.running.problem_set import StoredItem, remove_stored, stored_in_engine
from astra_async.testing.sandbox.engine import Engine
from astra_async.testing.sandbox.sweep import container_name, owner
from build_context import context

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.docker


@pytest.mark.first
async def test_foreign_things_made_of_astras_images_survive(tmp_path: Path) -> None:
    async with await Engine.open() as engine:
        token = secrets.token_hex(6)
        ours, theirs = f"astra/test-kept:{token}", f"test-kept-theirs:{token}"
        place, _, _ = owner().split(".")
        left = container_name("kept").replace(owner(), f"{place}.999999999.1")
        foreign = f"web-{token}"
        made = [foreign, left]
        base = f"FROM astra-base:bookworm\nRUN true {token}\n"
        try:
            await build_image(engine, context(base), tag=ours, progress=lambda _: None)
            derived = context(f"FROM {ours}\nRUN true\n")
            await build_image(engine, derived, tag=theirs, progress=lambda _: None)
            await engine.create({"Image": theirs, "Cmd": ["true"]}, foreign)
            await engine.create({"Image": theirs, "Cmd": ["true"]}, left)
            things = [each async for each in stored_in_engine(engine)]
            names = {each.name for each in things}
            assert ours in names  # a test in another process may sweep `left` at any moment
            assert not {theirs, foreign} & names
            mine: list[StoredItem] = [each for each in things if each.name in (ours, left)]
            assert await remove_stored(engine, tmp_path, mine) == {}
            assert await engine.image(ours) is None
            assert await engine.image(theirs) is not None
            there = {name for each in await engine.containers() for name in each["Names"]}
            assert f"/{foreign}" in there
            assert f"/{left}" not in there
        finally:
            for name in made:
                await engine.remove(name)
            await engine.remove_image(theirs)
            await engine.remove_image(ours)
