"""Two entries on the same problems (paper, section 4.1): the tests and the conclusion.

Pairs of models, two runs, and two answer formats are all compared here (and shown by `paired_table`). The
paper's t-test is printed first; the Wilcoxon and sign-flip tests beside it need no normality, which the
paper itself doubts for SDs. Recorded families are the unit of all tests and intervals. Only problems with
all their samples under both count; while samples are missing, those begun, and what is said of them is
provisional: a conclusion must stay the same whether the missing samples failed for the one and passed for
the other, or the other way round. A problem whose statement, project or tests have changed from one run
to the other is another problem, whatever its id.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations, product
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

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
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from astra_async.report.entries import Entry, Floats
    from astra_async.stats.differences import Conclusion

    Found = Sequence[tuple["Pair", Mapping["Metric", "Concluded"]]]

Metric = Literal["mean_score", "pass_at_1", "sd"]
Standing = Literal["better", "worse", "equivalent", "inconclusive", "incomparable"]
EQUIVALENCE_MARGIN = 0.02  # two points of score or pass@1, and 0.02 of SD
METRICS: dict[Metric, str] = {"mean_score": "Mean score", "pass_at_1": "Pass@1", "sd": "SD"}
_ARRAYS = {"mean_score": attrgetter("means"), "pass_at_1": attrgetter("passes"), "sd": attrgetter("sds")}
_MOST_NAMED = 10  # problems that are not compared
_P_VALUES = ("p_t", "p_wilcoxon", "p_permutation", "p_equivalence")
MISSING = "samples are missing that could turn it"


class Values(NamedTuple):
    """Both entries' values of one metric over the same problems; `families` is None where none is shared."""

    metric: Metric
    a: Floats
    b: Floats
    families: NDArray[np.str_] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A against B on one metric over n common problems; None where n is too small for a number.

    Fields have the names of the table's columns.

    `families` is how many there are to draw (n where none is recorded), `differing` how many of them differ
    at all; `difference` is A - B, `smallest_effect` the difference that the t-test would have found here with
    80 % power at alpha = 5 % (1: none that is possible), all on the metric's own scale from 0 to 1. `least_p`
    is the smallest p that the sign-flip test could give.
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
    """A comparison within its family: p-values after Holm by field name, the conclusion on A, and why.

    `why` says what keeps an inconclusive one from being another, where that is not just chance.
    """

    comparison: Comparison
    holm: dict[str, float | None]
    conclusion: Conclusion
    why: str

    @property
    def standing(self) -> Standing:
        """The conclusion; `incomparable` where there is no problem to compare on."""
        return self.conclusion if self.comparison.n else "incomparable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two entries to compare, with what the table calls them."""

    a: Entry
    b: Entry
    a_name: str
    b_name: str
    format: str

    @classmethod
    def of(cls, a: Entry, b: Entry) -> Pair:
        """Two entries by their labels; by their whole names where their formats differ."""
        if a.format == b.format:
            return cls(a=a, b=b, a_name=a.label, b_name=b.label, format=a.format)
        return cls(a=a, b=b, a_name=a.name, b_name=b.name, format=f"{a.format}/{b.format}")

    @property
    def complete(self) -> bool:
        """False where samples are missing: other results may change what is said."""
        return self.a.complete and self.b.complete


def changed_problems(a: Entry, b: Entry) -> dict[str, str]:
    """The problems of both that are not the same under both, with what differs: `T 4 and 8`, `statement`.

    By their T and by what both runs have recorded of them; one of which a run recorded nothing, by T alone.
    """
    if {id(run) for run, _ in a.parts} == {id(run) for run, _ in b.parts}:
        return {}
    ours, theirs = _contents(a), _contents(b)
    found = {}
    for problem in filter(theirs.__contains__, ours):
        (total, content), (other_total, other) = ours[problem], theirs[problem]
        differing = [name for name in content if name in other and content[name] != other[name]]
        named = [name.removesuffix("_sha256").replace("_", " ") for name in differing]
        if total != other_total and not math.isnan(total + other_total):
            named.insert(0, f"T {total:.0f} and {other_total:.0f}")
        if named:
            found[problem] = ", ".join(named)
    return found


def left_out(entries: Iterable[tuple[Entry, Entry]]) -> list[str]:
    """Which common problems are not the same, hence not compared, and why: a sentence for each two runs."""
    found: dict[tuple[str, str], str] = {}
    for two in entries:
        a, b = sorted(two, key=_directories)
        names = _directories(a), _directories(b)
        if names not in found and (changed := changed_problems(a, b)):
            common = len(a.places.keys() & b.places.keys())
            named = [f"{problem} ({what})" for problem, what in changed.items()]
            if len(named) > _MOST_NAMED:
                named[_MOST_NAMED:] = [f"{len(named) - _MOST_NAMED} more"]
            found[names] = (
                f"{' and '.join(names)}: {len(changed)} of {common} common problems are not the same in both"
                f" and are not compared: {', '.join(named)}."
            )
    return list(found.values())


def conclude(family: Sequence[Comparison]) -> list[Concluded]:
    """The comparisons of one metric, adjusted together by Holm; those without a test take no part."""
    p_values = [_adjusted([getattr(each, name) for each in family]) for name in _P_VALUES]
    tests = sum(each.p_permutation is not None for each in family)
    concluded = []
    for place, each in enumerate(family):
        holm_p = {name: values[place] for name, values in zip(_P_VALUES, p_values, strict=True)}
        # Where all differ by the same amount there is no spread and no t-test: the flips of signs decide.
        both = [p for p in (holm_p["p_t"], holm_p["p_permutation"]) if p is not None]
        found = conclusion(each.difference or 0.0, p_values=both, p_equivalence=holm_p["p_equivalence"])
        why = _obstacle(each, tests)
        if found == "equivalent" and each.families >= FEWEST:
            why = ""
        elif why:
            found = "inconclusive"
        concluded.append(Concluded(comparison=each, holm=holm_p, conclusion=found, why=why))
    return concluded


def concluded_pairs(pairs: Sequence[Pair], *, together: bool = False) -> Found:
    """Every pair, concluded by metric; a Holm family for each metric and format, or for all `together`."""
    found: list[tuple[Pair, dict[Metric, Concluded]]] = [(pair, {}) for pair in pairs]
    families = [None] if together else dict.fromkeys(pair.format for pair in pairs)
    for metric, shared in product(METRICS, families):
        family = [(pair, concluded) for pair, concluded in found if shared in (None, pair.format)]
        for (_, concluded), each in zip(
            family, _concluded([pair for pair, _ in family], metric), strict=True
        ):
            concluded[metric] = each
    return found


def by_format(found: Found) -> Found:
    """The same, those of one format together."""
    formats = list(dict.fromkeys(pair.format for pair, _ in found))
    return sorted(found, key=lambda each: formats.index(each[0].format))


def withheld(concluded: Concluded) -> Concluded:
    """The same without a conclusion: samples are missing that could turn it."""
    if concluded.conclusion == "inconclusive":
        return concluded
    return replace(concluded, conclusion="inconclusive", why=MISSING)


def _concluded(family: Sequence[Pair], metric: Metric) -> list[Concluded]:
    """One Holm family; a conclusion must hold whichever way the missing samples turn out."""
    found = conclude([compared(_common_values(metric, pair.a, pair.b)) for pair in family])
    if all(pair.complete for pair in family):
        return found
    worst, best = [], []
    for pair, concluded in zip(family, found, strict=True):
        low = high = concluded.comparison
        if not pair.complete:
            other = _worst_values(metric, pair.b, pair.a)
            low = compared(_worst_values(metric, pair.a, pair.b))
            high = compared(other._replace(a=other.b, b=other.a))
        worst.append(low)
        best.append(high)
    return [
        concluded if {low.conclusion, high.conclusion} == {concluded.conclusion} else withheld(concluded)
        for concluded, low, high in zip(found, conclude(worst), conclude(best), strict=True)
    ]


def pairs_of(entries: Sequence[Entry]) -> Iterator[Pair]:
    """All pairs of entries of one format, the better mean score as A."""
    for answer_format in dict.fromkeys(entry.format for entry in entries):
        for a, b in combinations(ranked(entries, answer_format), 2):
            yield Pair.of(a, b)


def _common_values(metric: Metric, a: Entry, b: Entry) -> Values:
    """Of both on their common problems; SDs depend on k: only of problems with the same k above 1."""
    (here, there), of = common_places(a, b), _ARRAYS[metric]
    if metric == "sd":
        same = (a.planned[here] == b.planned[there]) & (a.valid[here] > 1) & (b.valid[there] > 1)
        here, there = here[same], there[same]
    return Values(metric, of(a)[here], of(b)[there], a.families_of(here))


def _worst_values(metric: Metric, a: Entry, b: Entry) -> Values:
    """Of all samples planned if the missing ones failed for A, and passed for B; no SD is known then."""
    if metric == "sd":
        return Values(metric, a.sds[:0], b.sds[:0])
    (here, there), of = common_places(a, b, planned=True), _ARRAYS[metric]
    low, high = a.extremes(of(a))[0], b.extremes(of(b))[1]
    return Values(metric, low[here], high[there], a.families_of(here))


def compared(values: Values) -> Comparison:
    """Every paired test of aligned arrays over problems."""
    metric, a, b, families = values
    n, most = len(a), 0.5 if metric == "sd" else 1.0  # no SD of values between 0 and 1 is above 0.5
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


def _obstacle(c: Comparison, tests: int) -> str:
    """Why no difference could be shown here, whatever it is; empty where one could."""
    cannot, many = f"cannot show a difference at {100 * ALPHA:g} %", c.families
    one, several = ("problem", "problems") if many == c.n else ("family of problems", "families of problems")
    reasons = (
        (c.n == 0 and c.metric == "sd", "an SD takes problems with the same k, of at least 2"),
        (c.n == 0, "no problem that is the same under both has results"),
        (many < FEWEST, f"{many} {one if many == 1 else several} {cannot}"),
        (c.differing == 0, f"all {many} {several} came out alike, from which nothing can be concluded"),
        (c.differing < FEWEST, f"only {c.differing} of {many} {several} differ, which {cannot}"),
        (c.difference_interval is None, "one family has most of the problems: nothing can be tested"),
        (c.least_p * tests >= ALPHA, f"{c.differing} differing {several} {cannot} among {tests} comparisons"),
    )
    return next((reason for holds, reason in reasons if holds), "")


def common_places(
    a: Entry, b: Entry, *, planned: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places of the problems that are complete under both, in A's order; while one is incomplete, begun.

    Or of all that are `planned`. Those that are not the same under both are left out.
    """
    sure, changed = a.complete and b.complete, changed_problems(a, b)
    ours, theirs = (
        np.ones(len(entry.problem_ids), bool) if planned else entry.done if sure else entry.valid > 0
        for entry in (a, b)
    )
    found = [
        (place, b.places[problem])
        for problem, place in a.places.items()
        if ours[place] and problem not in changed and problem in b.places and theirs[b.places[problem]]
    ]
    here, other = np.array(found, dtype=np.int64).reshape(-1, 2).T
    return here, other


def _contents(entry: Entry) -> dict[str, tuple[float, Mapping[str, str]]]:
    """T and what is recorded of each problem."""
    recorded = {
        problem: run.settings.contents.get(problem, {}) for run, _ in entry.parts for problem in run.problems
    }
    return {problem: (entry.totals[place], recorded[problem]) for problem, place in entry.places.items()}


def _directories(entry: Entry) -> str:
    return " + ".join(sorted({str(run.directory) for run, _ in entry.parts}))
