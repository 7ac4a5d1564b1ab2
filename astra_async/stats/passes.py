"""What m of k samples give, when c of the k passed all tests: exact, without replacement.

A value over a set of problems is the mean of the problems' values.
"""

from __future__ import annotations

from array import array
from fractions import Fraction
from functools import cache
from math import comb


def pass_at(m: int, k: int, c: int) -> float:
    """pass@m: at least one of m passes, 1 - C(k-c, m) / C(k, m) (Chen et al. 2021, arXiv 2107.03374)."""
    return _shares(k, k - c)[1][m - 1]


def pass_hat(m: int, k: int, c: int) -> float:
    """pass^m: all m samples pass, C(c, m) / C(k, m) (Yao et al. 2024, tau-bench, arXiv 2406.12045)."""
    return _shares(k, c)[0][m - 1]


@cache
def _shares(k: int, c: int) -> tuple[array[float], array[float]]:
    """C(c, m) / C(k, m) for every m from 1 to k, and 1 less that: exact until they are rounded, once.

    From one m to the next it takes a factor: C(n, m) = C(n, m - 1) (n - m + 1) / m.
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
    """G-Pass@m_tau: at least ceil(tau m) = `at_least` of m samples pass (Liu et al. 2024, arXiv 2412.13147).

    sum_{j >= at_least} C(c, j) C(k-c, m-j) / C(k, m): a hypergeometric tail.
    """
    ways = sum(comb(c, j) * comb(k - c, m - j) for j in range(at_least, m + 1))
    return float(Fraction(ways, comb(k, m)))


@cache
def mg_pass_at(m: int, k: int, c: int) -> float:
    """mG-Pass@m: G-Pass averaged over tau from 0.5 to 1, (2/m) sum_{i=ceil(m/2)+1..m} G-Pass@m_{i/m}."""
    return 2 / m * sum(g_pass_at(m, k, c, i) for i in range((m + 1) // 2 + 1, m + 1))
