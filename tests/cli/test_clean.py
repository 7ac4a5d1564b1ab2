"""`astra clean`: what is astra's goes when it is named; foreign things and what is in use stay."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from astra_async.cli.images import _age_s
from astra_async.errors import UsageError
from astra_async.running.problem_set import StoredItem, cached, lock_cache, remove_stored, stored_in_engine
from astra_async.testing.sandbox.sweep import container_name, owner
from command_server import astra

if TYPE_CHECKING:
    from astra_async.testing.sandbox.engine import Engine

HASH = "ab" * 32
OURS = (
    f"projects/objects/ab/{HASH}",
    f"projects/index/{HASH}.json",
    f"expected/{HASH}.json",
    f"expected/installed-{HASH}.json",
    "outputs/p 1.tests.txt",
    "failed_images/astra%2Freact%3A0123456789ab.json",
)
FOREIGN = (
    "projects/my-project/main.py",
    "projects/objects/ab/notes.txt",
    "expected/mine.json",
    "outputs/thesis.txt",
    "held/astra-1-x.jsonl",
    "diary.txt",
    "failed_images/holiday.json",
)


def filled(folder: Path) -> Path:
    for name in (*OURS, *FOREIGN):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return folder


def clean(folder: Path, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Without an engine, so that no test ever comes near to this machine's."""
    environ = {**os.environ, "ASTRA_CACHE": str(folder), "DOCKER_HOST": "tcp://127.0.0.1:1"}
    return astra("clean", *words, env=environ, typed=typed)


def files(folder: Path) -> set[str]:
    there = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {name for name in there if name != ".in-use"}


def test_what_is_kept_is_shown_and_nothing_goes_unnamed(tmp_path: Path) -> None:
    done = clean(filled(tmp_path))
    assert done.returncode == 0
    assert "next: astra clean --images --agents --caches --containers" in done.stdout
    assert f"{tmp_path}/expected (2 files)" in done.stdout
    assert files(tmp_path) == {*OURS, *FOREIGN}


def test_only_what_is_astras_own_goes_from_the_cache(tmp_path: Path) -> None:
    done = clean(filled(tmp_path), "--caches", "--yes")
    assert done.returncode == 0, done.stderr
    assert f"removed {len(OURS)} files of the cache" in done.stdout
    assert files(tmp_path) == set(FOREIGN)


def test_links_lead_nowhere(tmp_path: Path) -> None:
    elsewhere = filled(tmp_path / "elsewhere")
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "expected").symlink_to(elsewhere / "expected")
    (cache / "projects").symlink_to(elsewhere / "projects")
    (cache / "outputs").mkdir()
    (cache / "outputs" / "p.tests.txt").symlink_to(elsewhere / "diary.txt")
    assert list(cached(cache)) == []


def test_it_asks_first_and_takes_only_what_is_old_enough(tmp_path: Path) -> None:
    filled(tmp_path)
    old = time.time() - 40 * 86400
    os.utime(tmp_path / OURS[2], (old, old))
    refused = clean(tmp_path, "--caches", "--older-than", "30d", typed="n\n")
    assert refused.returncode == 1
    assert "remove 1 files of the cache" in refused.stderr
    assert files(tmp_path) == {*OURS, *FOREIGN}
    clean(tmp_path, "--caches", "--older-than", "30d", typed="y\n")
    assert files(tmp_path) == {*OURS, *FOREIGN} - {OURS[2]}


def test_nothing_goes_while_a_run_is_under_way(tmp_path: Path) -> None:
    filled(tmp_path)
    held = (
        "import sys, time; from pathlib import Path; from astra_async.running.problem_set import use_cache;"
        f" use_cache(Path({str(tmp_path)!r})); print('held', flush=True); sys.stdin.read()"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", held], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert run.stdout
    assert run.stdout.readline() == "held\n"
    done = clean(tmp_path, "--caches", "--yes")
    assert done.returncode == 2
    assert "another astra command is using" in done.stderr
    assert files(tmp_path) == {*OURS, *FOREIGN}
    run.kill()
    run.wait()
    run.stdout.close()
    assert run.stdin
    run.stdin.close()
    assert clean(tmp_path, "--caches", "--yes").returncode == 0


@pytest.mark.parametrize("age", ["30", "d", "-1d", "1y", "1 d"])
def test_an_age_that_is_none_is_refused(age: str) -> None:
    with pytest.raises(UsageError, match="such as 30d"):
        _age_s(age)


class SomeEngine:
    """An engine with some containers and images, from which things can be removed."""

    def __init__(
        self, containers: list[dict[str, Any]], images: list[dict[str, Any]], volumes: tuple[str, ...] = ()
    ) -> None:
        self.listed, self.named, self.kept_in = containers, images, volumes
        self.removed: list[str] = []

    async def containers(self) -> list[dict[str, Any]]:
        return self.listed

    async def images(self) -> list[dict[str, Any]]:
        return self.named

    async def image(self, name: str) -> None:
        return None

    async def remove(self, name: str) -> None:
        self.removed.append(name)

    async def remove_image(self, name: str) -> None:
        self.removed.append(name)

    async def volumes(self) -> list[dict[str, Any]]:
        return [{"Name": name, "CreatedAt": "2026-11-01T10:00:00Z"} for name in self.kept_in]

    async def volume_sizes(self) -> dict[str, int]:
        return dict.fromkeys(self.kept_in, 7)

    async def remove_volume(self, name: str) -> bool:
        if is_free := "busy" not in name:
            self.removed.append(name)
        return is_free


def container(name: str, image: str = "sha256:1") -> dict[str, Any]:
    labels = {"astra.run": "", "astra.owner": owner()}  # images once gave them to whatever was made of them
    return {"Id": name * 3, "Names": [f"/{name}"], "ImageID": image, "Created": 1, "Labels": labels}


def image(*names: str, number: int = 1) -> dict[str, Any]:
    labels = {"astra.run": "images"}
    return {"Id": f"sha256:{number}", "RepoTags": list(names), "Created": number, "Size": 1, "Labels": labels}


def dead(run: str) -> str:
    """The name of a container whose owner had this machine's name and is gone."""
    place, _, _ = owner().split(".")
    name = container_name(run)
    return name.replace(owner(), f"{place}.999999999.1")


def found(engine: SomeEngine) -> list[StoredItem]:
    async def gather() -> list[StoredItem]:
        return [each async for each in stored_in_engine(cast("Engine", engine))]

    return asyncio.run(gather())


def test_in_an_engine_a_name_of_astras_own_form_decides_and_no_label() -> None:
    left = dead("r1")
    engine = SomeEngine(
        [container("astra-mine"), container("web"), container(left, "sha256:7")],
        [
            image("astra/react:0123456789ab", number=2),
            image("astra/react:0123456789ab-ready", number=3),
            image("mine/from-react:1", number=4),
            image("astra/react:latest", number=5),
            image("astra:1", "registry/astra/x:0123456789ab", number=6),
            image("astra-base:bookworm", number=7),
            {"Id": "sha256:9", "RepoTags": None, "Created": 9, "Size": 1},
        ],
    )
    things = found(engine)
    assert [(each.kind, each.name, bool(each.used_by)) for each in things] == [
        ("containers", left, False),
        ("images", "astra/react:0123456789ab", False),
        ("images", "astra/react:0123456789ab-ready", False),
        ("images", "astra-base:bookworm", True),
    ]
    removable = [each for each in things if not each.used_by]
    nowhere = Path("/nonexistent")
    with lock_cache(nowhere):
        assert asyncio.run(remove_stored(cast("Engine", engine), nowhere, removable)) == {}
    assert engine.removed == ["astra/react:0123456789ab-ready", "astra/react:0123456789ab", left]


def test_while_a_process_lives_that_has_containers_every_image_stays() -> None:
    engine = SomeEngine([container(container_name("r1"))], [image("astra/vue:0123456789ab", number=2)])
    assert all(each.used_by for each in found(engine))


def test_an_installed_agent_is_known_by_its_name_and_goes_when_nobody_uses_it() -> None:
    ours = [f"astra-agent_{name}_1.2.3-rc+1_{HASH}" for name in ("codex", "busy")]
    engine = SomeEngine([], [], (*ours, "astra-agent_codex", f"mine_1.2.3_{HASH}", HASH))
    things = found(engine)
    assert [(each.kind, each.name, each.size_bytes) for each in things] == [("agents", n, 7) for n in ours]
    nowhere = Path("/nonexistent")
    assert asyncio.run(remove_stored(cast("Engine", engine), nowhere, things)) == {ours[1]: "it is in use"}
    assert engine.removed == [ours[0]]
