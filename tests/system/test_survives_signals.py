"""SIGINT and SIGTERM, once and twice, while tests run in containers."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest
from whole_runs import Run, awaited, finished

from nasty_server import NastyServer, answers
from small_problems import write_problems

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.docker
BUSY_S = 3.0  # for a machine that does other things: two seconds are what an idle one takes


def a_run(folder: Path, server: NastyServer, image: str, sleep_s: float) -> Run:
    """Tests that sleep, except those of the untouched project."""
    slow = f'[ "$(cat src/answer.txt)" = 0 ] || sleep {sleep_s}'
    problems = write_problems(folder, ["p"], image, before=slow)
    options = ("--sandboxes", "2")
    return Run(folder=folder, problems=problems, base_url=server.base_url, samples=6, options=options)


def await_running_tests(run: Run) -> None:
    awaited(lambda: bool(run.lines("completions.jsonl")), "answers")
    awaited((run.out / "expected.json").exists, "the expected tests")
    awaited(lambda: len(run.containers(running_only=True)) == 2, "two running containers")


def test_sigterm_lets_running_tests_end_and_exits_143(tmp_path: Path, tiny_image: str) -> None:
    with NastyServer(lambda _, __: answers()) as server:
        run = a_run(tmp_path, server, tiny_image, 4)
        process = run.start()
        await_running_tests(run)
        process.send_signal(signal.SIGTERM)
        said = finished(process, 143)
        assert "2 containers come to their end first" in said
        assert "the same command resumes" in said
        assert run.containers() == []
        done = run.lines("results.jsonl")
        assert {line["status"] for line in done} == {"scored"}
        assert 2 <= len(done) < 6, "running tests are recorded, waiting ones are left"
        run.finish()
        run.check_end()
        assert {line["passed"] for line in run.lines("results.jsonl")} == {3}
        assert set(server.asked.values()) == {1}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_stops_within_two_seconds_and_leaves_no_container(
    tmp_path: Path, tiny_image: str, number: signal.Signals
) -> None:
    with NastyServer(lambda _, __: answers()) as server:
        run = a_run(tmp_path, server, tiny_image, 300)
        process = run.start()
        await_running_tests(run)
        process.send_signal(number)
        time.sleep(0.3)
        assert process.poll() is None, "the first signal lets the tests go on"
        process.send_signal(number)
        began = time.monotonic()
        said = finished(process, 128 + number)
        took_s = time.monotonic() - began
        assert run.containers() == []
        assert "the same command resumes" in said
        assert run.lines("results.jsonl") == [], "a test that was stopped is never scored"
        assert took_s < 2 + BUSY_S, f"{took_s:.1f} s"
