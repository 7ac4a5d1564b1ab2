"""Tests of differences: paired tests over problems, a permutation test within one problem, adjustments.

d_i = A_i - B_i is the difference in problem i, or in family i if families are recorded (`by_family`).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

Conclusion = Literal["better", "worse", "equivalent", "inconclusive"]
ALPHA = 0.05
FEWEST = 6  # differing problems needed: 2 / 2^6 is the first p of the sign-flip test below 5 %

_EXACT_FLIPS = 16  # up to this many non-zero differences, all 2^n sign patterns are counted
_GRID = 32_768  # for more differences: number of grid steps in sum |d_i|
_DIGITS = 12  # decimals kept in differences, so that equal quotients compare equal
_RESAMPLES = 2_000
_RATIO_LEVEL = 0.98
_EQUAL = 1e-12  # a smaller relative error is a rounding error
_MOST_LOG = 20.0  # a longer side of an interval on the log scale is infinite
_MOST_STATES = 4_000_000  # maximum size of the exact count; for larger counts permutations are sampled
_PERMUTATIONS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedT:
    """Result of the paired t-test; `sd` is the SD of d_i (ddof = 1).

    `t` and `p` are None if all d_i are equal and not 0.
    """

    sd: float
    t: float | None
    p: float | None


def by_family(values: ArrayLike, families: Sequence[str] | NDArray[np.str_] | None) -> NDArray[np.float64]:
    """Return the sum of each family's values, times families / problems, so that the mean is unchanged.

    Problems of one family are correlated, so a family is one observation: one sign in the sign-flip test and
    one value in the t-test. Without families the values are returned.
    """
    each = np.asarray(values, dtype=float)
    if families is None:
        return each
    _, numbers = np.unique(np.asarray(families, dtype=str), return_inverse=True)
    sums = np.bincount(numbers, weights=each)
    return np.asarray(sums * (len(sums) / max(1, len(numbers))), dtype=float)


def ratio_of_means(
    a: ArrayLike, b: ArrayLike, families: Sequence[str] | NDArray[np.str_] | None = None
) -> tuple[float, tuple[float, float]] | None:
    """Return mean(a) / mean(b) over problems, with its 95 % interval; for values of 0 or more, such as costs.

    The interval is a symmetric bootstrap-t interval of the log ratio over families (Hall 1988, J. R. Stat.
    Soc. B 50: 35-45), with the delta method's standard error and a fixed seed. The quantile is 98 %
    instead of 95 %, because a few problems do not show all of the error of skewed values; the coverage is
    then at least 92 % in all simulations (`tests/stats/test_coverage.py`). Return None if there are fewer
    than FEWEST families, if b is 0, or if the interval is unbounded.
    """
    ours, theirs = by_family(a, families), by_family(b, families)
    if len(ours) < FEWEST or not theirs.any():
        return None
    if not ours.any():
        return 0.0, (0.0, 0.0)
    ratio, error = _log_ratio(ours, theirs)
    drawn = np.random.default_rng(0).integers(0, len(ours), (_RESAMPLES, len(ours)))
    with np.errstate(divide="ignore", invalid="ignore"):
        found, errors = _log_ratio(ours[drawn], theirs[drawn])
        distances = np.nan_to_num(np.abs(found - ratio) / errors, nan=math.inf)
    side = float(np.quantile(distances, _RATIO_LEVEL, method="higher") * error) if error > _EQUAL else 0.0
    if side > _MOST_LOG:
        return None
    return math.exp(ratio), (math.exp(ratio - side), math.exp(ratio + side))


def _log_ratio(a: NDArray[np.float64], b: NDArray[np.float64]) -> Any:
    """Return log(mean(a) / mean(b)) over the last axis, and its standard error by the delta method."""
    means = a.mean(axis=-1, keepdims=True), b.mean(axis=-1, keepdims=True)
    errors = (a / means[0] - b / means[1]).std(axis=-1, ddof=1) / math.sqrt(a.shape[-1])
    return np.log(means[0] / means[1])[..., 0], errors


def paired_t(a: ArrayLike, b: ArrayLike) -> PairedT | None:
    """Return Student's paired t-test, two-sided; None for n < 2.

    t = mean(d) / (sd(d) / sqrt(n)), df = n - 1; p = 1 if all d_i are 0. For an interval of the difference use
    `intervals.difference_interval`, because the t-interval has too low a coverage for scores.
    """
    from scipy.special import stdtr

    d = _differences(a, b)
    n = len(d)
    if n < 2:  # noqa: PLR2004 - a spread takes two
        return None
    mean, sd = float(d.mean()), float(d.std(ddof=1)) if np.ptp(d) else 0.0
    se = sd / math.sqrt(n)
    t = mean / se if se > 0 else (None if mean else 0.0)
    return PairedT(sd=sd, t=t, p=None if t is None else float(2 * stdtr(n - 1, -abs(t))))


def sign_flips(a: ArrayLike, b: ArrayLike) -> float | None:
    """Return the two-sided p of the sign-flip permutation test of mean(d) = 0 (Fisher 1935); None for n < 1.

    All 2^m sign patterns of the m nonzero differences are counted. Up to m = 16 they are enumerated. For
    larger m the distribution of their sums is computed (Pagano and Tritchler 1983, JASA 78: 435-440) on a
    grid of 1/32,768 of sum |d_i|. Rounding preserves the symmetry of the signs, so the test is exact for the
    rounded differences. Sums within the rounding error of the observed sum count as extreme. No patterns are
    sampled, because sampling limits how small p can be, and adjustments for many comparisons need small p.
    """
    d = _differences(a, b)
    if len(d) == 0:
        return None
    return _all_flips(d) if np.count_nonzero(d) <= _EXACT_FLIPS else _flips_on_grid(d[d != 0])


def wilcoxon(a: ArrayLike, b: ArrayLike) -> float | None:
    """Return the two-sided p of Wilcoxon's (1945) signed-rank test, zeros by Pratt (1959); None for n < 1.

    The test is exact, also with ties and zeros, for any number of problems: all sign patterns of the ranks
    are counted by their sum, which is a multiple of 1/2.
    """
    d = _differences(a, b)
    if len(d) == 0:
        return None
    halves = np.round(2 * ranks(np.abs(d))).astype(np.int64)[d != 0]
    chances = _chances_of_sums(halves)
    observed = int(halves[d[d != 0] > 0].sum())
    extreme = np.abs(2 * np.arange(len(chances)) - halves.sum()) >= abs(2 * observed - halves.sum())
    return min(1.0, float(chances[extreme].sum()))


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Return ranks from 1 for the smallest value; equal values have their mean rank."""
    _, which, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    found: NDArray[np.float64] = ((last - counts + 1 + last) / 2)[which]
    return found


def least_p(a: ArrayLike, b: ArrayLike) -> float:
    """Return the smallest p that the sign-flip test can reach: 2 / 2^m if m problems differ."""
    return min(1.0, 2.0 ** (1 - min(60, int(np.count_nonzero(_differences(a, b))))))


def conclusion(
    difference: float, *, p_values: Sequence[float | None], p_equivalence: float | None
) -> Conclusion:
    """Return the conclusion on A against B from p-values adjusted for the number of comparisons.

    Equivalence is checked first, because a significant difference may be too small to matter. A difference
    needs significance in every test of `p_values`: the t-test assumes a distribution, and the sign-flip test
    needs enough problems. None means that a test was impossible.
    """
    if p_equivalence is not None and p_equivalence < ALPHA:
        return "equivalent"
    if difference and all(p is not None and p < ALPHA for p in p_values):
        return "better" if difference > 0 else "worse"
    return "inconclusive"


def permutation_p(a: Sequence[int], b: Sequence[int]) -> float | None:
    """Return the two-sided p of a permutation test for equal means of two samples of counts; None if empty.

    All choices of len(a) of the pooled counts are counted by their sum (dynamic programming). p is the share
    of choices whose sum is at least as far from the expected sum as the observed one. For counts of 0 and 1
    this is Fisher's exact test (1935), two-sided. The test is exact up to 4,000,000 states; above, 10,000
    random permutations with a fixed seed are used.
    """
    if not a or not b:
        return None
    pooled = [*a, *b]
    observed = abs(sum(a) * len(pooled) - sum(pooled) * len(a))
    if observed == 0:
        return 1.0
    if len(a) * (sum(pooled) + 1) > _MOST_STATES:
        return _sampled(pooled, len(a), observed)
    weights = _ways(Counter(pooled), len(a))
    sums = np.arange(len(weights))
    extreme = np.abs(sums * len(pooled) - sum(pooled) * len(a)) >= observed
    return float(min(1.0, weights[extreme].sum() / weights.sum()))


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return p-values after Holm's (1979) step-down adjustment, which controls the familywise error rate.

    Adjusted p_(i) = max_{j <= i} min(1, (m - j + 1) p_(j)); the result has the order of the input.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    steps = np.minimum(1.0, (len(p) - np.arange(len(p))) * p[order])
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(steps)
    return adjusted


def benjamini_hochberg(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return p-values after Benjamini and Hochberg's (1995) adjustment for the false discovery rate."""
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(-p, kind="stable")
    steps = np.minimum(1.0, p[order] * len(p) / (len(p) - np.arange(len(p))))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum.accumulate(steps)
    return adjusted


def _differences(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    rounded: NDArray[np.float64] = np.round(np.asarray(a, dtype=float) - np.asarray(b, dtype=float), _DIGITS)
    return rounded


def _all_flips(d: NDArray[np.float64]) -> float:
    """Return the share of sign patterns whose sum is at least as far from 0 as the observed sum."""
    differing = d[d != 0]  # a zero does not change any sum
    sums = differing[:1]  # flipping the first sign would only mirror all sums
    for value in differing[1:]:
        sums = np.concatenate([sums + value, sums - value])
    extreme = np.abs(sums) >= abs(d.sum()) - 1e-9 * np.abs(d).sum()
    return float(np.mean(extreme)) if len(differing) else 1.0


def _flips_on_grid(d: NDArray[np.float64]) -> float:
    """Return the p of the sign-flip test for differences rounded to a grid.

    For each x, the probability is computed that the differences with the sign + sum to x. The signed sum of
    all differences is then 2 x - sum |d_i|, and both tails are equal. Rounding can separate equal sums by a
    random walk, so sums within 2 sqrt(n) steps (more than three standard deviations) count as equal.
    """
    steps = np.rint(d / (np.abs(d).sum() / _GRID)).astype(np.int64)
    chances = _chances_of_sums(np.abs(steps))
    least = math.ceil((len(chances) - 1 + abs(int(steps.sum())) - 2 * math.sqrt(len(d))) / 2)
    return min(1.0, 2 * float(chances[max(0, least) :].sum()))


def _chances_of_sums(sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the probability of each sum of a random subset of `sizes` (inclusion probability 1/2)."""
    chances = np.zeros(int(sizes.sum()) + 1)
    chances[0] = 1.0
    reached = 0
    for size in np.sort(sizes).tolist():
        half = chances[: reached + 1] / 2
        chances[: reached + 1] = half
        reached += size
        chances[size : reached + 1] += half
    return chances


def _ways(counts: Counter[int], chosen: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return for each sum the number of ways to choose `chosen` counts with it, scaled to avoid overflow."""
    total = sum(value * times for value, times in counts.items())
    ways = np.zeros((chosen + 1, total + 1))
    ways[0, 0] = 1.0
    for value in counts.elements():
        ways[1:, value:] += ways[:-1, : total + 1 - value]
        ways /= ways.max()
    return np.asarray(ways[chosen], dtype=np.float64)


def _sampled(pooled: Sequence[int], chosen: int, observed: int) -> float:
    rng = np.random.default_rng(0)
    values = np.tile(np.asarray(pooled, dtype=np.int64), (_PERMUTATIONS, 1))
    sums = rng.permuted(values, axis=1)[:, :chosen].sum(axis=1)
    extreme = np.abs(sums * len(pooled) - sum(pooled) * chosen) >= observed
    return (1 + int(extreme.sum())) / (1 + _PERMUTATIONS)
