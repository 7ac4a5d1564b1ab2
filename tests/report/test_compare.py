from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest
import scipy

from astra_async.errors import UsageError
from astra_async.log import encode
from astra_async.report.compare import Side, compare_runs
from made_runs import Made, agreeing, made_problems, made_results, run_json, write_run

if TYPE_CHECKING:
    from pathlib import Path

PROBLEMS = made_problems(24)


def test_a_run_compared_with_itself_shows_nothing(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one", Made(problems=PROBLEMS))
    found = compare_runs(one, one)
    assert set(found.table("compare").column("verdict")) == {"inconclusive"}
    assert "all 24 problems have equal results" in str(found.table("compare").column("why")[0])
    assert "have the same mean score (95 % interval [" in found.conclusions[0]
    assert "This does not show that they are equivalent: all 24 problems" in found.conclusions[0]
    assert set(found.table("compare_problems").column("verdict")) == {"not shown to differ"}
    assert found.table("changed_verdicts").rows == ()


def test_a_difference_is_b_minus_a_over_the_same_problems(tmp_path: Path) -> None:
    before = write_run(tmp_path / "a", Made(skill={"m": 0.4}, problems=PROBLEMS, samples=16))
    after = write_run(tmp_path / "b", Made(skill={"m": 0.95}, problems=PROBLEMS, samples=16))
    found = compare_runs(before, after)
    names = [column.name for column in found.table("compare").columns]
    rows = [dict(zip(names, row, strict=True)) for row in found.table("compare").rows]
    assert [row["verdict"] for row in rows][:2] == ["m @ b better", "m @ b better"]
    assert rows[0]["difference"] == rows[0]["b_value"] - rows[0]["a_value"]  # type: ignore[operator]
    assert rows[0]["b_value"] > rows[0]["a_value"]  # type: ignore[operator]
    assert found.conclusions[0].startswith("m @ b is better than m @ a: its mean score is ")
    verdicts = found.table("compare_problems").column("verdict")
    assert "better" in verdicts
    assert "worse" not in verdicts
    assert verdicts == sorted(verdicts, key=lambda verdict: verdict == "not shown to differ")


def test_a_problem_of_two_models_is_counted_once(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, Made(problems=PROBLEMS[:12])) for name in ("a", "b")]
    assert compare_runs(*runs).conclusions[-1] == (
        "With new samples of these 12 problems, B is better in 0 of 24 comparisons and worse in 0."
        " No difference is shown in 24."
    )


def test_a_problem_is_compared_by_its_samples(tmp_path: Path) -> None:
    made = Made(skill={"m": 0.5}, problems=PROBLEMS[:3], samples=8)
    directories = []
    for name, passed in (("a", [0, 0, 0, 0, 3, 3, 3, 3]), ("b", [3] * 8)):
        directories.append(tmp_path / name)
        directories[-1].mkdir()
        (directories[-1] / "run.json").write_bytes(orjson.dumps(run_json(made)))
        lines = [
            agreeing(orjson.loads(encode(result)), passed[result.sample], total=3)
            for result, _ in made_results(made)
        ]
        (directories[-1] / "results.jsonl").write_bytes(
            b"".join(orjson.dumps(line) + b"\n" for line in lines)
        )
    found = compare_runs(*directories)
    expected = scipy.stats.fisher_exact([[4, 4], [8, 0]]).pvalue
    assert found.table("compare_problems").column("p") == pytest.approx([expected] * 3)


def test_one_model_each_is_compared_whatever_it_is_called(tmp_path: Path) -> None:
    before = write_run(tmp_path / "a", Made(skill={"old": 0.6}, problems=PROBLEMS))
    after = write_run(tmp_path / "b", Made(skill={"new": 0.6}, problems=PROBLEMS))
    assert compare_runs(before, after).table("compare").rows[0][1:3] == ("old", "new")


def test_runs_with_nothing_in_common_are_refused(tmp_path: Path) -> None:
    before = write_run(tmp_path / "a", Made(skill={"x": 0.6, "y": 0.5}))
    after = write_run(tmp_path / "b", Made(skill={"z": 0.6}, formats=("json",)))
    with pytest.raises(UsageError, match=r"x \(xml\), y \(xml\).*z \(json\).*no common model and format"):
        compare_runs(before, after)


def test_verdicts_that_changed_on_equal_files_are_listed(tmp_path: Path) -> None:
    made = Made(skill={"m": 0.6}, problems=PROBLEMS)
    before = write_run(tmp_path / "a", made)
    after = write_run(tmp_path / "b", made)
    path = after / "results.jsonl"
    lines: list[dict[str, Any]] = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    changed = next(line for line in lines if line["passed"] == line["total"])
    changed |= agreeing(changed, changed["passed"] - 1)
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    assert compare_runs(before, after).table("changed_verdicts").rows == (
        ("m", "xml", changed["problem_id"], changed["sample"], changed["total"], changed["passed"]),
    )


def test_two_models_of_one_run_are_compared_problem_by_problem(tmp_path: Path) -> None:
    made = Made(skill={"old": 0.4, "new": 0.95}, formats=("xml", "json"), problems=PROBLEMS, samples=16)
    run = write_run(tmp_path / "run", made)
    found = compare_runs(Side(directory=run, model="old"), Side(directory=run, model="new"))
    assert found.conclusions[0].startswith("new is better than old: its mean score is ")
    assert set(found.table("compare").column("format")) == {"xml", "json"}
    assert set(found.table("compare_problems").column("problem_id")) == {problem.id for problem in PROBLEMS}
    one = compare_runs(
        Side(directory=run, model="new", format="json"), Side(directory=run, model="new", format="xml")
    )
    assert one.table("compare").rows[0][1:4] == ("new (json)", "new (xml)", "json/xml")


def test_a_model_that_is_not_in_the_run_is_refused_with_those_that_are(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", Made())
    with pytest.raises(UsageError, match=r"no such model; use one of alpha \(xml\), beta \(xml\)"):
        compare_runs(Side(directory=run, model="gamma"), Side(directory=run, model="beta"))
