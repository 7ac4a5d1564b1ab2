"""The whole program while the wall clock is set, and while it stands still itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING

import pytest

from nasty_server import NastyServer, answers, falls_silent, refuses, resets
from preloaded import compiled, needs_compiler
from small_problems import solution, write_problems
from waiting import PATIENCE_S, awaited
from whole_runs import Run, finished

if TYPE_CHECKING:
    from pathlib import Path

    from nasty_server import Behaviour, Connection

pytestmark = pytest.mark.docker
SAMPLES = 10
DAY_S = 86_400
# However slowly a program starts: for ten minutes its clock stays nowhere for longer than 1.5 s.
FORTH_AND_BACK = f"0:-{DAY_S}," + ",".join(
    f"{1.5 * step}:{(-2, 2)[step % 2] * DAY_S}" for step in range(1, 401)
)
BACK_AND_FORTH = f"0:-{2 * DAY_S},3:{DAY_S},5:-{DAY_S},7:{3 * DAY_S}"


async def asks_to_wait_until_a_date(connection: Connection) -> None:
    """429 with Retry-After as a date, by a clock that nobody sets."""
    now = datetime.now(UTC)
    date, after = (format_datetime(at, usegmt=True) for at in (now, now + timedelta(seconds=2)))
    await refuses(429, date=date, retry_after=after)(connection)


FIRST_ATTEMPTS: dict[int, Behaviour] = {
    0: asks_to_wait_until_a_date,
    1: falls_silent,
    2: resets,
    3: refuses(503),
    4: refuses(429, retry_after="1"),
    5: falls_silent,
}


def trouble_then_answer(sample: str, attempt: int) -> Behaviour:
    """Sample n passes n of the tests, modulo 4; a first attempt may fail."""
    number = int(sample.partition("/")[2])
    if attempt == 1 and number in FIRST_ATTEMPTS:
        return FIRST_ATTEMPTS[number]
    return answers(solution(1 + number % 4))


def a_run(
    folder: Path, server: NastyServer, image: str, *, sleep_s: float, call_s: float, test_s: float
) -> Run:
    """A call may take `call_s` seconds; a test `test_s`, of which it sleeps `sleep_s`."""
    folder.mkdir(exist_ok=True)
    problems = write_problems(folder, ["p"], image, before=f"sleep {sleep_s}", named=True)
    head, line = problems.read_text().splitlines()
    problems.write_text(f"{head},timeout_s\n{line},{test_s}\n")
    return Run(
        folder=folder,
        problems=problems,
        base_url=server.base_url,
        samples=SAMPLES,
        options=("--sandboxes", "4"),
        settings={"timeout_s": call_s},
    )


def check_scores(run: Run) -> None:
    run.check_end()
    results = run.lines("results.jsonl")
    assert {line["sample"]: line["passed"] for line in results} == {n: 1 + n % 4 for n in range(SAMPLES)}
    assert not any(line["timed_out"] for line in results)


@pytest.mark.first
@needs_compiler
def test_a_wall_clock_that_is_set_by_days_delays_nothing_and_changes_no_score(
    tmp_path: Path, tiny_image: str
) -> None:
    clock = str(compiled("jumping_clock", tmp_path))
    with NastyServer(trouble_then_answer) as calm_server, NastyServer(trouble_then_answer) as server:
        calm = a_run(tmp_path / "calm", calm_server, tiny_image, sleep_s=1, call_s=3, test_s=10)
        run = a_run(tmp_path / "set", server, tiny_image, sleep_s=1, call_s=3, test_s=10)
        run.environ = {"LD_PRELOAD": clock, "JUMPS": FORTH_AND_BACK}
        began = time.monotonic()
        processes = calm.start(), run.start()
        finished(processes[0], 0)
        calm_s = time.monotonic() - began
        finished(processes[1], 0)
        assert time.monotonic() - began < 2 * calm_s + 10, "back-off is random, but has no day in it"
        for each in (calm, run):
            check_scores(each)
            check_durations(each)
        assert set(server.answered.values()) == {1}
    days = {line["finished_at"][:10] for line in run.lines("completions.jsonl")}
    assert len(days) > 1, "the clock was set in mid-run"


@pytest.mark.first
@needs_compiler
def test_a_killed_run_resumes_at_once_under_a_clock_of_another_day(tmp_path: Path, tiny_image: str) -> None:
    clock = str(compiled("jumping_clock", tmp_path))
    with NastyServer(trouble_then_answer) as server:
        run = a_run(tmp_path, server, tiny_image, sleep_s=1, call_s=3, test_s=10)
        run.environ = {"LD_PRELOAD": clock, "JUMPS": FORTH_AND_BACK}
        process = run.start()
        run.await_lines("results.jsonl", 2)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        answered = len(run.lines("completions.jsonl"))
        run.environ = {"LD_PRELOAD": clock, "JUMPS": BACK_AND_FORTH}
        run.finish()
        check_scores(run)
        check_durations(run)
        asked_again = [sample for sample, count in server.answered.items() if count > 1]
        assert len(asked_again) <= SAMPLES - answered


def check_durations(run: Run) -> None:
    """No duration is a matter of the wall clock: none is negative, none has a day in it."""
    durations = [
        line[name] for line in run.lines("results.jsonl") for name in ("test_s", "latency_s", "ttft_s")
    ]
    durations += [event.get("seconds") for event in run.lines("events.jsonl")]
    measured = [duration for duration in durations if duration is not None]
    assert len(measured) >= 2 * SAMPLES
    assert all(0 <= duration < 120 for duration in measured)


# It is told of the jump when it runs: until then nobody knows how long its start takes.
LOOKS_AT_THE_CLOCK = f"""
import os, sys, time
def look():
    at = time.time(), time.monotonic(), time.localtime().tm_yday
    print(*at)
    return at
wall, steady, _ = look()
os.environ["JUMPS"] = f"{{steady - float(sys.argv[1]) + 0.3}}:{DAY_S}"
while time.time() < wall + {DAY_S / 2}:
    time.sleep(0.01)
look()
"""


@needs_compiler
def test_the_clock_of_these_tests_is_set_as_told(tmp_path: Path) -> None:
    environ = {**os.environ, "LD_PRELOAD": str(compiled("jumping_clock", tmp_path))}
    command = [sys.executable, "-c", LOOKS_AT_THE_CLOCK, str(time.monotonic())]
    said = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environ, timeout=PATIENCE_S
    )
    before, after = ([float(word) for word in line.split()] for line in said.stdout.splitlines())
    passed_s = after[1] - before[1]
    assert passed_s > 0.3, "not before its time"
    assert abs(after[0] - before[0] - passed_s - DAY_S) < 1
    assert after[2] != before[2]


@pytest.mark.first
def test_a_program_that_stood_still_loses_nothing_and_lets_nothing_time_out(
    tmp_path: Path, tiny_image: str
) -> None:
    """Tests and answers that come to their end meanwhile, within limits that pass meanwhile."""

    def script(sample: str, _: int) -> Behaviour:
        number = int(sample.partition("/")[2])
        return answers(solution(1 + number % 4), after_s=0.0 if number < 2 else 6.0)

    with NastyServer(script) as server:
        run = a_run(tmp_path, server, tiny_image, sleep_s=4, call_s=15, test_s=15)
        run.options = ("--sandboxes", "5")
        process = run.start()
        awaited(lambda: server.asked.total() == SAMPLES, "all calls")
        awaited(lambda: run.containers(running_only=True) != [], "a running container")
        process.send_signal(signal.SIGSTOP)
        time.sleep(30)
        process.send_signal(signal.SIGCONT)
        finished(process, 0)
        check_scores(run)
        assert set(server.asked.values()) == {1}
        assert {"retry", "sandbox_retry"}.isdisjoint(run.kinds())
