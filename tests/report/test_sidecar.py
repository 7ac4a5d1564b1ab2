"""Columns beside the lines: they save time, and whatever happens to them no number changes."""

from __future__ import annotations

import cProfile
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pytest

from astra_async.errors import ConflictError
from astra_async.report import sidecar
from astra_async.report.load import load_run
from astra_async.report.packing import Columns
from astra_async.view.following import Following
from made_runs import Made, made_problems, write_run
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from astra_async.report.load import Run

PADDING = "x" * 400_000  # a few lines are worth a sidecar


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = write_run(tmp_path / "run", Made(problems=made_problems(6)))
    path = directory / "results.jsonl"
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    for number, line in enumerate(lines[:12]):
        line["output_tail"] = f"{number}{PADDING}"
    lines[3]["note"] = "ü"
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines) + b'{"schema": 1}\n\n')
    return directory


def state(run: Run) -> tuple[Any, ...]:
    """All that a report is made from."""
    return (
        run.rows.tobytes(),
        run.bounds.tolist(),
        run.texts,
        run.metrics.summaries(),
        run.outcomes,
        run.missing.tolist(),
        run.started_at,
        run.finished_at,
        run.warnings,
    )


def kept(directory: Path) -> Path:
    return directory / sidecar.NAME


def fresh(directory: Path) -> tuple[Any, ...]:
    """As it is read without a sidecar."""
    kept(directory).unlink(missing_ok=True)
    found = state(load_run(directory))
    kept(directory).unlink(missing_ok=True)
    return found


def lines_read(directory: Path) -> tuple[int, tuple[Any, ...]]:
    """How many lines a reader had to pack itself, as the profiler counts."""
    profile = cProfile.Profile()
    found = state(profile.runcall(load_run, directory))
    packed = [each.callcount for each in profile.getstats() if each.code is Columns.read.__code__]
    return sum(packed), found


def test_the_second_reader_packs_nothing_and_sees_the_same(directory: Path) -> None:
    expected = fresh(directory)
    assert any("the sample key is incomplete" in warning for warning in expected[-1])
    assert lines_read(directory) == (49, expected)
    assert lines_read(directory) == (0, expected)
    assert kept(directory).stat().st_mode & 0o077 == 0


def test_a_log_that_rests_is_hashed_once_more_and_then_no_more(directory: Path) -> None:
    def hashed() -> int:
        profile = cProfile.Profile()
        profile.runcall(load_run, directory)
        return sum(each.callcount for each in profile.getstats() if each.code is sidecar._sha256.__code__)

    load_run(directory)
    written = kept(directory).stat().st_mtime_ns
    assert hashed() == 1
    assert kept(directory).stat().st_mtime_ns == written  # of a log so young a stamp would prove nothing
    time.sleep(sidecar._TICK_NS / 1e9)
    assert (hashed(), hashed()) == (1, 0)
    (directory / "results.jsonl").touch()
    assert hashed() == 1


def test_what_was_appended_is_read_behind_it(directory: Path) -> None:
    path = directory / "results.jsonl"
    whole = path.read_bytes()
    expected = fresh(directory)
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:40]) + lines[40][:50])  # the last one is being written
    load_run(directory)
    with path.open("ab") as log:
        log.write(lines[40][50:] + b"".join(lines[41:]))
    assert lines_read(directory) == (9, expected)


@pytest.mark.parametrize("position", range(0, 100, 10))
def test_a_flipped_byte_costs_time_and_no_number(directory: Path, position: int) -> None:
    expected = fresh(directory)
    load_run(directory)
    content = bytearray(kept(directory).read_bytes())
    content[len(content) * position // 100] ^= 0x41
    kept(directory).write_bytes(content)
    assert state(load_run(directory)) == expected


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def longer(content: bytes) -> bytes:
    return content + b"\0"


def without_digest(content: bytes) -> bytes:
    return content[:-32]


def not_json(content: bytes) -> bytes:
    return content.replace(b"{", b"[", 1)


def no_line(_: bytes) -> bytes:
    return b"\0" * 1000


def other_meaning(content: bytes) -> bytes:
    return content.replace(b'"meaning":"', b'"meaning":"older ', 1)


def empty(_: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("damage", [cut, longer, without_digest, not_json, no_line, other_meaning, empty])
def test_a_damaged_or_older_one_costs_time_and_no_number(
    directory: Path, damage: Callable[[bytes], bytes]
) -> None:
    expected = fresh(directory)
    load_run(directory)
    kept(directory).write_bytes(damage(kept(directory).read_bytes()))
    assert state(load_run(directory)) == expected
    assert state(load_run(directory)) == expected  # it was made anew


def test_a_verdict_edited_in_place_is_seen_although_size_and_time_are_those_of_before(
    directory: Path,
) -> None:
    load_run(directory)
    path = directory / "results.jsonl"
    before, content = path.stat(), path.read_bytes()
    first = orjson.loads(content.splitlines()[0])
    edited = content.replace(first["solution_sha256"].encode(), b"f" * 64, 1)
    assert len(edited) == len(content)
    path.write_bytes(edited)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    found = state(load_run(directory))
    assert found == fresh(directory)


def test_another_directorys_or_plans_is_not_believed(directory: Path, tmp_path: Path) -> None:
    load_run(directory)
    other = write_run(tmp_path / "other", Made(problems=made_problems(6), seed=5))
    expected = fresh(other)
    shutil.copy(kept(directory), kept(other))
    assert state(load_run(other)) == expected
    run = orjson.loads((directory / "run.json").read_bytes())
    (directory / "run.json").write_bytes(orjson.dumps(run | {"samples": run["samples"] + 1}))
    grown = state(load_run(directory))
    assert grown == fresh(directory)


def test_one_that_vanishes_is_made_again_and_a_copy_of_the_directory_brings_its_own(
    directory: Path, tmp_path: Path
) -> None:
    expected = fresh(directory)
    load_run(directory)
    copied = tmp_path / "copied"
    shutil.copytree(directory, copied)
    assert lines_read(copied) == (0, expected)
    kept(copied).unlink()
    assert lines_read(copied) == (49, expected)


def test_one_that_is_cut_and_removed_in_mid_read_costs_no_number(directory: Path) -> None:
    expected, ended = fresh(directory), threading.Event()

    def harm() -> None:
        while not ended.is_set():
            with suppress(FileNotFoundError):
                os.truncate(kept(directory), kept(directory).stat().st_size // 2)
            kept(directory).unlink(missing_ok=True)

    harming = threading.Thread(target=harm)
    harming.start()
    try:
        assert all(state(load_run(directory)) == expected for _ in range(20))
    finally:
        ended.set()
        harming.join()


def test_a_folder_in_its_place_or_one_that_takes_none_is_as_good(directory: Path) -> None:
    expected = fresh(directory)
    kept(directory).mkdir()
    assert state(load_run(directory)) == expected


def test_contradicting_lines_are_told_however_often_they_are_read(directory: Path) -> None:
    load_run(directory)
    path = directory / "results.jsonl"
    changed = orjson.loads(path.read_bytes().splitlines()[20]) | {"note": "another"}
    with path.open("ab") as log:
        log.write(orjson.dumps(changed) + b"\n")
    for _ in range(2):
        with pytest.raises(ConflictError, match="lines 21 and 51 contradict each other"):
            load_run(directory)


def test_two_processes_read_while_a_run_appends(directory: Path) -> None:
    """Each of them sees a beginning of the log, as it would without the other."""
    path = directory / "results.jsonl"
    expected = fresh(directory)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:13]))
    program = (
        "import sys; from pathlib import Path; from astra_async.report.load import load_run\n"
        "while len(load_run(Path(sys.argv[1])).rows) < 48: pass"
    )
    readers = [subprocess.Popen([sys.executable, "-c", program, str(directory)]) for _ in range(2)]

    def append() -> None:
        with path.open("ab", buffering=0) as log:
            for line in lines[13:]:
                log.write(line[:30])
                log.write(line[30:])

    appender = threading.Thread(target=append)
    appender.start()
    appender.join()
    assert [reader.wait(timeout=PATIENCE_S) for reader in readers] == [0, 0]
    assert state(load_run(directory)) == expected


def test_the_viewer_goes_on_behind_what_is_kept_and_sees_what_is_appended(directory: Path) -> None:
    path = directory / "results.jsonl"
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:40]))
    load_run(directory)
    assert kept(directory).exists()
    following = Following(directory)
    following.look()
    assert following.logs.tails["results"].offset == len(b"".join(lines[:40]))
    with path.open("ab") as log:
        log.write(b"".join(lines[40:]))
    while following.look():
        pass
    expected = load_run(directory)
    assert following.logs.columns.rows().tobytes() == expected.rows.tobytes()
    assert following.logs.tails["results"].lines == len(lines)


def test_rows_of_an_incomplete_run_come_back_to_their_places(directory: Path) -> None:
    path = directory / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:12] + lines[20:]))
    expected = fresh(directory)
    assert np.array(expected[5]).shape[0] == 8
    load_run(directory)
    assert state(load_run(directory)) == expected
