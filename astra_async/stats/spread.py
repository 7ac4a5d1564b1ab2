"""Pass@m and related measures, and variances of scores within and between problems."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import comb
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtr

from astra_async.stats.intervals import UNOBSERVED_WEIGHT, family_means

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_LEAST_PAIRS = 2


@dataclass(frozen=True, slots=True)
class Drift:
    """Mean change of score between the first round and later samples, and its two-sided p-value."""

    difference: float
    p: float


def round_drift(scores: Floats, first: int) -> Drift | None:
    """Compare the first samples of each problem with its later ones, by a paired t-test over problems.

    `scores` has a row for each problem. None if there are fewer than two problems, no later samples, or no
    differences.
    """
    problems, samples = scores.shape
    if problems < _LEAST_PAIRS or samples <= first:
        return None
    change = scores[:, first:].mean(axis=1) - scores[:, :first].mean(axis=1)
    error = float(change.std(ddof=1)) / math.sqrt(problems)
    if not error:
        return None
    mean = float(change.mean())
    return Drift(mean, float(2 * stdtr(problems - 1, -abs(mean / error))))


def pass_at(m: int, k: int, c: int) -> float:
    """Return pass@m, that at least one of m samples passes, if c of k samples pass.

    1 - C(k-c, m) / C(k, m) (Chen et al. 2021, arXiv 2107.03374).
    """
    return _shares(k, k - c)[1][m - 1]


def pass_hat(m: int, k: int, c: int) -> float:
    """Return pass^m, that all m samples pass, if c of k samples pass.

    C(c, m) / C(k, m) (Yao et al. 2024, tau-bench, arXiv 2406.12045).
    """
    return _shares(k, c)[0][m - 1]


@cache
def _shares(k: int, c: int) -> tuple[array[float], array[float]]:
    """Return C(c, m) / C(k, m) and 1 minus it, for every m from 1 to k; each is rounded only once.

    The binomials are updated by C(n, m) = C(n, m - 1) (n - m + 1) / m.
    """
    shares, rests = array("d"), array("d")
    chosen = ways = 1
    for m in range(1, k + 1):
        chosen, ways = chosen * (c - m + 1) // m, ways * (k - m + 1) // m
        shares.append(chosen / ways)
        rests.append((ways - chosen) / ways)
    return shares, rests


@cache
def g_pass_at(m: int, k: int, c: int, at_least: int) -> float:
    """Return G-Pass@m_tau, that at least ceil(tau m) = `at_least` of m samples pass, if c of k samples pass.

    sum_{j >= at_least} C(c, j) C(k-c, m-j) / C(k, m), a hypergeometric tail (Liu et al. 2024, arXiv
    2412.13147).
    """
    ways = sum(comb(c, j) * comb(k - c, m - j) for j in range(at_least, m + 1))
    return float(Fraction(ways, comb(k, m)))


@cache
def mg_pass_at(m: int, k: int, c: int) -> float:
    """Return mG-Pass@m, the average of G-Pass over tau above 0.5, up to 1.

    (2/m) sum_{i=ceil(m/2)+1..m} G-Pass@m_{i/m}.
    """
    return 2 / m * sum(g_pass_at(m, k, c, i) for i in range((m + 1) // 2 + 1, m + 1))


_DRAWS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceSplit:
    """One-way analysis of variance with problems as groups.

    Attributes:
        msb: mean square between problems.
        k0: samples of each problem, or their effective number if the numbers differ.
        between: sigma_b^2 = (MSB - MSW) / k0, at least 0.
        within: sigma_w^2 = MSW.
        icc: ICC(1) of Shrout and Fleiss (1979), (MSB - MSW) / (MSB + (k0 - 1) MSW): the share of the variance
            between problems. It may be negative.
    """

    msb: float
    k0: float
    between: float
    within: float
    icc: float


def variance_split(means: ArrayLike, variances: ArrayLike, samples: ArrayLike) -> VarianceSplit | None:
    """Split the variance of scores into parts within and between problems; `variances` have ddof = 1.

    Return None for n < 2 or any k_i < 2. For unequal k_i, k0 = (N - sum k_i^2 / N) / (n - 1) with N = sum k_i
    (Searle, Casella, McCulloch 1992).
    """
    m, s2, k = (np.asarray(values, dtype=float) for values in (means, variances, samples))
    n = len(m)
    if n < 2 or bool((k < 2).any()):  # noqa: PLR2004 - a spread takes two
        return None
    total = float(k.sum())
    grand = float((k * m).sum()) / total
    msb = float((k * (m - grand) ** 2).sum()) / (n - 1)
    msw = float(((k - 1) * s2).sum()) / (total - n)
    k0 = (total - float((k**2).sum()) / total) / (n - 1)
    spread = msb + (k0 - 1) * msw
    return VarianceSplit(
        msb=msb,
        k0=k0,
        between=max(0.0, (msb - msw) / k0),
        within=msw,
        icc=(msb - msw) / spread if spread > 0 else math.nan,
    )


def variance_draws(
    means: ArrayLike,
    variances: ArrayLike,
    samples: float,
    families: Sequence[str] | NDArray[np.str_] | None = None,
) -> tuple[Floats, Floats]:
    """Return estimates of the variances between and within problems: the best estimate, then 2,000 draws.

    Each draw weighs the families of problems by random exponentials and adds one unobserved problem at the
    far end of the scale, as the intervals do (see `intervals`), because a few problems with similar results
    do not show that all problems are similar. The best estimate uses the expected weights. `variances` have
    ddof = 1, `samples` is k or the effective number. The variance between is n times the variance of a mean
    over n independent problems, minus within / k.
    """
    m, s2 = np.asarray(means, dtype=float), np.asarray(variances, dtype=float)
    (x, sizes), (within, _) = family_means(m, families), family_means(s2, families)
    unobserved = float((sizes**2).sum() / sizes.sum())
    x, sizes = np.append(x, 0.0 if m.mean() > 0.5 else 1.0), np.append(sizes, unobserved)  # noqa: PLR2004 - the middle
    rng = np.random.default_rng(0)  # fixed seed: the same pilot always gives the same plan
    weights = np.ones((_DRAWS + 1, len(x)))
    weights[1:, :-1] = rng.standard_exponential((_DRAWS, len(x) - 1))
    weights[0, -1], weights[1:, -1] = UNOBSERVED_WEIGHT, rng.standard_gamma(UNOBSERVED_WEIGHT, _DRAWS)
    problems = weights @ sizes
    mean = weights @ (sizes * x) / problems
    whole = (weights * (sizes * (x - mean[:, None])) ** 2).sum(axis=1) / problems
    of_samples = weights[:, :-1] @ (sizes[:-1] * within) / (weights[:, :-1] @ sizes[:-1])
    return np.maximum(0.0, whole - of_samples / samples), of_samples


def rms_within_sd(variances: ArrayLike) -> float | None:
    """Return sqrt(mean_i s_i^2) with ddof = 1, which unlike the median SD does not depend on k.

    Return None if no problem has two samples.
    """
    s2 = np.asarray(variances, dtype=float)
    s2 = s2[~np.isnan(s2)]
    return math.sqrt(float(s2.mean())) if len(s2) else None
