from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaincinv

from astra_async.report.common_problems import Values
from astra_async.report.pairwise import compared
from astra_async.stats.association import correlation
from astra_async.stats.differences import (
    benjamini_hochberg,
    conclusion,
    holm,
    least_p,
    paired_t,
    permutation_p,
    sign_flips,
    wilcoxon,
)
from astra_async.stats.intervals import (
    difference_interval,
    equivalence,
    median_interval,
    minimum_detectable_effect,
    power_paired,
    problems_needed,
    run_only_interval,
    samples_needed,
    total_interval,
)
from astra_async.stats.spread import g_pass_at, mg_pass_at, pass_at, pass_hat, variance_split


def test_too_little_data_gives_nothing_instead_of_a_number() -> None:
    assert total_interval([0.5]) is None
    assert run_only_interval([0.5, 0.6], [0.4, 0.6, 0.6], [0, 0, 1]) is None
    assert total_interval([0.5, 0.6], ["a", "a"]) is None
    assert paired_t([1.0], [0.0]) is None
    assert equivalence([1.0], [0.0], 0.1) is None
    assert sign_flips([], []) is None
    assert wilcoxon([], []) is None
    assert variance_split([0.5], [0.1], [4]) is None
    assert median_interval([]) is None
    assert median_interval([0.1] * 5) is None
    assert difference_interval([0.5], [0.4]) is None
    assert minimum_detectable_effect(1) is None
    assert correlation([1, 2], [1, 2]) is None
    assert correlation([1, 2, 3], [5, 5, 5]) is None
    assert permutation_p([], [1]) is None
    assert len(holm([])) == len(benjamini_hochberg([])) == 0


def test_models_that_agree_on_every_problem_differ_with_p_one() -> None:
    same = [0.1, 0.5, 0.9]
    test = paired_t(same, same)
    assert test is not None
    assert (test.t, test.p) == (0, 1)
    assert sign_flips(same, same) == least_p(same, same) == 1
    assert wilcoxon(same, same) == 1


def test_differences_that_do_not_vary_prove_nothing() -> None:
    test = paired_t([0.2, 0.4, 0.6], [0.1, 0.3, 0.5])
    assert test is not None
    assert (test.t, test.p) == (None, None)
    assert (equivalence([0.2, 0.4, 0.6], [0.1, 0.3, 0.5], 0.5) or 0) > 0.05
    assert (equivalence([0.1, 0.5], [0.1, 0.5], 0.02) or 0) > 0.05


@pytest.mark.parametrize("n", [6, 65, 1_000, 5_000, 100_000])
def test_intervals_of_equal_values_are_those_of_the_beta_distribution(n: int) -> None:
    """The share of the unseen problem is Beta(0.6, n)."""
    a = np.linspace(0.2, 0.9, n)
    low, high = difference_interval(a, a) or (0.0, 0.0)
    exact = float(betaincinv(0.6, n, 0.975))
    assert (low, high) == pytest.approx((-exact, exact), rel=1e-6)


@pytest.mark.parametrize("n", [1_000, 20_000, 100_000])
def test_one_value_that_differs_changes_an_interval_little(n: int) -> None:
    a = np.linspace(0.2, 0.9, n)
    b = a.copy()
    b[0] += 0.1
    rng = np.random.default_rng(3)
    seen, one, unseen = (
        rng.gamma(n - 1, size=200_000),
        rng.exponential(size=200_000),
        rng.gamma(0.6, size=200_000),
    )
    drawn = np.quantile((0.1 * one + unseen) / (seen + one + unseen), 0.975)
    low, high = difference_interval(b, a) or (0.0, 0.0)
    assert high == pytest.approx(drawn, rel=0.02)
    assert -low < high


@pytest.mark.parametrize("families", [None, ["one", "one", "two", "three", "four", "five", "six", "six"]])
@pytest.mark.parametrize(("most", "away"), [(1.0, 1.0), (1.0, -1.0), (0.5, 0.5), (0.5, -0.5)])
def test_the_largest_possible_difference_everywhere_is_no_equivalence(
    most: float, away: float, families: list[str] | None
) -> None:
    assert equivalence(np.full(8, away), np.zeros(8), 0.02, families, most) == 1.0


def test_identical_results_are_equivalent_where_the_margin_is_wide_enough() -> None:
    assert (equivalence(np.linspace(0, 1, 140), np.linspace(0, 1, 140), 0.02) or 1) < 0.05
    assert (equivalence(np.linspace(0, 1, 100), np.linspace(0, 1, 100), 0.02) or 0) > 0.05


def test_a_difference_is_that_of_the_two_means_to_the_last_digit() -> None:
    a, b = [0.1, 0.7, 1 / 3, 1.0, 0.2, 0.9], [0.3, 0.2, 1 / 7, 0.9, 0.2, 0.1]
    found = compared(Values("mean_score", np.array(a), np.array(b)))
    assert found.difference == math.fsum(a) / 6 - math.fsum(b) / 6


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=12))
def test_an_interval_stays_within_what_is_possible_and_holds_its_estimate(
    pairs: list[tuple[float, float]],
) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    mean, difference = total_interval(a), difference_interval(a, b)
    assert mean is not None
    assert difference is not None
    assert 0 <= mean[0] <= math.fsum(a) / len(a) <= mean[1] <= 1
    assert mean[0] < mean[1]
    d = math.fsum(a) / len(a) - math.fsum(b) / len(b)
    assert -1 - 1e-9 <= difference[0] <= d + 1e-9
    assert d - 1e-9 <= difference[1] <= 1 + 1e-9


def test_problems_that_are_all_alike_still_have_an_interval_with_a_width() -> None:
    for mean in (0.0, 0.5, 1.0):
        found = total_interval([mean] * 10)
        still = run_only_interval([mean] * 10, [mean] * 40, [i // 4 for i in range(40)])
        assert found is not None
        assert still is not None
        assert found[1] - found[0] > 0.15
        assert still[1] - still[0] > 0.06


def test_the_least_p_counts_the_problems_that_differ() -> None:
    assert least_p([1.0] * 6, [0.5] * 6) == 2 / 64
    assert least_p([1.0] * 6 + [0.2] * 50, [0.5] * 6 + [0.2] * 50) == 2 / 64
    assert least_p([1.0] * 200, [0.0] * 200) < 1e-15


def test_a_difference_needs_both_tests() -> None:
    def found(*p_values: float | None) -> str:
        return conclusion(0.1, p_values=p_values, p_equivalence=None)

    assert found(0.01, 0.01) == "better"
    assert found(0.01, 0.25) == found(None, 0.01) == "inconclusive"


def test_equal_quotients_count_as_no_difference() -> None:
    assert paired_t([0.1 + 0.2, 0.7], [0.3, 0.7]) == paired_t([0.3, 0.7], [0.3, 0.7])


@pytest.mark.long
@pytest.mark.first(steps=lambda steps, **_: steps)
@pytest.mark.parametrize("scale", [1e-3, 1.0])
@pytest.mark.parametrize(("n", "steps"), [(16, 0), (17, 0), (17, 1), (18, 5), (17, 60)])
def test_all_sign_patterns_are_counted_by_one_and_by_their_sums(n: int, steps: int, scale: float) -> None:
    """`steps` is how many values a difference may have, as of quotients with one denominator; 0: any."""
    d = np.random.default_rng(n + steps).normal(0.6, 1, n)
    d = scale * (np.sign(d) * np.ceil(np.abs(d) * steps / 3) / steps if steps else d)
    sums = np.abs(np.array(list(product((-1, 1), repeat=n))) @ d)
    exact = np.mean(sums >= abs(d.sum()) - 1e-9 * scale)
    assert sign_flips(d, np.zeros(n)) == pytest.approx(exact, rel=1e-9 if n <= 16 or steps else 0.003)


@pytest.mark.parametrize(("n", "above"), [(65, 0.001), (300, 0.005), (800, 0.02)])
def test_the_sign_flips_of_many_problems_are_those_of_random_patterns(n: int, above: float) -> None:
    """The rounding that is granted makes p a little larger, and never smaller."""
    rng = np.random.default_rng(n)
    d = rng.beta(2, 2, n) - 0.5 + 0.5 / n**0.5
    sums = np.abs(np.where(rng.random((20_000, n)) < 0.5, -1.0, 1.0) @ d)
    p, drawn = sign_flips(d, np.zeros(n)), float(np.mean(sums >= abs(d.sum())))
    assert p is not None
    assert drawn - 0.006 < p < drawn + 0.006 + above


def test_no_number_of_comparisons_is_beyond_the_sign_flips_of_many_problems() -> None:
    """Twenty all better: 2 / 2^20. A sample of 20,000 patterns cannot tell it from 5 % among 1,000 pairs."""
    assert sign_flips([1.0] * 20, [0.5] * 20) == least_p([1.0] * 20, [0.5] * 20) == 2.0**-19
    rng = np.random.default_rng(1)
    assert (sign_flips(rng.random(65) + 0.01, np.zeros(65)) or 1) < 1e-18


def test_wilcoxon_is_exact_with_ties_and_zeros() -> None:
    d = [0.0, 0.1, 0.1, 0.2, -0.1, 0.3, 0.3, 0.0, 0.4]
    expected = scipy.stats.wilcoxon(d, zero_method="pratt", method=scipy.stats.PermutationMethod())
    assert wilcoxon(d, [0] * 9) == pytest.approx(expected.pvalue)


def test_wilcoxon_of_many_problems_is_that_of_scipy() -> None:
    d = np.random.default_rng(2).normal(0.2, 1, 40)
    assert wilcoxon(d, np.zeros(40)) == pytest.approx(scipy.stats.wilcoxon(d, method="exact").pvalue)


def test_wilcoxon_of_many_problems_with_ties_and_zeros_is_exact() -> None:
    """All sign patterns, one by one; scipy has only the normal approximation there."""
    d = np.round(np.random.default_rng(2).normal(0.2, 1, 22) * 3) / 3
    differing = d[d != 0]
    assert 17 <= len(differing) < len(d)
    ranks = scipy.stats.rankdata(np.abs(d))[d != 0]
    signs = 1 - 2 * ((np.arange(2 ** len(differing))[:, None] >> np.arange(len(differing))) & 1)
    sums = signs @ ranks
    expected = float(np.mean(np.abs(sums) >= abs(float(np.sign(differing) @ ranks))))
    assert wilcoxon(d, np.zeros(22)) == pytest.approx(expected)


def test_the_interval_of_a_median_lies_between_two_of_its_values() -> None:
    assert median_interval([0.3, 0.1, 0.2, 0.6, 0.5, 0.4]) == (0.1, 0.6)
    assert median_interval(np.arange(1, 66)) == (25, 41)
    assert median_interval([0.0] * 18 + [0.3, 0.4]) == (0.0, 0.0)


def test_unequal_sample_numbers_use_their_effective_number() -> None:
    split = variance_split([0.2, 0.4, 0.9], [0.01, 0.02, 0.03], [2, 3, 4])
    assert split is not None
    assert split.k0 == pytest.approx((9 - 29 / 9) / 2)
    assert 2 < split.k0 < 3


@pytest.mark.parametrize("n", [2, 3, 5, 20, 65, 500, 5000])
def test_the_minimum_detectable_effect_has_the_power_asked_for(n: int) -> None:
    effect = minimum_detectable_effect(n)
    assert effect is not None
    assert power_paired(effect, n) == pytest.approx(0.8, abs=1e-6)


def test_a_precision_below_the_spread_of_problems_takes_more_problems() -> None:
    between, within = np.array([0.08]), np.array([0.04])
    assert samples_needed(between, within, 65, 0.01) == [math.inf]
    assert samples_needed(between, within, 1000, 0.01) == [2]
    assert problems_needed(between, within, 4, 0.01) == [900]


@given(st.integers(1, 20), st.data())
def test_pass_probabilities_are_ordered(k: int, data: st.DataObject) -> None:
    c, m = data.draw(st.integers(0, k)), data.draw(st.integers(1, k))
    assert pass_hat(m, k, c) <= pass_at(m, k, c)
    assert pass_at(1, k, c) == pass_hat(1, k, c) == pytest.approx(c / k)
    assert g_pass_at(m, k, c, m) == pass_hat(m, k, c) == float(Fraction(math.comb(c, m), math.comb(k, m)))
    assert pass_at(m, k, c) == float(1 - Fraction(math.comb(k - c, m), math.comb(k, m)))
    assert g_pass_at(m, k, c, 1) == pytest.approx(pass_at(m, k, c))
    assert 0 <= mg_pass_at(m, k, c) <= 1 + 1e-12


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=5),
    st.lists(st.integers(0, 5), min_size=1, max_size=5),
)
def test_the_permutation_test_counts_all_permutations(a: list[int], b: list[int]) -> None:
    pooled = [*a, *b]
    expected_sum = sum(pooled) * len(a) / len(pooled)
    observed = abs(sum(a) - expected_sum)
    sums = [sum(chosen) for chosen in combinations(pooled, len(a))]
    share = np.mean([abs(s - expected_sum) >= observed - 1e-9 for s in sums])
    assert permutation_p(a, b) == pytest.approx(share)


def test_a_perfect_rank_order_of_few_problems_is_no_wonder() -> None:
    found = correlation([1, 2, 3], [3, 2, 1])
    assert found is not None
    assert (found.rho, found.rho_p) == (-1, 2 / 6)
    assert found.interval is None


def test_exact_rank_correlations_are_those_of_a_permutation_test() -> None:
    x, y = [1.0, 4.0, 2.0, 2.0, 9.0, 7.0], [3.0, 1.0, 1.0, 5.0, 8.0, 6.0]
    found = correlation(x, y)
    expected = scipy.stats.permutation_test(
        (x,), lambda order: scipy.stats.spearmanr(order, y).statistic, permutation_type="pairings"
    )
    assert found is not None
    assert found.rho_p == pytest.approx(expected.pvalue)


def test_the_permutation_test_of_zeros_and_ones_is_fishers() -> None:
    a, b = [1] * 30 + [0] * 2, [1] * 20 + [0] * 12
    expected = scipy.stats.fisher_exact([[30, 2], [20, 12]]).pvalue
    assert permutation_p(a, b) == pytest.approx(expected)


def test_counts_too_large_to_enumerate_are_sampled() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 10_000, 40).tolist(), rng.integers(0, 10_000, 40).tolist()
    p = permutation_p(a, b)
    assert p is not None
    assert p == pytest.approx(float(scipy.stats.ttest_ind(a, b).pvalue), abs=0.05)


def test_many_problems_take_little_memory() -> None:
    rng = np.random.default_rng(8)
    a, b = rng.random((2, 1_000))
    tracemalloc.start()
    sign_flips(a, b)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


ALMOST = np.mean([[0.1, 0.2, 0.3, 0.1], [0.2, 0.3, 0.1, 0.3], [0.3, 0.1, 0.2, 0.2]], axis=0)  # .2, or nearly


@pytest.mark.parametrize(("x", "y"), [([1, 2, 3, 4], ALMOST), (ALMOST, [1, 2, 3, 4])])
def test_values_that_differ_by_rounding_do_not_vary(x: list[float], y: list[float]) -> None:
    assert correlation(x, y) is None


@pytest.mark.parametrize("y", [[0.0] * 9 + [1.0], [1 / 3] * 9 + [0.1 + 0.2]])
def test_one_problem_apart_from_all_others_is_no_evidence(y: list[float]) -> None:
    """The apart one has the tenth part of all orders: p is 0.1, whatever a t-test of r = 1 says."""
    x = [0.0] * 9 + [900.0 if y[-1] > y[0] else -900.0]
    found = correlation(x, y)
    assert found is not None
    assert (found.r, found.rho, found.interval) == (1, 1, None)
    assert [found.p, found.rho_p] == pytest.approx([0.1, 0.1], abs=0.01)


@pytest.mark.parametrize("sizes", [[64, 1], [30, 3, 2]])
def test_one_family_that_is_nearly_everything_has_no_interval(sizes: list[int]) -> None:
    families = [str(number) for number, size in enumerate(sizes) for _ in range(size)]
    assert total_interval(np.linspace(0, 1, len(families)), families) is None


def test_families_of_one_size_count_each_once() -> None:
    found = total_interval([0.2, 0.4, 0.6, 0.9, 1.0, 0.8], ["a", "a", "b", "b", "c", "c"])
    each = total_interval([0.3, 0.75, 0.9])
    assert found is not None
    assert found == pytest.approx(each)
