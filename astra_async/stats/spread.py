"""How much scores vary: within a problem (the model) and between problems (the benchmark)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

_RESAMPLES = 5_000
_RUN_RESAMPLES = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceSplit:
    """One-way analysis of variance, problems as groups.

    `within` is sigma_w^2 (MSW), `between` is sigma_b^2 = (MSB - MSW) / k0, not below 0; `icc` is ICC(1)
    of Shrout and Fleiss (1979), (MSB - MSW) / (MSB + (k0 - 1) MSW), the share of variance that lies
    between problems (it may come out below 0); `k0` is the samples of a problem, or their effective number.
    """

    msb: float
    msw: float
    k0: float
    between: float
    within: float
    icc: float


def variance_split(means: ArrayLike, variances: ArrayLike, samples: ArrayLike) -> VarianceSplit | None:
    """Split the variance of scores; `variances` have ddof = 1. None for n < 2 or any k_i < 2.

    With unequal k_i: k0 = (N - sum k_i^2 / N) / (n - 1), N = sum k_i (Searle, Casella, McCulloch 1992).
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
        msw=msw,
        k0=k0,
        between=max(0.0, (msb - msw) / k0),
        within=msw,
        icc=(msb - msw) / spread if spread > 0 else math.nan,
    )


def rms_within_sd(variances: ArrayLike) -> float | None:
    """sqrt(mean_i s_i^2), ddof = 1: does not depend on k, as median SD does. None without a spread."""
    s2 = np.asarray(variances, dtype=float)
    s2 = s2[~np.isnan(s2)]
    return math.sqrt(float(s2.mean())) if len(s2) else None


def median_interval(values: ArrayLike, level: float = 0.95, seed: int = 0) -> tuple[float, float] | None:
    """Bootstrap interval of the median over problems: BCa (Efron 1987), else percentiles.

    BCa does not exist where leaving out any one value leaves the median as it is (many equal SDs);
    percentiles of the same resamples stand in. None for n < 2. 5,000 resamples from a fixed seed.
    """
    from scipy.stats import bootstrap

    v = np.asarray(values, dtype=float)
    if len(v) < 2:  # noqa: PLR2004 - a spread takes two
        return None
    method = "BCa" if _jackknife_varies(v) else "percentile"
    interval = bootstrap(
        (v,),
        np.median,
        confidence_level=level,
        n_resamples=_RESAMPLES,
        method=method,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(interval.low), float(interval.high)


def median_sd_run_interval(
    samples: Sequence[ArrayLike], level: float = 0.95, seed: int = 0
) -> tuple[float, float] | None:
    """Interval of the median SD (ddof = 0) for "these very problems, new samples"; None without spread.

    Percentiles of 2,000 bootstrap resamples of each problem's samples, from a fixed seed. Resampled SDs
    lie below the observed one, by sqrt((k - 1) / k) as that lies below the truth: they are scaled back.
    """
    if not samples or any(np.size(values) < 2 for values in samples):  # noqa: PLR2004 - as above
        return None
    rng = np.random.default_rng(seed)
    resampled = np.array([_resampled_sds(np.asarray(values, dtype=float), rng) for values in samples])
    ends = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(np.median(resampled, axis=0), ends).tolist()
    return low, high


def _resampled_sds(
    values: np.ndarray[tuple[int], np.dtype[np.float64]], rng: np.random.Generator
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Scaled SDs of resamples of one problem: only how often each distinct score is drawn matters."""
    distinct, counts = np.unique(values, return_counts=True)
    drawn = rng.multinomial(len(values), counts / len(values), size=_RUN_RESAMPLES) / len(values)
    means = drawn @ distinct
    variances = drawn @ distinct**2 - means**2
    sds: np.ndarray[tuple[int], np.dtype[np.float64]] = np.sqrt(
        np.maximum(variances, 0.0) * len(values) / (len(values) - 1)
    )
    return sds


def _jackknife_varies(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> bool:
    """Whether leaving out one value can change the median: else BCa's acceleration is 0 / 0."""
    ordered = np.sort(values)
    left_out = [np.median(np.delete(ordered, place)) for place in range(len(ordered))]
    return bool(np.ptp(left_out) > 0)
