"""Probabilities over m of a problem's samples: pass@m, pass^m, G-Pass@m and mG-Pass@m."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from astra_async.stats.spread import g_pass_at, mg_pass_at, pass_at, pass_hat

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_M = (2, 4, 8)  # values of m for pass@m and pass^m
_MG = 8  # value of m for G-Pass@m and mG-Pass@m


class Estimate(NamedTuple):
    """Title, meaning, m, and an unbiased estimator: a function of m, valid and perfect samples."""

    title: str
    help: str
    m: int
    of: Callable[[int, int, int], float]


def estimated(
    of: Callable[[int, int, int], float], m: int, valid: NDArray[np.int64], perfect: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return an estimate over m samples for each problem; NaN if a problem has fewer valid samples."""
    counts = zip(valid.tolist(), perfect.tolist(), strict=True)
    return np.array([of(m, k, c) if k >= m else np.nan for k, c in counts], dtype=float)


def _half_pass(m: int, k: int, c: int) -> float:
    """Return G-Pass@m with a threshold of one half."""
    return g_pass_at(m, k, c, (m + 1) // 2)


ESTIMATES = {
    **{f"pass_at_{m}": Estimate(f"Pass@{m}", f"at least one of {m} passes", m, pass_at) for m in _M},
    **{f"pass_hat_{m}": Estimate(f"Pass^{m}", f"all of {m} pass", m, pass_hat) for m in _M},
    f"g_pass_at_{_MG}": Estimate(f"G-Pass@{_MG}", f"at least half of {_MG} pass", _MG, _half_pass),
    f"mg_pass_at_{_MG}": Estimate(
        f"mG-Pass@{_MG}", f"G-Pass@{_MG} averaged over the thresholds above half", _MG, mg_pass_at
    ),
}
