"""Two who put the same things into classes, and what one of them says about all of them."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

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
