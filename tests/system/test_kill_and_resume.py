"""The whole program as a user runs it: killed at random moments, resumed, and no digit changed."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from astra_async.types.records import is_output_of
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.docker, pytest.mark.timeout(2400)]  # where nobody has, it makes an image first

KILLS = (4, 10)  # in the first tier, and in the parts
COMMAND = (
    *(sys.executable, "-m", "astra_async", "run"),
    *("--model", "simulated/steady", "--model", "simulated/erratic"),
    *("--only", "product-api", "--format", "both", "--samples", "2", "--seed", "7"),
)
PLANNED = 2 * 2 * 2
DETERMINED = ("status", "failure", "passed", "total", "score", "repairs", "solution_sha256", "changes")


def start(out: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "--out", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, bufsize=0
    )


def finish(out: Path) -> None:
    process = start(out)
    _, said = process.communicate(timeout=1800)
    assert process.returncode == 0, said.decode()


def lines(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def key(line: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(line[name] for name in ("model", "format", "problem_id", "sample"))


def determined(line: dict[str, Any]) -> list[Any]:
    """What no interruption may change; a message may hold an address or a time."""
    outcomes = [(test["name"], test["outcome"]) for test in line["tests"]]
    return [outcomes, *(line[name] for name in DETERMINED)]


def check_evidence(out: Path, results: list[dict[str, Any]]) -> None:
    """Each failed sample has its messages and one output of its own, whatever was killed in between."""
    outputs = lines(out / "outputs.jsonl")
    for line in results:
        kept = [output for output in outputs if is_output_of(output, line)]
        was_tested = line["status"] == "scored" and line["failure"] is not None
        assert len(kept) == int(was_tested)
        assert all(
            test.get("message")
            for test in line["tests"]
            if was_tested and test["outcome"] in ("failed", "error")
        )
    live = orjson.loads((out / "live.json").read_bytes())
    assert (live["ended"], live["samples"]["final"], live["samples"]["planned"]) == (True, PLANNED, PLANNED)
    assert not list(out.glob(".*.tmp"))


def containers_of(out: Path) -> list[str]:
    run_id = orjson.loads((out / "run.json").read_bytes())["run_id"]
    command = ["docker", "ps", "-aq", "--filter", f"label=astra.run={run_id}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "run"
    finish(out)
    return out


@pytest.mark.first
@pytest.mark.parametrize("kills", KILLS)
def test_sigkill_at_random_moments_loses_and_changes_nothing(
    uninterrupted: Path, tmp_path: Path, kills: int
) -> None:
    out = tmp_path / "run"
    moments = random.Random(5)
    answered_before: set[tuple[Any, ...]] = set()
    for _ in range(kills):
        process = start(out)
        time.sleep(moments.uniform(0.3, 2.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if (out / "completions.jsonl").exists():
            whole = (out / "completions.jsonl").read_bytes().rpartition(b"\n")[0]
            now = [key(orjson.loads(line)) for line in whole.splitlines()]
            assert set(now) >= answered_before, "a recorded answer was lost"
            assert not [name for name, count in Counter(now).items() if count > 1], "asked again"
            answered_before = set(now)
    finish(out)

    results = lines(out / "results.jsonl")
    assert len(results) == PLANNED == len({key(line) for line in results})
    assert len(lines(out / "completions.jsonl")) == PLANNED
    whole_run = {key(line): line for line in lines(uninterrupted / "results.jsonl")}
    for line in results:
        assert determined(line) == determined(whole_run[key(line)])
    check_evidence(out, results)
    for table in ("problems.csv", "report/problems.csv"):
        assert (out / table).read_bytes() == (uninterrupted / table).read_bytes()
    assert containers_of(out) == []


@pytest.mark.first
def test_the_same_command_on_a_finished_run_does_nothing_and_succeeds(uninterrupted: Path) -> None:
    before = (uninterrupted / "results.jsonl").read_bytes()
    finish(uninterrupted)
    assert (uninterrupted / "results.jsonl").read_bytes() == before


@pytest.mark.seconds(40)
def test_ctrl_c_drains_says_so_and_exits_130(tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = start(out)
    while not (out / "completions.jsonl").exists() or not (out / "completions.jsonl").stat().st_size:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert b"stopping: waiting for" in said
    assert b"continue with: astra run" in said
    assert containers_of(out) == []
    finish(out)
    assert len(lines(out / "results.jsonl")) == PLANNED


@pytest.mark.first
def test_changed_settings_are_refused_with_the_difference(uninterrupted: Path) -> None:
    command = [*COMMAND[:-1], "8", "--out", str(uninterrupted)]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "seed: 7 -> 8" in refused.stderr
    assert refused.stderr.count("\n") == 1
