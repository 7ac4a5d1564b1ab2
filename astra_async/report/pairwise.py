"""Two entries on the same problems (paper, section 4.1): the tests and the verdict.

Pairs of models, two runs, and two answer formats are all compared here (and shown by `paired_table`). The
paper's t-test is printed first; the Wilcoxon and sign-flip tests beside it need no normality, which the
paper itself doubts for SDs. Only problems with all their samples under both count; while samples are
missing, those begun, and everything that is said of them is provisional. A problem whose statement, project
or tests have changed from one run to the other is another problem, whatever its id.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from astra_async.stats.differences import (
    ALPHA,
    FEWEST,
    equivalence,
    holm,
    least_p,
    paired_t,
    sign_flips,
    verdict,
    wilcoxon,
)
from astra_async.stats.intervals import difference_interval
from astra_async.stats.power import minimum_detectable_effect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from astra_async.report.entries import Entry, Floats
    from astra_async.stats.differences import PairedVerdict

    Values = tuple["Metric", Floats, Floats]  # of one metric, over the same problems
    Found = Sequence[tuple["Pair", "Judged"]]

Metric = Literal["mean_score", "pass_at_1", "sd"]
Standing = Literal["better", "worse", "equivalent", "inconclusive", "incomparable"]
EQUIVALENCE_MARGIN = 0.02  # two points of score or pass@1, and 0.02 of SD
METRICS: dict[Metric, str] = {"mean_score": "Mean score", "pass_at_1": "Pass@1", "sd": "SD"}
_MOST_NAMED = 10  # problems that are not compared
_P_VALUES = ("p_t", "p_wilcoxon", "p_permutation", "p_equivalence")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A against B on one metric over n common problems; None where n is too small for a number.

    Fields have the names of the table's columns.

    `difference` is A - B, `differing` how many problems differ at all, `smallest_effect` the difference
    that this comparison would have found with 80 % power at alpha = 5 % (1: none that is possible), all on
    the metric's own scale from 0 to 1. `least_p` is the smallest p that the sign-flip test could give.
    """

    metric: Metric
    n: int
    differing: int
    a_value: float | None
    b_value: float | None
    difference: float | None
    difference_interval: tuple[float, float] | None
    within_margin: bool
    sd_difference: float | None
    t: float | None
    p_t: float | None
    p_wilcoxon: float | None
    p_permutation: float | None
    p_equivalence: float | None
    least_p: float
    smallest_effect: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A comparison within its family: p-values after Holm by field name, the verdict on A, and why.

    `why` says what keeps an inconclusive verdict from being another one, where that is not just chance.
    """

    comparison: Comparison
    holm: dict[str, float | None]
    verdict: PairedVerdict
    why: str

    @property
    def standing(self) -> Standing:
        """The verdict; `incomparable` where there is no problem to compare on."""
        return self.verdict if self.comparison.n else "incomparable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two entries to compare, with what the table calls them."""

    a: Entry
    b: Entry
    a_name: str
    b_name: str
    format: str

    @property
    def complete(self) -> bool:
        """False where samples are missing: other results may change what is said."""
        return self.a.complete and self.b.complete


def compare_values(values: Sequence[Values]) -> list[Comparison]:
    """Every paired test of aligned arrays over problems."""
    return [_compared(each) for each in values]


def common_values(a: Entry, b: Entry) -> Iterator[Values]:
    """The values of both on their common problems, by metric.

    SDs only of problems with the same k above 1: they depend on it.
    """
    places = _common(a, b)
    here, there = [one for one, _ in places], [other for _, other in places]
    yield "mean_score", a.means[here], b.means[there]
    yield "pass_at_1", a.passes[here], b.passes[there]
    same = [
        (one, other)
        for one, other in places
        if a.planned[one] == b.planned[other] and a.valid[one] > 1 and b.valid[other] > 1
    ]
    here, there = [one for one, _ in same], [other for _, other in same]
    yield "sd", a.sds[here], b.sds[there]


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
        told = [name.removesuffix("_sha256").replace("_", " ") for name in differing]
        if total != other_total and not math.isnan(total + other_total):
            told.insert(0, f"T {total:.0f} and {other_total:.0f}")
        if told:
            found[problem] = ", ".join(told)
    return found


def left_out(entries: Iterable[tuple[Entry, Entry]]) -> list[str]:
    """Which common problems are not the same, hence not compared, and why: a sentence for each two runs."""
    found: dict[tuple[str, str], str] = {}
    for two in entries:
        a, b = sorted(two, key=_directories)
        names = _directories(a), _directories(b)
        if names not in found and (changed := changed_problems(a, b)):
            found[names] = _left_out(names, changed, len({*a.problem_ids} & {*b.problem_ids}))
    return list(found.values())


def judge(family: Sequence[Comparison]) -> list[Judged]:
    """The comparisons of one metric, adjusted together by Holm; those without a test take no part."""
    p_values = [_adjusted([getattr(each, name) for each in family]) for name in _P_VALUES]
    tests = sum(each.p_permutation is not None for each in family)
    judged = []
    for place, each in enumerate(family):
        holm_p = {name: values[place] for name, values in zip(_P_VALUES, p_values, strict=True)}
        why, found = _obstacle(each, tests), _verdict(each, holm_p)
        if found == "equivalent" and each.n >= FEWEST:
            why = ""
        elif why:
            found = "inconclusive"
        judged.append(Judged(comparison=each, holm=holm_p, verdict=found, why=why))
    return judged


def said(judged: Judged, names: tuple[str, str]) -> str:
    """The verdict in words; a lower SD is the better one."""
    if judged.verdict in ("equivalent", "inconclusive"):
        return judged.verdict
    lower_wins = judged.comparison.metric == "sd"
    winner = names[0] if (judged.verdict == "better") != lower_wins else names[1]
    return f"{winner} {'steadier' if lower_wins else 'better'}"


def judged_pairs(pairs: Sequence[Pair]) -> Found:
    """Every pair on every metric, one Holm family for each metric and format."""
    found: list[tuple[Pair, Judged]] = []
    values = [(pair, each) for pair in pairs for each in common_values(pair.a, pair.b)]
    compared = compare_values([each for _, each in values])
    for metric in METRICS:
        for shared in dict.fromkeys(pair.format for pair in pairs):
            family = [
                (pair, comparison)
                for (pair, _), comparison in zip(values, compared, strict=True)
                if pair.format == shared and comparison.metric == metric
            ]
            judged = judge([comparison for _, comparison in family])
            found += zip([pair for pair, _ in family], judged, strict=True)
    return found


def pairs_of(entries: Sequence[Entry]) -> Iterator[Pair]:
    """All pairs of entries of one format, the better mean score as A."""
    for answer_format in dict.fromkeys(entry.format for entry in entries):
        ranked = sorted(
            (entry for entry in entries if entry.format == answer_format), key=lambda entry: entry.rank
        )
        for a, b in combinations(ranked, 2):
            yield Pair(a=a, b=b, a_name=a.label, b_name=b.label, format=answer_format)


def _compared(values: Values) -> Comparison:
    metric, a, b = values
    test, n = paired_t(a, b), len(a)
    effect = minimum_detectable_effect(n)
    interval, inner = _intervals(metric, a, b)
    mean_a, mean_b = (math.fsum(values) / n if n else None for values in (a, b))
    return Comparison(
        metric=metric,
        n=n,
        differing=int(np.count_nonzero(np.round(a - b, 12))),
        a_value=mean_a,
        b_value=mean_b,
        difference=test.difference if test else None,
        difference_interval=interval,
        within_margin=inner is not None and max(-inner[0], inner[1]) < EQUIVALENCE_MARGIN,
        sd_difference=test.sd if test else None,
        t=test.t if test else None,
        p_t=test.p if test else None,
        p_wilcoxon=wilcoxon(a, b) if test else None,
        p_permutation=sign_flips(a, b) if test else None,
        p_equivalence=equivalence(a, b, EQUIVALENCE_MARGIN),
        least_p=least_p(a, b),
        smallest_effect=min(1.0, effect * test.sd) if test and effect is not None and test.sd else None,
    )


def _intervals(
    metric: Metric, a: Floats, b: Floats
) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
    """The 95 % interval, and the 90 % one that two one-sided tests at 5 % take; an SD is at most 0.5."""
    scale = 2 if metric == "sd" else 1
    found = [difference_interval(a * scale, b * scale, level) for level in (1 - ALPHA, 1 - 2 * ALPHA)]
    wide, inner = (each and (each[0] / scale, each[1] / scale) for each in found)
    return wide, inner


def _adjusted(p_values: Sequence[float | None]) -> list[float | None]:
    adjusted = iter(holm([p for p in p_values if p is not None]).tolist())
    return [None if p is None else next(adjusted) for p in p_values]


def _verdict(c: Comparison, holm_p: dict[str, float | None]) -> PairedVerdict:
    if c.difference_interval is None:
        return "inconclusive"
    return verdict(
        c.difference_interval,
        p_values=(holm_p["p_t"], holm_p["p_permutation"]),
        p_equivalence=holm_p["p_equivalence"],
        within_margin=c.within_margin,
    )


def _obstacle(c: Comparison, tests: int) -> str:
    """Why no difference could be shown here, whatever it is; empty where one could."""
    cannot = f"cannot show a difference at {100 * ALPHA:g} %"
    reasons = (
        (c.n == 0 and c.metric == "sd", "an SD takes problems with the same k, of at least 2"),
        (c.n == 0, "no problem that is the same under both has results"),
        (c.n < FEWEST, f"{c.n} {'problem' if c.n == 1 else 'problems'} {cannot}"),
        (c.differing == 0, f"all {c.n} problems came out alike, from which nothing can be concluded"),
        (c.differing < FEWEST, f"only {c.differing} of {c.n} problems differ, which {cannot}"),
        (c.p_t is None, f"all {c.n} problems differ by the same amount: nothing can be tested"),
        (c.least_p * tests >= ALPHA, f"{c.differing} differing problems {cannot} among {tests} comparisons"),
    )
    return next((reason for holds, reason in reasons if holds), "")


def _common(a: Entry, b: Entry) -> list[tuple[int, int]]:
    """Places of the problems that are complete under both, in A's order; while one is incomplete, begun.

    Those that are not the same under both are left out.
    """
    sure, changed = a.complete and b.complete, changed_problems(a, b)
    ours, theirs = (entry.done if sure else entry.valid > 0 for entry in (a, b))
    there = {problem: place for place, problem in enumerate(b.problem_ids) if theirs[place]}
    return [
        (place, there[problem])
        for place, problem in enumerate(a.problem_ids)
        if ours[place] and problem in there and problem not in changed
    ]


def _contents(entry: Entry) -> dict[str, tuple[float, Mapping[str, str]]]:
    """T and what is recorded of each problem."""
    recorded = {
        problem: run.settings.contents.get(problem, {}) for run, _ in entry.parts for problem in run.problems
    }
    totals = zip(entry.problem_ids, entry.totals.tolist(), strict=True)
    return {problem: (total, recorded[problem]) for problem, total in totals}


def _directories(entry: Entry) -> str:
    return " + ".join(sorted({str(run.directory) for run, _ in entry.parts}))


def _left_out(names: tuple[str, ...], changed: Mapping[str, str], common: int) -> str:
    told = [f"{problem} ({what})" for problem, what in changed.items()]
    if len(told) > _MOST_NAMED:
        told[_MOST_NAMED:] = [f"{len(told) - _MOST_NAMED} more"]
    return (
        f"{' and '.join(names)}: {len(changed)} of {common} common problems are not the same in both and are"
        f" not compared: {', '.join(told)}."
    )
