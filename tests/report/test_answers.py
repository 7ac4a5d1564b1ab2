"""The smaller questions: skills, failures, labels, harness, provenance, problem statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest

from astra_async.errors import UsageError
from astra_async.log import encode
from astra_async.report.harness import read_events
from astra_async.report.labels import read_judged, read_labels, relabelled
from astra_async.report.problem_tables import table_1
from astra_async.report.provenance import published
from astra_async.report.run_settings import ProblemInfo
from astra_async.report.tables import build_report
from astra_async.running.reuse import note_of_reuse
from astra_async.types import SampleKey
from astra_async.types.records import read_key
from made_runs import Made, MadeProblem, agreeing, made_results, run_json, write_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from astra_async.report.tables import Report


def written(directory: Path, made: Made, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Report:
    directory.mkdir()
    (directory / "run.json").write_bytes(orjson.dumps(run_json(made)))
    lines = [change(orjson.loads(encode(result))) for result, _ in made_results(made)]
    (directory / "results.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return build_report([directory])


def scored(passed: dict[str, int]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Every sample of a model passes so many of its tests."""

    def change(line: dict[str, Any]) -> dict[str, Any]:
        return agreeing(line, passed[line["model"]])

    return change


FOUR = [MadeProblem(id=f"p{i}", total=4, main_skill="node", sub_skills=("Regex",)) for i in range(4)]


def test_models_with_equal_means_win_together(tmp_path: Path) -> None:
    made = Made(skill={"a": 1, "b": 1, "c": 1}, problems=FOUR, samples=2)
    report = written(tmp_path / "run", made, scored({"a": 3, "b": 3, "c": 1}))
    assert report.table("sub_skill_winners").rows == (("Regex", 4, "xml", "a, b", 0.75, "c"),)


def test_a_skill_of_two_problems_has_no_winner(tmp_path: Path) -> None:
    made = Made(skill={"a": 1, "b": 1}, problems=FOUR[:2], samples=2)
    report = written(tmp_path / "run", made, scored({"a": 3, "b": 1}))
    assert report.table("main_skill_winners").rows == ()
    assert report.table("main_skill_frequency").rows == (("node", 2),)


def test_a_problem_counts_for_each_of_its_sub_skills(tmp_path: Path) -> None:
    problems = [
        MadeProblem(id="one", sub_skills=("Regex", "Routing")),
        MadeProblem(id="two", sub_skills=("Regex",)),
    ]
    report = build_report([write_run(tmp_path / "run", Made(problems=problems))])
    assert report.table("sub_skill_frequency").rows == (("Regex", 2), ("Routing", 1))


def test_equal_solutions_judged_differently_are_the_harness(tmp_path: Path) -> None:
    def change(line: dict[str, Any]) -> dict[str, Any]:
        flaky = line["problem_id"] == "p1" and line["sample"] == 0
        return scored({"a": 3 if flaky else 4})(line) | {
            "solution_sha256": "ab" * 32,
            "image_id": "sha256:1",
        }

    report = written(tmp_path / "run", Made(skill={"a": 1}, problems=FOUR, samples=3), change)
    everything, flaky = report.table("flakiness").rows
    assert everything[:4] == ("all problems", 4, 12, 1)
    assert flaky[:4] == ("p1", 1, 3, 1)
    assert flaky[4] == pytest.approx((((0.75 - 11 / 12) ** 2 + 2 * (1 - 11 / 12) ** 2) / 2) ** 0.5)


def test_a_verdict_that_was_used_again_is_no_repetition(tmp_path: Path) -> None:
    def change(line: dict[str, Any]) -> dict[str, Any]:
        return scored({"a": 3})(line) | {
            "solution_sha256": "ab" * 32,
            "image_id": "sha256:1",
            "note": note_of_reuse(read_key(line), SampleKey("a", "xml", line["problem_id"], 0))
            if line["sample"] > 1
            else "",
        }

    report = written(tmp_path / "run", Made(skill={"a": 1}, problems=FOUR, samples=6), change)
    ((_, groups, samples, unlike, noise),) = report.table("flakiness").rows
    assert (groups, samples, unlike, noise) == (4, 8, 0, 0.0)


def test_a_test_that_swaps_with_another_is_seen_though_the_score_is_equal(tmp_path: Path) -> None:
    def change(line: dict[str, Any]) -> dict[str, Any]:
        outcomes = ("passed", "failed", "failed", "failed")
        outcomes = outcomes if line["sample"] else outcomes[::-1]
        return scored({"a": 1})(line) | {
            "solution_sha256": "ab" * 32,
            "image_id": "sha256:1",
            "tests": [{"name": f"t{i}", "outcome": outcome} for i, outcome in enumerate(outcomes)],
        }

    report = written(tmp_path / "run", Made(skill={"a": 1}, problems=FOUR[:1], samples=2), change)
    assert [row[3] for row in report.table("flakiness").rows] == [1, 1]


def test_labels_are_counted_apart_from_what_the_program_saw(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", Made())
    (directory / "labels.csv").write_text(
        "model,format,problem_id,sample,label\n"
        "alpha,xml,p00,0,logic\nalpha,xml,p00,1,Data handling and misuse\nalpha,xml,p01,1,logic\n"
    )
    rows = {row[0]: row for row in build_report([directory]).table("error_classes").rows}
    assert rows["alpha"][2:3] + rows["alpha"][4:] == ("hand", 3, 0, 2, 1, 0)
    assert rows["beta"][2:3] + rows["beta"][4:] == ("not labelled", 0, None, None, None, None)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("model,label\n", "column format, problem_id, sample is missing"),
        ("model,format,problem_id,sample,label\na,xml,p,0,bug\n", "line 2: label 'bug'"),
        ("model,format,problem_id,sample,label\na,xml,p,-1,logic\n", "sample '-1' is invalid"),
    ],
)
def test_a_wrong_label_is_named_with_its_line(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "labels.csv").write_text(content)
    with pytest.raises(UsageError, match=said):
        read_labels(tmp_path / "labels.csv")


def test_a_label_is_taken_away_however_its_number_is_written() -> None:
    text = "model,format,problem_id,sample,label\n"
    assert relabelled(f"{text}m,xml,p,03,logic\n", ("m", "xml", "p", 3), None) == text


def test_a_judgement_that_names_no_sample_is_left_out(tmp_path: Path) -> None:
    line = {"judge": "j", "model": ["m"], "format": "xml", "problem_id": "p", "sample": 0, "label": "logic"}
    (tmp_path / "judgements.jsonl").write_bytes(orjson.dumps(line) + b"\n")
    assert not read_judged(tmp_path).judges


def test_the_last_reason_of_a_key_counts_else_its_problems_else_its_models(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    key = {"model": "a", "format": "xml", "problem_id": "p", "sample": 0}
    events = [
        {"kind": "provider_error", **key, "detail": "first", "cost_usd": 0.25},
        {"kind": "sandbox_error", **key, "detail": "last"},
        {"kind": "sandbox_retry", **key, "detail": "only a wait"},
        {"kind": "project_error", "problem_id": "q", "detail": "no zip"},
        {"kind": "pool_failed", "model": "b", "detail": "key rejected"},
    ]
    path.write_bytes(b"".join(orjson.dumps(event) + b"\n" for event in events) + b'{"torn')
    found = read_events(path)
    assert found.reason("a", "xml", "p", 0) == ("sandbox_error", "last")
    assert found.reason("a", "xml", "q", 7) == ("project_error", "no zip")
    assert found.reason("b", "xml", "p", 0) == ("pool_failed", "key rejected")
    assert found.reason("a", "xml", "p", 1) is None
    assert found.counts["sandbox_retry", "a"] == 1
    assert found.costs["provider_error", "a"] == 0.25


def test_two_prompts_for_one_problem_are_a_finding(tmp_path: Path) -> None:
    def change(line: dict[str, Any]) -> dict[str, Any]:
        return line | {"prompt_sha256": "b" * 64 if line["sample"] == 1 else "a" * 64}

    report = written(tmp_path / "run", Made(skill={"a": 1}, problems=FOUR[:1], samples=3), change)
    table = report.table("inputs")
    assert table.column("prompts") == [2]
    assert "more than one prompt" in table.notes[0]


def test_table_2_shows_what_was_recorded(tmp_path: Path) -> None:
    table = build_report([write_run(tmp_path / "run", Made())]).table("models")
    assert table.rows[0][:4] == ("alpha", "simulated/alpha", "128,000", "default")
    assert table.column("returned_model") == ["alpha-2026", "beta-2026"]


def test_table_1_leaves_out_what_is_not_known() -> None:
    rows = [
        ProblemInfo(id="1", main_skill="a", sub_skills=("x", "y"), tests=4, input_files=10),
        ProblemInfo(id="2", main_skill="b", sub_skills=("x",), tests=7),
    ]
    table = table_1(rows)
    values = {row[0]: row[1] for row in table.rows}
    assert values["Project questions"] == 2
    assert values["Main skill categories"] == 2
    assert values["Sub-skill categories"] == 2
    assert values["Average number of test cases"] == 5.5
    assert values["Average input files"] == 10
    assert values["Average input characters"] is None
    assert table.column("paper")[:4] == [65, 10, 34, 6.7]


def test_the_published_table_names_its_errata() -> None:
    table = published()
    assert len(table.rows) == 5
    assert any("58.15" in note and "50.91" in note for note in table.notes)
    assert table.rows[-1][3] == 0.5091


def test_each_sample_is_counted_in_one_kind_of_outcome(tmp_path: Path) -> None:
    def change(line: dict[str, Any]) -> dict[str, Any]:
        kinds = ["timeout", None, "tests_failed", "tests_failed", "refusal", "no_report"]
        passed = [0, 4, 2, 0, 0, 0]
        place = line["sample"]
        status = "no_solution" if kinds[place] == "refusal" else "scored"
        return agreeing(line, passed[place], failure=kinds[place], status=status)

    report = written(tmp_path / "run", Made(skill={"a": 1}, problems=FOUR, samples=6), change)
    table = report.table("failures")
    row = dict(zip([column.name for column in table.columns], table.rows[0], strict=True))
    kinds = ("perfect", "partial", "none_passed", "timeout", "refusal", "no_report")
    assert [row[name] for name in kinds] == [4, 4, 4, 4, 4, 4]
    assert row["valid"] == 24
