"""Tasks as a user runs them: validated, worked on by agents, killed at random moments, reported."""

from __future__ import annotations

import asyncio
import csv
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from test_agents_whole import calls_of
from test_kill_and_resume import containers_of, key, lines

from astra_async.agents.installing import settings_of
from astra_async.errors import UsageError
from astra_async.images.base_image import DEBIAN, ensure_base
from astra_async.testing.sandbox.engine import Engine
from astra_async.types import AgentSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1200)]

TASKS = Path(__file__).parent.parent / "data" / "harbor" / "tasks"
ASTRA = (sys.executable, "-m", "astra_async")
# A simulated model does what the commands in an instruction say, each at its skill.
QUOTED = {
    "hello-world": ['echo "Hello, world!" > /app/hello.txt'],
    "ctrf-report": ["echo 1 > /app/one", "echo 2 > /app/two", "echo 3 > /app/three"],
}
MODELS = ("--model", "simulated/steady", "--model", "simulated/erratic")
K = 4
PLANNED = 2 * len(QUOTED) * K


@pytest.fixture(scope="module", autouse=True)
def debian() -> Iterator[None]:
    """The image that the tasks are built from, whether or not a registry answers."""

    async def ensure() -> bool:
        async with await Engine.open() as engine:
            if await engine.image(DEBIAN):
                return False
            await engine.tag(await ensure_base(engine, progress=print), DEBIAN)
            return True

    is_new = asyncio.run(ensure())
    yield
    if is_new:
        subprocess.run(["docker", "image", "rm", DEBIAN], check=True, capture_output=True)


@pytest.fixture(scope="module")
def quoting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tasks whose instructions quote commands."""
    folder = tmp_path_factory.mktemp("quoting")
    for name, commands in QUOTED.items():
        shutil.copytree(TASKS / name, folder / name)
        with (folder / name / "instruction.md").open("a") as stream:
            stream.write("\n```sh\n" + "\n".join(commands) + "\n```\n")
    return folder


def command(tasks: Path, out: Path, *agents: str) -> list[str]:
    named = [word for agent in agents for word in ("--agent", agent)]
    words = [*ASTRA, "run", "--problems", str(tasks), *MODELS, *named, "--samples", str(K), "--seed", "3"]
    return [*words, "--allow-root", "--out", str(out)]


def run(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.first
@pytest.mark.seconds(60)
def test_the_oracle_gets_the_full_reward_of_every_sound_task_and_nop_less(tmp_path: Path) -> None:
    words = [*ASTRA, "validate", "--problems", str(TASKS), "--allow-root", "--allow-network"]
    found = tmp_path / "validation.json"
    done = subprocess.run([*words, "--json", str(found)], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    records = orjson.loads(found.read_bytes())
    unfit = {each["problem_id"]: each["reasons"] for each in records if each["reasons"]}
    assert {task: why.removeprefix("The verifier gives no reward: ") for task, (why,) in unfit.items()} == {
        "verifier-crash": "neither reward.json nor reward.txt was written; exit code 3; it printed: nothing",
        "verifier-timeout": "it was stopped at its limit of time after 2 s; it printed: nothing",
    }
    fit = [each for each in records if not each["reasons"]]
    scores = [(tried["name"], tried["passed"]) for each in fit for tried in each["tried"]]
    assert len(fit) == len(list(TASKS.iterdir())) - 2
    assert {name: set(map(tuple, [s for n, s in scores if n == name])) for name, _ in scores} == {
        "oracle": {(1,)},
        "nop": {(0,)},
    }


@pytest.fixture(scope="module")
def uninterrupted(quoting: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "run"
    run(command(quoting, out, "shell"))
    return out


@pytest.mark.first
def test_rewards_become_scores_in_every_table(uninterrupted: Path, tmp_path: Path) -> None:
    results = lines(uninterrupted / "results.jsonl")
    assert len(results) == PLANNED
    assert all(line["score"] == line["rewards"]["reward"] for line in results)
    assert {line["total"] for line in results} == {1}
    reports = {line["problem_id"]: [test["name"] for test in line["extra_tests"]] for line in results}
    assert reports == {"hello-world": ["hello"], "ctrf-report": ["one", "two", "three"]}
    rows = csv.DictReader((uninterrupted / "problems.csv").read_text().splitlines())
    for row in rows:
        mine = [
            each["score"]
            for each in results
            if (each["model"], each["problem_id"]) == (row["model"], row["problem_id"])
        ]
        assert float(row["mean_score"]) == pytest.approx(fmean(mine))
    said = run([*ASTRA, "regrade", str(uninterrupted), "--out", str(tmp_path / "again")])
    assert f"0 of {PLANNED} verdicts changed" in said
    assert "0 solutions to audit" in run([*ASTRA, "audit", str(uninterrupted)])
    assert containers_of(uninterrupted) == []


@pytest.mark.first
@pytest.mark.parametrize("kills", [3, 10])
def test_sigkill_loses_no_call_and_pays_none_twice(
    uninterrupted: Path, quoting: Path, tmp_path: Path, kills: int
) -> None:
    out, moments = tmp_path / "run", random.Random(7)
    recorded: list[dict[str, Any]] = []
    for _ in range(kills):
        process = subprocess.Popen(
            command(quoting, out, "shell"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(moments.uniform(1.0, 6.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
        now = calls_of(out)
        assert now[: len(recorded)] == recorded, "a recorded call was lost"
        recorded = now
    run(command(quoting, out, "shell"))
    asked = Counter((*key(line), line["sha256"]) for line in calls_of(out))
    assert not [call for call, count in asked.items() if count > 1], "a recorded call was asked again"
    scores = {key(line): line["score"] for line in lines(out / "results.jsonl")}
    assert scores == {key(line): line["score"] for line in lines(uninterrupted / "results.jsonl")}
    assert len(lines(out / "completions.jsonl")) == PLANNED
    assert containers_of(out) == []


@pytest.mark.seconds(90)
@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_an_installed_agent_works_on_tasks(quoting: Path, tmp_path: Path, agent: str) -> None:
    async def look() -> None:
        async with await Engine.open() as engine:
            await settings_of(engine, [AgentSettings(name=agent)])

    try:
        asyncio.run(look())
    except UsageError:
        pytest.skip(f"not installed; astra agents install {agent} installs it")
    run([*command(quoting, tmp_path / "run", agent), "--agents-at-once", "2"])
    results = lines(tmp_path / "run" / "results.jsonl")
    assert len(results) == PLANNED
    assert {line["agent"]["end"] for line in results} == {"done"}
    assert {line["score"] for line in results} == {0, 1}


def test_a_single_answer_and_a_cluster_are_refused_in_one_line(tmp_path: Path) -> None:
    words = [*ASTRA, "run", "--problems", str(TASKS), "--model", "simulated/steady", "--out", str(tmp_path)]
    for more, why in (((), "cannot do"), (("--agent", "nop", "--cluster", "local:1"), "--cluster")):
        done = subprocess.run([*words, *more], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert why in done.stderr
    others = [*ASTRA, "run", "--model", "simulated/steady", "--agent", "oracle", "--out", str(tmp_path)]
    done = subprocess.run(others, capture_output=True, text=True, check=False)
    assert "--agent oracle is for tasks" in done.stderr
