"""A run is graded again: its broken test mended, with other limits, with trials that prove its model."""

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

from astra_async.bundled import load_answers
from nasty_server import NastyServer, answers
from small_problems import write_problems
from waiting import PATIENCE_S, awaited
from whole_runs import Run

BUNDLED = Path(__file__).parents[2] / "astra_async" / "bundled" / "problems" / "product-api"
STATUS = "expect(response.body).to.deep.equal({ service: 'product-api', status: 'up' });"
BROKEN = STATUS.replace("'up'", "'down'")
SAMPLES = 2
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


def test_a_mended_test_raises_every_score_and_the_old_run_stays_as_it_is(graded: Path) -> None:
    before = fingerprints(graded / "run")
    old = records(graded / "run")
    assert all(record["passed"] < record["total"] for record in old.values())
    replace_in(graded / "project", BROKEN, STATUS)
    try:
        said = astra(graded, "regrade", "run", "--out", "mended")
    finally:
        replace_in(graded / "project", STATUS, BROKEN)
    new = records(graded / "mended")
    assert [new[each]["passed"] for each in new] == [old[each]["passed"] + 1 for each in new]
    assert len(new) == SAMPLES
    assert f"{SAMPLES} of {SAMPLES} verdicts changed" in said
    assert all(f"simulated/steady/xml/product-api/{each}: " in said for each in old)
    assert "the answers of run, which stays as it is" in said
    assert fingerprints(graded / "run") == before
    run = json.loads((graded / "mended" / "run.json").read_text())
    assert run["parent"]["directory"] == str(graded / "run")
    assert run["parent"]["run_id"] == json.loads((graded / "run" / "run.json").read_text())["run_id"]
    assert (graded / "mended" / "completions.jsonl").read_bytes() == (
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


def test_a_regrade_that_proves_a_model_tries_what_it_graded_before_also_after_a_kill(tmp_path: Path) -> None:
    known = load_answers("product-api")
    assert known is not None
    wrong = max(known.faulty, key=lambda each: each.expected_passed)
    words = ("--problems", "bundled", "--only", "product-api", "--model", "simulated/steady", "--out", "run")
    astra(tmp_path, "run", *words, "--samples", "6", "--generate-only")
    lines = []
    for line in (tmp_path / "run" / "completions.jsonl").read_text().splitlines():
        record = json.loads(line)
        honest = record["sample"] == 3
        files = known.reference if honest else wrong.files
        texts = {path: ("" if honest else LENIENT) + text for path, text in files.items()}
        texts[min(texts)] += f"// {record['sample']}\n"
        record["text"] = "".join(
            f'<file path="{path}"><![CDATA[{text}]]></file>' for path, text in texts.items()
        )
        lines.append(json.dumps(record) + "\n")
    (tmp_path / "run" / "completions.jsonl").write_text("".join(lines))
    command = [sys.executable, "-m", "astra_async", "regrade", "run", "--sandboxes", "2"]
    environ = {**os.environ, "ASTRA_CACHE": str(tmp_path / "cache")}
    killed = subprocess.Popen(command, cwd=tmp_path, env=environ, stderr=subprocess.DEVNULL)
    begun = tmp_path / "run-regrade-1" / "results.jsonl"
    awaited(
        lambda: killed.poll() is not None or (begun.exists() and b'"replaces"' in begun.read_bytes()),
        "the first sample that was tried after all",
    )
    killed.kill()
    killed.wait()
    assert "6 samples graded for the first time" in astra(tmp_path, "regrade", "run", "--sandboxes", "2")
    assert not (tmp_path / "run-regrade-2").exists()
    new = records(tmp_path / "run-regrade-1")
    assert {each: record["failure"] for each, record in new.items()} == {
        each: None if each == 3 else "tampered" for each in range(6)
    }
    replaced = [record["replaces"] for record in new.values() if "replaces" in record]
    assert replaced
    assert all(each["failure"] is None for each in replaced)
    again = astra(tmp_path, "regrade", "run-regrade-1", "--out", "again")
    assert "0 of 6 verdicts changed" in again


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
