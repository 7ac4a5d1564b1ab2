"""Is there a difference: two models on the same problems, two sets of samples of one, many tests at once.

d_i = A_i - B_i, one difference for each problem; for each family of problems where those are drawn together
(`by_family`).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

Conclusion = Literal["better", "worse", "equivalent", "inconclusive"]
ALPHA = 0.05
FEWEST = 6  # problems that differ: 2 / 2^6 is the first p of the sign-flip test below 5 %

_EXACT_FLIPS = 16  # up to this many non-zero differences, all 2^n sign patterns are counted
_GRID = 32_768  # steps that the differences of more problems are rounded to: their sum, all of one sign
_DIGITS = 12  # quotients that are equal must also compare equal: differences are rounded to so many
_MOST_STATES = 4_000_000  # of the exact count; beyond it the permutations are sampled
_PERMUTATIONS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedT:
    """The paired t-test; `sd` is that of d_i (ddof 1). No `t` and `p` where all d_i are equal and not 0."""

    sd: float
    t: float | None
    p: float | None


def by_family(values: ArrayLike, families: Sequence[str] | NDArray[np.str_] | None) -> NDArray[np.float64]:
    """The sums over families, times families / problems: their mean is that of the values; None: as they are.

    One sign flips for a whole family, and a family is one value of a t-test: problems of one family that
    rise and fall together are not several proofs.
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
    """mean(a) / mean(b) over problems, with its 95 % interval (Fieller 1954); None where that has no end.

    The interval holds every ratio r for which a t-test of a - r b over families does not reject 0. None also
    for fewer than FEWEST families.
    """
    from scipy.special import stdtrit

    ours, theirs = by_family(a, families), by_family(b, families)
    n = len(ours)
    if n < FEWEST or not theirs.mean() > 0:
        return None
    (va, cov), (_, vb) = np.cov(ours, theirs) / n
    t2 = float(stdtrit(n - 1, 1 - ALPHA / 2)) ** 2
    # (mean(a) - r mean(b))^2 <= t^2 Var(mean(a) - r mean(b)): a quadratic in r
    square = theirs.mean() ** 2 - t2 * vb
    half = ours.mean() * theirs.mean() - t2 * cov
    root = half**2 - square * (ours.mean() ** 2 - t2 * va)
    if square <= 0 or root < 0:
        return None
    low, high = (half - math.sqrt(root)) / square, (half + math.sqrt(root)) / square
    return float(ours.mean() / theirs.mean()), (max(0.0, float(low)), float(high))


def paired_t(a: ArrayLike, b: ArrayLike) -> PairedT | None:
    """Student's paired t-test, two-sided; None for n < 2.

    t = mean(d) / (sd(d) / sqrt(n)), df = n - 1; p = 1 where all d_i are 0. The interval of the difference
    is `intervals.difference_interval`: t's own covers too little for scores.
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
    """Two-sided p of the sign-flip permutation test of mean(d) = 0 (Fisher 1935); None for n < 1.

    All 2^m patterns are counted, m problems that differ: one by one up to 16; beyond, by the distribution of
    their sums (Pagano and Tritchler 1983, JASA 78: 435-440) on a grid of 1/32,768 of sum |d_i|. Rounding
    keeps the signs' symmetry, so that the test stays exact for the rounded differences; sums within the
    rounding of the observed one count as extreme. No chance is drawn: p has no floor but 2 / 2^m, which
    sampled patterns have, and which many comparisons run into.
    """
    d = _differences(a, b)
    if len(d) == 0:
        return None
    return _all_flips(d) if np.count_nonzero(d) <= _EXACT_FLIPS else _flips_on_grid(d[d != 0])


def wilcoxon(a: ArrayLike, b: ArrayLike) -> float | None:
    """Two-sided p of Wilcoxon's (1945) signed-rank test, zeros as Pratt (1959); None for n < 1.

    Exact, with ties and zeros, for any number of problems: all sign patterns of the ranks are counted by
    their sum, which is a whole number of halves.
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
    """From 1 for the smallest; equal values share the mean of theirs."""
    _, which, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    found: NDArray[np.float64] = ((last - counts + 1 + last) / 2)[which]
    return found


def least_p(a: ArrayLike, b: ArrayLike) -> float:
    """The smallest p that the sign-flip test can reach here: 2 / 2^m where m problems differ."""
    return min(1.0, 2.0 ** (1 - min(60, int(np.count_nonzero(_differences(a, b))))))


def conclusion(
    difference: float, *, p_values: Sequence[float | None], p_equivalence: float | None
) -> Conclusion:
    """What may be said of A against B: equivalence first, for a real difference may be too small to matter.

    A difference needs every test of `p_values` (Student's and the sign flips': the one trusts a shape, the
    other needs enough problems). All p-values are to be adjusted for the number of comparisons beforehand;
    None is a test that could not be done.
    """
    if p_equivalence is not None and p_equivalence < ALPHA:
        return "equivalent"
    if difference and all(p is not None and p < ALPHA for p in p_values):
        return "better" if difference > 0 else "worse"
    return "inconclusive"


def permutation_p(a: Sequence[int], b: Sequence[int]) -> float | None:
    """Exact two-sided p of the permutation test that two samples of counts have one mean; None if empty.

    All ways to choose which len(a) of the pooled counts are called "a" are counted by their sum
    (dynamic programming over the pooled counts); p is the share at least as far from the expected sum as
    the observed one. For counts of 0 and 1 this is a two-sided Fisher exact test (1935).
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
    """Holm's (1979) step-down adjustment: the chance of any false claim stays below alpha.

    Adjusted p_(i) = max_{j <= i} min(1, (m - j + 1) p_(j)), in the order given.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    steps = np.minimum(1.0, (len(p) - np.arange(len(p))) * p[order])
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(steps)
    return adjusted


def benjamini_hochberg(p_values: ArrayLike) -> NDArray[np.float64]:
    """Benjamini and Hochberg's (1995) adjustment: the expected share of false claims stays below alpha."""
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
    """The share of all sign patterns whose sum is (up to rounding) as far from 0 as the observed one."""
    differing = d[d != 0]  # a zero gives the same sum under both signs
    sums = differing[:1]  # the first sign alone would only mirror all sums
    for value in differing[1:]:
        sums = np.concatenate([sums + value, sums - value])
    extreme = np.abs(sums) >= abs(d.sum()) - 1e-9 * np.abs(d).sum()
    return float(np.mean(extreme)) if len(differing) else 1.0


def _flips_on_grid(d: NDArray[np.float64]) -> float:
    """The same for differences rounded to a grid: the chance of every sum x of those with the sign +.

    The sum of all is then 2 x - sum |d_i|, and both tails weigh the same. Sums that were equal before the
    rounding are apart by a random walk of it: 2 sqrt(n) steps, over three of its deviations, are granted.
    """
    steps = np.rint(d / (np.abs(d).sum() / _GRID)).astype(np.int64)
    chances = _chances_of_sums(np.abs(steps))
    least = math.ceil((len(chances) - 1 + abs(int(steps.sum())) - 2 * math.sqrt(len(d))) / 2)
    return min(1.0, 2 * float(chances[max(0, least) :].sum()))


def _chances_of_sums(sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """The chance of every sum, from 0 to all, of the sizes with the sign +, which each has or has not."""
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
    """How many ways to choose `chosen` of the counts give each sum, scaled against overflow."""
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
