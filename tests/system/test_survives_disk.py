"""The whole program with a run directory that is full, read-only, damaged or owned by another process."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from nasty_server import NastyServer, answers, says_nothing
from preloaded import compiled, needs_compiler
from small_problems import solution, write_problems
from waiting import awaited
from whole_runs import Run, finished, key, once

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")


def a_run(folder: Path, server: NastyServer, image: str = "any", **fields: object) -> Run:
    generate = () if image != "any" else ("--generate-only",)
    known: dict[str, object] = {"samples": 4, "options": generate, **fields}
    problems = write_problems(folder, ["p"], image)
    return Run(folder=folder, problems=problems, base_url=server.base_url, **known)  # type: ignore[arg-type]


@contextmanager
def mounted(path: Path, options: str) -> Iterator[None]:
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(path)], check=True)


@needs_root
def test_a_disk_that_fills_in_mid_run_loses_no_answer_and_pays_for_none_twice(tmp_path: Path) -> None:
    long = solution(3) + " " * 400_000
    with NastyServer(lambda _, __: answers(long)) as server, mounted(tmp_path / "small", "size=24m"):
        run = a_run(tmp_path, server, samples=60, settings={"max_in_flight": 6})
        run.out = tmp_path / "small" / "run"
        said = run.finish(code=3)
        assert said.splitlines()[-1].startswith("astra: ")
        assert "No space left on device" in said
        assert "resume" in said
        recorded = {key(line) for line in run.lines("completions.jsonl")}
        assert 0 < len(recorded) < 60
        assert len(recorded) == len(server.answered), "an answer that was paid for is lost"
        subprocess.run(["mount", "-o", "remount,size=80m", str(tmp_path / "small")], check=True)
        run.finish()
        run.check_end(of="completions.jsonl")
        assert set(server.asked.values()) == {1}


@needs_root
def test_a_read_only_directory_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    with NastyServer(lambda _, __: answers()) as server, mounted(tmp_path / "fixed", "ro"):
        run = a_run(tmp_path, server)
        run.out = tmp_path / "fixed" / "run"
        said = run.finish(code=3)
        assert "Read-only file system; choose another --out" in said
        assert said.count("\n") == 1
        assert not server.asked


def test_a_second_process_on_a_run_directory_is_refused_and_told_who_owns_it(tmp_path: Path) -> None:
    with NastyServer(lambda _, __: says_nothing) as server:
        run = a_run(tmp_path, server)
        first = run.start()
        try:
            run.await_lines("events.jsonl", 0)
            while not server.asked:
                assert first.poll() is None
            said = run.finish(code=2)
            assert f"is in use by process {first.pid}" in said
            assert first.poll() is None
        finally:
            first.send_signal(signal.SIGKILL)
            first.communicate()
        server.script = lambda _, __: answers()
        run.finish()
        run.check_end(of="completions.jsonl")


@pytest.mark.first
@pytest.mark.docker
def test_damaged_lines_are_graded_again_and_duplicates_count_once(tmp_path: Path, tiny_image: str) -> None:
    with NastyServer(lambda _, __: answers()) as server:
        run = a_run(tmp_path, server, tiny_image, samples=6)
        run.finish()
        path = run.out / "results.jsonl"
        whole = path.read_bytes().splitlines(keepends=True)
        damaged = [whole[0], b"\x00\xff{garbage\n", whole[2], whole[2], whole[3], whole[4], whole[5][:100]]
        path.write_bytes(b"".join(damaged))
        said = run.finish()
        assert "results.jsonl line 2: not readable as JSON; not counted" in said
        assert "results.jsonl line 4: repeats line 3, counted once" in said
        assert "removed an incomplete last line of 100 bytes" in said
        readable = [line for line in path.read_bytes().splitlines(keepends=True) if b"garbage" not in line]
        assert len(readable) == 7
        path.write_bytes(b"".join(dict.fromkeys(readable)))
        run.check_end()
        assert {(line["passed"], line["total"]) for line in run.lines("results.jsonl")} == {(3, 4)}
        assert set(server.asked.values()) == {1}, "grading again does not ask again"


@pytest.mark.first
@pytest.mark.docker
def test_lines_that_contradict_each_other_stop_the_program_with_both_numbers(
    tmp_path: Path, tiny_image: str
) -> None:
    with NastyServer(lambda _, __: answers()) as server:
        run = a_run(tmp_path, server, tiny_image, samples=2)
        run.finish()
        path = run.out / "results.jsonl"
        before = path.read_bytes()
        edited = before.splitlines()[0].replace(b'"image_id":"sha256:', b'"image_id":"sha256:0')
        path.write_bytes(before + edited + b"\n")
        said = run.finish(code=2)
        assert "lines 1 and 3 contradict each other" in said
        assert said.count("\n") == 1
        path.write_bytes(before)
        run.finish()
        run.check_end()


def a_failing_run(folder: Path, server: NastyServer, samples: int) -> tuple[Run, Path]:
    """A run whose disk fails as the returned file says, as soon as it is there."""
    when = folder / "when"
    run = a_run(folder, server, samples=samples, settings={"max_in_flight": samples})
    run.environ = {
        "LD_PRELOAD": str(compiled("failing_disk", folder)),
        "FAILING_WHEN": str(when),
        "FAILING_BELOW": str(run.out),
    }
    return run, when


@needs_compiler
@pytest.mark.long
@pytest.mark.first(call=lambda trouble: trouble.partition(":")[0])
@pytest.mark.parametrize(
    "trouble",
    [
        "write:EROFS unlink:EROFS sync:EROFS",
        "write:EIO",
        "sync:EIO",
        "write:ENOSPC unlink:EROFS",
        "unlink:EROFS sync:EIO",
    ],
)
def test_a_disk_that_fails_in_mid_run_loses_no_answer_under_way(tmp_path: Path, trouble: str) -> None:
    """Six answers are streaming when the disk begins to fail: all six are paid for, none twice."""
    fails = threading.Event()
    with NastyServer(lambda sample, _: once(fails, answers(after_s=0.3 * int(sample[2:])))) as server:
        run, when = a_failing_run(tmp_path, server, 6)
        process = run.start()
        awaited(lambda: server.asked.total() == 6, "all six to be asked")
        when.write_text(trouble)
        fails.set()
        said = finished(process, 3)
        assert len(server.answered) == 6, "calls that are paid come to their end"
        assert said.splitlines()[-1].startswith("astra: ")
        when.unlink()
        run.environ = {}
        again = run.finish()
        run.check_end(of="completions.jsonl")
        assert set(server.asked.values()) == {1}, "an answer that was paid for is lost"
        if "write" in trouble:
            assert "run the same command again to recover them" in said
            assert "recovered lines of an earlier invocation" in again
        assert not list((tmp_path / "cache").rglob("astra-*"))


@needs_compiler
def test_what_a_failing_disk_refused_is_private_where_it_lies(tmp_path: Path) -> None:
    fails = threading.Event()
    with NastyServer(lambda _, __: once(fails, answers())) as server:
        run, when = a_failing_run(tmp_path, server, 2)
        process = run.start()
        awaited(lambda: server.asked.total() == 2, "both to be asked")
        when.write_text("write:EIO")
        fails.set()
        finished(process, 3)
        (kept,) = (tmp_path / "cache").rglob("astra-*-completions.jsonl")
        assert kept.stat().st_mode & 0o777 == 0o600
        assert len(kept.read_text().splitlines()) == 2
