from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from astra_async.errors import StorageError
from astra_async.files import scan, write_atomically
from astra_async.log import AppendLog, decode, encode
from astra_async.surrogates import without_surrogates
from preloaded import compiled, needs_compiler

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Inner:
    path: str


@dataclass(frozen=True, slots=True)
class Outer:
    text: str
    inner: tuple[Inner, ...]


def test_appended_records_are_found_again_by_offset_and_by_scan(tmp_path: Path) -> None:
    log = AppendLog.open(tmp_path / "a.jsonl")
    places = [log.append({"n": n, "text": "ä\n" * n}) for n in range(5)]
    assert [log.read_at(*place)["n"] for place in places] == list(range(5))
    log.close()
    lines = list(scan(tmp_path / "a.jsonl"))
    assert [(number, offset, len(line)) for number, offset, line in lines] == [
        (n + 1, *place) for n, place in enumerate(places)
    ]


@pytest.mark.parametrize("torn", [b"{", b'{"n": 1', b'{"n": {"m": 1}', b"[1]", b"12", b"{}", b"x" * 200_000])
def test_a_torn_tail_is_cut_off_and_counted(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"n": 0}\n' + torn)
    log = AppendLog.open(path)
    assert log.cut_bytes == len(torn)
    place = log.append({"n": 1})
    assert log.read_at(*place) == {"n": 1}
    log.close()
    assert path.read_bytes() == b'{"n": 0}\n{"n":1}\n'


@pytest.mark.parametrize("before", [b"", b'{"n":0}\n'])
def test_a_whole_last_line_that_lacks_only_its_newline_is_kept(tmp_path: Path, before: bytes) -> None:
    path = tmp_path / "a.jsonl"
    last = encode({"n": 1, "text": "x" * 100_000})
    for end in range(1, len(last)):  # no beginning of it is taken for whole
        if end < 20 or end > len(last) - 20:
            path.write_bytes(before + last[:end])
            assert len(list(scan(path))) == before.count(b"\n")
    path.write_bytes(before + last)
    assert [content for *_, content in scan(path)][-1] == last
    log = AppendLog.open(path)
    assert log.cut_bytes == 0
    place = log.append({"n": 2})
    assert log.read_at(*place) == {"n": 2}
    log.close()
    assert path.read_bytes() == before + last + b'\n{"n":2}\n'


def test_a_file_that_is_one_torn_line_becomes_empty(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"{")
    log = AppendLog.open(path)
    log.close()
    assert path.read_bytes() == b""


def test_lone_surrogates_anywhere_in_a_record_become_replacement_characters() -> None:
    record = Outer("ok \ud800 end", (Inner("\udfff"),))
    assert decode(encode(record)) == {"text": "ok \ufffd end", "inner": [{"path": "\ufffd"}]}


def test_text_without_surrogates_is_the_same_object() -> None:
    text = "grüße 🎈"
    assert without_surrogates(text) is text


def test_a_full_disk_is_one_clear_line_and_leaves_no_torn_record(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(mount)], check=True)
    try:
        log = AppendLog.open(mount / "a.jsonl")
        log.append({"text": "x" * 40_000})
        with pytest.raises(StorageError, match=r"No space left.*resume"):
            log.append({"text": "y" * 60_000})
        log.append({"n": 1})
        log.close()
        assert [decode(line).get("n") for _, _, line in scan(mount / "a.jsonl")] == [None, 1]
    finally:
        subprocess.run(["umount", str(mount)], check=True)


_A_DISK_TEARS_A_LINE = """
import os, pathlib, sys
from astra_async.errors import StorageError
from astra_async.log import AppendLog
from astra_async.files import scan

path, when = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])

def append(n, fails=""):
    when.write_text(fails) if fails else when.unlink(missing_ok=True)
    try:
        places[n] = log.append({"n": n})
    except StorageError:
        print("refused", n)

log, places = AppendLog.open(path), {}
append(0)
append(1, "tear:ENOSPC truncate:EIO")
append(2, "truncate:EIO")
append(3)
append(4)
print([log.read_at(*place)["n"] for place in places.values()])
log.close()
print([line.decode() for _, _, line in scan(path)], AppendLog.open(path).cut_bytes)
"""


@needs_compiler
def test_a_torn_line_that_cannot_be_cut_off_takes_no_other_record_with_it(tmp_path: Path) -> None:
    shim = {"LD_PRELOAD": str(compiled("failing_disk", tmp_path)), "FAILING_BELOW": str(tmp_path / "a.")}
    when = tmp_path / "when"
    done = subprocess.run(
        [sys.executable, "-c", _A_DISK_TEARS_A_LINE, tmp_path / "a.jsonl", when],
        env=os.environ | shim | {"FAILING_WHEN": str(when)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "refused 1",
        "refused 2",
        "[0, 3, 4]",
        """['{"n":0}', '{"n":3}', '{"n":4}'] 0""",
    ], done.stderr


def test_an_unwritable_place_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file"):
        AppendLog.open(tmp_path / "nowhere" / "a.jsonl")


def test_an_atomic_write_replaces_and_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]


def test_several_threads_replace_one_file_and_each_finds_its_own_draft(tmp_path: Path) -> None:
    """A publisher that is cancelled leaves its thread writing while the last table is written."""
    path = tmp_path / "problems.csv"
    contents = [bytes([65 + n]) * 100_000 for n in range(8)]
    with ThreadPoolExecutor(8) as threads:
        for _ in range(20):
            for done in [threads.submit(write_atomically, path, content) for content in contents]:
                done.result()
    assert path.read_bytes() in contents
    assert [found.name for found in tmp_path.iterdir()] == ["problems.csv"]
