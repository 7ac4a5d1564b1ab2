"""Renewing the base image, over an engine and a registry that are dictionaries."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from astra_async.errors import ImageError, SandboxError
from astra_async.images.base_image import BASE, DEBIAN, ensure_base, renew_base

if TYPE_CHECKING:
    from collections.abc import Iterable

    from astra_async.testing.sandbox.engine import Engine


@dataclass
class Images:
    """The part of an engine that has to do with names; `parents` stand below other images."""

    names: dict[str, str]
    registry: dict[str, str] = field(default_factory=dict)
    parents: set[str] = field(default_factory=set)
    unnamed: set[str] = field(default_factory=set)

    async def image(self, name: str) -> dict[str, Any] | None:
        found = self.names.get(name, name if name in self.unnamed | set(self.names.values()) else None)
        tags = [tag for tag, image in self.names.items() if image == found]
        return {"Id": found, "RepoTags": tags} if found else None

    async def pull(self, name: str, *, starts_within_s: float) -> None:
        if name not in self.registry:
            raise SandboxError("no registry answers")
        self._name(name, self.registry[name])

    async def tag(self, image: str, name: str) -> None:
        self._name(name, self.names[image])

    async def remove_image(self, image: str) -> None:
        if image not in self.parents:
            self.unnamed.discard(image)

    def _name(self, name: str, image: str) -> None:
        before, self.names[name] = self.names.get(name), image
        if before and before not in self.names.values():
            self.unnamed.add(before)


def renewed(engine: Images) -> str:
    return asyncio.run(renew_base(cast("Engine", engine), progress=print))


def state(images: Images) -> tuple[Iterable[str], set[str]]:
    return sorted(f"{name} {image}" for name, image in images.names.items()), images.unnamed


@pytest.fixture(autouse=True)
def no_name_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASTRA_BASE_IMAGE", raising=False)


def test_a_base_that_is_there_is_kept_by_a_run_and_renewed_on_demand() -> None:
    images = Images({BASE: "old", DEBIAN: "old"}, {DEBIAN: "new"})
    assert asyncio.run(ensure_base(cast("Engine", images), progress=print)) == BASE
    assert state(images) == ([f"{BASE} old", f"{DEBIAN} old"], set())
    assert renewed(images) == BASE
    assert state(images) == ([f"{BASE} new", f"{DEBIAN} new"], set())


def test_images_on_the_old_base_keep_it() -> None:
    images = Images({BASE: "old"}, {DEBIAN: "new"}, parents={"old"})
    renewed(images)
    assert state(images) == ([f"{BASE} new", f"{DEBIAN} new"], {"old"})


def test_the_newest_base_is_not_removed_for_being_the_old_one() -> None:
    images = Images({BASE: "new"}, {DEBIAN: "new"})
    renewed(images)
    assert state(images) == ([f"{BASE} new", f"{DEBIAN} new"], set())


def test_a_base_of_the_users_own_is_pulled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASTRA_BASE_IMAGE", "mine:1")
    images = Images({BASE: "base", "mine:1": "old"}, {"mine:1": "new"})
    assert renewed(images) == "mine:1"
    assert state(images) == ([f"{BASE} base", "mine:1 new"], set())


def test_a_base_of_the_users_own_that_cannot_be_pulled_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASTRA_BASE_IMAGE", "mine:1")
    images = Images({"mine:1": "old"})
    with pytest.raises(ImageError, match="mine:1 cannot be pulled"):
        renewed(images)
    assert state(images) == (["mine:1 old"], set())
