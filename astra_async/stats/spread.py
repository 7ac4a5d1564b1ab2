"""How much scores vary: within a problem (the model) and between problems (the benchmark)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceSplit:
    """One-way analysis of variance, problems as groups.

    `within` is sigma_w^2 (MSW), `between` is sigma_b^2 = (MSB - MSW) / k0, not below 0; `icc` is ICC(1)
    of Shrout and Fleiss (1979), (MSB - MSW) / (MSB + (k0 - 1) MSW), the share of variance that lies
    between problems (it may come out below 0); `k0` is the samples of a problem, or their effective number.
    """

    msb: float
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
