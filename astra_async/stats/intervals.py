"""Intervals of means over problems, of rates and of medians, and of a difference of two such means.

Every value averaged here lies between two known ends (0 and 1; for a difference -1 and 1), mostly near one:
Student's interval then covers 75 to 90 % in place of 95, and a spread that was not seen is no proof that
there is none. All intervals of means are therefore of one kind: the quantiles of the mean under random
weights (standard exponentials; Rubin 1981, the Bayesian bootstrap) of all that was observed and of one value
more, at the end that the bound looks to: 0 for the lower bound of a mean, 1 for the upper. If that unseen
value weighed as much as the others, this would be Gaffke's bound (Phan, Thomas and Learned-Miller 2021,
"Towards practical mean bounds for small samples", arXiv 2106.03163), which for zeros and ones is Clopper and
Pearson's, and for which no distribution is known where it fails. Here it weighs 0.6, which still covers 92 %
wherever we looked (`tests/stats/test_coverage.py`). The quantiles are computed, not drawn (`chance_below`).

Problems of one family are drawn together: a family is one value, with its size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Families = Sequence[str] | NDArray[np.str_]
    Interval = tuple[float, float]


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


UNSEEN = 0.6
LEVEL = 0.95
_DIGITS = 12  # quotients that are equal must also compare equal
_NODES = 40  # of Gauss and Legendre, in each panel of the integral
_FAR = 40.0  # beyond any quantile of the normal that has a chance
_FEW, _PANELS, _MORE_PANELS = 200, 4, 8  # panels up to so many values, and above
_FEW_VALUES, _MANY_PANELS = 64, 64  # where most values are equal, the integrand turns often


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What is drawn: distinct values, `counts` times each, of `sizes` problems.

    `unseen` is the size of the one that was not seen; `effective` is their number if all were of one size,
    (sum s)^2 / sum s^2 (Kish 1965).
    """

    values: Floats
    sizes: Floats
    counts: Floats
    unseen: float
    effective: float

    def with_unseen(self, end: float) -> Drawn:
        """The same with the value that was not seen, at `end`."""
        return replace(
            self,
            values=np.append(self.values, end),
            sizes=np.append(self.sizes, self.unseen),
            counts=np.append(self.counts, UNSEEN),
        )


def drawn(values: ArrayLike, families: Families | None = None) -> Drawn | None:
    """Values of problems as what was drawn: families, a problem without one being its own. None below two.

    A large family weighs as much as many small ones and is one draw (Carter, Schnepel and Steigerwald 2017,
    Rev. Econ. Stat. 99: 698-709): nothing can be said below an effective number of 2.
    """
    means, sizes = family_means(np.asarray(values, dtype=float), families)
    total, squares = float(sizes.sum()), float((sizes**2).sum())
    if total**2 < 2 * squares or not total:
        return None
    return _counted(means, sizes, squares / total, total**2 / squares)


def total_interval(means: ArrayLike, families: Families | None = None) -> Interval | None:
    """The interval of the mean over problems: "a new set of problems like these".

    Values from 0 to 1, one for each problem: mean scores, pass@1 or shares of its samples. None for fewer
    than two (effective) families.
    """
    m = np.asarray(means, dtype=float)
    units = drawn(m, families)
    if units is None:
        return None
    mean = math.fsum(m) / len(m)
    low, high = _interval(units, (0.0, 1.0))
    return min(mean, low), max(mean, high)


def run_only_interval(means: ArrayLike, scores: ArrayLike, problems: ArrayLike) -> Interval | None:
    """The interval of the mean over problems for "these very problems, new samples".

    `scores` are those of all samples, `problems` the place in `means` of each one's problem. Drawn are the
    samples' distances from their problem's mean, times sqrt(k / (k - 1)), of n problems with k samples each;
    the unseen sample fails where none did, or passes where none did. None where a problem has fewer than two
    samples.
    """
    m, s, where = np.asarray(means, float), np.asarray(scores, float), np.asarray(problems, int)
    k = np.bincount(where, minlength=len(m)).astype(float)
    if len(m) == 0 or bool((k < 2).any()):  # noqa: PLR2004 - a spread takes two
        return None
    away = (s - m[where]) * np.sqrt(k / (k - 1))[where]
    weights = (len(s) / len(m) / k)[where]
    units = _counted(away, weights, 1.0, len(s))
    low, high = _interval(units, (-float(m.max()), 1 - float(m.min())))
    mean = math.fsum(m) / len(m)
    return min(mean, max(0.0, mean + low)), max(mean, min(1.0, mean + high))


def difference_interval(
    a: ArrayLike, b: ArrayLike, families: Families | None = None, level: float = LEVEL, most: float = 1.0
) -> Interval | None:
    """The interval of mean(a) - mean(b) over the same problems, values from 0 to `most`; None below two.

    Of the problems' differences: the unseen one is -`most` for the lower bound and `most` for the upper.
    """
    units = drawn(np.subtract(a, b, dtype=float), families)
    if units is None:
        return None
    mean = float((units.counts * units.sizes * units.values).sum() / (units.counts * units.sizes).sum())
    low, high = _interval(units, (-most, most), level)
    return min(mean, low), max(mean, high)


def equivalence(
    a: ArrayLike, b: ArrayLike, margin: float, families: Families | None = None, most: float = 1.0
) -> float | None:
    """The p of "the difference is `margin` or more": 1 less the level at which the interval is within it.

    None where `difference_interval` is.
    """
    units = drawn(np.subtract(a, b, dtype=float), families)
    if units is None:
        return None
    below = chance_below(-margin, units.with_unseen(-most))
    above = 1 - chance_below(margin, units.with_unseen(most))
    return min(1.0, 2 * max(below, above))


def median_interval(values: ArrayLike, families: Families | None = None) -> Interval | None:
    """The interval of the median over problems, between two order statistics; None below 6 values.

    The narrowest pair x_(j), x_(n+1-j) with 1 - 2 P(Bin(n, 1/2) < j) >= 0.95: it needs no distribution,
    and covers more where values tie (Thompson 1936, Ann. Math. Stat. 7: 122-128). Below 6 values no pair
    reaches 95 %. With families, the shares of values outside are those for their effective number.
    """
    from scipy.special import bdtr

    values = np.asarray(values, dtype=float)
    v, n = np.sort(values), len(values)
    if not n:
        return None
    _, sizes = family_means(values, families)
    effective = n if families is None else math.floor(n**2 / float((sizes**2).sum()) + 1e-9)
    j = (effective + 1) // 2
    while j > 0 and 2 * bdtr(j - 1, effective, 0.5) > 1 - LEVEL:
        j -= 1
    place = j * n // effective
    return (float(v[place - 1]), float(v[n - place])) if j > 0 else None


def family_means(values: Floats, families: Families | None) -> tuple[Floats, Floats]:
    """The mean and the size of each family."""
    if families is None:
        return values, np.ones(len(values))
    _, numbers = np.unique(np.asarray(families, dtype=str), return_inverse=True)
    sizes = np.asarray(np.bincount(numbers), dtype=float)
    return np.asarray(np.bincount(numbers, weights=values) / sizes, dtype=float), sizes


def _counted(values: Floats, sizes: Floats, unseen: float, effective: float) -> Drawn:
    """Equal values of one size are one, as often as they are there."""
    (values, sizes), counts = np.unique(np.round([values, sizes], _DIGITS), axis=1, return_counts=True)
    return Drawn(values=values, sizes=sizes, counts=counts.astype(float), unseen=unseen, effective=effective)


def _interval(units: Drawn, ends: Interval, level: float = LEVEL) -> Interval:
    tail = (1 - level) / 2
    return _bound(units, ends[0], tail), _bound(units, ends[1], 1 - tail)


def _bound(units: Drawn, end: float, chance: float) -> float:
    """The value that the weighted mean, with an unseen value at `end`, is below with this chance."""
    from scipy.optimize import brentq
    from scipy.special import ndtri

    low, high = min(end, float(units.values.min())), max(end, float(units.values.max()))
    if high - low < 10.0**-_DIGITS:
        return end

    wanted, whole = ndtri(chance), units.with_unseen(end)

    def off(place: float) -> float:
        """As quantiles of the normal chances nearly lie on a line, which takes Brent's method fewer steps."""
        if place in (low, high):  # nothing lies beyond
            return _FAR if place == high else -_FAR
        return float(ndtri(min(max(chance_below(place, whole), 1e-300), 1 - 1e-16)) - wanted)

    return float(brentq(off, low, high, xtol=10.0**-_DIGITS))


def chance_below(place: float, units: Drawn) -> float:
    """P(sum_j G_j s_j x_j / sum_j G_j s_j <= place), G_j gamma variables whose shapes a_j are the counts.

    That is P(Q <= 0) for Q = sum_j G_j c_j with c_j = s_j (x_j - place), by inversion (Gil-Pelaez 1951):
    1/2 - (1/pi) int_0^inf Im prod_j (1 - i u c_j)^-a_j du / u. Of two values of one size one share is Beta.
    """
    from scipy.special import betainc

    if len(units.values) == 2 and units.sizes[0] == units.sizes[1]:  # noqa: PLR2004 - one seen, one unseen
        (first, second), (a, b) = units.values, units.counts
        share = min(1.0, max(0.0, (place - first) / (second - first))) if first != second else 0.0
        below = float(betainc(b, a, share))
        return below if second > first else 1 - below
    c, shapes = units.sizes * (units.values - place), units.counts
    scale = math.sqrt(float((shapes * c * c).sum()))
    if scale == 0:
        return 1.0
    panels = _MANY_PANELS if len(c) <= _FEW_VALUES else _MORE_PANELS
    u, weights = _grid(_PANELS if units.effective <= _FEW else panels)
    uc = u[:, None] * (c / scale)
    turn = np.arctan(uc) @ shapes
    size = np.exp(np.log1p(uc * uc) @ shapes / -2)
    return min(1.0, max(0.0, 0.5 - float((size * np.sin(turn)) @ weights) / math.pi))


@lru_cache(maxsize=3)
def _grid(panels: int) -> tuple[Floats, Floats]:
    """Nodes u = tan(t), t from 0 to pi / 2, and the weights for an integral of f(u) du / u."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    width = math.pi / 2 / panels
    u = np.tan(((np.arange(panels)[:, None] + (nodes + 1) / 2) * width).ravel())
    return u, np.tile(weights * width / 2, panels) * (1 + u * u) / u
