"""SIGINT, SIGTERM and SIGHUP, once and twice, while tests run in containers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nasty_server import NastyServer, answers, falls_silent
from slow_engine import SlowEngine
from small_problems import write_problems
from waiting import PATIENCE_S, awaited
from whole_runs import Beside, Run, finished

if TYPE_CHECKING:
    from nasty_server import Behaviour

pytestmark = pytest.mark.docker
PROMISED_S = 2.0
CONTAINERS, STREAMS = 12, 30
REMOVED_LATER = "a separate process removes the remaining containers"
ENDLESS_WORK = '{"' * 100_000  # for the helper process that repairs answers


def a_run(folder: Path, server: NastyServer, image: str, sleep_s: float, **fields: object) -> Run:
    """Tests that sleep, except the untouched project's."""
    slow = f'[ "$(cat src/answer.txt)" = 0 ] || sleep {sleep_s}'
    problems = write_problems(folder, ["p"], image, before=slow)
    known: dict[str, object] = {"samples": 6, "options": ("--sandboxes", "2"), **fields}
    return Run(folder=folder, problems=problems, base_url=server.base_url, **known)  # type: ignore[arg-type]


def await_running_tests(run: Run, count: int = 2) -> None:
    awaited(lambda: bool(run.lines("completions.jsonl")), "answers")
    awaited((run.out / "expected.json").exists, "the expected tests")
    awaited(lambda: len(run.containers(running_only=True)) == count, f"{count} running containers")


@pytest.mark.first
def test_sigterm_lets_running_tests_end_and_exits_143(tmp_path: Path, tiny_image: str) -> None:
    with NastyServer(lambda _, __: answers()) as server:
        run = a_run(tmp_path, server, tiny_image, 4)
        process = run.start()
        await_running_tests(run)
        process.send_signal(signal.SIGTERM)
        said = finished(process, 143)
        assert " and 2 containers (tests take" in said
        assert "continue with: astra run --problems" in said
        assert run.containers() == []
        done = run.lines("results.jsonl")
        assert {line["status"] for line in done} == {"scored"}
        assert 2 <= len(done) < 6, "running tests are recorded, waiting ones are left"
        run.finish()
        run.check_end()
        assert {line["passed"] for line in run.lines("results.jsonl")} == {3}
        assert set(server.asked.values()) == {1}


def everything_at_once(sample: str, _: int) -> Behaviour:
    """Answers for all containers, one for the helper process, and streams that stay open."""
    number = int(sample.partition("/")[2])
    if number < CONTAINERS:
        return answers()
    return answers(ENDLESS_WORK) if number == CONTAINERS else falls_silent


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_stops_within_two_seconds_and_leaves_no_container(
    tmp_path: Path, tiny_image: str, number: signal.Signals
) -> None:
    with NastyServer(everything_at_once) as server:
        fields = {
            "samples": CONTAINERS + 1 + STREAMS,
            "options": ("--sandboxes", str(CONTAINERS)),
        }
        run = a_run(tmp_path, server, tiny_image, 300, **fields)
        process = run.start()
        await_running_tests(run, CONTAINERS)
        awaited(lambda: bool(children(process)), "the helper process")
        awaited(lambda: server.asked.total() == CONTAINERS + 1 + STREAMS, "all calls")
        process.send_signal(number)
        run.await_draining()
        assert process.poll() is None, "the first signal lets the tests go on"
        helpers = children(process)
        with Beside() as beside:
            process.send_signal(number)
            began = time.monotonic()
            said = finished(process, 128 + number)
            took_s = time.monotonic() - began
        if REMOVED_LATER in said:  # as promised where Docker takes longer
            awaited(lambda: run.containers() == [], "the removal of the containers")
        else:
            assert run.containers() == []
            assert "continue with: astra run --problems" in said
        awaited(lambda: not any(map(runs, helpers)), "the end of the helpers")
        assert run.lines("results.jsonl") == [], "a test that was stopped is never scored"
        assert beside.allows(took_s, PROMISED_S)


@pytest.mark.first
def test_a_second_signal_stops_within_two_seconds_though_docker_answers_nothing(
    tmp_path: Path, tiny_image: str
) -> None:
    with NastyServer(lambda _, __: answers()) as server, SlowEngine(0.0) as engine:
        run = a_run(tmp_path, server, tiny_image, 300, environ={"DOCKER_HOST": engine.host})
        process = run.start()
        await_running_tests(run)
        engine.hang()
        process.send_signal(signal.SIGTERM)
        run.await_draining()
        around = replace(run, environ={})
        # Counted before the program ends: from then on any program that opens a sandbox may take them away.
        assert len(around.containers()) >= 2
        with Beside() as beside:
            process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            said = finished(process, 143)
            took_s = time.monotonic() - began
        assert beside.allows(took_s, PROMISED_S)
        assert REMOVED_LATER in said
        engine.go_on()
        awaited(lambda: around.containers() == [], "the removal of the containers")
        assert len(run.lines("completions.jsonl")) == 6


def children(process: subprocess.Popen[str]) -> list[str]:
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


def runs(pid: str) -> bool:
    """Whether there is such a process, and not only an end that nobody has collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.first
def test_a_terminal_that_is_closed_drains_as_sigterm_does(tmp_path: Path, tiny_image: str) -> None:
    """A real terminal whose other end goes away while tests run: the kernel sends SIGHUP."""
    with NastyServer(lambda _, __: answers()) as server:
        run = a_run(tmp_path, server, tiny_image, 4)
        process, terminal = on_a_terminal(run)
        await_running_tests(run)
        os.close(terminal)
        assert process.wait(timeout=PATIENCE_S) == 128 + signal.SIGHUP
        assert run.containers() == []
        done = run.lines("results.jsonl")
        assert {line["status"] for line in done} == {"scored"}
        assert 2 <= len(done) < 6, "running tests are recorded, waiting ones are left"
        assert (run.out / "report" / "index.html").exists()
        run.finish()
        run.check_end()
        assert set(server.asked.values()) == {1}


def test_nohup_is_obeyed(tmp_path: Path, tiny_image: str) -> None:
    with NastyServer(lambda _, __: answers()) as server:
        run = a_run(tmp_path, server, tiny_image, 2, samples=2, before=("nohup",))
        process = run.start()
        await_running_tests(run)
        process.send_signal(signal.SIGHUP)
        finished(process, 0)
        run.check_end()


def on_a_terminal(run: Run) -> tuple[subprocess.Popen[bytes], int]:
    """The run as a terminal's foreground process, and the terminal's other end."""
    other_end, terminal = os.openpty()
    environ = {**os.environ, "ASTRA_CACHE": str(run.folder / "cache"), **run.environ}
    process = subprocess.Popen(
        [sys.executable, "-c", OWN_TERMINAL, *run.command],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environ,
        start_new_session=True,
    )
    os.close(terminal)
    threading.Thread(target=swallow, args=(other_end,), daemon=True).start()
    return process, other_end


def swallow(terminal: int) -> None:
    with suppress(OSError):
        while os.read(terminal, 65536):
            pass


OWN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
