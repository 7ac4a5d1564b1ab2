"""A run is graded again: its broken test repaired, with other limits, with trials that prove its model."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from astra_async.bundled import load_answers
from astra_async.cli.regrade import _found
from astra_async.integrity.draw import LEAST, SHARE, Draw, Solved
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


def astra(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "astra_async", *words],
        cwd=folder,
        env={**os.environ, "ASTRA_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
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
    assert "the answers of run, which stays as it is" in said
    assert fingerprints(graded / "run") == before
    run = json.loads((graded / "repaired" / "run.json").read_text())
    assert run["parent"]["directory"] == str(graded / "run")
    assert run["parent"]["run_id"] == json.loads((graded / "run" / "run.json").read_text())["run_id"]
    assert (graded / "repaired" / "completions.jsonl").read_bytes() == (
        graded / "run" / "completions.jsonl"
    ).read_bytes()


def test_trials_for_everybody_changes_no_honest_verdict(graded: Path) -> None:
    said = astra(graded, "regrade", "run", "--trials", "all")
    assert f"0 of {SAMPLES} verdicts changed" in said
    new = records(graded / "run-regrade-1")
    assert [record["suspicions"] for record in new.values()] == [[]] * SAMPLES
    assert "untouched" in (graded / "run-regrade-1" / "expected.json").read_text()
    run = json.loads((graded / "run-regrade-1" / "run.json").read_text())
    assert run["parts"]["grading"]["product-api"]["trials"] == "all"


@pytest.fixture
def cheated(tmp_path: Path) -> Path:
    """A folder with a run in which three answers of four bend their tests, begun to be graded again.

    Its secret is such that the second of them is drawn for a trial, and the others are not.
    """
    known = load_answers("product-api")
    assert known is not None
    wrong = max(known.faulty, key=lambda each: each.expected_passed)
    words = ("--problems", "bundled", "--only", "product-api", "--model", "simulated/steady", "--out", "run")
    astra(tmp_path, "run", *words, "--samples", "4", "--generate-only")
    run, new, lines = tmp_path / "run", tmp_path / "run-regrade-1", []
    for line in (run / "completions.jsonl").read_text().splitlines():
        record = json.loads(line)
        lenient, files = ("", known.reference) if record["sample"] == HONEST else (LENIENT, wrong.files)
        record["text"] = "".join(
            f'<file path="{path}"><![CDATA[{lenient}{text}// {record["sample"]}\n]]></file>'
            for path, text in files.items()
        )
        lines.append(json.dumps(record) + "\n")
    (run / "completions.jsonl").write_text("".join(lines))
    astra(tmp_path, "regrade", "run", "--trials", "off", "--out", "believed")
    believed = records(tmp_path / "believed")
    assert {record["failure"] for record in believed.values()} == {None}
    solved = [Solved("product-api", believed[each]["solution_sha256"]) for each in range(3)]
    _found(run, new, json.loads((run / "run.json").read_text()))
    draws = ([Draw(key).rng(each, "draw").random() for each in solved] for key in map(secret, count()))
    number = next(at for at, (a, b, c) in enumerate(draws) if b < LEAST and min(a, c) > 2 * SHARE)
    (new / "trial.key").write_bytes(secret(number))
    return tmp_path


def secret(number: int) -> bytes:
    return b"%032d" % number


def test_a_regrade_that_proves_a_model_tries_what_it_graded_before_also_after_a_kill(cheated: Path) -> None:
    command = [sys.executable, "-m", "astra_async", "regrade", "run", "--sandboxes", "2"]
    environ = {**os.environ, "ASTRA_CACHE": str(cheated / "cache")}
    begun = cheated / "run-regrade-1" / "results.jsonl"
    with subprocess.Popen(command, cwd=cheated, env=environ, stderr=subprocess.DEVNULL) as killed:
        try:
            awaited(lambda: begun.exists() and begun.read_bytes().count(b"\n") > 3, "four verdicts")
        finally:
            killed.kill()
    assert "4 samples graded for the first time" in astra(cheated, "regrade", "run", "--sandboxes", "2")
    assert not (cheated / "run-regrade-2").exists()
    new = records(cheated / "run-regrade-1")
    assert {each: record["failure"] for each, record in new.items()} == {
        each: None if each == HONEST else "tampered" for each in range(4)
    }
    assert new[0]["replaces"] == new[2]["replaces"] == {"passed": new[0]["total"], "failure": None}
    assert "replaces" not in new[1]
    again = astra(cheated, "regrade", "run-regrade-1", "--trials", "all", "--out", "again")
    assert "0 of 4 verdicts changed" in again


def test_other_limits_change_the_verdicts_and_are_kept_by_a_further_regrade(graded: Path) -> None:
    (graded / "limits.toml").write_text("[sandbox]\ntimeout_s = 0.05\n")
    said = astra(graded, "regrade", "run", "--config", "limits.toml", "--out", "hurried")
    hurried = records(graded / "hurried").values()
    assert {record["failure"] for record in hurried} == {"timeout"}
    (total,) = {record["total"] for record in hurried}
    assert said.count(f"-> 0/{total} (timeout)") == SAMPLES
    again = astra(graded, "regrade", "hurried", "--out", "hurried-again")
    assert f"0 of {SAMPLES} verdicts changed" in again


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
    subprocess.run([*words, "--trials", "off"], cwd=tmp_path, env=environ, capture_output=True, check=True)
    assert (tmp_path / "run-regrade-2").exists(), "another regrade, and the first one is finished"
