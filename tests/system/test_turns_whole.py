"""Further turns as a user runs them: over HTTP and in containers, killed, resumed, seen by the server."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from nasty_server import NastyServer, answers
from small_problems import solution, write_problems
from waiting import PATIENCE_S
from whole_runs import Run

if TYPE_CHECKING:
    from pathlib import Path

    from nasty_server import Behaviour

pytestmark = pytest.mark.docker

IDS = ("p",)
SAMPLES, TURNS, KILLS = 3, 2, 2
HIDDEN = """\
# the quetzal is counted here
check_the_axolotl() { [ "$(count ocelot)" = 17 ] || echo "no marmoset"; }
"""
SECRETS = (b"quetzal", b"axolotl", b"ocelot", b"marmoset", b"secret_checks")
# Prints what a run has of its own, and what nobody may learn.
PRINTS = (
    'date; echo "took 0.$RANDOM seconds"; echo "pid $$ at $HOSTNAME, port $RANDOM"; mktemp -u;'
    " grep -rn . hidden; cat hidden/* >&2 || true"
)


def a_try(sample: str, _attempt: int) -> Behaviour:
    """The n-th sample passes n tests at first and one more in each turn; the second turn gives no files."""
    number, _, turn = sample.rpartition("/")[2].partition("@")
    if turn == "1" and number == "1":
        return answers("I do not know.")
    return answers(solution(min(4, int(number) + int(turn or 0))))


@pytest.fixture(params=["hidden", "seen"])
def problems(tmp_path: Path, tiny_image: str, request: pytest.FixtureRequest) -> Path:
    """A problem, with hidden tests or without any."""
    path = write_problems(tmp_path, IDS, tiny_image, before=PRINTS)
    for name in IDS if request.param == "hidden" else ():
        (tmp_path / name / "hidden").mkdir()
        (tmp_path / name / "hidden" / "secret_checks.sh").write_text(HIDDEN)
        manifest = "configuration:\n  scoring:\n    hidden_files_paths: [hidden/**]\n"
        (tmp_path / name / "hackerrank.yml").write_text(manifest)
    return path


def a_run(folder: Path, problems: Path, server: NastyServer, *options: str) -> Run:
    folder.mkdir(exist_ok=True)
    return Run(
        folder=folder,
        problems=problems,
        base_url=server.base_url,
        samples=SAMPLES,
        problem_ids=IDS,
        options=("--seed", "3", "--turns", str(TURNS), *options),
    )


def key(line: dict[str, Any]) -> tuple[Any, ...]:
    return (line["problem_id"], line["sample"], line.get("turn", 0))


def told(run: Run) -> dict[tuple[Any, ...], str]:
    return {key(line): line["feedback"] for line in run.lines("turns.jsonl")}


def verdicts(run: Run) -> dict[tuple[Any, ...], Any]:
    lines = [*run.lines("results.jsonl"), *run.lines("turn_results.jsonl")]
    assert len({key(line) for line in lines}) == len(lines)
    return {key(line): (line["status"], line["passed"], line["solution_sha256"]) for line in lines}


@pytest.mark.first
def test_turns_are_the_same_with_kills_and_without_and_the_server_hears_nothing_hidden(
    tmp_path: Path, problems: Path
) -> None:
    with NastyServer(a_try) as server:
        whole = a_run(tmp_path / "whole", problems, server, "--feedback", "full")
        whole.finish()
        once = dict(server.asked)
        killed = a_run(tmp_path / "killed", problems, server, "--feedback", "full")
        moments = random.Random(4)
        for _ in range(KILLS):
            process = killed.start()
            time.sleep(moments.uniform(1.0, 4.0))
            process.send_signal(signal.SIGKILL)
            process.communicate()
        killed.finish()
        bodies = list(server.bodies)
    assert verdicts(whole) == verdicts(killed)
    assert told(whole) == told(killed)
    for name in ("problems.csv", "report/problems.csv"):
        assert (whole.out / name).read_bytes() == (killed.out / name).read_bytes()
    lines = killed.lines("turns.jsonl")
    assert len({key(line) for line in lines}) == len(lines)
    assert set(once.values()) == {1}, "asked twice without any kill"
    assert [body for body in bodies if b"tests passed" in body]
    assert not [secret for secret in SECRETS for body in bodies if secret in body]
    whole.check_end()
    killed.check_end()
    changed = regraded(whole)
    assert "0 of" in changed
    assert "verdicts changed" in changed


def regraded(run: Run) -> str:
    words = ["regrade", str(run.out), "--out", str(run.folder / "again")]
    environ = {**os.environ, "ASTRA_CACHE": str(run.folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", "astra_async", *words],
        capture_output=True,
        text=True,
        check=False,
        env=environ,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    before, after = (
        {key(line): line["passed"] for line in map(orjson.loads, path.read_bytes().splitlines())}
        for path in (run.out / "turn_results.jsonl", run.folder / "again" / "turn_results.jsonl")
    )
    assert before == after
    return done.stdout


@pytest.mark.parametrize("problems", ["seen"], indirect=True)
def test_turns_without_verdicts_are_refused_in_one_line(tmp_path: Path, problems: Path) -> None:
    with NastyServer(a_try) as server:
        run = a_run(tmp_path / "refused", problems, server, "--generate-only")
        said = run.finish(2)
    assert said.startswith("astra: --turns needs verdicts")
    assert not run.out.exists()


@pytest.mark.parametrize("problems", ["seen"], indirect=True)
def test_another_feedback_is_refused_once_turns_are_recorded_and_none_before(
    tmp_path: Path, problems: Path
) -> None:
    with NastyServer(a_try) as server:
        a_run(tmp_path / "run", problems, server, "--feedback", "names", "--limit", "1").finish()
        said = a_run(tmp_path / "run", problems, server, "--feedback", "full", "--limit", "1").finish(2)
        assert "feedback of p has results with other settings" in said
        assert "the previous --feedback" in said
