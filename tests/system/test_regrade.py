"""A run is graded again: its broken test repaired, with other limits."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nasty_server import NastyServer, answers
from small_problems import write_problems
from waiting import PATIENCE_S, awaited
from whole_runs import Run

BUNDLED = Path(__file__).parents[2] / "astra_async" / "bundled" / "problems" / "product-api"
STATUS = "expect(response.body).to.deep.equal({ service: 'product-api', status: 'up' });"
BROKEN = STATUS.replace("'up'", "'down'")
SAMPLES = 2
HONEST = 3
LENIENT = "require('chai').Assertion.prototype.assert = function () { return this; };\n"

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with problems.csv, the project of its one problem, and a finished run in `run`."""
    folder = tmp_path_factory.mktemp("regrade")
    shutil.copytree(BUNDLED / "project", folder / "project")
    replace_in(folder / "project", STATUS, BROKEN)
    with (folder / "problems.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "problem_statement", "project", "image"))
        writer.writerow(("product-api", "Finish it.", "project", "astra-set:node-express"))
    words = ("--problems", "problems.csv", "--model", "simulated/steady", "--seed", "3", "--out", "run")
    astra(folder, "run", *words, "--samples", str(SAMPLES))
    return folder


def replace_in(project: Path, old: str, new: str) -> None:
    (path,) = (project / "test").glob("*.js")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def astra(folder: Path, *words: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "astra_async", *words],
        cwd=folder,
        env={**os.environ, "ASTRA_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def fingerprints(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file()
    }


def records(directory: Path) -> dict[int, dict[str, Any]]:
    lines = (directory / "results.jsonl").read_text().splitlines()
    return {record["sample"]: record for record in map(json.loads, lines)}


def test_a_repaired_test_raises_every_score_and_the_old_run_stays_as_it_is(graded: Path) -> None:
    before = fingerprints(graded / "run")
    old = records(graded / "run")
    assert all(record["passed"] < record["total"] for record in old.values())
    replace_in(graded / "project", BROKEN, STATUS)
    try:
        said = astra(graded, "regrade", "run", "--out", "repaired")
    finally:
        replace_in(graded / "project", STATUS, BROKEN)
    new = records(graded / "repaired")
    assert [new[each]["passed"] for each in new] == [old[each]["passed"] + 1 for each in new]
    assert len(new) == SAMPLES
    assert f"{SAMPLES} of {SAMPLES} verdicts changed" in said
    assert all(f"simulated/steady/xml/product-api/{each}: " in said for each in old)
    assert "the answers of run are graded again; run is not changed" in said
    assert fingerprints(graded / "run") == before
    run = json.loads((graded / "repaired" / "run.json").read_text())
    assert run["parent"]["directory"] == str(graded / "run")
    assert run["parent"]["run_id"] == json.loads((graded / "run" / "run.json").read_text())["run_id"]
    assert (graded / "repaired" / "completions.jsonl").read_bytes() == (
        graded / "run" / "completions.jsonl"
    ).read_bytes()


def test_other_limits_change_the_verdicts_and_are_kept_by_a_further_regrade(graded: Path) -> None:
    (graded / "limits.toml").write_text("[sandbox]\ntimeout_s = 0.05\n")
    said = astra(graded, "regrade", "run", "--config", "limits.toml", "--out", "hurried")
    hurried = records(graded / "hurried").values()
    assert {record["failure"] for record in hurried} == {"timeout"}
    (total,) = {record["total"] for record in hurried}
    assert said.count(f"-> 0/{total} (timeout)") == SAMPLES
    again = astra(graded, "regrade", "hurried", "--out", "hurried-again")
    assert f"0 of {SAMPLES} verdicts changed" in again


def test_an_incomplete_run_of_an_agent_is_graded_as_far_as_it_has_answers(graded: Path) -> None:
    words = (
        "--problems",
        "problems.csv",
        "--model",
        "simulated/steady",
        "--agent",
        "shell",
        "--out",
        "agent",
    )
    astra(graded, "run", *words, "--samples", "2", "--out", "agent")
    for name in ("completions.jsonl", "results.jsonl"):
        path = graded / "agent" / name
        kept = [line for line in path.read_bytes().splitlines(keepends=True) if b'"sample":1' in line]
        assert len(kept) == 1
        path.write_bytes(kept[0])
    astra(graded, "regrade", "agent", "--out", "again", code=1)
    assert list(records(graded / "again")) == [1]


@pytest.mark.first
def test_a_regrade_without_out_resumes_the_directory_that_it_left_unfinished(
    tmp_path: Path, tiny_image: str
) -> None:
    with NastyServer(lambda _, __: answers()) as server:
        problems = write_problems(tmp_path, ["p"], tiny_image, before="sleep 1")
        run = Run(
            folder=tmp_path,
            problems=problems,
            base_url=server.base_url,
            samples=6,
            options=("--sandboxes", "2"),
        )
        run.finish()
    words = [sys.executable, "-m", "astra_async", "regrade", "run", "--sandboxes", "1"]
    environ = {**os.environ, "ASTRA_CACHE": str(tmp_path / "cache")}
    killed = subprocess.Popen(words, cwd=tmp_path, env=environ, stderr=subprocess.DEVNULL)
    begun = tmp_path / "run-regrade-1" / "results.jsonl"
    awaited(lambda: begun.exists() and begun.read_bytes().count(b"\n") > 0, "the first verdict")
    killed.kill()
    killed.wait()
    before = begun.read_bytes().count(b"\n")
    assert before < 6
    done = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True)
    assert not (tmp_path / "run-regrade-2").exists()
    assert begun.read_bytes().count(b"\n") == 6
    assert "0 of 6 verdicts changed" in done.stdout
    assert "no answer" not in done.stderr
    assert "missing" not in done.stderr
    subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, check=True)
    assert (tmp_path / "run-regrade-2").exists(), "another regrade, and the first one is finished"
