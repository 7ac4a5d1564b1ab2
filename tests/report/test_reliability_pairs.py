"""Paired comparisons of pass@m, pass^m and G-Pass@m in the report, in report.json and in frames."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pytest

import astra_async
from astra_async.report.compare import Side, compare_runs
from astra_async.report.estimates import ESTIMATES
from astra_async.report.tables import build_report
from astra_async.report.write import write_built
from astra_async.stats.differences import holm, sign_flips
from astra_async.stats.intervals import difference_interval
from astra_async.stats.spread import g_pass_at, mg_pass_at, pass_hat
from made_runs import Made, made_problems, write_run

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("pass_at_2", "pass_at_4", "pass_at_8", "pass_hat_2", "pass_hat_4", "pass_hat_8")
ALL = {*NAMES, "g_pass_at_8", "mg_pass_at_8"}
MADE = Made(
    skill={"alpha": 0.9, "beta": 0.55, "gamma": 0.5},
    problems=made_problems(24, families=True),
    samples=8,
    seed=5,
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("reliability") / "run", MADE)


def rows_of(table: Any, metric: str) -> list[dict[str, Any]]:
    return [row for row in table.by_name() if row["metric"] == metric]


def test_a_pair_has_the_difference_and_interval_of_the_problems_estimates(directory: Path) -> None:
    report = build_report([directory])
    alpha, beta, _ = report.entries
    ours, theirs = (np.array([pass_hat(4, 8, c) for c in entry.perfect.tolist()]) for entry in (alpha, beta))
    row = rows_of(report.table("pairwise"), "pass_hat_4")[0]
    assert (row["a"], row["b"], row["n"], row["families"]) == ("alpha", "beta", 24, 12)
    assert row["difference"] == pytest.approx(ours.mean() - theirs.mean())
    assert row["difference_interval"] == difference_interval(ours, theirs, alpha.families)
    board: Any = report.leaderboard.by_name()
    assert row["difference"] == pytest.approx(board[0]["pass_hat_4"] - board[1]["pass_hat_4"])


def test_holms_adjustment_covers_the_pairs_of_one_metric(directory: Path) -> None:
    table = build_report([directory]).table("pairwise")
    for metric in ALL:
        rows = rows_of(table, metric)
        adjusted = [row["p_permutation_holm"] for row in rows]
        assert adjusted == pytest.approx(holm([row["p_permutation"] for row in rows]))
        for row in rows:
            if row["verdict"].endswith("better"):
                assert max(row["p_permutation_holm"], row["p_t_holm"]) < 0.05
    assert {row["verdict"] for row in rows_of(table, "pass_hat_4")} == {"alpha better", "inconclusive"}


def test_the_report_prints_one_table_and_says_that_metrics_are_not_adjusted(directory: Path) -> None:
    report = build_report([directory])
    table = report.table("pairwise_reliability")
    assert [row["metric"] for row in table.by_name()[:3]] == ["Pass@2"] * 3
    assert len(table.rows) == 3 * len(ALL)
    assert "The metrics are not adjusted for one another." in table.notes[-1]


def test_report_json_and_frames_have_the_rows(directory: Path) -> None:
    write_built(build_report([directory]), directory / "report")
    found = orjson.loads((directory / "report" / "report.json").read_bytes())["tables"]["pairwise"]["rows"]
    assert {row["metric"] for row in found} == ALL | {"mean_score", "pass_at_1", "sd"}
    frame = astra_async.load(directory).pairwise()
    for written, (_, row) in zip(found, frame.iterrows(), strict=True):
        assert written["metric"] == row["metric"]
        assert written["difference_interval_low"] == pytest.approx(row["difference_interval_low"])


def test_two_models_of_a_run_are_compared_by_reliability_too(directory: Path) -> None:
    found = compare_runs(Side(directory=directory, model="beta"), Side(directory=directory, model="alpha"))
    row = rows_of(found.table("compare"), "g_pass_at_8")[0]
    assert (row["a"], row["b"]) == ("beta", "alpha")
    assert row["difference"] == pytest.approx(row["b_value"] - row["a_value"])
    assert row["difference"] > 0


def test_too_few_samples_give_no_row(tmp_path: Path) -> None:
    made = Made(problems=made_problems(8), samples=4)
    table = build_report([write_run(tmp_path / "run", made)]).table("pairwise")
    found = {row["metric"] for row in table.by_name()} - {"mean_score", "pass_at_1", "sd"}
    assert found == {"pass_at_2", "pass_at_4", "pass_hat_2", "pass_hat_4"}


def test_missing_samples_that_could_change_a_conclusion_leave_it_open(tmp_path: Path) -> None:
    """The extremes are those of all missing samples failed, and all missing samples passed."""
    problems = made_problems(24)
    skill = {"alpha": 0.95, "beta": 0.3}

    def verdicts(missing: int) -> set[str]:
        gone = {("beta", "xml", problem.id, sample) for problem in problems for sample in range(missing)}
        made = Made(skill=skill, problems=problems, samples=8, leave_out=frozenset(gone))
        report = build_report([write_run(tmp_path / str(missing), made)])
        return {row["verdict"] for row in rows_of(report.table("pairwise"), "pass_hat_2")}

    assert verdicts(0) == {"alpha better"}
    assert verdicts(1) == {"~alpha better"}
    assert verdicts(6) == {"~inconclusive"}


def test_equal_models_have_no_difference_in_reliability() -> None:
    """Sign flips and intervals treat estimates as any other values of the problems."""
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(200):
        chances = rng.beta(0.7, 0.7, 20)
        a, b = (np.array([pass_hat(4, 8, c) for c in rng.binomial(8, chances).tolist()]) for _ in range(2))
        low, high = difference_interval(a, b) or (-1.0, 1.0)
        wrong += not low <= 0 <= high or (sign_flips(a, b) or 1.0) < 0.05
    assert wrong / 200 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)


def test_mg_pass_is_described_without_the_threshold_of_one_half() -> None:
    assert (g_pass_at(8, 8, 4, 4), mg_pass_at(8, 8, 4)) == (1, 0)
    assert ESTIMATES["mg_pass_at_8"].help == "G-Pass@8 averaged over the thresholds above half"
