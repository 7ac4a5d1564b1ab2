"""Intervals of means over problems, of rates and of medians, and of a difference of two such means.

Every value averaged here lies between 0 and 1 (scores, shares of samples), mostly near an end: Student's
interval then covers 75 to 90 % in place of 95 and leaves the range. All intervals of means are therefore
score intervals in Wilson's manner, with Student's quantile. `tests/stats/test_coverage.py` shows for each
how often it holds its target.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

# A spread that was not seen is no proof that there is none: half an observation of the greatest variance
# that the mean allows is added to every variance between problems, and two problems without any relation
# to every correlation of two models. Both numbers were chosen by the simulation of the tests.
_UNSEEN = 0.5
_UNRELATED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean with its standard error and interval; `df` is that of the t distribution used.

    `se` is the plain one; `low` and `high` lie within 0 and 1 and are not symmetric about the mean.
    """

    value: float
    se: float
    df: float
    low: float
    high: float


def bounds(found: Estimate | None) -> tuple[float, float] | None:
    """The interval alone."""
    return (found.low, found.high) if found else None


def share_interval(count: int, of: int, level: float = 0.95) -> tuple[float, float] | None:
    """Wilson's (1927) interval of a share, as `count` of so many show it; None where there are none."""
    return _score_interval(count / of, 0.0, math.inf, of, level) if of else None


def total_interval(means: ArrayLike, level: float = 0.95) -> Estimate | None:
    """The interval of the mean over problems: "a new set of problems like these".

    Values from 0 to 1, one for each problem: mean scores, pass@1 or shares of its samples. None for n < 2.
    SE = sd(m_i) / sqrt(n), ddof = 1, df = n - 1.
    """
    m = np.asarray(means, dtype=float)
    n = len(m)
    if n < 2:  # noqa: PLR2004 - a spread takes two
        return None
    mean, variance = float(m.mean()), float(m.var(ddof=1))
    low, high = _score_interval(mean, with_unseen(mean, variance, n) / n, n - 1, n, level)
    return Estimate(value=mean, se=math.sqrt(variance / n), df=n - 1, low=low, high=high)


def run_only_interval(
    means: ArrayLike, variances: ArrayLike, samples: ArrayLike, level: float = 0.95
) -> Estimate | None:
    """The interval of the mean over problems for "these very problems, new samples".

    SE^2 = (1/n^2) sum_i s_i^2 / k_i with s_i^2 of ddof = 1; t with Satterthwaite's (1946) degrees of
    freedom, (sum a_i)^2 / sum(a_i^2 / (k_i - 1)), a_i = s_i^2 / k_i. Where no problem varies, as wide as
    that of sum k_i independent trials (the widest there is, Hoeffding 1956). None where a problem has
    fewer than two samples.
    """
    m, s2, k = (np.asarray(values, dtype=float) for values in (means, variances, samples))
    if len(m) == 0 or bool((k < 2).any()):  # noqa: PLR2004 - a spread takes two
        return None
    mean, a = float(m.mean()), s2 / k
    total = float(a.sum())
    df = total**2 / float((a**2 / (k - 1)).sum()) if total > 0 else float((k - 1).sum())
    variance = total / len(m) ** 2
    low, high = _score_interval(mean, variance, df, float(k.sum()), level)
    return Estimate(value=mean, se=math.sqrt(variance), df=df, low=low, high=high)


def clustered_interval(means: ArrayLike, groups: Sequence[str | int], level: float = 0.95) -> Estimate | None:
    """The interval of the mean over problems that come in families (an Angular and a React twin).

    SE = sqrt(sum_c (sum_{i in c} e_i)^2) / n, e_i = m_i - mean (Liang and Zeger 1986; Miller 2024,
    arXiv 2411.00640, equation 4). The interval takes C clusters: df = C - 1, and the variance times
    C / (C - 1), without which few of them give too little. For families of s_c problems C is their
    effective number (sum s_c)^2 / sum s_c^2 (Kish 1965; compare Carter, Schnepel and Steigerwald 2017, Rev.
    Econ. Stat. 99: 698-709): a large one weighs as much as many small ones, and is one draw. None for
    C < 2: nothing could be excluded.
    """
    m = np.asarray(means, dtype=float)
    _, numbers = np.unique(np.asarray(groups, dtype=str), return_inverse=True)
    sizes = np.bincount(numbers)
    clusters = len(m) ** 2 / float((sizes**2).sum()) if len(m) else 0.0
    if clusters < 2:  # noqa: PLR2004 - a spread takes two
        return None
    mean = float(m.mean())
    variance = float((np.bincount(numbers, weights=m - mean) ** 2).sum()) / len(m) ** 2
    of_clusters = with_unseen(mean, variance * clusters**2 / (clusters - 1), clusters) / clusters
    low, high = _score_interval(mean, of_clusters, clusters - 1, clusters, level)
    return Estimate(value=mean, se=math.sqrt(variance), df=clusters - 1, low=low, high=high)


def difference_interval(a: ArrayLike, b: ArrayLike, level: float = 0.95) -> tuple[float, float] | None:
    """The interval of mean(a) - mean(b) over the same problems, values from 0 to 1; None for n < 2.

    From the two means' own intervals and the correlation r of a and b: with d = mean(a) - mean(b),
    low = d - sqrt(x^2 - 2 r x y + y^2), x = mean(a) - low(a), y = high(b) - mean(b), and high alike
    (Newcombe 1998, Stat. Med. 17: 2635-2650, method 10 without correction; Zou and Donner 2008, Stat. Med.
    27: 1693-1702). It stays within -1 and 1, and has a width where all differences are equal.
    """
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    first, second = total_interval(x, level), total_interval(y, level)
    if first is None or second is None:
        return None
    r = _correlation_with_unseen(x, y)
    difference = first.value - second.value
    return (
        difference - _side(first.value - first.low, second.high - second.value, r),
        difference + _side(first.high - first.value, second.value - second.low, r),
    )


def median_interval(values: ArrayLike, level: float = 0.95) -> tuple[float, float] | None:
    """The interval of the median over problems, between two order statistics; None below 6 values.

    The narrowest pair x_(j), x_(n+1-j) with 1 - 2 P(Bin(n, 1/2) < j) >= level: it needs no distribution,
    and covers more where values tie (Thompson 1936, Ann. Math. Stat. 7: 122-128). Below 6 values no pair
    reaches 95 %.
    """
    from scipy.stats import binom

    v = np.sort(np.asarray(values, dtype=float))
    n = len(v)
    j = int(binom.ppf((1 - level) / 2, n, 0.5)) if n else 0
    while j > 0 and 2 * binom.cdf(j - 1, n, 0.5) > 1 - level:
        j -= 1
    return (float(v[j - 1]), float(v[n - j])) if j > 0 else None


def with_unseen(mean: float, variance: float, n: float) -> float:
    """The variance between n problems with half an observation more of the greatest, mean (1 - mean)."""
    return ((n - 1) * variance + _UNSEEN * mean * (1 - mean)) / (n - 1 + _UNSEEN)


def _correlation_with_unseen(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Pearson's r, made smaller; 0 without a spread."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1]) * (len(a) - 1) / (len(a) - 1 + _UNRELATED)


def _side(x: float, y: float, r: float) -> float:
    return math.sqrt(max(0.0, x * x - 2 * r * x * y + y * y))


def _score_interval(
    mean: float, variance: float, df: float, trials: float, level: float
) -> tuple[float, float]:
    """Wilson's (1927) interval for as many trials as give this variance of the mean.

    mean (1 - mean) / variance trials (Korn and Graubard 1998), with Student's quantile for Wilson's normal
    one. Where the variance is 0 (all alike, or all at an end), `trials` are taken.
    """
    from scipy.special import stdtrit

    effective = mean * (1 - mean) / variance if variance > 0 and 0 < mean < 1 else trials
    t = float(stdtrit(df, (1 + level) / 2))
    scale = 1 + t * t / effective
    middle = (mean + t * t / (2 * effective)) / scale
    half = t * math.sqrt(mean * (1 - mean) / effective + t * t / (4 * effective * effective)) / scale
    return max(0.0, min(mean, middle - half)), min(1.0, max(mean, middle + half))
