"""`astra view` and `astra run --view` as programs of their own."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from command_server import astra
from made_runs import Made, made_problems, write_run
from waiting import PATIENCE_S, awaited

if TYPE_CHECKING:
    from collections.abc import Iterator

ASTRA = (sys.executable, "-m", "astra_async")
VIEWED = re.compile(r"view: (http://127\.0\.0\.1:\d+/)\n")
MADE = Made(problems=made_problems(2), samples=2)


def said_by(*arguments: str) -> tuple[int, str]:
    done = astra(*arguments)
    return done.returncode, done.stderr


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A program and the first line that it prints."""
    with subprocess.Popen(
        [*ASTRA, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as program:
        try:
            assert program.stdout is not None
            yield program, program.stdout.readline()
        finally:
            program.kill()


def fetched(address: str) -> dict[str, Any]:
    with urlopen(address, timeout=PATIENCE_S) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


@pytest.mark.long
@pytest.mark.first
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_stopped_and_changes_nothing(tmp_path: Path, number: int) -> None:
    directory = write_run(tmp_path / "run", MADE)
    before = {path: path.read_bytes() for path in sorted(directory.rglob("*"))}
    with running("view", str(directory), "--port", "0") as (program, line):
        address = line.split()[0]
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", address)
        assert fetched(f"{address}api/run")["state"] in {"finished", "unknown"}
        program.send_signal(number)
        assert program.wait(20) == 0
    assert {path: path.read_bytes() for path in sorted(directory.rglob("*"))} == before


def test_a_port_in_use_and_a_folder_without_a_run_are_one_line(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", MADE)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = said_by("view", str(directory), "--port", str(port))
    assert code == 2
    assert len(said.splitlines()) == 1
    assert str(port) in said
    assert "choose another --port" in said
    (tmp_path / "empty").mkdir()
    for path in ("empty", "nowhere"):
        code, said = said_by("view", str(tmp_path / path))
        assert code == 2
        assert len(said.splitlines()) == 1
        assert "no run.json there" in said


def test_a_folder_with_runs_is_a_list(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_run(tmp_path / name, MADE)
    with running("view", str(tmp_path), "--port", "0") as (_, line):
        address = line.split()[0]
        assert {row["name"] for row in fetched(f"{address}api/runs")["runs"]} == {"one", "two"}
        assert fetched(f"{address}run/two/api/run")["directories"] == [str(tmp_path / "two")]


def test_another_address_than_loopback_prints_a_token_once(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", MADE)
    with running("view", str(directory), "--port", "0", "--host", "0.0.0.0") as (_, line):
        found = re.match(r"http://0\.0\.0\.0:(\d+)/\?token=([\w-]{20,})", line)
        assert found
        with pytest.raises(Exception, match="403"):
            fetched(f"http://127.0.0.1:{found[1]}/api/run")
        fetched(f"http://127.0.0.1:{found[1]}/api/run?token={found[2]}")


def test_a_run_with_view_is_watched_while_it_runs_and_a_little_longer(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    arguments = (
        *("run", "--problems", "bundled", "--model", "simulated/steady", "--limit", "2", "--samples", "2"),
        *("--out", str(directory), "--generate-only", "--view"),
    )
    with subprocess.Popen(
        [*ASTRA, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"SOME_API_KEY": "sk-of-nobody-0123456789"},
    ) as run:
        assert run.stderr is not None
        address = next(filter(None, map(VIEWED.fullmatch, run.stderr)))[1]
        page = urlopen(f"{address}api/stream", timeout=PATIENCE_S)
        run.stderr.read()
        assert run.wait(PATIENCE_S) == 0
    with page:  # while a page is open the viewer stays, to show how it ended
        summary = awaited(
            lambda: fetched(f"{address}api/run"),
            "the run's end to be seen",
            until=lambda seen: seen["state"] != "running",
        )
        assert summary["directories"] == [str(directory)]
        assert summary["state"] in {"stopped", "unknown"}
    viewer = process_at(directory)
    assert b"SOME_API_KEY" not in (viewer / "environ").read_bytes()
    awaited(lambda: not viewer.exists(), "the viewer's end")


def process_at(directory: Path) -> Path:
    """The viewer of a directory in /proc."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes()
        except OSError:
            continue
        if b"--with-run" in command and str(directory).encode() in command:
            return path
    pytest.fail("no viewer is running")


def test_a_run_json_that_cannot_be_used_is_told_in_one_line_on_the_page(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", MADE)
    (directory / "run.json").write_text("{}")
    with running("view", str(directory), "--port", "0") as (_, line):
        found = fetched(f"{line.split()[0]}api/run")
    assert found["models"] == []
    assert ["schema" in warning for warning in found["warnings"]] == [True]
