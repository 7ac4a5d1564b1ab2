"""astra export, read back by the tools that it is for; scripts/long installs those that are large."""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from junitparser import Failure, JUnitXml

import astra_async
from astra_async.export.parquet import _FROM_LINES
from command_server import astra
from made_runs import Made, agreeing, made_problems, write_run

MADE = Made(formats=("xml", "json"), problems=made_problems(5), samples=3, seed=7)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("exports") / "run", MADE)


@pytest.fixture(scope="module")
def torn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run without its first two samples."""
    path = write_run(tmp_path_factory.mktemp("torn") / "run", MADE)
    lines = (path / "results.jsonl").read_bytes().splitlines(keepends=True)
    (path / "results.jsonl").write_bytes(b"".join(lines[2:]))
    return path


def export(directory: Path, target: str, out: Path, *more: str, code: int = 0) -> str:
    done = astra("export", str(directory), "--to", target, "--out", str(out), *more)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def test_parquet_holds_the_frames_and_answers_only_if_asked(whole: Path, tmp_path: Path) -> None:
    export(whole, "hf", tmp_path / "plain")
    export(whole, "hf", tmp_path / "full", "--with-answers")
    run = astra_async.load(whole)
    for name, frame in (("samples", run.samples), ("tests", run.tests), ("problems", run.problems)):
        read = pd.read_parquet(tmp_path / "plain" / "data" / f"{name}-00000.parquet")
        more = list(_FROM_LINES) if name == "samples" else []
        assert list(read.columns) == [*frame.columns, *more]
        assert len(read) == len(frame)
        for column in frame.columns:
            assert (read[column].isna() == frame[column].isna()).all()
            assert (read[column].dropna().astype(str) == frame[column].dropna().astype(str)).all(), column
    full = pq.read_table(tmp_path / "full" / "data" / "samples-00000.parquet").to_pylist()
    assert "answer" not in pq.read_schema(tmp_path / "plain" / "data" / "samples-00000.parquet").names
    lines = map(json.loads, (whole / "results.jsonl").read_bytes().splitlines())
    key_names = ("model", "format", "problem_id", "sample")
    recorded = {tuple(line[name] for name in key_names): line for line in lines}
    for row in full:
        line = recorded[row["model"], row["format"], row["problem_id"], row["sample"]]
        for name in ("solution_sha256", "note", "node", "output_tail", "started_at", "finished_at"):
            assert row[name] == line[name]
        assert json.loads(row["changes"]) == line["changes"]
        assert row["cache_write_tokens"] == line["usage"]["cache_write_tokens"]
    for row in full[:10]:
        key = (row["model"], row["format"], row["problem_id"], row["sample"])
        assert row["answer"] == run.answer(key).text
    assert "config_name: tests" in (tmp_path / "plain" / "README.md").read_text()
    assert b"<solution>" not in (tmp_path / "plain" / "data" / "samples-00000.parquet").read_bytes()


def test_a_missing_sample_is_null_absent_or_an_error_and_never_a_zero(torn: Path, tmp_path: Path) -> None:
    export(torn, "parquet", tmp_path / "p")
    read = pd.read_parquet(tmp_path / "p" / "data" / "samples-00000.parquet")
    assert read["score"].isna().sum() == read["status"].isna().sum() == 2
    export(torn, "inspect", tmp_path / "i")
    headers = [header(path) for path in sorted((tmp_path / "i").glob("*.eval"))]
    assert sorted(each["status"] for each in headers).count("error") >= 1
    assert sum(each["results"]["completed_samples"] for each in headers) == 2 * 2 * 5 * 3 - 2
    export(torn, "junit", tmp_path / "j.xml", "--min-pass", "0")
    suites = JUnitXml.fromfile(str(tmp_path / "j.xml"))
    assert suites.errors >= 1
    assert suites.failures == 0


def test_parquet_of_two_runs_and_of_one_without_a_verdict(whole: Path, torn: Path, tmp_path: Path) -> None:
    """Pieces of a table have the same types, whatever they hold."""
    out = tmp_path / "p"
    export(whole, "parquet", out, str(torn))
    read, both = pd.read_parquet(out / "data" / "samples-00000.parquet"), astra_async.load(whole, torn)
    assert list(read.columns) == [*both.samples.columns, *_FROM_LINES]
    assert (read["directory"].astype(str) == both.samples["directory"].astype(str)).all()
    assert (read["score"].isna() == both.samples["score"].isna()).all()
    nothing = shutil.copytree(whole, tmp_path / "run")
    (nothing / "results.jsonl").write_bytes(b"")
    export(nothing, "parquet", tmp_path / "nothing")
    read = pd.read_parquet(tmp_path / "nothing" / "data" / "samples-00000.parquet")
    assert (len(read), read["status"].isna().all()) == (2 * 2 * 5 * 3, True)
    assert pq.read_table(tmp_path / "nothing" / "data" / "tests-00000.parquet").num_rows == 0


def header(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as log:
        assert log.testzip() is None
        found: dict[str, Any] = json.loads(log.read("header.json"))
    return found


def test_inspect_logs_tell_what_the_leaderboard_tells(whole: Path, tmp_path: Path) -> None:
    export(whole, "inspect", tmp_path / "logs")
    board = astra_async.load(whole).leaderboard.set_index(["model", "format"])
    logs = sorted((tmp_path / "logs").glob("*.eval"))
    assert len(logs) == len(board)
    for path in logs:
        told = header(path)
        row = board.loc[(told["eval"]["model"], told["eval"]["metadata"]["answer_format"])]
        scores = {each["name"]: each["metrics"]["mean"]["value"] for each in told["results"]["scores"]}
        assert scores["tests"] == pytest.approx(row["mean_score"], abs=1e-12)
        assert scores["perfect"] == pytest.approx(row["pass_at_1"], abs=1e-12)
        with zipfile.ZipFile(path) as log:
            names = log.namelist()
            assert len([name for name in names if name.startswith("samples/")]) == 15
            assert b"<solution>" not in log.read(names[0])
    assert len({header(path)["eval"]["task_id"] for path in logs}) == len(logs)


def test_unknown_usage_is_unknown_and_known_usage_is_summed(whole: Path, tmp_path: Path) -> None:
    run = shutil.copytree(whole, tmp_path / "run")
    lines = [json.loads(line) for line in (run / "results.jsonl").read_bytes().splitlines()]
    lines[0]["usage"] |= {"input_tokens": None, "output_tokens": None}
    (run / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    digest = hashlib.sha256(b"Write it.").hexdigest()
    (run / "prompts").mkdir(exist_ok=True)
    (run / "prompts" / f"{digest}.txt").write_text("Write it.")
    lines[1]["prompt_sha256"] = digest
    (run / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    export(run, "inspect", tmp_path / "logs", "--with-answers")
    samples: list[dict[str, Any]] = []
    totals: dict[str, int] = {}
    for path in (tmp_path / "logs").glob("*.eval"):
        with zipfile.ZipFile(path) as log:
            samples += [json.loads(log.read(name)) for name in log.namelist() if name.startswith("samples/")]
        model = header(path)["eval"]["model"]
        known = header(path)["stats"]["model_usage"][model]["output_tokens"]
        totals[model] = totals.get(model, 0) + known
    (unknown,) = [each for each in samples if not each["model_usage"]]
    assert unknown["output"]["usage"] is None
    expected: dict[str, int] = {}
    for line in lines[1:]:
        expected[line["model"]] = expected.get(line["model"], 0) + line["usage"]["output_tokens"]
    assert totals == expected
    (asked,) = [each for each in samples if each["input"] == "Write it."]
    assert asked["messages"][0]["content"] == "Write it."
    sent = asked["events"][0]["input"][0]["content"]
    assert asked["attachments"][sent.removeprefix("attachment://")] == "Write it."


def test_inspect_ai_itself_reads_the_logs(whole: Path, tmp_path: Path) -> None:
    log = pytest.importorskip("inspect_ai.log", reason="not installed; scripts/long installs it")
    from inspect_ai.analysis import samples_df

    export(whole, "inspect", tmp_path / "logs", "--with-answers")
    run = astra_async.load(whole)
    for path in sorted((tmp_path / "logs").glob("*.eval")):
        read = log.read_eval_log(str(path))
        assert read.status == "success"
        assert len(read.samples) == 15
        first = read.samples[0]
        key = (read.eval.model, read.eval.metadata["answer_format"], first.id, first.epoch - 1)
        assert first.output.completion == run.answer(key).text
        (event,) = log.read_eval_log(str(path), resolve_attachments=True).samples[0].events
        assert event.input[0].text == first.input
    with warnings.catch_warnings(action="ignore"):  # what it calls of pandas is its own matter
        frame = samples_df(str(tmp_path / "logs"))
    assert len(frame) == 60
    assert frame["score_tests"].astype(float).mean() == pytest.approx(float(run.samples["score"].mean()))


def test_datasets_itself_loads_the_folder(whole: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="not installed; scripts/long installs it")
    export(whole, "hf", tmp_path / "hf")
    loaded = datasets.load_dataset(str(tmp_path / "hf"), "samples", cache_dir=str(tmp_path / "cache"))
    assert loaded["train"].num_rows == 60


def test_junit_cases_fail_below_the_wanted_share(whole: Path, tmp_path: Path) -> None:
    export(whole, "junit", tmp_path / "j.xml", "--min-pass", "0.5")
    problems = astra_async.load(whole).problems.set_index(["model", "format", "problem_id"])
    suites = JUnitXml.fromfile(str(tmp_path / "j.xml"))
    assert (suites.tests, suites.errors) == (len(problems), 0)
    for suite in suites:
        model, _, answer_format = suite.name.removesuffix(")").rpartition(" (")
        for case in suite:
            share = problems.loc[(model, answer_format, case.name), "pass_at_1"]
            assert any(isinstance(one, Failure) for one in case.result) == (share < 0.5)


def test_a_share_of_samples_is_compared_exactly(tmp_path: Path) -> None:
    """14 of 25 are 0.56, though 0.56 times 25 is more than 14 in floating point."""
    path = write_run(tmp_path / "run", Made(skill={"alpha": 0.9}, problems=made_problems(1), samples=25))
    results = path / "results.jsonl"
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    made = [agreeing(line, line["total"] if at < 14 else 0) for at, line in enumerate(lines)]
    results.write_text("".join(f"{json.dumps(line)}\n" for line in made))
    for least, failures in (("0.56", 0), ("0.5601", 1)):
        export(path, "junit", tmp_path / "j.xml", "--min-pass", least)
        assert JUnitXml.fromfile(str(tmp_path / "j.xml")).failures == failures


def test_nothing_half_written_stays_and_nothing_is_written_over(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    said = export(whole, "hf", tmp_path / "full", code=2)
    assert "is not empty" in said
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["mine.txt"]
    export(tmp_path, "junit", tmp_path / "j.xml", code=2)
    assert not (tmp_path / "j.xml").exists()


def test_every_eval_ever_gets_records_that_its_own_schemas_accept(whole: Path, tmp_path: Path) -> None:
    import jsonschema

    schemas = Path(__file__).parent / "every_eval_ever"
    aggregate, instance = (
        jsonschema.Draft7Validator(json.loads((schemas / f"{name}.schema.json").read_text()))
        for name in ("eval", "instance_level_eval")
    )
    export(whole, "eee", tmp_path / "plain")
    export(whole, "eee", tmp_path / "full", "--with-answers")
    run = astra_async.load(whole)
    found = sorted((tmp_path / "plain").rglob("*.json"))
    assert len(found) == 4
    for path in found:
        record = json.loads(path.read_text())
        aggregate.validate(record)
        detailed = record["detailed_evaluation_results"]
        content = (tmp_path / "plain" / detailed["file_path"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == detailed["checksum"]
        rows = [json.loads(line) for line in content.splitlines()]
        assert len(rows) == detailed["total_rows"] == 15
        for row in rows:
            instance.validate(row)
            assert row["output"]["raw"] == []
        fmt = record["evaluation_results"][0]["score_details"]["details"]["answer_format"]
        board = run.leaderboard.set_index(["model", "format"]).loc[(record["model_info"]["name"], fmt)]
        scores = {
            each["metric_config"]["metric_id"]: each["score_details"] for each in record["evaluation_results"]
        }
        for name, score in scores.items():
            assert score["score"] == pytest.approx(board[name])
        interval = scores["mean_score"]["uncertainty"]["confidence_interval"]
        assert interval["lower"] <= scores["mean_score"]["score"] <= interval["upper"]
        mean = sum(row["evaluation"]["score"] for row in rows) / len(rows)
        assert mean == pytest.approx(scores["mean_score"]["score"])
    for path in (tmp_path / "full").rglob("*_samples.jsonl"):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            instance.validate(row)
            assert len(row["output"]["raw"]) == 1


def test_a_task_of_an_agent_is_exported_with_its_rewards(tmp_path: Path) -> None:
    import jsonschema

    directory = write_run(tmp_path / "run", replace(MADE, formats=("shell",)))
    agent = {"agent": "shell", "version": "1", "end": "done", "steps": 7}
    task = {"tests": [], "passed": 0, "total": 1, "score": 0.857, "rewards": {"reward": 0.857, "speed": 3}}
    more = task | {"agent": agent, "status": "scored", "failure": "tests_failed"}
    results = directory / "results.jsonl"
    lines = [json.loads(line) | more for line in results.read_bytes().splitlines()]
    results.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    for target in ("inspect", "eee", "parquet"):
        export(directory, target, tmp_path / target)
    with zipfile.ZipFile(next((tmp_path / "inspect").glob("*.eval"))) as log:
        sample = json.loads(log.read(next(name for name in log.namelist() if name.startswith("samples/"))))
    assert sample["scores"]["tests"]["explanation"] == "rewards: reward 0.857, speed 3"
    table = pq.read_table(next((tmp_path / "parquet").rglob("samples-*.parquet")))
    assert json.loads(table["rewards"][0].as_py()) == {"reward": 0.857, "speed": 3}
    schema = json.loads(
        (Path(__file__).parent / "every_eval_ever/instance_level_eval.schema.json").read_text()
    )
    row = json.loads(next((tmp_path / "eee").rglob("*_samples.jsonl")).read_text().splitlines()[0])
    jsonschema.Draft7Validator(schema).validate(row)
    assert (row["interaction_type"], row["evaluation"]["num_turns"]) == ("agentic", 7)


def test_every_eval_ever_gets_no_metric_without_a_value(tmp_path: Path) -> None:
    import jsonschema

    schema = json.loads((Path(__file__).parent / "every_eval_ever" / "eval.schema.json").read_text())
    once = write_run(tmp_path / "run", Made(problems=made_problems(4), samples=1))
    export(once, "eee", tmp_path / "out")
    for path in (tmp_path / "out").rglob("*.json"):
        record = json.loads(path.read_text())
        jsonschema.Draft7Validator(schema).validate(record)
        told = {each["metric_config"]["metric_id"] for each in record["evaluation_results"]}
        assert "mean_score" in told
        assert "median_sd" not in told, "one sample a problem has no SD"


def test_every_eval_ever_gets_no_provisional_numbers(torn: Path, tmp_path: Path) -> None:
    done = astra("export", str(torn), "--to", "eee", "--out", str(tmp_path / "o"))
    assert done.returncode == 0, done.stderr
    assert "is incomplete and was left out" in done.stderr
    told = set()
    for path in (tmp_path / "o").rglob("*.json"):
        record = json.loads(path.read_text())
        details = record["evaluation_results"][0]["score_details"]["details"]
        told.add((record["model_info"]["name"], details["answer_format"]))
    samples = astra_async.load(torn).samples
    groups = samples.groupby(["model", "format"], observed=True)
    whole = {key for key, rows in groups if rows.score.notna().all()}
    assert told == whole
    assert 0 < len(whole) < 4
