"""Intervals of means over problems, and of rates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean with its standard error and interval; `df` is that of the t distribution used."""

    value: float
    se: float
    df: float
    low: float
    high: float


def total_interval(means: ArrayLike, level: float = 0.95) -> Estimate | None:
    """The t interval of the mean over problems: "a new set of problems like these".

    SE = sd(m_i) / sqrt(n), ddof = 1, df = n - 1; None for n < 2. Student (1908).
    """
    m = np.asarray(means, dtype=float)
    if len(m) < 2:  # noqa: PLR2004 - a spread takes two
        return None
    return _estimate(float(m.mean()), float(m.std(ddof=1)) / math.sqrt(len(m)), len(m) - 1, level)


def run_only_interval(
    means: ArrayLike, variances: ArrayLike, samples: ArrayLike, level: float = 0.95
) -> Estimate | None:
    """The interval of the mean over problems for "these very problems, new samples".

    SE^2 = (1/n^2) sum_i s_i^2 / k_i with s_i^2 of ddof = 1; t with Satterthwaite's (1946) degrees of
    freedom, (sum a_i)^2 / sum(a_i^2 / (k_i - 1)), a_i = s_i^2 / k_i. None where a problem has fewer than
    two samples; of width 0 where no problem varies.
    """
    m, s2, k = (np.asarray(values, dtype=float) for values in (means, variances, samples))
    if len(m) == 0 or bool((k < 2).any()):  # noqa: PLR2004 - a spread takes two
        return None
    a = s2 / k
    total = float(a.sum())
    if total == 0:
        return _estimate(float(m.mean()), 0.0, math.inf, level)
    return _estimate(
        float(m.mean()), math.sqrt(total) / len(m), total**2 / float((a**2 / (k - 1)).sum()), level
    )


def clustered_interval(means: ArrayLike, groups: Sequence[str | int], level: float = 0.95) -> Estimate | None:
    """The interval of the mean over problems that come in families (an Angular and a React twin).

    SE = sqrt(sum_c (sum_{i in c} e_i)^2) / n, e_i = m_i - mean (Liang and Zeger 1986; Miller 2024,
    arXiv 2411.00640, equation 4); df = clusters - 1; None for fewer than two clusters.
    """
    m = np.asarray(means, dtype=float)
    _, numbers = np.unique(np.asarray(groups, dtype=str), return_inverse=True)
    clusters = int(numbers.max(initial=-1)) + 1
    if clusters < 2:  # noqa: PLR2004 - a spread takes two
        return None
    sums = np.bincount(numbers, weights=m - m.mean(), minlength=clusters)
    return _estimate(float(m.mean()), math.sqrt(float((sums**2).sum())) / len(m), clusters - 1, level)


def wilson(successes: int, trials: int, level: float = 0.95) -> tuple[float, float] | None:
    """Wilson's (1927) score interval of a rate; None without trials."""
    return _proportion(successes, trials, level, "wilson")


def clustered_wilson(
    successes: ArrayLike, trials: ArrayLike, level: float = 0.95
) -> tuple[float, float] | None:
    """Wilson's interval of a rate over trials that come in clusters (problems); None without trials.

    The number of trials N is divided by the design effect, the variance between clusters over the
    binomial one, never below 1 (Dean and Pagano 2015, J. Surv. Stat. Methodol. 3: 484-503). Without any
    success or any failure nothing is known of the clustering, and the plain interval is returned.
    """
    x, t = np.asarray(successes, dtype=float), np.asarray(trials, dtype=float)
    x, t = x[t > 0], t[t > 0]
    total = float(t.sum())
    if total == 0:
        return None
    rate = float(x.sum()) / total
    binomial = rate * (1 - rate) / total
    between = float(((x - rate * t) ** 2).sum()) / total**2 * len(x) / max(1, len(x) - 1)
    effect = max(1.0, between / binomial) if binomial > 0 else 1.0
    return _wilson(rate, total / effect, level)


def clopper_pearson(successes: int, trials: int, level: float = 0.95) -> tuple[float, float] | None:
    """The exact interval of a rate (Clopper and Pearson 1934); None without trials."""
    return _proportion(successes, trials, level, "exact")


def _proportion(successes: int, trials: int, level: float, method: str) -> tuple[float, float] | None:
    if trials == 0:
        return None
    from scipy.stats import binomtest

    interval = binomtest(successes, trials).proportion_ci(confidence_level=level, method=method)
    return float(interval.low), float(interval.high)


def _wilson(rate: float, trials: float, level: float) -> tuple[float, float]:
    """Wilson's formula, which also holds for an effective number of trials that is no integer."""
    from scipy.special import ndtri

    z = float(ndtri((1 + level) / 2))
    scale = 1 + z * z / trials
    middle = (rate + z * z / (2 * trials)) / scale
    half = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials)) / scale
    return max(0.0, middle - half), min(1.0, middle + half)


def _estimate(value: float, se: float, df: float, level: float) -> Estimate:
    from scipy.special import stdtrit

    half = 0.0 if se == 0 else float(stdtrit(df, (1 + level) / 2)) * se
    return Estimate(value=value, se=se, df=df, low=value - half, high=value + half)
