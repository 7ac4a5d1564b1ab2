"""Looks after whole rounds: only scores of complete rounds count, and each pair ends for its own reason.

How often equal models are called different: test_looks.py, and at length `scripts/bench/run looks`.
"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pytest
from simulated_looks import looks

from astra_async.stats.sequential import (
    Series,
    decide,
    first_crossing,
    information,
    precise,
    schedule_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

SCHEDULE = schedule_of(32, flips=999)
PRECISE_RUNS = int(os.environ.get("COVERAGE_REPETITIONS", "300")) // 5


def samples(models: int, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Equal models on n problems: models x n x 32 scores."""
    found: NDArray[np.float64] = looks.drawn("typical between", (1, models, n), rng)[0]
    return found


def series(a: NDArray[np.float64], b: NDArray[np.float64]) -> Series:
    found: Series = looks.series(a, b, SCHEDULE)
    return found


def test_the_schedule_doubles_up_to_what_is_asked_and_spends_all() -> None:
    assert SCHEDULE.rounds == (2, 4, 8, 16, 32)
    assert SCHEDULE.spent == pytest.approx([0.0125, 0.05 / 8**0.5, 0.025, 0.05 / 2**0.5, 0.05])
    assert schedule_of(10).rounds == (2, 4, 8, 10)
    assert schedule_of(1).rounds == (1,)


def test_a_clear_difference_is_found_at_the_first_look_and_only_prefixes_count() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.binomial(7, 0.9, (65, 32)) / 7, rng.binomial(7, 0.5, (65, 32)) / 7
    (found,) = decide(SCHEDULE, [series(a, b)])
    assert [(each.state, each.k) for each in found] == [("better", 2)]
    assert decide(SCHEDULE, [series(a[:, :4], b[:, :4])]) == [found]
    (turned,) = decide(SCHEDULE, [series(b, a)])
    assert turned[-1].state == "worse"


def test_who_stops_is_the_same_however_the_pairs_are_ordered() -> None:
    rng = np.random.default_rng(5)
    drawn = samples(4, 20, rng)
    drawn[0] = rng.binomial(7, 0.95, drawn[0].shape) / 7
    pairs = [series(a, b) for a, b in combinations(drawn, 2)]
    assert decide(SCHEDULE, pairs[::-1])[::-1] == decide(SCHEDULE, pairs)


def test_each_look_sees_only_what_was_there() -> None:
    rng = np.random.default_rng(6)
    pair = series(*samples(2, 65, rng))
    whole = decide(SCHEDULE, [pair])[0]
    for look in range(len(whole)):
        part = replace(pair, a=pair.a[: look + 1], b=pair.b[: look + 1])
        assert decide(SCHEDULE, [part])[0] == whole[: look + 1]


def test_equal_models_end_as_not_separable_with_a_number_of_problems() -> None:
    rng = np.random.default_rng(2)
    (found,) = decide(SCHEDULE, [series(*samples(2, 65, rng))])
    assert found[-1].state == "not separable"
    assert found[-1].problems is not None
    assert found[-1].problems > 65


def test_the_number_of_problems_that_could_is_for_the_level_at_which_a_pair_is_tested() -> None:
    """Normal differences: .84 + 1.96 standard errors for one pair, .84 + 2.64 for one of six."""
    noise = np.linspace(-0.2, 0.2, 21)
    pair = Series(a=0.52 + noise[None], b=np.full((1, 21), 0.5), within=[0.0])
    one = decide(schedule_of(1), [pair])[0][-1].problems
    six = decide(schedule_of(1), [pair] * 6)[0][-1].problems
    variance = float(noise.var(ddof=1)) / 0.02**2
    assert one == pytest.approx(2.8**2 * variance + 1.96**2 / 2, abs=1)
    assert six == pytest.approx(3.478**2 * variance + 2.638**2 / 2, abs=1)


def test_models_that_hardly_differ_on_many_problems_are_equivalent() -> None:
    rng = np.random.default_rng(3)
    a = np.repeat(rng.beta(2, 1, (400, 1)), 32, axis=1)
    (found,) = decide(SCHEDULE, [series(a, np.clip(a + rng.normal(0, 0.01, a.shape), 0, 1))])
    assert found[-1].state == "equivalent"


def test_a_round_that_one_pair_lacks_is_no_look_for_the_others() -> None:
    """Its decision may hand on what decides them: a look that was made before would have to be taken back."""
    rng = np.random.default_rng(6)
    a, b, c = samples(3, 20, rng)
    late = decide(SCHEDULE, [series(a, b), series(c[:, :2], a), series(c[:, :2], b)])
    assert [[each.k for each in looks] for looks in late] == [[2], [2], [2]]
    whole = decide(SCHEDULE, [series(a, b), series(c, a), series(c, b)])
    assert [looks[:1] for looks in whole] == late
    assert len(whole[0]) > 1


def test_an_equivalence_hands_on_nothing_to_claims_of_a_difference() -> None:
    """Else the pair that is furthest apart by chance would be tested at all of alpha."""
    rng = np.random.default_rng(8)
    alike = Series(a=rng.beta(2, 1, (1, 400)), b=np.zeros((1, 400)), within=[0.02])
    alike = replace(alike, b=alike.a + rng.normal(0, 0.005, (1, 400)))
    noise = rng.normal(0, 0.2, 65)
    noise = (noise - noise.mean()) / noise.std() * 0.2
    apart = Series(a=0.5 + noise[None] + 2.8 * 0.2 / 65**0.5, b=np.full((1, 65), 0.5), within=[0.02])
    assert [found[-1].state for found in decide(SCHEDULE, [apart])] == ["better"]  # p of .008
    states = [found[-1].state for found in decide(SCHEDULE, [alike, apart])]
    assert states == ["equivalent", "open"]
    assert [found[-1].state for found in decide(SCHEDULE, [alike, alike])] == ["equivalent"] * 2


def test_families_flip_together() -> None:
    rng = np.random.default_rng(4)
    families = np.array([f"f{i // 13}" for i in range(65)])
    apart = np.repeat(rng.normal(0, 0.3, (5, 1)), 13, axis=0)
    a = np.clip(0.5 + apart + np.zeros((65, 32)), 0, 1)
    pair = replace(series(a, np.full((65, 32), 0.3)), families=families)
    assert decide(SCHEDULE, [pair])[0][-1].state == "not separable"  # 2 / 2^5 is above 5 %


def test_ties_cross_together_or_not_at_all() -> None:
    sums = np.array([[3.0, 3.0, 3.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    assert first_crossing(sums, [0.2], 1.0) is None
    assert first_crossing(sums, [0.3], 1.0) == 0
    assert first_crossing(np.vstack([sums, sums]), [0.2, 0.3], 1.0) == 1


def test_information_is_the_share_of_what_all_samples_would_tell() -> None:
    assert information(0.09, 0.0, 8, 32) == pytest.approx(0.25)
    assert information(0.0, 0.04, 2, 32) == 1


def test_a_mean_is_precise_enough_or_never_will_be() -> None:
    rng = np.random.default_rng(7)
    values = rng.beta(2, 1, 65)
    means: Sequence[NDArray[np.float64]] = [values] * 5
    found = precise(SCHEDULE, means, [0.02] * 5, None, 0.05)
    assert [(each.state, each.k) for each in found] == [("open", 2), ("precise", 4)]
    found = precise(SCHEDULE, means, [0.02] * 5, None, 0.01)
    assert found[-1].state == "not separable"
    assert (found[-1].problems or 0) > 65


def test_perfect_scores_of_few_problems_are_not_precise() -> None:
    found = precise(SCHEDULE, [np.ones(20)] * 5, [0.0] * 5, None, 0.03)
    assert found[-1].state == "not separable"
    assert (found[-1].problems or 0) > 60
    few = precise(SCHEDULE, [np.full(5, 0.5)] * 5, [0.0] * 5, None, 0.3)
    assert (few[-1].state, few[-1].problems) == ("not separable", 6)


@pytest.mark.parametrize("problems", [6, 10, 20, 40])
@pytest.mark.parametrize("rare", [0.03, 0.07, 0.15])
def test_a_precise_mean_has_no_much_larger_error(problems: int, rare: float) -> None:
    """At most 5 % of runs are called precise if the real standard error is above 1.25 times the target."""
    rng, target = np.random.default_rng(5), 0.03
    is_bad = np.sqrt(rare * (1 - rare) / problems) > 1.25 * target
    said = 0
    for _ in range(PRECISE_RUNS):
        values = np.where(rng.random(problems) < rare, 0.0, 1.0)
        said += precise(SCHEDULE, [values] * 5, [0.0] * 5, None, target)[-1].state == "precise"
    assert not is_bad or said <= (0.05 + 2 * (0.05 * 0.95 / PRECISE_RUNS) ** 0.5) * PRECISE_RUNS
