"""What is set against what: other problems, changed problems, unlike k, costs of which some are not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest
from report_shapes import SHAPES

from astra_async.report.compare import compare_runs
from astra_async.report.tables import build_report
from made_runs import Made, MadeProblem, agreeing, made_problems, write_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from astra_async.report.tables import Report

PROBLEMS = [MadeProblem(id=f"p{i:02}", total=10) for i in range(24)]


def rewrite(directory: Path, of: Callable[[dict[str, Any]], dict[str, Any]]) -> Path:
    """Each result line made anew."""
    path = directory / "results.jsonl"
    lines = [of(orjson.loads(line)) for line in path.read_bytes().splitlines()]
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return directory


def run_with(
    directory: Path,
    passed: Mapping[str, Callable[[int, int], int]],
    problems: list[MadeProblem] = PROBLEMS,
    **made: Any,
) -> Path:
    """A run in which each model passes so many tests of problem i's sample j."""
    write_run(directory, Made(skill=dict.fromkeys(passed, 0.5), problems=problems, **made))
    return rewrite(
        directory,
        lambda line: agreeing(line, passed[line["model"]](int(line["problem_id"][1:]), line["sample"])),
    )


def about(tests: int) -> Callable[[int, int], int]:
    """Up to 2 more than this, in a pattern over problems that another remainder by 3 changes."""
    return lambda i, j: tests + (i * tests + j * j) % 3


def against_best(report: Report) -> dict[str, str]:
    rows = report.leaderboard.by_name()
    return {str(row["model"]): str(row["against_best"]) for row in rows}


def test_a_model_that_is_shown_to_be_better_than_the_first_is_said_to_be(tmp_path: Path) -> None:
    """The first has the easy problems, too; the second run holds the hard ones alone."""
    many = [MadeProblem(id=f"p{i:02}", total=10) for i in range(60)]
    old = run_with(
        tmp_path / "old",
        {
            "old": lambda i, j: 10 if i < 40 else about(1)(i, j),
            "mid": lambda i, j: 10 if i < 40 else about(0)(i, j),
        },
        many,
    )
    new = run_with(tmp_path / "new", {"new": about(5), "twin": about(1)}, many[40:])
    report = build_report([old, new])
    assert "new is better than old on the problems that both have." in report.conclusions
    assert not any("not separable" in said and "new" in said for said in report.conclusions)
    assert against_best(report)["new"] == "ahead"
    assert against_best(report)["old"] == "highest mean"
    assert any("cover different problems" in note for note in report.leaderboard.notes)


def test_an_incomplete_model_is_called_better_only_if_what_is_missing_cannot_turn_it(tmp_path: Path) -> None:
    models = {"low": about(3), "lower": about(1), "great": about(7)}
    few = frozenset({("great", "xml", "p23", 3)})
    report = build_report([run_with(tmp_path / "few", models, leave_out=few)])
    said = "So far, with samples missing: great is better than low on the problems that both have."
    assert report.conclusions[1] == said
    assert against_best(report) == {"low": "best of the complete", "lower": "behind", "great": "ahead"}
    assert not any("same problems" in note for note in report.leaderboard.notes)
    many = frozenset(("great", "xml", f"p{i:02}", j) for i in range(24) for j in (1, 2, 3))
    report = build_report([run_with(tmp_path / "many", models, leave_out=many)])
    assert against_best(report)["great"] == "not separable"
    assert "the missing samples could change it" in report.table("pairwise").column("why")


def test_models_without_a_common_problem_are_not_called_alike(tmp_path: Path) -> None:
    one = run_with(tmp_path / "one", {"a": about(8)}, PROBLEMS[:12])
    two = run_with(tmp_path / "two", {"b": about(5), "c": about(5)}, PROBLEMS[12:])
    report = build_report([one, two])
    assert "a and b cannot be compared: no common problem has results under both." in report.conclusions[0]
    assert report.conclusions[1] == "c is not compared with a, because no problem has results of both."
    assert not any("separable" in said for said in report.conclusions)
    assert against_best(report) == {"a": "highest mean", "b": "no common problem", "c": "no common problem"}


def test_equivalent_models_are_told_apart_from_those_of_which_nothing_is_known(tmp_path: Path) -> None:
    def near(own: int) -> Callable[[int, int], int]:
        return lambda i, j: 10 - (i + j) % 2 - (i == own)

    many = [MadeProblem(id=f"p{i}", total=10) for i in range(200)]
    models = {name: near(own) for own, name in enumerate("abc")}
    report = build_report([run_with(tmp_path / "run", models, many)])
    first, *_, last = report.leaderboard.column("model")
    assert report.conclusions[1] == (
        f"{last} is equivalent to {first}: a difference of 2 points or more in mean score can be"
        " excluded at 95 %."
    )


def with_parts(directory: Path, changed: Mapping[str, dict[str, Any]], *, fingerprints: bool) -> Path:
    """run.json with each problem's parts, or their fingerprints alone; `changed` ones hold something else."""
    path = directory / "run.json"
    run = orjson.loads(path.read_bytes())
    parts = {
        name: {"statement": "Do it.", "project_sha256": "0", "timeout_s": None} | changed.get(name, {})
        for name in run["problems"]
    }
    run["fingerprints"]["problems"] = {name: str(sorted(part.items())) for name, part in parts.items()}
    path.write_bytes(orjson.dumps(run if fingerprints else run | {"parts": {"problems": parts}}))
    return directory


@pytest.mark.parametrize(
    ("fingerprints", "told"),
    [
        (False, "p00 (statement), p01 (project), p02 (T 10 and 5)"),
        (True, "p00 (fingerprint), p01 (fingerprint)"),
    ],
)
def test_a_problem_that_has_changed_is_not_compared_and_named(
    tmp_path: Path,
    fingerprints: bool,  # noqa: FBT001 - a parameter
    told: str,
) -> None:
    changed: dict[str, dict[str, Any]] = {
        "p00": {"statement": "Do that."},
        "p01": {"project_sha256": "1"},
        "p04": {"timeout_s": 9},
    }
    if fingerprints:
        del changed["p04"]  # a limit is no part of the problem, which a fingerprint of all does not tell
    other = [MadeProblem(id=each.id, total=5 if each.id == "p02" else 10) for each in PROBLEMS]
    before = with_parts(run_with(tmp_path / "a", {"m": about(4)}), {}, fingerprints=fingerprints)
    after = run_with(tmp_path / "b", {"m": about(4)}, other, formats=("xml", "json"), samples=6)
    with_parts(after, changed, fingerprints=fingerprints)
    found = compare_runs(before, after)
    assert set(found.table("compare").column("n")) == {21, 0}  # k is another one: no SD is compared
    names = set(found.table("compare_problems").column("problem_id"))
    assert names == {problem.id for problem in PROBLEMS[3:]}
    assert any(
        f"3 of 24 common problems differ between the runs and are not compared: {told}" in each
        for each in found.conclusions
    )
    report = build_report([before, after])
    assert any(told in warning for warning in report.warnings)
    assert any(told in note for note in report.data()["pairwise"].notes)
    assert any("cover different problems" in note for note in report.leaderboard.notes)


def test_a_run_of_which_nothing_is_recorded_is_compared_by_t_alone(tmp_path: Path) -> None:
    before = run_with(tmp_path / "a", {"m": about(4)})
    after = with_parts(run_with(tmp_path / "b", {"m": about(4)}), {}, fingerprints=False)
    found = compare_runs(before, after)
    assert set(found.table("compare").column("n")) == {24}
    assert not any("not compared" in said for said in found.conclusions)


def test_a_median_over_unlike_k_is_said_to_be_one(tmp_path: Path) -> None:
    skill = {"a": 0.9, "b": 0.5}
    runs = [
        write_run(tmp_path / "one", Made(problems=made_problems(12)[:6], samples=8, skill=skill)),
        write_run(tmp_path / "two", Made(problems=made_problems(12)[6:], samples=2, skill=skill)),
    ]
    report = build_report(runs)
    for name in ("leaderboard", "consistency"):
        assert any("A row without k has problems with different" in note for note in report.table(name).notes)


def test_what_a_sample_costs_is_the_same_everywhere_and_its_source_named(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Made(problems=made_problems(8)))

    def without_cost(line: dict[str, Any]) -> dict[str, Any]:
        return line | ({"cost_usd": None} if line["model"] == "alpha" and line["sample"] else {})

    report = build_report([rewrite(run, without_cost)])
    each = {str(row["model"]): float(str(row["cost_per_sample"])) for row in report.leaderboard.by_name()}
    for row in report.table("costs").by_name():
        assert row["cost_per_sample"] == pytest.approx(each[str(row["model"])])
        perfect = sum(int(entry.perfect.sum()) for entry in report.entries if entry.label == row["model"])
        assert row["cost_per_pass"] == pytest.approx(each[str(row["model"])] * 32 / perfect)
    for name in ("leaderboard", "costs"):
        notes = " ".join(report.table(name).notes)
        assert "alpha (xml): the cost of 8 of 32 samples is known" in notes
        assert "beta (xml): the cost" not in notes


def test_a_significant_difference_in_model_time_has_a_sentence(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Made(problems=made_problems(8)))
    slow = rewrite(run, lambda line: line | {"latency_s": (10 if line["model"] == "beta" else 1) * 4.0})
    said = build_report([slow]).conclusions[0]
    assert "alpha needs less model time than beta: 4.0 s a sample against 40.0 s (ratio 0.1, 95 %" in said
    assert "model time" not in build_report([rewrite(run, without_time)]).conclusions[0]


def without_time(line: dict[str, Any]) -> dict[str, Any]:
    return line | {"latency_s": None}


def test_costs_of_a_pair_after_looks_have_a_sentence_with_its_limit(tmp_path: Path) -> None:
    (said,) = build_report(SHAPES["until decided"](tmp_path)).conclusions
    assert "decided after 2 samples" in said
    assert " No difference in cost is shown: $" in said
    assert said.endswith(" Intervals of ratios are not adjusted for the looks.")


def test_a_model_without_a_result_is_named(tmp_path: Path) -> None:
    missing = {("beta", "xml", f"p{i:02}", j) for i in range(8) for j in range(4)}
    made = Made(problems=made_problems(8), samples=4, leave_out=frozenset(missing))
    report = build_report([write_run(tmp_path / "run", made)])
    assert report.conclusions[-1] == "No sample has a result yet for beta (xml)."


def test_a_model_without_a_result_is_not_compared_with_the_best(tmp_path: Path) -> None:
    said = build_report(SHAPES["one of three models without results"](tmp_path)).conclusions
    assert [text for text in said if "beta" in text] == ["No sample has a result yet for beta (xml)."]
