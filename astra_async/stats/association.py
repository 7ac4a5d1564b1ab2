"""Correlation of two quantities, agreement of two raters, and shares corrected for errors of a rater."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from astra_async.stats.differences import ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray


_EXACT = 7
_ORDERS = 10_000
_AT_ONCE = 250  # orders computed at once; their values fit into the processor's cache
_DIGITS = 9  # decimals kept before ranking, so that quotients that differ by rounding errors tie
_SURELY = 1 - 1e-12  # a larger coefficient is rounded to 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """Pearson's r and Spearman's rho, each with the p of its permutation test, and the 95 % interval of rho.

    r has no interval, because Fisher's interval needs normal values; for lengths and scores it covers only 82
    to 90 %. The t-test of r also needs normal values: a single outlier could give p < 0.001. `interval` is
    None for n < 4 or |rho| = 1.
    """

    r: float
    p: float
    rho: float
    rho_p: float
    interval: tuple[float, float] | None


def correlation(x: ArrayLike, y: ArrayLike, orders: int = _ORDERS) -> Correlation | None:
    """Return Pearson's and Spearman's correlation; None for n < 3 or if x or y is constant.

    p is the share of all orders of y with a coefficient at least as far from 0 (Pitman 1937). Up to n = 7 all
    orders are counted. For larger n, `orders` random orders with a fixed seed are used, and p is
    (1 + number of extreme orders) / (1 + orders) (Phipson and Smyth 2010).
    """
    a, b = (np.asarray(values, dtype=float) for values in (x, y))
    n = len(a)
    if n < 3:  # noqa: PLR2004 - two points always correlate
        return None
    both = ranks(np.round(a, _DIGITS)), ranks(np.round(b, _DIGITS))
    if np.ptp(both[0]) == 0 or np.ptp(both[1]) == 0:
        return None
    rho = _coefficient(*both)
    return Correlation(
        r=_coefficient(a, b),
        p=_permutation_p(a, b, orders),
        rho=rho,
        rho_p=_permutation_p(*both, orders),
        interval=rank_interval(rho, n),
    )


def rank_interval(rho: float, n: int, level: float = 0.95) -> tuple[float, float] | None:
    """Return the interval of Spearman's rho: tanh(artanh rho -+ z sqrt((1 + rho^2 / 2) / (n - 3))).

    Bonett and Wright (2000), Psychometrika 65: 23-28. None for n < 4 or |rho| = 1.
    """
    from scipy.special import ndtri

    if n < 4 or abs(rho) == 1:  # noqa: PLR2004 - sqrt(n - 3)
        return None
    half = float(ndtri((1 + level) / 2)) * math.sqrt((1 + rho * rho / 2) / (n - 3))
    return math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half)


def _coefficient(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    r = float(np.corrcoef(x, y)[0, 1])
    return r if abs(r) < _SURELY else math.copysign(1.0, r)


def _permutation_p(x: NDArray[np.float64], y: NDArray[np.float64], orders: int) -> float:
    x, y = x - x.mean(), y - y.mean()
    drawn = 0 if len(y) <= _EXACT else orders
    orders_of = _orders_of(len(y), drawn)
    blocks = (orders_of[start : start + _AT_ONCE] for start in range(0, len(orders_of), _AT_ONCE))
    products = np.abs(np.concatenate([y.take(block) @ x for block in blocks]))
    far = products >= abs(float(y @ x)) - 1e-9 * math.sqrt(float(x @ x) * float(y @ y))
    return (1 + int(far.sum())) / (1 + drawn) if drawn else float(far.mean())


@lru_cache(maxsize=2)
def _orders_of(n: int, drawn: int) -> NDArray[np.int32]:
    """Return permutations of 0 to n - 1 as rows: all of them, or `drawn` random ones if that is not 0."""
    if not drawn:
        return np.array(list(permutations(range(n))), dtype=np.int32)
    rows = np.tile(np.arange(n, dtype=np.int32), (drawn, 1))
    return np.random.default_rng(0).permuted(rows, axis=1)


_LEAST = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Agreement of two raters: share of equal pairs, and Cohen's kappa.

    `kappa` is None if both raters always give the same single class.
    """

    share: float
    kappa: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedShare:
    """Share of a class among `total` items, corrected with the `checked` items that people labelled.

    `judged` is the uncorrected share. `corrected` is None without checked items, `interval` with fewer than
    two.
    """

    total: int
    checked: int
    judged: float
    corrected: float | None
    interval: tuple[float, float] | None


def agreement(pairs: Sequence[tuple[str, str | None]]) -> Agreement | None:
    """Return the agreement over pairs (hand, judge), with Cohen's (1960) kappa = (p_o - p_e) / (1 - p_e).

    A judge's label None counts as a disagreement. Return None if there are no pairs.
    """
    if not pairs:
        return None
    n = len(pairs)
    observed = sum(hand == judge for hand, judge in pairs) / n
    by_hand, by_judge = Counter(hand for hand, _ in pairs), Counter(judge for _, judge in pairs)
    expected = sum(by_hand[name] * by_judge[name] for name in by_hand) / n**2
    kappa = None if math.isclose(expected, 1) else (observed - expected) / (1 - expected)
    return Agreement(share=observed, kappa=kappa)


def corrected_share(judged: Sequence[bool], checked: Sequence[tuple[bool, bool]]) -> CorrectedShare:
    """Return the share of a class among all of `judged`, a finite set, by prediction-powered inference.

    The estimate is mean(f) + mean(y - f). The second mean is over `checked`, pairs (f by the judge, y by
    hand) of a random sample of the set (Angelopoulos et al. 2023, arXiv 2301.09633; for a finite set this is
    the difference estimator of survey sampling). The estimate is unbiased even if the judge is wrong; a
    better judge only makes the interval narrower.

    The variance is (1 - n/N) s^2 / n of the differences, with one +1 and one -1 added, because a few pairs
    that all agree do not show that the judge is perfect. The interval uses Student's t with n - 1 degrees of
    freedom. Simulated coverage: 95 to 100 %.
    """
    from scipy.special import stdtrit

    total, n = len(judged), len(checked)
    by_judge = sum(judged) / total if total else math.nan
    if not n or not total:
        return CorrectedShare(total=total, checked=n, judged=by_judge, corrected=None, interval=None)
    differences = [int(y) - int(f) for f, y in checked]
    estimate = by_judge + sum(differences) / n
    interval = None
    if n >= _LEAST:
        mean = sum(differences) / (n + 2)
        squares = sum((each - mean) ** 2 for each in (*differences, 1, -1)) / (n + 1)
        error = math.sqrt(max(0.0, 1 - n / total) * squares / n)
        reach = float(stdtrit(n - 1, (1 + 0.95) / 2)) * error
        interval = (_share(estimate - reach), _share(estimate + reach))
    return CorrectedShare(
        total=total, checked=n, judged=by_judge, corrected=_share(estimate), interval=interval
    )


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))
