from __future__ import annotations

import csv
import io
import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astra_async.errors import ConflictError
from astra_async.metrics import Metrics, problems_csv

TOY = {"a": ([4, 4, 2, 4], 4), "b": ([0, 1, 0, 1], 5), "c": ([3, 3, 3, 3], 3)}


def toy(order: list[tuple[str, int]] | None = None) -> Metrics:
    metrics = Metrics({("m", "xml"): dict.fromkeys(TOY, 4)})
    for problem, sample in order or [(problem, sample) for problem in TOY for sample in range(4)]:
        passed, total = TOY[problem]
        metrics.add("m", "xml", problem, passed[sample], total)
    return metrics


def test_the_toy_run_has_the_reference_values() -> None:
    summary = toy().summary("m", "xml")
    assert summary.mean_score == pytest.approx(0.6583333333, abs=1e-10)
    assert summary.pass_at_1 == pytest.approx(0.5833333333, abs=1e-10)
    assert summary.median_sd == pytest.approx(0.1, abs=1e-15)
    rows = list(toy().problem_rows("m", "xml"))
    assert [row.sd for row in rows] == pytest.approx([0.2165063509, 0.1, 0], abs=1e-10)
    assert [row.mean_tests_passed for row in rows] == [3.5, 0.5, 3.0]
    assert [row.tests_passed for row in rows] == [14, 2, 12]
    assert summary.complete
    assert (summary.k, summary.valid, summary.missing, summary.problems_done) == (4, 12, 0, 3)


def test_a_reward_between_0_and_1_counts_as_a_score() -> None:
    """A task has one test, its verifier, which has passed if the reward is 1; the reward is the score."""
    metrics = Metrics({("m", "shell"): {"task": 4}})
    for reward in (1.0, 0.5, 0.333333, 0.0):
        metrics.add("m", "shell", "task", int(reward == 1), 1, reward=reward)
    (row,) = metrics.problem_rows("m", "shell")
    scores = [1.0, 0.5, 0.333333, 0.0]
    assert row.mean_score == pytest.approx(statistics.fmean(scores), abs=1e-15)
    assert row.sd == pytest.approx(statistics.pstdev(scores), abs=1e-12)
    assert (row.pass_at_1, row.perfect, row.total) == (0.25, 1, 1)
    assert row.tests_passed == pytest.approx(1.833333)


def test_the_order_of_completion_changes_no_digit() -> None:
    order = [(problem, sample) for problem in TOY for sample in range(4)]
    expected = toy(order).summary("m", "xml")
    for seed in range(50):
        random.Random(seed).shuffle(order)
        assert toy(order).summary("m", "xml") == expected


def test_a_problem_without_a_valid_sample_is_omitted_and_counted() -> None:
    metrics = Metrics({("m", "xml"): {"a": 2, "b": 2}})
    metrics.add("m", "xml", "a", 1, 2, failure="tests_failed")
    summary = metrics.summary("m", "xml")
    assert summary.mean_score == 0.5
    assert (summary.problems, summary.problems_begun, summary.problems_done) == (2, 1, 0)
    assert (summary.valid, summary.missing, summary.planned) == (1, 3, 4)
    assert not summary.complete
    assert summary.failures == {"tests_failed": 1}


def test_an_empty_run_has_no_numbers_and_is_not_complete() -> None:
    summary = Metrics({("m", "json"): {"a": 2}}).summary("m", "json")
    assert (summary.mean_score, summary.pass_at_1, summary.median_sd) == (None, None, None)
    assert not summary.complete


def test_statuses_and_failures_are_counted() -> None:
    metrics = Metrics({("m", "xml"): {"a": 3}})
    metrics.add("m", "xml", "a", 2, 2)
    metrics.add("m", "xml", "a", 0, 2, status="no_solution", failure="refusal")
    metrics.add("m", "xml", "a", 0, 2, failure="timeout")
    summary = metrics.summary("m", "xml")
    assert (summary.scored, summary.no_solution) == (2, 1)
    assert summary.failures == {"refusal": 1, "timeout": 1}


def test_different_numbers_of_samples_have_no_common_k() -> None:
    assert Metrics({("m", "xml"): {"a": 2, "b": 3}}).summary("m", "xml").k is None


def test_a_total_that_changes_is_refused_even_across_models() -> None:
    metrics = Metrics({("m", "xml"): {"a": 2}, ("other", "xml"): {"a": 2}})
    metrics.add("m", "xml", "a", 1, 5)
    with pytest.raises(ConflictError, match="has 6 tests, but earlier results of this problem have 5"):
        metrics.add("other", "xml", "a", 1, 6)


@pytest.mark.parametrize(("passed", "total"), [(3, 2), (-1, 2), (0, 0)])
def test_impossible_counts_are_refused(passed: int, total: int) -> None:
    with pytest.raises(ConflictError, match="impossible"):
        toy_of_one().add("m", "xml", "a", passed, total)


def toy_of_one() -> Metrics:
    return Metrics({("m", "xml"): {"a": 1}})


def test_a_result_outside_the_plan_is_refused() -> None:
    with pytest.raises(ConflictError, match="m/json/a has a result but is not planned"):
        toy_of_one().add("m", "json", "a", 1, 1)
    with pytest.raises(ConflictError, match="is not planned in run"):
        toy_of_one().add("m", "xml", "b", 1, 1)


def test_one_result_more_than_planned_is_refused() -> None:
    metrics = toy_of_one()
    metrics.add("m", "xml", "a", 1, 1)
    with pytest.raises(ConflictError, match="more than the 1 planned results"):
        metrics.add("m", "xml", "a", 1, 1)


def test_problems_csv_has_a_row_for_every_planned_problem() -> None:
    metrics = Metrics({("m", "xml"): {"a": 2, "b,\n": 2}})
    metrics.add("m", "xml", "a", 1, 3)
    rows = list(csv.DictReader(io.StringIO(problems_csv(metrics))))
    assert [row["problem_id"] for row in rows] == ["a", "b,\n"]
    assert float(rows[0]["mean_score"]) == 1 / 3
    assert rows[0]["valid"] == "1"
    assert rows[1]["mean_score"] == ""


@st.composite
def samples(draw: st.DrawFn) -> list[tuple[int, list[int]]]:
    totals = draw(st.lists(st.integers(1, 40), min_size=1, max_size=6))
    return [(t, draw(st.lists(st.integers(0, t), min_size=1, max_size=12))) for t in totals]


@given(samples())
def test_incremental_sums_equal_the_definitions(problems: list[tuple[int, list[int]]]) -> None:
    metrics = Metrics({("m", "xml"): {str(i): len(passed) for i, (_, passed) in enumerate(problems)}})
    for i, (total, passed) in enumerate(problems):
        for p in passed:
            metrics.add("m", "xml", str(i), p, total)
    scores = [[p / total for p in passed] for total, passed in problems]
    summary = metrics.summary("m", "xml")
    assert summary.mean_score == pytest.approx(statistics.fmean(map(statistics.fmean, scores)))
    assert summary.pass_at_1 == pytest.approx(
        statistics.fmean(statistics.fmean([float(s == 1) for s in row]) for row in scores)
    )
    sds = [statistics.pstdev(row) for row in scores if len(row) > 1]  # one sample has no spread
    if sds:
        assert summary.median_sd is not None
        assert math.isclose(summary.median_sd, statistics.median(sds), abs_tol=1e-12)
    else:
        assert summary.median_sd is None
