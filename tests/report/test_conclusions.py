"""What a report says of two models, and that it says no more than it can know."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pytest

from astra_async.log import encode
from astra_async.report.common_problems import Values
from astra_async.report.compare import compare_runs
from astra_async.report.pairwise import RARE_DIFFERENCES, compared, conclude
from astra_async.report.tables import build_report
from astra_async.stats.sequential import Series, decide, schedule_of
from made_runs import Made, MadeProblem, made_problems, made_results, run_json, write_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from astra_async.report.pairwise import Concluded
    from astra_async.report.tables import Report

REPETITIONS = int(os.environ.get("COVERAGE_REPETITIONS", "150"))  # scripts/long asks for more


def concluded(a: Sequence[float], b: Sequence[float]) -> Concluded:
    return conclude([compared(Values("mean_score", np.array(a), np.array(b)))])[0]


def written(directory: Path, scores: Mapping[str, Sequence[Sequence[int]]], total: int = 4) -> Report:
    """A run with so many tests passed in each sample of each problem, by model."""
    first = next(iter(scores.values()))
    problems = [MadeProblem(id=f"p{number:02}", total=total) for number in range(len(first))]
    made = Made(skill=dict.fromkeys(scores, 0.5), problems=problems, samples=len(first[0]))
    directory.mkdir()
    (directory / "run.json").write_bytes(orjson.dumps(run_json(made)))
    lines = []
    for result, _ in made_results(made):
        passed = scores[result.model][int(result.problem_id[1:])][result.sample]
        line = orjson.loads(encode(result))
        failure = None if passed == total else "tests_failed"
        tests = [{"name": f"t{i}", "outcome": "passed" if i < passed else "failed"} for i in range(total)]
        lines.append(
            line
            | {"status": "scored", "passed": passed, "failure": failure, "tests": tests}
            | {"score": passed / total}
        )
    (directory / "results.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return build_report([directory])


def test_equal_differences_in_two_problems_are_no_difference() -> None:
    found = concluded([0.9, 0.8], [0.5, 0.4])
    assert found.comparison.p_t is None
    assert (found.conclusion, found.why) == ("inconclusive", "2 problems cannot show a difference at 5 %")


@pytest.mark.parametrize(("n", "expected"), [(5, "inconclusive"), (6, "better"), (20, "better")])
def test_equal_differences_are_decided_by_their_signs_as_the_looks_decide(n: int, expected: str) -> None:
    """Without a spread there is no t-test, and the looks of `--until decided` know none."""
    a, b = np.linspace(0.5, 0.9, n), np.linspace(0.3, 0.7, n)
    found = concluded(a.tolist(), b.tolist())
    schedule = schedule_of(2)
    schedule = replace(schedule, rounds=schedule.rounds[-1:], spent=(schedule.alpha,))
    looks = decide(schedule, [Series(a=a[None], b=b[None], within=[0.0], families=None)])
    assert found.comparison.p_t is None
    assert found.conclusion == expected
    assert (looks[0][-1].state == "better") == (expected == "better")


def test_two_equal_problems_are_not_equivalent() -> None:
    found = concluded([0.5, 0.7], [0.5, 0.7])
    assert found.comparison.p_equivalence == 1
    assert found.conclusion == "inconclusive"


@pytest.mark.parametrize("n", [3, 4, 5])
def test_too_few_problems_cannot_show_a_difference_however_large(n: int) -> None:
    a = np.linspace(0.9, 1.0, n)
    found = concluded(a.tolist(), (a * 0.1).tolist())
    assert found.comparison.p_t is not None
    assert found.comparison.p_t < 0.001
    assert (found.conclusion, found.why) == ("inconclusive", f"{n} problems cannot show a difference at 5 %")


def test_six_problems_can() -> None:
    found = concluded([0.9, 1.0, 0.95, 0.9, 1.0, 0.97], [0.1, 0.3, 0.2, 0.05, 0.2, 0.15])
    assert (found.conclusion, found.why) == ("better", "")


def test_only_problems_that_differ_count() -> None:
    same = [0.5, 0.6] * 10
    found = concluded([*same, 1.0, 0.9, 1.0], [*same, 0.1, 0.0, 0.2])
    assert found.why == "only 3 of 23 problems differ, which cannot show a difference at 5 %"
    assert found.conclusion == "inconclusive"


def test_many_comparisons_may_ask_for_more_than_the_problems_can_give() -> None:
    a, b = np.array([0.9, 1.0, 0.95, 0.9, 1.0, 0.97]), np.array([0.1, 0.3, 0.2, 0.05, 0.2, 0.15])
    found = conclude([compared(Values("mean_score", a, b))] * 28)
    assert {each.conclusion for each in found} == {"inconclusive"}
    assert found[0].why.endswith("among 28 comparisons")


def test_a_pair_that_holm_tests_late_needs_fewer_problems() -> None:
    """Six differing problems have p = 3.1 %, which Holm does not change after a smaller p of another pair."""
    few, many = np.linspace(0.3, 0.4, 6), np.linspace(0.3, 0.4, 20)
    pairs = [Values("mean_score", gain + 0.5, np.full(len(gain), 0.5)) for gain in (few, many)]
    found = conclude([compared(values) for values in pairs])
    assert [(each.conclusion, each.why) for each in found] == [("better", "")] * 2


def test_a_detectable_effect_is_one_that_can_be() -> None:
    found = concluded([1.0, 0.0], [0.0, 0.9])
    assert found.comparison.smallest_effect == 1
    assert found.comparison.difference_interval is not None
    assert -1 <= found.comparison.difference_interval[0] < found.comparison.difference_interval[1] <= 1


def test_many_problems_that_hardly_differ_are_equivalent() -> None:
    rng = np.random.default_rng(3)
    a = rng.random(300)
    found = concluded(a.tolist(), (a - rng.normal(0, 0.002, 300)).clip(0, 1).tolist())
    assert found.conclusion == "equivalent"


def false_claims(pairs: Sequence[Values], *claims: str) -> float:
    said = [conclude([compared(values)])[0].conclusion for values in pairs]
    return sum(each in (claims or ("better", "worse", "equivalent")) for each in said) / len(said)


MOST = (
    0.05 + 0.03 + 2 * (0.05 * 0.95 / REPETITIONS) ** 0.5
)  # within three points, and the simulation's own error


@pytest.mark.long
@pytest.mark.first(bad=lambda bad, **_: bad)
@pytest.mark.parametrize("n", [10, 20, 65])
@pytest.mark.parametrize("bad", [0.02, 0.05])
def test_a_rare_loss_that_was_not_seen_is_no_equivalence(n: int, bad: float) -> None:
    """Perfect but for a share of problems that one of two always fails, and single failures."""
    rng = np.random.default_rng([n, 1])

    def scores(share: float) -> NDArray[np.float64]:
        return np.where(rng.random(n) < share, 0.0, 1 - rng.binomial(32, 1 / 300, n) / 32)

    pairs = [Values("mean_score", scores(0), scores(bad)) for _ in range(REPETITIONS)]
    assert false_claims(pairs, "equivalent", "worse") <= MOST


@pytest.mark.long
@pytest.mark.first
@pytest.mark.parametrize("n", [6, 10, 20, 65])
def test_a_difference_is_rarely_claimed_where_there_is_none(n: int) -> None:
    rng = np.random.default_rng(n)

    def scores() -> NDArray[np.float64]:
        kind = rng.random(n)
        return np.where(kind < 0.4, 1.0, np.where(kind < 0.5, 0.0, rng.beta(2, 1, n)))

    assert false_claims([Values("mean_score", scores(), scores()) for _ in range(REPETITIONS)]) <= MOST


@pytest.mark.long
@pytest.mark.first
@pytest.mark.parametrize("size", [13, 4, 2])
def test_families_that_move_together_are_not_many_proofs(size: int) -> None:
    """Equal models: "better" was said of 0.13 of them with pairs of equal problems, 0.60 with thirteens."""
    rng, families = np.random.default_rng(size), np.array([f"f{i // size}" for i in range(65)])
    numbers = np.unique(families, return_inverse=True)[1]

    def scores() -> NDArray[np.float64]:
        return rng.beta(2, 1, numbers.max() + 1)[numbers]  # type: ignore[no-any-return]

    values = [Values("mean_score", scores(), scores(), families) for _ in range(REPETITIONS)]
    assert false_claims(values) <= MOST


def test_a_difference_that_rare_losses_could_undo_is_said_with_them(tmp_path: Path) -> None:
    """Twelve problems, each some 3 points better: the tests are sure, the interval has room for one loss."""
    scores = {"a": [[20 - i % 3, 20] for i in range(12)], "b": [[19 - i % 3, 19 - i % 2] for i in range(12)]}
    (said,) = written(tmp_path / "run", scores, total=20).conclusions
    assert said.startswith("a's mean score is 6.2 points above b's (95 % interval [-16.0, +25.9]")
    assert RARE_DIFFERENCES in said
    assert "better" not in said


def test_a_significant_difference_below_a_tenth_of_a_point_is_not_called_zero(tmp_path: Path) -> None:
    scores = {"a": [[1999, 1990 + i] for i in range(8)], "b": [[1998, 1990 + i] for i in range(8)]}
    (said,) = written(tmp_path / "run", scores, total=2_000).conclusions
    assert said.startswith("a's mean score is 0.03 points above b's (95 % interval ")
    assert RARE_DIFFERENCES in said


def test_losing_failed_samples_makes_no_model_better(tmp_path: Path) -> None:
    """Equal models; one lost some of its failing samples: it was "better" in all runs with 21 % missing."""
    made = Made(skill={"a": 0.6, "b": 0.6}, problems=made_problems(20), samples=8)
    failing = [r for r, _ in made_results(made) if r.model == "a" and r.passed < r.total]
    lost = frozenset((r.model, r.format, r.problem_id, r.sample) for r in failing[::2])
    report = build_report([write_run(tmp_path / "run", replace(made, leave_out=lost))])
    assert set(report.table("pairwise").column("verdict")) == {"~inconclusive"}
    assert "So far, with samples missing" in report.conclusions[0]
    assert "better than" not in report.conclusions[0]


def test_one_sample_of_a_problem_has_no_sd(tmp_path: Path) -> None:
    made = Made(problems=made_problems(8), samples=1)
    report = build_report([write_run(tmp_path / "run", made)])
    board = report.leaderboard
    for name in ("median_sd", "median_sd_interval", "rms_within_sd"):
        assert board.column(name) == [None, None], name
    pairs = report.table("pairwise_sd")
    assert pairs.column("verdict") == ["inconclusive"]
    assert pairs.column("n") == [0]
    assert any("One sample of a problem has no SD" in note for note in report.table("consistency").notes)
    assert "both need the same number of samples, at least two" in report.conclusions[0]


def test_the_best_model_is_named_with_its_certainty_price_and_consistency(tmp_path: Path) -> None:
    made = Made(skill={"strong": 1.0, "weak": 0.2}, problems=made_problems(20), samples=8)
    report = build_report([write_run(tmp_path / "run", made)])
    (said,) = report.conclusions
    table = report.table("pairwise")
    row: dict[str, Any] = dict(zip([each.name for each in table.columns], table.rows[0], strict=True))
    low, high = row["difference_interval"]
    assert said.startswith(
        f"strong is better than weak: its mean score is {100 * row['difference']:.1f} points higher (95 %"
        f" interval [{100 * low:+.1f}, {100 * high:+.1f}] for new problems like these)."
        " strong and weak cost the same within 5 %: $0.01"
    )
    sd = report.table("pairwise_sd").by_name()[0]
    difference, bounds = float(str(sd["difference"])), sd["difference_interval"]
    assert isinstance(bounds, tuple)
    assert (
        f"strong is more consistent than weak: its mean SD differs by {difference:+.3f} (95 % interval"
        f" [{bounds[0]:+.3f}, {bounds[1]:+.3f}])."
    ) in said


def test_a_difference_that_three_problems_show_is_not_called_one(tmp_path: Path) -> None:
    scores = {"steady": [[4, 4, 4, 4]] * 3, "weak": [[2, 1, 0, 2], [1, 1, 1, 2], [0, 0, 2, 1]]}
    (said,) = written(tmp_path / "run", scores).conclusions
    assert said.startswith("steady's mean score is ")
    assert said.endswith(
        "This does not show that steady is better: 3 problems cannot show a difference at 5 %."
        " No difference in consistency is shown."
    )


def test_the_other_models_are_named_by_what_is_known_of_them(tmp_path: Path) -> None:
    skill = {"best": 1.0, "near": 0.98, "far": 0.2, "farther": 0.1}
    made = Made(skill=skill, problems=made_problems(20), samples=8)
    report = build_report([write_run(tmp_path / "run", made)])
    first, second, *_ = report.leaderboard.column("model")
    assert f"{first}'s mean score is " in report.conclusions[0]
    assert f" points above {second}'s (95 % interval [" in report.conclusions[0]
    assert f"does not show that {first} is better: the difference is not significant" in report.conclusions[0]
    assert report.conclusions[1] == f"{first} is better than far and farther."


def test_formats_are_compared_in_one_sentence(tmp_path: Path) -> None:
    made = Made(formats=("xml", "json"), problems=made_problems(8))
    said = build_report([write_run(tmp_path / "run", made)]).conclusions
    assert [sentence.split(":")[0] for sentence in said[:2]] == ["XML", "JSON"]
    assert said[-1] == "No difference in mean score between XML and JSON is shown (2 models)."


def test_a_single_model_is_told_with_its_interval(tmp_path: Path) -> None:
    made = Made(skill={"m": 0.7}, problems=made_problems(8))
    (said,) = build_report([write_run(tmp_path / "run", made)]).conclusions
    assert said.startswith("m has a mean score of ")
    assert " for new problems like these). Its pass@1 is " in said
    assert " %. A sample costs $" in said


def test_a_comparison_names_the_problems_that_really_changed(tmp_path: Path) -> None:
    problems = made_problems(8)
    runs = [
        write_run(tmp_path / name, Made(skill={"m": skill}, problems=problems, samples=16))
        for name, skill in (("a", 0.4), ("b", 0.95))
    ]
    found = compare_runs(*runs)
    assert found.conclusions[-1].startswith("With new samples of these 8 problems, m @ b is better on ")
    assert " and worse on 0. No difference is shown on " in found.conclusions[-1]


def test_a_price_made_of_estimates_says_so_and_a_ratio_is_told(tmp_path: Path) -> None:
    made = Made(problems=made_problems(8))
    directory = write_run(tmp_path / "run", made)
    path = directory / "results.jsonl"
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    for line in lines:
        line["cost_usd"] = 0.02 if line["model"] == "alpha" else 0.04
        line["cost_estimated"] = line["model"] == "alpha"
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    (said,) = build_report([directory]).conclusions
    first = "less than beta: about $0.0200 a sample against $0.0400 (ratio 0.5, 95 % interval [0.5, 0.5])."
    other = "more than alpha: $0.0400 a sample against about $0.0200 (ratio 2, 95 % interval [2, 2])."
    assert first in said or other in said


def priced(path: Path, cost: Callable[[dict[str, Any]], float | None], problems: int = 8) -> str:
    """The sentence on two models whose samples cost what is told."""
    directory = write_run(path / "run", Made(problems=made_problems(problems)))
    results = directory / "results.jsonl"
    lines = [orjson.loads(line) for line in results.read_bytes().splitlines()]
    kept = [line | {"cost_usd": cost(line)} for line in lines]
    results.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in kept))
    (said,) = build_report([directory]).conclusions
    return said


def test_costs_that_vary_by_problem_alone_are_not_called_different(tmp_path: Path) -> None:
    factors = (1.0, 4.0, 0.5, 2.0, 0.2, 1.5, 3.0, 0.8)

    def cost(line: dict[str, Any]) -> float:
        number = int(line["problem_id"][1:]) % 8
        return 0.01 * factors[number if line["model"] == "alpha" else 7 - number]

    assert "No difference in cost is shown: $0.01" in priced(tmp_path, cost)


def test_costs_are_compared_by_problem_whatever_is_not_known(tmp_path: Path) -> None:
    def cost(line: dict[str, Any]) -> float | None:
        hard = int(line["problem_id"][1:]) % 2
        if line["model"] == "alpha" and hard and line["sample"]:
            return None  # of most of alpha's expensive samples no cost is known
        return (0.10 if hard else 0.01) * (2 if line["model"] == "alpha" else 1)

    said = priced(tmp_path, cost)
    assert any(
        f", over the samples with a known cost (ratio {ratio}, 95 % interval [{ratio}, {ratio}])." in said
        for ratio in ("2", "0.5")
    )


def test_too_few_problems_say_nothing_about_a_ratio_of_costs(tmp_path: Path) -> None:
    said = priced(tmp_path, lambda line: 0.02 if line["model"] == "alpha" else 0.04, problems=4)
    assert "cost" not in said
