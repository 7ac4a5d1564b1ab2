"""`astra status`: a directory that is running, was stopped, or is complete, from its files alone."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec import structs

from astra_async.cli.display import dollars
from astra_async.cli.status import status
from astra_async.errors import UsageError
from astra_async.fingerprint import Parts
from astra_async.redaction import register_secret
from astra_async.report.tables import build_report
from astra_async.running.description import commands_to_finish, shell_command
from astra_async.running.directory import RunDirectory
from astra_async.running.recorded import Spent
from astra_async.types import Completion, Result, SampleKey, Usage
from command_server import astra
from made_runs import Made, made_problems, write_run, write_turns

COMPLETION = Completion(
    text="<solution/>",
    finish_reason="stop",
    usage=Usage(input_tokens=7000, output_tokens=300),
    returned_model="m",
    ttft_s=0.1,
    latency_s=1,
    cost_usd=0.25,
)
RESULT = Result(
    schema=1,
    model="m",
    format="xml",
    problem_id="p",
    sample=0,
    status="scored",
    failure=None,
    passed=2,
    total=2,
    score=1,
    finished_at="2026-11-20T10:00:00.000Z",
)

KEY = SampleKey("m", "xml", "p", 0)

PLAN: dict[str, Any] = {
    "at": "1",
    "folder": str(Path.cwd()),
    "models": ["m"],
    "formats": ["xml"],
    "problems": ["p"],
    "samples": 2,
}


def begun(path: Path, answered: int = 0, graded: int = 0) -> RunDirectory:
    """Two problems with two samples each, and so many answers and verdicts."""
    directory = RunDirectory.open(path)
    parts = Parts(models={"m": {}}, formats={"xml": {}}, problems={"p": {}, "q": {}}, grading={})
    directory.extend(parts, {"models": [{"name": "m"}], "problems": {"p": {}, "q": {}}}, 2)
    keys = [SampleKey("m", "xml", problem, sample) for sample in range(2) for problem in "pq"]
    for number, key in enumerate(keys):
        if number < answered:
            directory.record_completion(key, COMPLETION, "0" * 64)
        if number < graded:
            directory.record_result(structs.replace(RESULT, problem_id=key.problem_id, sample=key.sample))
    return directory


def shown(path: Path) -> str:
    done = CliRunner().invoke(status, [str(path)], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_a_running_directory_names_its_process_and_is_not_disturbed(tmp_path: Path) -> None:
    with closing(begun(tmp_path, answered=3, graded=1)) as directory:
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        text = shown(tmp_path)
        assert f"running, process {os.getpid()}" in text
        assert "1 of 4 samples, 25 %" in text
        assert "2 answered and not graded" in text
        assert "100.0 %" in text
        assert "next:" not in text
        directory.record_event("rate_limited", pool="m", detail="HTTP 429")
        assert "rate limited m: HTTP 429" in shown(tmp_path)
        assert {path: path.read_bytes() for path in before if path.name != "events.jsonl"} == {
            path: content for path, content in before.items() if path.name != "events.jsonl"
        }


@pytest.mark.parametrize(
    ("answered", "graded", "said"),
    [
        (4, 4, "complete"),
        (4, 1, "next: start this run again from the same program; it tests the recorded answers"),
        (2, 1, "next: start this run again from the same program; it continues the run"),
    ],
)
def test_a_directory_that_nobody_runs_says_what_to_do_next(
    tmp_path: Path, answered: int, graded: int, said: str
) -> None:
    begun(tmp_path, answered, graded).close()
    text = shown(tmp_path)
    assert said in text
    assert f"{7 * answered}k/{300 * answered}".replace("1200", "1k") in text
    assert f"${0.25 * answered:.2f}" in text
    assert f"next: astra report {tmp_path}" in text or graded < 4


def commanded(path: Path, *calls: tuple[str, str, tuple[str, ...]]) -> str:
    """What status says to type next, of calls with their problems, each at its time."""
    with closing(begun(path, answered=2, graded=1)) as directory:
        commands = {command: PLAN | {"at": at, "problems": problems} for at, command, problems in calls}
        directory.run["commands"] = commands
        directory.save()
    return shown(path)


def test_the_next_command_is_the_one_that_was_typed(tmp_path: Path) -> None:
    whole = "astra run --problems my.csv --model m --out 'a b'"
    text = commanded(tmp_path, ("2026-01-01", whole, ("p", "q")))
    assert f"next: {whole}\n" in text
    assert "--generate-only" not in text


def test_the_score_after_the_last_turn_is_shown_beside_the_first_answers(tmp_path: Path) -> None:
    made = Made(skill={"alpha": 0.4, "beta": 0.5}, problems=made_problems(3), samples=4)
    directory = write_run(tmp_path / "run", made)
    assert "after turns" not in shown(directory)
    write_turns(directory, made, 2, {"alpha": 0.9, "beta": 0.6})
    text = shown(directory)
    board = build_report([directory]).table("leaderboard").by_name()
    for row in board:
        first, after = row["mean_score"], row["after_turns"]
        assert isinstance(first, float)
        assert isinstance(after, float)
        assert re.search(rf"{row['model']} \(xml\) .* {100 * first:.1f} % +{100 * after:.1f} %", text)
    assert "complete" in text


def test_a_missing_turn_is_not_complete_and_has_the_command_that_requests_it(tmp_path: Path) -> None:
    made = Made(skill={"alpha": 0.4}, problems=made_problems(3), samples=4)
    directory = write_run(tmp_path / "run", made)
    write_turns(directory, made, 2, {"alpha": 0.9})
    path = directory / "turn_results.jsonl"
    first, *others = path.read_bytes().splitlines(keepends=True)
    key = json.loads(first)
    path.write_bytes(b"".join(line for line in others if json.loads(line)["sample"] != key["sample"]))
    text = shown(directory)
    assert "not running, not complete" in text
    assert "missing" in text
    assert "next: start this run again from the same program" in text


@pytest.mark.parametrize(
    ("state", "closed", "said"),
    [
        ("open", {}, "next: astra run --until decided\n"),
        ("better", {}, ": complete\n"),
        ("open", {"closed": True}, ": complete\n"),
    ],
)
def test_a_round_that_is_complete_is_not_the_end_while_a_pair_is_open(
    tmp_path: Path, state: str, closed: dict[str, bool], said: str
) -> None:
    with closing(begun(tmp_path, answered=4, graded=4)) as directory:
        look = {"a": "m", "b": "n", "format": "xml", "k": 2, "state": state, "difference": 0.1}
        directory.run["commands"] = {"astra run --until decided": PLAN | {"at": "1", "samples": 4}}
        directory.run["deciding"] = {
            "until": "decided",
            "rounds": [2, 4],
            "problems": ["p", "q"],
            "groups": [{"models": ["m", "n"], "pairs": [["m", "n"]]}],
            "planned": {"m": 2},
            "looks": [look | {"interval": None, "problems": None}],
            **closed,
        }
        directory.save()
    assert said in shown(tmp_path)


def test_a_budget_that_is_spent_is_replaced_in_the_next_command(tmp_path: Path) -> None:
    with closing(begun(tmp_path, answered=1, graded=1)) as directory:
        command = "astra run --budget-usd 1 --out 'a b' --budget-usd=2"
        directory.run["commands"] = {command: PLAN | {"at": "1"}}
        directory.save()
        directory.record_event("budget", model="m", detail="the budget is reached", raise_to_usd=4.5)
    text = shown(tmp_path)
    assert "next: astra run --out 'a b' --budget-usd 4.50\n" in text
    assert "3 over budget" in text
    (tmp_path / "live.json").write_text('{"since": "2999-01-01"}')  # a later invocation
    text = shown(tmp_path)
    assert f"next: {command}\n" in text
    assert "over budget" not in text


def test_a_call_for_one_problem_leaves_the_others_to_the_command_before(tmp_path: Path) -> None:
    whole, only = "astra run --problems my.csv --generate-only", "astra run --problems my.csv --only q"
    text = commanded(tmp_path, ("2026-01-01", whole, ("p", "q")), ("2026-01-02", only, ("q",)))
    assert f"next: {only}\nnext: {whole}\n" in text.replace("  ", "")


def test_a_command_that_asked_for_fewer_samples_does_not_go_on(tmp_path: Path) -> None:
    run = {
        "samples": 4,
        "commands": {
            "old": {
                "at": "1",
                "folder": "/",
                "models": ["m"],
                "formats": ["xml"],
                "problems": ["p"],
                "samples": 2,
            }
        },
    }
    assert commands_to_finish(run, {("m", "xml", "p")}, answered=False) == []
    run["samples"] = 2
    assert commands_to_finish(run, {("m", "xml", "p")}, answered=False) == ["cd / && old"]


def test_answers_that_were_only_recorded_are_tested_without_that_flag() -> None:
    run = {"samples": 2, "commands": {"astra run --generate-only --out 'a b'": PLAN}}
    assert commands_to_finish(run, {("m", "xml", "p")}, answered=True) == ["astra run --out 'a b'"]
    assert commands_to_finish(run, {("m", "xml", "p")}, answered=False) == [
        "astra run --generate-only --out 'a b'"
    ]


def test_a_secret_that_was_typed_is_not_kept() -> None:
    register_secret("hunter2hunter2")
    words = (
        "astra",
        "run",
        "--problems",
        "https://me:pw@host/p.csv?token=abc&alt=1",
        "--seed",
        "hunter2hunter2",
    )
    assert shell_command(words) == "astra run --problems 'https://host/p.csv?token=***&alt=1' --seed '***'"


def test_a_sample_is_missing_until_it_is_answered(tmp_path: Path) -> None:
    key = SampleKey("m", "xml", "q", 1)
    with closing(begun(tmp_path, answered=3, graded=3)) as directory:
        directory.record_event("provider_error", key, detail="HTTP 500")
        counted = re.compile(r"(?<![\d:])1 provider error")  # and no second of the clock before one
        assert counted.search(shown(tmp_path))
        directory.record_completion(key, COMPLETION, "0" * 64)
        assert not counted.search(shown(tmp_path))


def test_what_was_spent_before_is_known_after_a_resume(tmp_path: Path) -> None:
    with closing(begun(tmp_path, answered=2)) as directory:
        directory.record_event("provider_error", pool="m", cost_usd=0.5)
        assert directory.earlier == {}
    with closing(RunDirectory.open(tmp_path)) as directory:
        assert directory.earlier == {"m": Spent(input_tokens=14_000, output_tokens=600, cost_usd=1.0)}


def test_a_cost_is_a_lower_bound_while_the_cost_of_an_answer_is_unknown(tmp_path: Path) -> None:
    with closing(begun(tmp_path, answered=2)) as directory:
        assert "$0.50" in shown(tmp_path)
        assert ">=" not in shown(tmp_path)
        unpriced = dataclasses.replace(COMPLETION, cost_usd=None)
        directory.record_completion(SampleKey("m", "xml", "q", 1), unpriced, "0" * 64)
    assert shown(tmp_path).count(">= $0.50") == 2  # of the model and in all
    done = CliRunner().invoke(status, [str(tmp_path), "--json", "-"], catch_exceptions=False)
    (row,) = json.loads(done.stdout)["progress"]["models"]
    assert (row["cost_usd"], row["cost_incomplete"]) == (0.5, True)


def test_json_without_a_file_is_on_standard_output(tmp_path: Path) -> None:
    begun(tmp_path, answered=1).close()
    outputs = [
        CliRunner().invoke(status, [str(tmp_path), *words], catch_exceptions=False)
        for words in (["--json"], ["--json", "-"])
    ]
    assert json.loads(outputs[0].stdout) == json.loads(outputs[1].stdout)
    assert "1 of 4" not in outputs[0].stdout
    assert "next:" in outputs[0].stderr


def test_answers_that_are_gone_are_named(tmp_path: Path) -> None:
    begun(tmp_path, answered=3, graded=3).close()
    assert "completions.jsonl: not there" not in shown(tmp_path)
    (tmp_path / "completions.jsonl").unlink()
    assert "completions.jsonl: missing, so answers cannot be shown" in shown(tmp_path)


def test_the_last_error_is_shown_with_its_remedy(tmp_path: Path) -> None:
    with closing(begun(tmp_path)) as directory:
        detail = f"{'a long reason ' * 40}: add --reward-range LOW:HIGH"
        directory.record_event("sandbox_error", KEY, detail=detail)
    assert "add --reward-range LOW:HIGH" in " ".join(shown(tmp_path).split())


def test_problems_that_could_not_be_prepared_are_named_until_they_are(tmp_path: Path) -> None:
    with closing(begun(tmp_path, answered=4, graded=4)) as directory:
        for name in "rsq":  # q could be prepared later
            detail = f"problem {name}: the archive is empty"
            directory.record_event("project_error", problem_id=name, detail=detail)
    warning = "no samples of r, s: the archive is empty"
    assert f"warning: {warning}" in shown(tmp_path)
    assert any(warning in each for each in build_report([tmp_path]).warnings)


def test_a_complete_run_does_not_say_that_it_was_stopped_once(tmp_path: Path) -> None:
    with closing(begun(tmp_path, answered=3, graded=3)) as directory:
        directory.record_event("stopped", detail="by the user")
        assert "by the user" in shown(tmp_path)
    with closing(begun(tmp_path / "whole", answered=4, graded=4)) as directory:
        directory.record_event("stopped", detail="by the user")
        assert "by the user" not in shown(tmp_path / "whole")


def test_a_cost_of_less_than_a_cent_is_not_nothing() -> None:
    assert [dollars(cost) for cost in (0.0, 0.0042, 0.095, 0.5, 12.345)] == [
        *("$0.00", "$0.0042", "$0.095", "$0.50", "$12.35"),
    ]


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no run\.json there"):
        shown(tmp_path)


def test_state_progress_and_next_steps_are_there_for_programs(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Made(problems=made_problems(2), samples=2))
    done = astra("status", str(run), "--json", "-")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert (found["state"], found["process"], found["missing"]) == ("complete", None, [])
    assert found["progress"]["final"] == found["progress"]["planned"] == 8
    assert found["next"] == [f"next: astra report {run}"]
    assert str(run) in done.stderr


def test_a_report_of_two_runs_writes_into_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runs = [write_run(tmp_path / name, Made(problems=made_problems(2), samples=2)) for name in ("a", "b")]
    before = [sorted(run.rglob("*")) for run in runs]
    done = astra("report", *map(str, runs), "--json", "all.json")
    assert done.returncode == 0, done.stderr
    assert [sorted(run.rglob("*")) for run in runs] == before
    assert json.loads((tmp_path / "all.json").read_text()) == json.loads(
        (tmp_path / "report" / "report.json").read_text()
    )
