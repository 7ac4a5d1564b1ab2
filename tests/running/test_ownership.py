"""Whose a run directory is, while calls that are refused come and go in it; what of it they may remove."""

from __future__ import annotations

import subprocess
import threading
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from astra_async.errors import ConflictError, StorageError
from astra_async.running.directory import RunDirectory
from astra_async.types import Completion, SampleKey, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = SampleKey("m", "xml", "p", 0)
ANSWER = Completion(
    text="paid", finish_reason="stop", usage=Usage(), returned_model="m", ttft_s=None, latency_s=1.0
)


def refused(path: Path) -> None:
    """A call that opens the directory and is refused before anything is asked."""
    with closing(RunDirectory.open(path)) as directory:
        directory.discard_if_unused()


@contextmanager
def refused_calls(paths: list[Path]) -> Iterator[None]:
    """Calls that come and go at the last of the paths, in threads: a lock belongs to an open file, and parts
    threads as it parts processes."""
    over = threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            with suppress(ConflictError):
                refused(paths[-1])

    calls = [threading.Thread(target=come_and_go) for _ in range(2)]
    for call in calls:
        call.start()
    try:
        yield
    finally:
        over.set()
        for call in calls:
            call.join()


def opened(path: Path) -> RunDirectory:
    while True:
        with suppress(ConflictError):
            return RunDirectory.open(path)


def test_calls_that_are_refused_take_no_log_from_under_a_run(tmp_path: Path) -> None:
    paths = [tmp_path / "0"]
    with refused_calls(paths):
        for number in range(1, 51):
            path = paths[-1]
            with closing(opened(path)) as directory:
                directory.save()
                directory.record_completion(KEY, ANSWER, "abc")
                assert (path / ".reserve").exists()
                with pytest.raises(ConflictError, match="in use by process"):
                    RunDirectory.open(path)
            assert b"paid" in (path / "completions.jsonl").read_bytes()
            paths.append(tmp_path / str(number))


def test_a_directory_that_was_given_up_is_the_next_ones(tmp_path: Path) -> None:
    given_up = RunDirectory.open(tmp_path / "run")
    given_up.discard_if_unused()
    with closing(RunDirectory.open(tmp_path / "run")):
        given_up.close()
        assert (tmp_path / "run" / ".reserve").exists()
        with pytest.raises(ConflictError, match="in use by process"):
            RunDirectory.open(tmp_path / "run")


def test_what_was_there_before_a_refused_call_stays(tmp_path: Path) -> None:
    for name in ("prompts/mine.txt", "report/mine.html", "notes.txt", "completions.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine\n")
    (tmp_path / "events.jsonl").touch()  # as a call leaves it that was killed at once
    refused(tmp_path)
    left = {str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*") if each.is_file()}
    assert left == {"prompts/mine.txt", "report/mine.html", "notes.txt", "completions.jsonl"}


def test_a_folder_with_somebodys_own_problems_is_no_run_directory(tmp_path: Path) -> None:
    (tmp_path / "problems.csv").write_text("id,problem_statement,project\n")
    with pytest.raises(ConflictError, match=r"overwrite problems\.csv"):
        RunDirectory.open(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["problems.csv"]


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as big, suppress(OSError):
        while True:
            big.write(bytes(4096))


def open_descriptors() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


@pytest.mark.parametrize("what", ["new", "begun"])
def test_a_full_disk_is_told_in_one_line_and_nothing_is_left(tmp_path: Path, what: str) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(mount)], check=True)
    try:
        if what == "begun":
            (mount / what).mkdir()
            (mount / what / ".lock").write_text("1\n")
        fill(mount / "big")
        descriptors = open_descriptors()
        with pytest.raises(StorageError, match=rf"{what}: No space left on device"):
            RunDirectory.open(mount / what)
        assert [each.name for each in mount.iterdir()] == ["big"]
        assert open_descriptors() == descriptors
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def test_an_out_that_is_a_file_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    with pytest.raises(StorageError, match="run: File exists; choose another --out"):
        RunDirectory.open(tmp_path / "run")
