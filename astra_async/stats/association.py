"""Agreement of two raters (kappa), and rank correlation of two quantities."""

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
_AT_ONCE = 250  # orders whose values stay in the processor's cache
_DIGITS = 9  # quotients that are equal must also tie: values are rounded to so many before ranking
_SURELY = 1 - 1e-12  # a coefficient this far from 0 is 1 but for rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """Pearson's r and Spearman's rho, each with the p of its permutation test; rho with its interval.

    r has no interval: Fisher's holds for normal values only, and covers 82 to 90 % for lengths and scores.
    Its t-test takes normal values, too: one problem apart from all others would be "p < 0.001".
    `interval` is None for n < 4 or |rho| = 1.
    """

    r: float
    p: float
    rho: float
    rho_p: float
    interval: tuple[float, float] | None


def correlation(x: ArrayLike, y: ArrayLike, orders: int = _ORDERS) -> Correlation | None:
    """Pearson's and Spearman's correlation; None for n < 3 or where x or y does not vary.

    p is the share of all orders of y with a coefficient at least as far from 0 (Pitman 1937): exact up to
    n = 7, else of `orders` random ones from a fixed seed, (1 + as far) / (1 + orders), Phipson and Smyth
    (2010).
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
    """The interval of Spearman's rho: tanh(artanh rho -+ z sqrt((1 + rho^2 / 2) / (n - 3))).

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
    """All orders of n things as rows, or so many drawn ones."""
    if not drawn:
        return np.array(list(permutations(range(n))), dtype=np.int32)
    rows = np.tile(np.arange(n, dtype=np.int32), (drawn, 1))
    return np.random.default_rng(0).permuted(rows, axis=1)


_LEAST = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """`share` of the pairs that are equal; Cohen's `kappa`, None where chance alone explains all of it."""

    share: float
    kappa: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedShare:
    """A class's share of `total` things, corrected by those `checked` by people; no interval below two."""

    total: int
    checked: int
    judged: float
    corrected: float | None
    interval: tuple[float, float] | None


def agreement(pairs: Sequence[tuple[str, str | None]]) -> Agreement | None:
    """Cohen's kappa (1960), (p_o - p_e) / (1 - p_e), over pairs (hand, judge); None without any.

    A judge that gave no class (None) agrees with nobody.
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
    """The share of a class among all of `judged`, a finite set, by prediction-powered inference.

    mean(f) + mean(y - f), the second over `checked` pairs (f by the judge, y by hand), which are a random
    draw of that set (Angelopoulos et al. 2023, arXiv 2301.09633; for a finite set the difference estimator of
    survey sampling). It is right however wrong the judge is; a good judge only narrows it. Its variance is
    (1 - n/N) s^2 / n of the differences, with one +1 and one -1 added to them: a few that all agree do not
    prove a judge without faults. Student's t with n - 1 degrees of freedom. Simulated coverage: 95 to 100 %.
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
