"""Published examples, and values computed once with scipy 1.17 and statsmodels 0.15."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from astra_async.stats.association import correlation, rank_interval
from astra_async.stats.differences import (
    benjamini_hochberg,
    conclusion,
    holm,
    paired_t,
    ratio_of_means,
    sign_flips,
    wilcoxon,
)
from astra_async.stats.intervals import (
    difference_interval,
    equivalence,
    minimum_detectable_effect,
    power_paired,
    run_only_interval,
    total_interval,
)
from astra_async.stats.spread import g_pass_at, mg_pass_at, pass_at, pass_hat, rms_within_sd, variance_split

CLOSE = 1e-9
SLEEP_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0, 2]
SLEEP_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
DEPRESSION_X = [1.83, 0.5, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.3]
DEPRESSION_Y = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
P_VALUES = [0.0008, 0.011, 0.013, 0.021, 0.049, 0.12]
SHROUT_FLEISS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
ANSCOMBE_X = [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5]
ANSCOMBE_Y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68]


def test_the_paired_t_test_of_the_sleep_data() -> None:
    test = paired_t(SLEEP_1, SLEEP_2)
    assert test is not None
    assert test.t == pytest.approx(-4.0621276834, abs=CLOSE)
    assert test.p == pytest.approx(0.0028328902, abs=CLOSE)
    assert test.sd == pytest.approx(1.2299954833, abs=CLOSE)


def test_the_sign_flip_test_of_the_sleep_data_is_exact() -> None:
    assert sign_flips(SLEEP_1, SLEEP_2) == 4 / 1024


def test_wilcoxon_of_the_depression_data_is_exact() -> None:
    assert wilcoxon(DEPRESSION_X, DEPRESSION_Y) == 0.0390625


def test_equivalence_is_the_level_of_the_interval_within_the_margin() -> None:
    a, b = np.linspace(0.5, 0.9, 300), np.linspace(0.5, 0.9, 300) + np.tile([0.02, -0.01, 0.0], 100)
    p = equivalence(a, b, 0.02)
    assert p is not None
    interval = difference_interval(a, b, level=1 - p)
    assert interval is not None
    assert max(-interval[0], interval[1]) == pytest.approx(0.02, abs=1e-9)


def test_holm_and_benjamini_hochberg() -> None:
    assert holm(P_VALUES) == pytest.approx([0.0048, 0.055, 0.055, 0.063, 0.098, 0.12])
    assert benjamini_hochberg(P_VALUES) == pytest.approx([0.0048, 0.026, 0.026, 0.0315, 0.0588, 0.12])
    shuffled = [P_VALUES[place] for place in (3, 0, 5, 1, 4, 2)]
    assert holm(shuffled) == pytest.approx([0.063, 0.0048, 0.12, 0.055, 0.098, 0.055])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (pass_at(5, 32, 24), 0.9997219132),
        (pass_at(8, 32, 24), 0.9999999049),
        (pass_hat(2, 32, 24), 0.5564516129),
        (pass_hat(4, 32, 24), 0.2954949944),
        (pass_hat(8, 32, 24), 0.0699229914),
        (g_pass_at(8, 32, 24, 4), 0.9884710457),
        (g_pass_at(8, 32, 24, 6), 0.6914606923),
        (mg_pass_at(8, 32, 24), 0.5030751167),
        (pass_at(5, 32, 16), 0.9783092325),
        (pass_hat(2, 32, 16), 0.2419354839),
        (pass_hat(8, 32, 16), 0.0012235818),
        (mg_pass_at(8, 32, 16), 0.1180941787),
        (pass_hat(8, 32, 31), 0.75),
        (mg_pass_at(8, 32, 31), 0.9375),
        (pass_at(5, 10, 3), 0.9166666667),
    ],
)
def test_pass_probabilities(value: float, expected: float) -> None:
    assert value == pytest.approx(expected, abs=1e-10)


def test_the_interval_of_a_rate_is_of_beta_quantiles() -> None:
    """Clopper and Pearson's is that of Beta(x, n - x + 1) and Beta(x + 1, n - x); ours has 0.6 for the 1."""
    found = total_interval([1.0] * 24 + [0.0] * 8)
    assert found is not None
    low, high = scipy.stats.beta.ppf(0.025, 24, 8.6), scipy.stats.beta.ppf(0.975, 24.6, 8)
    assert found == pytest.approx((low, high), abs=1e-6)
    perfect = total_interval([1.0] * 65)
    assert perfect is not None
    assert perfect == pytest.approx((scipy.stats.beta.ppf(0.025, 65, 0.6), 1), abs=1e-6)


def test_more_failures_never_raise_an_interval() -> None:
    """A perfect score was [94.2, 100] and one failed sample of 2,080 [99.9, 100]."""
    before = total_interval([1.0] * 65)
    for failed in range(1, 33):
        found = total_interval([1.0] * 64 + [1 - failed / 32])
        assert found is not None
        assert before is not None
        assert found[0] < before[0]
        assert found[1] <= before[1]
        before = found


def test_the_interval_of_a_difference_of_rates_is_near_newcombes() -> None:
    """Newcombe (1998), table III: 36, 12, 2, 0 of 50 pairs, method 10: .0569, .3404."""
    found = difference_interval([1.0] * 48 + [0.0] * 2, [1.0] * 36 + [0.0] * 12 + [1.0] * 2)
    assert found == pytest.approx((0.0569, 0.3404), abs=0.035)


def test_the_variance_split_of_shrout_and_fleiss() -> None:
    table = np.array(SHROUT_FLEISS, dtype=float)
    split = variance_split(table.mean(axis=1), table.var(axis=1, ddof=1), [4] * 6)
    assert split is not None
    assert split.msb == pytest.approx(11.2416666667, abs=CLOSE)
    assert split.within == pytest.approx(6.2638888889, abs=CLOSE)
    assert split.icc == pytest.approx(0.1657417684, abs=CLOSE)
    assert split.between == pytest.approx((split.msb - split.within) / 4)


def test_the_run_only_interval_counts_only_the_spread_within_problems() -> None:
    scores = np.array([0.0, 0.2, 0.4, 0.2, 0.8, 1.0])
    interval = run_only_interval([0.2, 0.9], scores, [0, 0, 0, 0, 1, 1])
    assert interval is not None
    assert interval[0] < 0.55 < interval[1]


def test_power_and_the_minimum_detectable_effect() -> None:
    assert power_paired(0.1, 65) == pytest.approx(0.1247930576, abs=1e-8)
    assert power_paired(0.25, 65) == pytest.approx(0.5101366087, abs=1e-8)
    assert power_paired(0.5, 65) == pytest.approx(0.9777830669, abs=1e-8)
    assert minimum_detectable_effect(65) == pytest.approx(0.3528177185, abs=1e-6)
    assert minimum_detectable_effect(65, power=0.9) == pytest.approx(0.4082344426, abs=1e-8)


def test_the_minimum_detectable_effect_agrees_with_numerical_integration() -> None:
    n, effect = 65, minimum_detectable_effect(65)
    assert effect is not None
    bound, shift = scipy.stats.t.ppf(0.975, n - 1), effect * n**0.5

    def density(v: float) -> float:  # the t statistic given its chi-square denominator, times its density
        scale = bound * (v / (n - 1)) ** 0.5
        tails = scipy.stats.norm.sf(scale - shift) + scipy.stats.norm.cdf(-scale - shift)
        return float(tails * scipy.stats.chi2.pdf(v, n - 1))

    assert scipy.integrate.quad(density, 0, 300, limit=500)[0] == pytest.approx(0.8, abs=1e-9)


def test_the_correlation_of_anscombe() -> None:
    found = correlation(ANSCOMBE_X, ANSCOMBE_Y)
    assert found is not None
    assert found.r == pytest.approx(0.8164205163, abs=CLOSE)
    assert found.p == pytest.approx(0.0021696289, abs=0.001)  # the t-test's; ours is of 10,000 permutations
    assert found.rho == pytest.approx(0.8181818182, abs=CLOSE)


@pytest.mark.parametrize(("r", "p"), [(-0.560, 1.2e-6), (-0.164, 0.1917519705)])
def test_the_correlations_that_the_paper_reports(r: float, p: float) -> None:
    """65 normal values with the paper's r have nearly the p of its t-test."""
    x, y = np.random.default_rng(4).normal(size=(2, 65))
    x = (x - x.mean()) / x.std()
    y = y - y.mean() - x * (x @ y) / 65
    found = correlation(x, r * x + math.sqrt(1 - r * r) * y / y.std())
    assert found is not None
    assert found.r == pytest.approx(r, abs=CLOSE)
    assert found.p == pytest.approx(p, abs=0.02)


def test_the_interval_of_a_rank_correlation() -> None:
    """artanh(.5) = .549306; SE = sqrt(1.125 / 62) = .134704; times 1.959964 = .264015."""
    assert rank_interval(0.5, 65) == pytest.approx((math.tanh(0.285291), math.tanh(0.813321)), abs=1e-6)


def test_the_root_mean_square_within_sd() -> None:
    assert rms_within_sd([0.04, 0.0, 0.02]) == pytest.approx(0.02**0.5)
    assert rms_within_sd([float("nan")]) is None


def test_the_population_sd_at_k_32_is_smaller_by_a_known_factor() -> None:
    scores = np.random.default_rng(1).random(32)
    assert scores.std() / scores.std(ddof=1) == pytest.approx(0.9842509843, abs=CLOSE)


def test_equivalence_goes_before_better() -> None:
    def found(difference: float, p: float, p_equivalence: float) -> str:
        return conclusion(difference, p_values=(p, p), p_equivalence=p_equivalence)

    assert found(0.005, 0.001, 0.001) == "equivalent"
    assert found(0.05, 0.001, 0.9) == "better"
    assert found(-0.05, 0.001, 0.9) == "worse"
    assert found(0.05, 0.2, 0.9) == "inconclusive"


def test_a_ratio_of_costs_is_the_inverse_of_the_ratio_of_swapped_costs() -> None:
    costs = np.random.default_rng(2).lognormal(0, 1, (2, 12))
    there, back = ratio_of_means(*costs), ratio_of_means(*costs[::-1])
    assert there is not None
    assert back is not None
    assert there[0] * back[0] == pytest.approx(1)
    assert there[1][0] * back[1][1] == pytest.approx(1)
    assert there == ratio_of_means(*costs)


def test_costs_of_zero_and_equal_ratios_have_plain_intervals() -> None:
    cost = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    doubled = ratio_of_means(np.multiply(2, cost), cost)
    assert doubled is not None
    assert (doubled[0], *doubled[1]) == pytest.approx([2] * 3)
    assert ratio_of_means(np.zeros(6), cost) == (0, (0, 0))
    assert ratio_of_means(cost, np.zeros(6)) is None
    assert ratio_of_means(cost[:5], cost[1:]) is None
    assert ratio_of_means([1, 0, 0, 0, 0, 0], cost) is None  # a third of the resamples have only zeros
