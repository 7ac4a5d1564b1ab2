"""Agents as a user runs them: beside single answers, killed at random moments, graded again, looked at."""

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
from test_kill_and_resume import containers_of, determined, key, lines

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.docker, pytest.mark.timeout(2400)]

ASTRA = (sys.executable, "-m", "astra_async")
COMMAND = (
    *(*ASTRA, "run", "--problems", "bundled", "--only", "product-api", "--only", "tool-hire"),
    *("--model", "simulated/steady", "--agent", "none", "--agent", "shell", "--samples", "2", "--seed", "3"),
)
PLANNED = 2 * 2 * 2


def finish(out: Path) -> None:
    done = subprocess.run([*COMMAND, "--out", str(out)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def calls_of(out: Path) -> list[dict[str, Any]]:
    """The whole lines of calls.jsonl; a killed process may have left half a line."""
    path = out / "calls.jsonl"
    return [orjson.loads(line) for line in path.read_bytes().split(b"\n")[:-1]] if path.exists() else []


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "run"
    finish(out)
    return out


@pytest.mark.first
def test_an_agent_is_graded_beside_the_single_answer_and_its_steps_are_shown(uninterrupted: Path) -> None:
    results = lines(uninterrupted / "results.jsonl")
    assert Counter(line["format"] for line in results) == {"xml": PLANNED // 2, "shell": PLANNED // 2}
    agents = [line for line in results if line["format"] == "shell"]
    calls = Counter(key(line) for line in calls_of(uninterrupted))
    for line in agents:
        work = line["agent"]
        assert (work["end"], work["replayed"], work["steps"]) == ("done", 0, calls[key(line)])
        assert line["attempts"] == work["steps"]
    assert any(line["failure"] is None for line in agents)
    assert all("agent" not in line for line in results if line["format"] == "xml")
    shown = subprocess.run(
        [*ASTRA, "show", str(uninterrupted), "simulated/steady", "tool-hire", "0", "--format", "shell"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "--- step 0 ---" in shown
    assert "[model calls submit]" in shown
    assert "(kind" in shown or "(changed)" in shown
    assert containers_of(uninterrupted) == []


@pytest.mark.seconds(60)
def test_trajectories_go_out_as_atif(uninterrupted: Path, tmp_path: Path) -> None:
    out = tmp_path / "atif"
    subprocess.run([*ASTRA, "export", str(uninterrupted), "--to", "atif", "--out", str(out)], check=True)
    files = list(out.glob("*/*.json"))
    assert len(files) == PLANNED // 2
    for path in files:
        found = orjson.loads(path.read_bytes())
        steps = found["steps"]
        assert found["schema_version"] == "ATIF-v1.8"
        assert [step["step_id"] for step in steps] == list(range(1, len(steps) + 1))
        assert [step["source"] for step in steps[:2]] == ["system", "user"]
        called = {call["tool_call_id"] for step in steps for call in step.get("tool_calls", ())}
        answered = {
            each["source_call_id"]
            for step in steps
            for each in step.get("observation", {}).get("results", ())
        }
        assert answered <= called
        assert answered


@pytest.mark.seconds(90)
def test_a_regrade_asks_no_agent_and_changes_no_verdict(uninterrupted: Path, tmp_path: Path) -> None:
    out = tmp_path / "again"
    done = subprocess.run(
        [*ASTRA, "regrade", str(uninterrupted), "--out", str(out)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "0 of 8 verdicts changed" in done.stderr + done.stdout
    assert calls_of(out) == calls_of(uninterrupted)


@pytest.mark.first
@pytest.mark.parametrize("kills", [4, 10])
def test_sigkill_asks_no_finished_sample_again_and_no_recorded_call_twice(
    uninterrupted: Path, tmp_path: Path, kills: int
) -> None:
    out = tmp_path / "run"
    moments = random.Random(11)
    recorded: list[dict[str, Any]] = []
    for _ in range(kills):
        process = subprocess.Popen(
            [*COMMAND, "--out", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(moments.uniform(0.8, 4.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
        now = calls_of(out)
        assert now[: len(recorded)] == recorded, "a recorded call was lost"
        recorded = now
    finish(out)
    results = {key(line): line for line in lines(out / "results.jsonl")}
    whole = {key(line): line for line in lines(uninterrupted / "results.jsonl")}
    assert results.keys() == whole.keys()
    for name, line in results.items():
        assert determined(line) == determined(whole[name])
    asked = Counter((*key(line), line["sha256"]) for line in calls_of(out))
    assert not [call for call, count in asked.items() if count > 1], "a recorded call was asked again"
    assert len(lines(out / "completions.jsonl")) == PLANNED
    assert containers_of(out) == []
