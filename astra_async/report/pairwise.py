"""Paired comparison of two entries over their common problems (paper, section 4.1).

This module compares pairs of models, runs and answer formats; `paired_table` shows the results. The t-test is
the paper's. The Wilcoxon and sign-flip tests do not need normality, which the paper doubts for SDs. Recorded
families are the unit of all tests and intervals. `common_problems` selects the values that are compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TYPE_CHECKING, Literal

import numpy as np

from astra_async.report.common_problems import MAIN_METRICS, METRICS, Values, common_values, worst_values
from astra_async.report.entries import ranked
from astra_async.stats.differences import (
    ALPHA,
    FEWEST,
    by_family,
    conclusion,
    holm,
    least_p,
    paired_t,
    sign_flips,
    wilcoxon,
)
from astra_async.stats.intervals import difference_interval, equivalence, minimum_detectable_effect

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from astra_async.report.common_problems import Metric
    from astra_async.report.entries import Entry
    from astra_async.stats.differences import Conclusion

    Found = Sequence[tuple["Pair", Mapping["Metric", "Concluded"]]]

# `higher` and `lower`: the tests find a difference, but the interval contains 0.
Standing = Literal["better", "higher", "worse", "lower", "equivalent", "inconclusive", "incomparable"]
TURNED: dict[Standing, Standing] = {
    "better": "worse",
    "worse": "better",
    "higher": "lower",
    "lower": "higher",
}
EQUIVALENCE_MARGIN = 0.02  # two points of score or pass@1, and 0.02 of SD
_P_VALUES = ("p_t", "p_wilcoxon", "p_permutation", "p_equivalence")
MISSING = "the missing samples could change it"
RARE_DIFFERENCES = (
    "The difference is significant at 5 %, but rare large differences that were not seen could reverse it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Tests of A against B on one metric over n common problems.

    The fields have the names of the table's columns. Values and differences are on the metric's scale from 0
    to 1. A field is None if n is too small.

    Attributes:
        families: number of units of the tests: families, or n if none are recorded.
        differing: number of these units with a difference other than 0.
        difference: A - B.
        smallest_effect: difference that the t-test finds with 80 % power at alpha = 5 %; at most 1.
        least_p: smallest p that the sign-flip test can reach.
    """

    metric: Metric
    n: int
    families: int
    differing: int
    a_value: float | None
    b_value: float | None
    difference: float | None
    difference_interval: tuple[float, float] | None
    sd_difference: float | None
    t: float | None
    p_t: float | None
    p_wilcoxon: float | None
    p_permutation: float | None
    p_equivalence: float | None
    least_p: float
    smallest_effect: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Concluded:
    """A comparison with its conclusion on A.

    `holm` has the p-values after Holm's adjustment, by field name. `why` is the reason why no other
    conclusion than `inconclusive` was possible; otherwise "".
    """

    comparison: Comparison
    holm: dict[str, float | None]
    conclusion: Conclusion
    why: str

    @property
    def standing(self) -> Standing:
        """The conclusion as sentences state it; `incomparable` if the entries have no common problem."""
        interval = self.comparison.difference_interval
        return standing_of(self.conclusion, interval) if self.comparison.n else "incomparable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two entries to compare, with their names in the table."""

    a: Entry
    b: Entry
    a_name: str
    b_name: str
    format: str

    @classmethod
    def of(cls, a: Entry, b: Entry) -> Pair:
        """Pair two entries under their labels; under label and format if the formats differ."""
        if a.format == b.format:
            return cls(a=a, b=b, a_name=a.label, b_name=b.label, format=a.format)
        return cls(a=a, b=b, a_name=a.name, b_name=b.name, format=f"{a.format}/{b.format}")

    @property
    def complete(self) -> bool:
        """True if no sample of either entry is missing."""
        return self.a.complete and self.b.complete


def standing_of(conclusion: str, interval: tuple[float, float] | None) -> Standing:
    """Return the standing of A from the conclusion of a test or look, and the interval of the difference."""
    holds_0 = interval is None or interval[0] <= 0 <= interval[1]
    match conclusion:
        case "better":
            return "higher" if holds_0 else "better"
        case "worse":
            return "lower" if holds_0 else "worse"
        case "equivalent":
            return "equivalent"
        case _:
            return "inconclusive"


def conclude(family: Sequence[Comparison]) -> list[Concluded]:
    """Conclude comparisons of one metric, adjusted together by Holm; those without a p-value do not count."""
    p_values = [_adjusted([getattr(each, name) for each in family]) for name in _P_VALUES]
    flips = np.array([each.p_permutation for each in family if each.p_permutation is not None])
    concluded = []
    for place, each in enumerate(family):
        holm_p = {name: values[place] for name, values in zip(_P_VALUES, p_values, strict=True)}
        # If all differences are equal, there is no t-test, and the sign-flip test decides.
        both = [p for p in (holm_p["p_t"], holm_p["p_permutation"]) if p is not None]
        found = conclusion(each.difference or 0.0, p_values=both, p_equivalence=holm_p["p_equivalence"])
        if each.families < FEWEST or each.difference_interval is None:
            found = "inconclusive"
        why = _obstacle(each, flips) if found == "inconclusive" else ""
        concluded.append(Concluded(comparison=each, holm=holm_p, conclusion=found, why=why))
    return concluded


def concluded_pairs(pairs: Sequence[Pair], *, together: bool = False) -> Found:
    """Conclude every pair by metric. Holm's adjustment is by metric and format; by metric if `together`.

    A pair has no conclusion on an estimate over m samples if no common problem has m samples of both.
    """
    found: list[tuple[Pair, dict[Metric, Concluded]]] = [(pair, {}) for pair in pairs]
    families = [None] if together else dict.fromkeys(pair.format for pair in pairs)
    for metric, shared in product(METRICS, families):
        family = [(pair, concluded) for pair, concluded in found if shared in (None, pair.format)]
        for (_, concluded), each in zip(
            family, _concluded([pair for pair, _ in family], metric), strict=True
        ):
            if metric in MAIN_METRICS or each.comparison.n:
                concluded[metric] = each
    return found


def by_format(found: Found) -> Found:
    """Return the pairs grouped by format."""
    formats = list(dict.fromkeys(pair.format for pair, _ in found))
    return sorted(found, key=lambda each: formats.index(each[0].format))


def undecided(concluded: Concluded) -> Concluded:
    """Return the comparison as inconclusive, because missing samples could change the conclusion."""
    if concluded.conclusion == "inconclusive":
        return concluded
    return replace(concluded, conclusion="inconclusive", why=MISSING)


def _concluded(family: Sequence[Pair], metric: Metric) -> list[Concluded]:
    """Conclude the pairs of one Holm adjustment; if samples are missing, for both extremes (see above)."""
    found = conclude([compared(common_values(metric, pair.a, pair.b)) for pair in family])
    if all(pair.complete for pair in family):
        return found
    worst, best = [], []
    for pair, concluded in zip(family, found, strict=True):
        low = high = concluded.comparison
        if not pair.complete:
            other = worst_values(metric, pair.b, pair.a)
            low = compared(worst_values(metric, pair.a, pair.b))
            high = compared(other._replace(a=other.b, b=other.a))
        worst.append(low)
        best.append(high)
    return [
        concluded if {low.conclusion, high.conclusion} == {concluded.conclusion} else undecided(concluded)
        for concluded, low, high in zip(found, conclude(worst), conclude(best), strict=True)
    ]


def pairs_of(entries: Sequence[Entry]) -> Iterator[Pair]:
    """Yield all pairs of entries of one format, with the higher mean score as A."""
    for answer_format in dict.fromkeys(entry.format for entry in entries):
        for a, b in combinations(ranked(entries, answer_format), 2):
            yield Pair.of(a, b)


def compared(values: Values) -> Comparison:
    """Return all paired tests of two entries' values over the same problems."""
    metric, a, b, families = values
    n, most = len(a), 0.5 if metric == "sd" else 1.0  # the SD of values between 0 and 1 is at most 0.5
    ours, theirs = by_family(a, families), by_family(b, families)
    test, effect = paired_t(ours, theirs), minimum_detectable_effect(len(ours))
    mean_a, mean_b = (math.fsum(values) / n if n else None for values in (a, b))
    return Comparison(
        metric=metric,
        n=n,
        families=len(ours),
        differing=int(np.count_nonzero(np.round(ours - theirs, 12))),
        a_value=mean_a,
        b_value=mean_b,
        difference=mean_a - mean_b if test and mean_a is not None and mean_b is not None else None,
        difference_interval=difference_interval(a, b, families, 1 - ALPHA, most),
        sd_difference=test.sd if test else None,
        t=test.t if test else None,
        p_t=test.p if test else None,
        p_wilcoxon=wilcoxon(ours, theirs) if test else None,
        p_permutation=sign_flips(ours, theirs) if test else None,
        p_equivalence=equivalence(a, b, EQUIVALENCE_MARGIN, families, most),
        least_p=least_p(ours, theirs),
        smallest_effect=min(1.0, effect * test.sd) if test and effect is not None and test.sd else None,
    )


def _adjusted(p_values: Sequence[float | None]) -> list[float | None]:
    adjusted = iter(holm([p for p in p_values if p is not None]).tolist())
    return [None if p is None else next(adjusted) for p in p_values]


def _obstacle(c: Comparison, flips: NDArray[np.float64]) -> str:
    """Return the reason why a comparison cannot show any difference; "" if a difference can be shown.

    `flips` has the p-values of the sign-flip tests that Holm adjusts together. Holm multiplies the smallest p
    that this comparison can reach by the number of p-values that are not smaller.
    """
    cannot, many = f"cannot show a difference at {100 * ALPHA:g} %", c.families
    one, several = ("problem", "problems") if many == c.n else ("family of problems", "families of problems")
    reasons = (
        (c.n == 0 and c.metric == "sd", "SDs are comparable only between equal k of at least 2"),
        (c.n == 0, "no common problem has results under both"),
        (many < FEWEST, f"{many} {one if many == 1 else several} {cannot}"),
        (c.differing == 0, f"all {many} {several} have equal results, which allow no conclusion"),
        (c.differing < FEWEST, f"only {c.differing} of {many} {several} differ, which {cannot}"),
        (c.difference_interval is None, "one family has most of the problems, so no test is possible"),
        (
            c.least_p * np.count_nonzero(flips >= c.least_p) >= ALPHA,
            f"{c.differing} differing {several} {cannot} among {len(flips)} comparisons",
        ),
    )
    return next((reason for holds, reason in reasons if holds), "")
