"""Who may read what a run writes: its owner, or the group of a folder that is shared on purpose."""

from __future__ import annotations

import os
import stat
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from astra_async.running.directory import RunDirectory
from astra_async.running.recorded import store_prompts
from astra_async.running.spool import make_private
from astra_async.types import Completion, Prompt, SampleKey, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ANSWER = Completion(
    text="secret", finish_reason="stop", usage=Usage(), returned_model="m", ttft_s=None, latency_s=1.0
)


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    with umask(0o022):
        yield


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def written(path: Path) -> list[str]:
    with closing(RunDirectory.open(path)) as directory:
        store_prompts(directory.path, [Prompt(text="secret", sha256="abc", files=())])
        directory.record_completion(SampleKey("m", "xml", "p", len(directory.answered)), ANSWER, "abc")
        directory.record_event("retry", detail="secret")
        directory.save()
        assert modes(path) <= {"0o600", "0o660"}, "also while it is open"
        return directory.warnings


def modes(path: Path) -> set[str]:
    return {oct(stat.S_IMODE(each.stat().st_mode)) for each in path.rglob("*") if each.is_file()}


def test_a_run_directory_and_its_files_are_their_owners_alone(tmp_path: Path) -> None:
    assert written(tmp_path / "runs" / "new") == []
    assert stat.S_IMODE((tmp_path / "runs" / "new").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "runs" / "new" / "prompts").stat().st_mode) == 0o700
    assert modes(tmp_path / "runs" / "new") == {"0o600"}
    assert stat.S_IMODE((tmp_path / "runs").stat().st_mode) == 0o755, "what holds the runs is not ours"


def test_files_are_private_in_a_folder_that_somebody_made_for_them(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(mode=0o755)
    assert written(tmp_path / "mine") == []
    assert modes(tmp_path / "mine") == {"0o600"}


def test_a_directory_of_an_earlier_version_is_tightened_and_told(tmp_path: Path) -> None:
    path = tmp_path / "old"
    written(path)
    path.chmod(0o755)
    for each in path.glob("*.jsonl"):
        each.chmod(0o644)
    (told,) = written(path)
    assert told == (f"{path}: removed other users' access; to share it with its group: chmod g+s {path}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert modes(path) == {"0o600"}
    assert written(path) == []


def test_a_folder_with_the_group_bit_stays_shared(tmp_path: Path) -> None:
    path = tmp_path / "shared"
    path.mkdir()
    path.chmod(0o2770)
    with umask(0o007):
        assert written(path) == written(path) == []
    assert stat.S_IMODE(path.stat().st_mode) == 0o2770
    assert modes(path) == {"0o660"}


def test_a_cache_is_made_private_and_an_open_one_is_tightened(tmp_path: Path) -> None:
    assert make_private(tmp_path / "a" / "cache") == ""
    assert stat.S_IMODE((tmp_path / "a" / "cache").stat().st_mode) == 0o700
    (tmp_path / "open").mkdir(mode=0o755)
    assert "removed other users' access" in make_private(tmp_path / "open")
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o700
