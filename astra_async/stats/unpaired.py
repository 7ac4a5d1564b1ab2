"""Two sets of samples of one problem."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_STATES = 4_000_000  # of the exact count; beyond it the permutations are sampled
_PERMUTATIONS = 10_000


def permutation_p(a: Sequence[int], b: Sequence[int], seed: int = 0) -> float | None:
    """Exact two-sided p of the permutation test that two samples of counts have one mean; None if empty.

    All ways to choose which len(a) of the pooled counts are called "a" are counted by their sum
    (dynamic programming over the pooled counts); p is the share at least as far from the expected sum as
    the observed one. For counts of 0 and 1 this is a two-sided Fisher exact test (1935).
    """
    if not a or not b:
        return None
    pooled = [*a, *b]
    observed = abs(sum(a) * len(pooled) - sum(pooled) * len(a))
    if observed == 0:
        return 1.0
    if len(a) * (sum(pooled) + 1) > _MOST_STATES:
        return _sampled(pooled, len(a), observed, seed)
    weights = _ways(Counter(pooled), len(a))
    sums = np.arange(len(weights))
    extreme = np.abs(sums * len(pooled) - sum(pooled) * len(a)) >= observed
    return float(min(1.0, weights[extreme].sum() / weights.sum()))


def _ways(counts: Counter[int], chosen: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """How many ways to choose `chosen` of the counts give each sum, scaled against overflow."""
    total = sum(value * times for value, times in counts.items())
    ways = np.zeros((chosen + 1, total + 1))
    ways[0, 0] = 1.0
    for value in counts.elements():
        ways[1:, value:] += ways[:-1, : total + 1 - value]
        ways /= ways.max()
    return np.asarray(ways[chosen], dtype=np.float64)


def _sampled(pooled: Sequence[int], chosen: int, observed: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    values = np.tile(np.asarray(pooled, dtype=np.int64), (_PERMUTATIONS, 1))
    sums = rng.permuted(values, axis=1)[:, :chosen].sum(axis=1)
    extreme = np.abs(sums * len(pooled) - sum(pooled) * chosen) >= observed
    return (1 + int(extreme.sum())) / (1 + _PERMUTATIONS)
