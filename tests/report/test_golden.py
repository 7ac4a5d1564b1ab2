"""A whole made run, and every number of its report recomputed from runs.csv with pandas and scipy."""

from __future__ import annotations

import csv
import math
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pandas as pd
import pytest
import scipy

from astra_async.report.tables import build_report
from astra_async.report.write import write_built
from made_runs import Made, made_problems, run_json, write_run

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.report.tables import Report

K, N = 8, 10
MADE = Made(
    skill={"alpha": 0.9, "beta": 0.75, "gamma": 0.5},
    formats=("xml", "json"),
    problems=made_problems(N, families=True),
    samples=K,
    seed=11,
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("golden") / "run", MADE)


@pytest.fixture(scope="module")
def out(directory: Path) -> Path:
    write_built(build_report([directory]), directory / "report")
    return directory / "report"


@pytest.fixture(scope="module")
def report(directory: Path) -> Report:
    return build_report([directory])


@pytest.fixture(scope="module")
def runs(out: Path) -> pd.DataFrame:
    return pd.read_csv(out / "runs.csv")


@pytest.fixture(scope="module")
def by_problem(runs: pd.DataFrame) -> pd.DataFrame:
    runs = runs.assign(square=runs.score**2)
    groups = runs.groupby(["model", "format", "problem_id"], sort=True)
    table = groups.agg(
        mean=("score", "mean"), passed=("perfect", "mean"), perfect=("perfect", "sum"), n=("score", "size")
    )
    table["sd"] = groups["score"].std(ddof=0)
    table["variance"] = groups["score"].var(ddof=1)
    table["pass_variance"] = groups["perfect"].var(ddof=1)
    return table


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path)


def one(frame: pd.DataFrame, **where: Any) -> pd.Series[Any]:
    for name, value in where.items():
        frame = frame[frame[name] == value]
    assert len(frame) == 1
    return frame.iloc[0]


def test_the_headline_is_the_papers_equations(out: Path, by_problem: pd.DataFrame) -> None:
    board = read(out / "leaderboard.csv")
    assert len(board) == 6
    for (model, answer_format), rows in by_problem.groupby(["model", "format"]):
        row = one(board, model=model, format=answer_format)
        assert row.mean_score == pytest.approx(rows["mean"].mean(), abs=1e-12)
        assert row.pass_at_1 == pytest.approx(rows.passed.mean(), abs=1e-12)
        assert row.median_sd == pytest.approx(rows.sd.median(), abs=1e-12)
        assert (row.n, row.k, row.valid, row.missing, row.complete) == (N, K, N * K, 0, True)


def test_the_leaderboard_is_ordered_by_mean_score(out: Path) -> None:
    scores = read(out / "leaderboard.csv").mean_score.tolist()
    assert scores == sorted(scores, reverse=True)


def test_the_intervals_are_quantiles_of_drawn_means(
    out: Path, runs: pd.DataFrame, by_problem: pd.DataFrame
) -> None:
    board = read(out / "leaderboard.csv")
    for (model, answer_format), rows in by_problem.groupby(["model", "format"]):
        row = one(board, model=model, format=answer_format)
        mine = runs[(runs.model == model) & (runs.format == answer_format)]
        for name, column, values in (
            ("mean_score", "score", rows["mean"]),
            ("pass_at_1", "perfect", rows.passed),
        ):
            assert_interval(row, f"{name}_total", drawn_interval(by_families(values), (0, 1)))
            means = mine.groupby("problem_id")[column].transform("mean")
            away = (mine[column] - means) * math.sqrt(K / (K - 1))
            low, high = drawn_interval(away, (-values.max(), 1 - values.min()))
            assert_interval(
                row, f"{name}_run_only", (max(0, values.mean() + low), min(1, values.mean() + high))
            )


def by_families(values: pd.Series[float]) -> pd.Series[float]:
    """The means of the families, two problems each."""
    return values.groupby(
        [int(problem[1:]) // 2 for problem in values.index.get_level_values("problem_id")]
    ).mean()


def drawn_interval(values: pd.Series[float], ends: tuple[float, float]) -> tuple[float, float]:
    """Quantiles of means with exponential weights, 0.6 of one for a value at the end."""
    rng = np.random.default_rng(5)
    weights = rng.standard_exponential((60_000, len(values)))
    unseen = rng.standard_gamma(0.6, 60_000)
    whole = weights.sum(axis=1) + unseen
    low, high = ((weights @ values.to_numpy(dtype=float) + unseen * end) / whole for end in ends)
    return float(np.quantile(low, 0.025)), float(np.quantile(high, 0.975))


def assert_interval(row: pd.Series[Any], name: str, expected: tuple[float, float]) -> None:
    assert (row[f"{name}_low"], row[f"{name}_high"]) == pytest.approx(expected, abs=0.006)


def test_the_spread_is_an_analysis_of_variance(
    out: Path, runs: pd.DataFrame, by_problem: pd.DataFrame
) -> None:
    board = read(out / "leaderboard.csv")
    for (model, answer_format), rows in by_problem.groupby(["model", "format"]):
        row = one(board, model=model, format=answer_format)
        mine = runs[(runs.model == model) & (runs.format == answer_format)]
        f = scipy.stats.f_oneway(*[group.score for _, group in mine.groupby("problem_id")]).statistic
        within = rows.variance.mean()
        assert row.rms_within_sd == pytest.approx(math.sqrt(within), abs=1e-12)
        assert row.between_sd == pytest.approx(math.sqrt(max(0, (f - 1) * within / K)), abs=1e-9)
        assert row.icc == pytest.approx((f - 1) / (f + K - 1), abs=1e-9)
        assert math.isnan(row.median_sd_interval_low)  # five families are too few


def test_several_samples_are_counted_by_combinations(out: Path, by_problem: pd.DataFrame) -> None:
    board = read(out / "leaderboard.csv")
    for (model, answer_format), rows in by_problem.groupby(["model", "format"]):
        row = one(board, model=model, format=answer_format)
        for m in (2, 4, 8):
            at_least_one = [1 - comb(K - c, m) / comb(K, m) for c in rows.perfect]
            all_of_them = [comb(c, m) / comb(K, m) for c in rows.perfect]
            assert row[f"pass_at_{m}"] == pytest.approx(np.mean(at_least_one), abs=1e-12)
            assert row[f"pass_hat_{m}"] == pytest.approx(np.mean(all_of_them), abs=1e-12)
        tails = [np.mean([c >= i for i in range(5, 9)]) for c in rows.perfect]  # k = m: all or nothing
        assert row.mg_pass_at_8 == pytest.approx(np.mean(tails), abs=1e-12)


def test_problems_csv_is_a_group_by(out: Path, by_problem: pd.DataFrame) -> None:
    table = read(out / "problems.csv")
    assert len(table) == len(by_problem)
    for _, row in table.iterrows():
        expected = by_problem.loc[row.model, row.format, row.problem_id]
        assert row.mean_score == pytest.approx(expected["mean"], abs=1e-12)
        assert row.pass_at_1 == pytest.approx(expected.passed, abs=1e-12)
        assert row.sd == pytest.approx(expected.sd, abs=1e-12)
        assert (row.valid, row.perfect) == (expected.n, expected.perfect)


@pytest.mark.parametrize("metric", ["mean_score", "pass_at_1", "sd"])
def test_pairs_are_paired_over_problems(out: Path, by_problem: pd.DataFrame, metric: str) -> None:
    column = {"mean_score": "mean", "pass_at_1": "passed", "sd": "sd"}[metric]
    table = read(out / "pairwise.csv")
    for answer_format in ("xml", "json"):
        rows = table[(table.metric == metric) & (table.format == answer_format)]
        assert {frozenset((a, b)) for a, b in zip(rows.a, rows.b, strict=True)} == {
            frozenset(pair) for pair in combinations(("alpha", "beta", "gamma"), 2)
        }
        for _, row in rows.iterrows():
            a = by_problem.loc[row.a, answer_format][column]
            b = by_problem.loc[row.b, answer_format][column]
            a, b = by_families(a), by_families(b)  # of one size: their mean is that of the problems
            test = scipy.stats.ttest_rel(a, b)
            assert (row.n, row.families) == (N, N // 2)
            assert row.difference == row.a_value - row.b_value
            assert row.difference == pytest.approx((a - b).mean(), abs=1e-12)
            assert row.p_t == pytest.approx(test.pvalue, rel=1e-6)
            most = 0.5 if metric == "sd" else 1
            low, high = drawn_interval(a - b, (-most, most))
            assert (row.difference_interval_low, row.difference_interval_high) == pytest.approx(
                (low, high), abs=0.01
            )
            d = (a - b).round(12)
            flips = scipy.stats.permutation_test(
                (d,), np.mean, permutation_type="samples", n_resamples=np.inf
            ).pvalue
            assert row.p_permutation == pytest.approx(flips, abs=1e-9)
            ranks = scipy.stats.wilcoxon(
                d, zero_method="pratt", method=scipy.stats.PermutationMethod(n_resamples=2 ** (N // 2))
            ).pvalue
            assert row.p_wilcoxon == pytest.approx(ranks, abs=1e-9)
        for name in ("p_t", "p_wilcoxon", "p_permutation"):
            assert rows[f"{name}_holm"].tolist() == pytest.approx(
                holm_by_hand(rows[name].tolist()), abs=1e-12
            )


def holm_by_hand(values: list[float]) -> list[float]:
    ordered = sorted(values)
    m = len(values)
    return [min(1.0, max((m - j) * ordered[j] for j in range(ordered.index(value) + 1))) for value in values]


def test_formats_are_compared_within_each_model(out: Path, by_problem: pd.DataFrame) -> None:
    table = read(out / "formats.csv")
    for metric, column in (("mean_score", "mean"), ("pass_at_1", "passed"), ("sd", "sd")):
        for model in ("alpha", "beta", "gamma"):
            row = one(table, metric=metric, a=f"{model} (xml)", b=f"{model} (json)")
            xml, json = by_problem.loc[model, "xml"][column], by_problem.loc[model, "json"][column]
            assert row.a_value == pytest.approx(xml.mean(), abs=1e-12)
            assert row.b_value == pytest.approx(json.mean(), abs=1e-12)
            assert row.p_t == pytest.approx(
                scipy.stats.ttest_rel(by_families(xml), by_families(json)).pvalue, rel=1e-6
            )


def test_skills_are_means_over_their_problems(out: Path, by_problem: pd.DataFrame) -> None:
    table = read(out / "skills.csv")
    for _, row in table.iterrows():
        problems = [
            problem.id
            for problem in MADE.problems
            if row.skill in (problem.sub_skills if row.kind == "sub" else (problem.main_skill,))
        ]
        means = by_problem.loc[row.model, row.format].loc[problems]
        assert row.n == len(problems)
        assert row.mean_score == pytest.approx(means["mean"].mean(), abs=1e-12)
        assert row.pass_at_1 == pytest.approx(means.passed.mean(), abs=1e-12)


def test_winners_are_the_highest_means(report: Report, by_problem: pd.DataFrame) -> None:
    table = report.table("main_skill_winners")
    assert len(table.rows) == 4
    for skill, n, answer_format, winners, mean, _ in table.rows:
        problems = [problem.id for problem in MADE.problems if problem.main_skill == skill]
        assert n == len(problems)
        means = {
            model: by_problem.loc[model, answer_format].loc[problems]["mean"].mean() for model in MADE.skill
        }
        assert mean == pytest.approx(max(means.values()))
        assert set(str(winners).split(", ")) == {
            model for model, value in means.items() if max(means.values()) - value < 0.0005
        }


def test_rates_and_outcomes_are_counts(report: Report, runs: pd.DataFrame) -> None:
    rates, failures = report.table("answer_rates"), report.table("failures")
    names = [column.name for column in failures.columns]
    for row, counted in zip(rates.rows, failures.rows, strict=True):
        mine = runs[(runs.model == row[0]) & (runs.format == row[1])]
        assert row[3] == (mine.failure == "format_error").sum()
        assert row[4] == pytest.approx((mine.failure == "format_error").mean())
        assert row[6] == (mine.failure == "refusal").sum()
        values = dict(zip(names, counted, strict=True))
        assert values["perfect"] == mine.perfect.sum()
        assert values["partial"] == ((mine.passed > 0) & (mine.passed < mine.total)).sum()
        assert values["format_error"] == (mine.failure == "format_error").sum()
        kinds = [values[name] for name in names[3:]]
        assert sum(value for value in kinds if isinstance(value, int)) == len(mine)


def permutation_p(columns: pd.DataFrame) -> float:
    x, y = (columns - columns.mean()).to_numpy().T
    orders = np.random.default_rng(7).permuted(np.tile(x, (10_000, 1)), axis=1)
    return float(np.mean(np.abs(orders @ y) >= abs(x @ y) - 1e-9))


def test_lengths_correlate_over_problems(report: Report, runs: pd.DataFrame) -> None:
    table = report.table("lengths")
    names = [column.name for column in table.columns]
    overall = None
    for cells in table.rows:
        row = dict(zip(names, cells, strict=True))
        column = "output_characters" if row["length"] == "Answer" else "input_characters"
        if row["model"] == "mean of all":
            each = runs.groupby(["model", "format", "problem_id"])[[column, "score"]].mean()
            means = each.groupby("problem_id").mean()
            overall = means
        else:
            mine = runs[(runs.model == row["model"]) & (runs.format == row["format"])]
            means = mine.groupby("problem_id")[[column, "score"]].mean()
        expected = scipy.stats.pearsonr(means[column], means.score)
        assert row["r"] == pytest.approx(expected.statistic, abs=1e-9)
        assert row["p"] == pytest.approx(permutation_p(means), abs=0.03)
        rho = scipy.stats.spearmanr(means.round(9)).statistic
        assert row["rho_p"] == pytest.approx(permutation_p(means.round(9).rank()), abs=0.03)
        half = scipy.stats.norm.ppf(0.975) * math.sqrt((1 + rho**2 / 2) / (N - 3))
        assert row["rho"] == pytest.approx(rho, abs=1e-9)
        ends = math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half)
        assert row["rho_interval"] == pytest.approx(ends, abs=1e-9)
    assert overall is not None


def test_costs_are_sums(report: Report, runs: pd.DataFrame) -> None:
    costs, times = report.table("costs"), report.table("times")
    for cost, time in zip(costs.rows, times.rows, strict=True):
        mine = runs[(runs.model == cost[0]) & (runs.format == cost[1])]
        assert cost[3] == mine.attempts.sum()
        assert cost[4] == mine.input_tokens.sum()
        assert cost[5] == pytest.approx(mine.cached_tokens.sum() / mine.input_tokens.sum())
        assert cost[8] == pytest.approx(mine.cost_usd.sum())
        assert cost[10] == pytest.approx(mine.cost_usd.sum() / mine.perfect.sum())
        assert time[2] == pytest.approx(mine.ttft_s.median())
        assert time[4] == pytest.approx(mine.latency_s.quantile(0.9))


def test_table_1_averages_over_problems(report: Report, runs: pd.DataFrame) -> None:
    values = {row[0]: row[1] for row in report.table("table_1").rows}
    assert values["Project questions"] == N
    assert values["Sub-skill categories"] == 3
    assert values["Average number of test cases"] == pytest.approx(
        runs.groupby("problem_id").total.first().mean()
    )
    sizes = run_json(MADE)["problems"].values()
    known = [about["reference"]["output_characters"] for about in sizes if about["reference"]]
    assert len(known) == N - 1
    assert values["Average output characters"] == pytest.approx(sum(known) / len(known))
    assert values["Average modified files"] == 2
    assert f"{N - 1} of {N} problems" in report.table("table_1").notes[1]


def test_a_csv_holds_every_digit(out: Path, report: Report) -> None:
    with (out / "leaderboard.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["mean_score"]) for row in rows] == report.leaderboard.column("mean_score")


def test_all_files_that_are_promised_are_written(out: Path) -> None:
    names = {path.name for path in out.iterdir()}
    assert names == {
        *("index.html", "report.md", "plots", "leaderboard.csv", "problems.csv"),
        *("runs.csv", "pairwise.csv", "skills.csv", "formats.csv", "report.json", "tables"),
    }
    assert {path.suffix for path in (out / "plots").iterdir()} == {".svg"}


def test_costs_that_are_estimates_are_named(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "guessed", Made())
    log = directory / "results.jsonl"
    lines = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    for line in lines:
        line["cost_estimated"] = line["model"] == "alpha"
    log.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    (note,) = build_report([directory]).table("costs").notes[1:]
    assert note.startswith("alpha (xml): the cost of 16 of 16 samples is estimated")
