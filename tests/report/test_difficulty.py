"""What all models together say of problems and tests, and the measures that compare samples."""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import orjson
import pytest

from astra_async.log import encode
from astra_async.report.tables import build_report
from made_runs import Made, MadeProblem, made_problems, made_results, run_json, write_run

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.report.table import Cell, Table
    from astra_async.report.tables import Report


def records(table: Table) -> list[dict[str, Cell]]:
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in table.rows]


def of_outcomes(directory: Path, outcomes: list[str], repeat: int) -> Report:
    """One problem, two models; each string gives the tests of a sample: + passed, - failed."""
    total = len(outcomes[0])
    made = Made(
        skill={"a": 1, "b": 1}, problems=[MadeProblem(id="p", total=total)], samples=len(outcomes) * repeat
    )
    directory.mkdir()
    (directory / "run.json").write_bytes(orjson.dumps(run_json(made)))
    lines = []
    for result, _ in made_results(made):
        signs = outcomes[result.sample % len(outcomes)]
        passed = signs.count("+")
        line = orjson.loads(encode(result)) | {
            "status": "scored",
            "failure": None if passed == total else "tests_failed",
            "passed": passed,
            "score": passed / total,
            "finish_reason": "stop",
            "tests": [
                {"name": f"t{i}", "outcome": "passed" if sign == "+" else "failed"}
                for i, sign in enumerate(signs)
            ],
            "solution_sha256": f"{result.sample % 3 + 1:064x}"[::-1],
            "repairs": ["fences"] if result.sample == 0 else [],
        }
        lines.append(line)
    (directory / "results.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return build_report([directory])


def test_tests_that_tell_nothing_or_the_same_are_named(tmp_path: Path) -> None:
    report = of_outcomes(tmp_path / "run", ["+-+++", "+--+-", "+-+-+", "+----"], repeat=3)
    found = {row["test"]: row for row in records(report.table("tests"))}
    assert {name: row["finding"] for name, row in found.items()} == {
        "t0": "every sample passes",
        "t1": "no sample passes",
        "t2": "",
        "t3": "",
        "t4": "agrees with t2",
    }
    assert found["t3"]["passed"] == 0.5
    assert found["t3"]["samples"] == 24


def test_tests_that_the_untouched_project_passes_are_named_however_few_samples_there_are(
    tmp_path: Path,
) -> None:
    of_outcomes(tmp_path / "run", ["+-+"], repeat=1)
    expected = tmp_path / "run" / "expected.json"
    expected.write_bytes(orjson.dumps({"p": {"untouched": 2, "untouched_tests": ["t0", "t2"]}}))
    found = build_report([tmp_path / "run"]).table("tests").column("finding")
    assert found == ["the untouched project passes", "", "the untouched project passes"]
    for damaged in (b"{", b"[]", b'{"p": 1}', b'{"p": {"untouched": 2}}'):
        expected.write_bytes(damaged)
        assert set(build_report([tmp_path / "run"]).table("tests").column("finding")) == {""}


def test_few_samples_say_nothing_about_a_test(tmp_path: Path) -> None:
    report = of_outcomes(tmp_path / "run", ["+-", "+-"], repeat=2)
    assert {row["finding"] for row in records(report.table("tests"))} == {""}


def test_different_solutions_are_counted_and_repaired_answers_can_be_left_out(tmp_path: Path) -> None:
    report = of_outcomes(tmp_path / "run", ["++", "+-"], repeat=3)
    (row,) = records(report.table("difficulty"))
    assert (row["models"], row["samples"], row["solutions"], row["distinct"]) == (2, 12, 12, 3)
    assert row["mean_score"] == 0.75
    strict = report.table("handling").column("strict_score")
    assert strict == pytest.approx([(0.75 * 6 - 1) / 6] * 2)


def test_pass_at_m_is_given_for_every_m(tmp_path: Path) -> None:
    made = Made(problems=made_problems(5), samples=6)
    report = build_report([write_run(tmp_path / "run", made)])
    rows = [row for row in records(report.table("curves")) if row["model"] == "alpha"]
    perfect = [row["perfect"] for row in records(report.table("problems")) if row["model"] == "alpha"]
    assert [row["m"] for row in rows] == [1, 2, 3, 4, 5, 6]
    for row in rows:
        m = int(str(row["m"]))
        one = sum(1 - comb(6 - int(str(c)), m) / comb(6, m) for c in perfect) / 5
        everything = sum(comb(int(str(c)), m) / comb(6, m) for c in perfect) / 5
        assert (row["pass_at"], row["pass_hat"]) == pytest.approx((one, everything))


def test_the_hardest_problem_comes_first(tmp_path: Path) -> None:
    report = build_report([write_run(tmp_path / "run", Made(problems=made_problems(8)))])
    scores = [float(str(value)) for value in report.table("difficulty").column("mean_score")]
    assert scores == sorted(scores)
    assert len(scores) == 8
