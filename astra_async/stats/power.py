"""What a run of this size can see, and what a larger one could."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_ALPHA = 0.05


def power_paired(effect: float, n: int, alpha: float = _ALPHA) -> float:
    """Power of the two-sided paired t-test for dz = mean(d) / sd(d) (Cohen 1988); noncentral t."""
    from scipy.special import nctdtr, stdtrit

    bound = float(stdtrit(n - 1, 1 - alpha / 2))
    shift = effect * math.sqrt(n)
    wrong_side = float(nctdtr(n - 1, shift, -bound))  # NaN in scipy where it is far below 1e-12
    return 1 - float(nctdtr(n - 1, shift, bound)) + (0.0 if math.isnan(wrong_side) else wrong_side)


@lru_cache(maxsize=256)
def minimum_detectable_effect(n: int, power: float = 0.8) -> float | None:
    """The smallest dz that a paired t-test over n problems finds with the given power; None for n < 2.

    Times sd(d) it is a difference in score. Solved for the noncentral t; the search starts at the normal
    approximation (z_{alpha/2} + z_beta) / sqrt(n), for scipy's distribution is NaN far beyond the answer.
    """
    if n < 2:  # noqa: PLR2004 - a spread takes two
        return None
    from scipy.optimize import brentq
    from scipy.special import ndtri

    low = high = float(ndtri(1 - _ALPHA / 2) + ndtri(power)) / math.sqrt(n)
    while power_paired(high, n) < power:
        low, high = high, high * 1.2
    if low == high:
        return high
    return float(brentq(lambda effect: power_paired(effect, n) - power, low, high))


def problems_needed(between: Floats, within: Floats, samples: int, target_se: float) -> Floats:
    """Problems for a standard error of the mean score on new ones: (sigma_b^2 + sigma_w^2 / k) / SE^2."""
    return np.maximum(1.0, np.ceil((between + within / samples) / target_se**2))


def samples_needed(between: Floats, within: Floats, problems: int, target_se: float) -> Floats:
    """Samples of each problem for the same: sigma_w^2 / (n SE^2 - sigma_b^2); infinite if none suffice."""
    spare = problems * target_se**2 - between
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(spare > 0, np.maximum(1.0, np.ceil(within / spare)), math.inf)
