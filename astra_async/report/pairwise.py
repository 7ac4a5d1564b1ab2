"""All pairs of models, paired over problems (paper, section 4.1), one Holm family for each metric.

The paper's t-test is printed first; the Wilcoxon and sign-flip tests beside it need no normality, which
the paper itself doubts for SDs. Only problems with all their samples under both models count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

from astra_async.report.table import Column, Table
from astra_async.stats.paired import equivalence, paired_t, sign_flip, verdict, wilcoxon
from astra_async.stats.power import minimum_detectable_effect
from astra_async.stats.several import holm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from astra_async.report.entries import Entry, Floats
    from astra_async.report.table import Cell, Kind

Metric = Literal["mean_score", "pass_at_1", "sd"]
_P_VALUES = ("p_t", "p_wilcoxon", "p_permutation", "p_equivalence")
METRICS: dict[Metric, str] = {"mean_score": "Mean score", "pass_at_1": "Pass@1", "sd": "SD"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A against B on one metric over n common problems; None where n is too small for a number.

    `difference` is A - B, `smallest_effect` the difference that this comparison would have found with
    80 % power at alpha = 5 %, all on the metric's own scale from 0 to 1.
    """

    metric: Metric
    n: int
    a: float | None
    b: float | None
    difference: float | None
    interval: tuple[float, float] | None
    sd: float | None
    t: float | None
    p_t: float | None
    p_wilcoxon: float | None
    p_permutation: float | None
    p_equivalence: float | None
    smallest_effect: float | None


def compare_values(metric: Metric, a: Floats, b: Floats, margin: float) -> Comparison:
    """Every paired test of two aligned arrays over problems."""
    test = paired_t(a, b)
    n = len(a)
    effect = minimum_detectable_effect(n)
    return Comparison(
        metric=metric,
        n=n,
        a=math.fsum(a) / n if n else None,
        b=math.fsum(b) / n if n else None,
        difference=test.difference if test else None,
        interval=(test.low, test.high) if test else None,
        sd=test.sd if test else None,
        t=test.t if test else None,
        p_t=test.p if test else None,
        p_wilcoxon=wilcoxon(a, b) if test else None,
        p_permutation=sign_flip(a, b) if test else None,
        p_equivalence=equivalence(a, b, margin),
        smallest_effect=effect * test.sd if test and effect is not None else None,
    )


def compare_entries(a: Entry, b: Entry, margin: float) -> Iterator[Comparison]:
    """Two entries on every metric; SDs only over problems with the same k, for they depend on it."""
    places = _common(a, b)
    here, there = [one for one, _ in places], [other for _, other in places]
    yield compare_values("mean_score", a.means[here], b.means[there], margin)
    yield compare_values("pass_at_1", a.passes[here], b.passes[there], margin)
    same = [(one, other) for one, other in places if a.planned[one] == b.planned[other]]
    here, there = [one for one, _ in same], [other for _, other in same]
    yield compare_values("sd", a.sds[here], b.sds[there], margin)


def pairwise(entries: Sequence[Entry], margin: float) -> Table:
    """One row for each pair and metric, pairs of one format only (pairwise.csv); see `for_people`."""
    rows: list[tuple[Cell, ...]] = []
    for answer_format in dict.fromkeys(entry.format for entry in entries):
        ranked = sorted((entry for entry in entries if entry.format == answer_format), key=_rank)
        pairs = list(combinations(ranked, 2))
        compared = [list(compare_entries(a, b, margin)) for a, b in pairs]
        for place in range(len(METRICS)):
            rows += _family(pairs, [comparisons[place] for comparisons in compared])
    return Table(
        name="pairwise",
        title="Pairs of models",
        columns=_columns("text"),
        rows=tuple(rows),
        notes=tuple(_notes(margin)),
    )


def for_people(wide: Table) -> Iterator[Table]:
    """One table for each metric, with the columns that matter most."""
    metrics = wide.column("metric")
    for metric, title in METRICS.items():
        rows = tuple(row for row, named in zip(wide.rows, metrics, strict=True) if named == metric)
        whole = Table(
            name=f"pairwise_{metric}",
            title=f"Pairs on {title if metric == 'sd' else title.lower()}",
            columns=_columns("signed" if metric == "sd" else "points"),
            rows=rows,
            notes=wide.notes if metric == "mean_score" else (),
        )
        yield whole.only(
            *("format", "a", "b", "n", "difference", "difference_interval", "p_t", "p_t_holm"),
            *("p_wilcoxon", "p_permutation", "smallest_effect", "verdict"),
        )


def _columns(kind: Kind) -> tuple[Column, ...]:
    """All columns; differences of SD are shown on their own scale, others in points."""
    size: Kind = "score" if kind == "signed" else "percent"
    return (
        Column(name="metric", title="Metric"),
        Column(name="format", title="Format"),
        Column(name="a", title="A"),
        Column(name="b", title="B"),
        Column(name="n", title="n", kind="count", help="problems with all samples under both"),
        Column(name="a_value", title="A's value", kind=size),
        Column(name="b_value", title="B's value", kind=size),
        Column(name="difference", title="A - B", kind=kind, help="mean difference over problems"),
        Column(
            name="difference_interval",
            title="95 % interval",
            kind=kind,
            interval=True,
            help="paired t interval over problems",
        ),
        Column(name="sd_difference", title="SD of differences", kind="score", help="ddof = 1"),
        Column(name="t", title="t", kind="number", help="n - 1 degrees of freedom"),
        Column(name="p_t", title="p, t-test", kind="p", help="paired, two-sided"),
        Column(name="p_t_holm", title="Holm", kind="p", help="adjusted for all pairs of this metric"),
        Column(name="p_wilcoxon", title="Wilcoxon", kind="p", help="signed ranks, zeros as Pratt"),
        Column(name="p_wilcoxon_holm", title="Wilcoxon, Holm", kind="p"),
        Column(name="p_permutation", title="Sign flips", kind="p", help="permutation test"),
        Column(name="p_permutation_holm", title="Sign flips, Holm", kind="p"),
        Column(name="p_equivalence_holm", title="Equivalence, Holm", kind="p", help="two one-sided tests"),
        Column(
            name="smallest_effect",
            title="Detectable effect",
            kind=size,
            help="smallest difference found with 80 % power at alpha 5 %, unadjusted",
        ),
        Column(name="verdict", title="Verdict", help="after Holm"),
    )


def adjusted(compared: Sequence[Comparison]) -> list[dict[str, float | None]]:
    """Holm-adjusted p-values of one family of comparisons, by field name; None where there is no test.

    Comparisons without enough problems take no part in the adjustment.
    """
    tested = [place for place, comparison in enumerate(compared) if comparison.p_t is not None]
    found: list[dict[str, float | None]] = [dict.fromkeys(_P_VALUES) for _ in compared]
    for name in _P_VALUES:
        values = holm([getattr(compared[place], name) for place in tested]).tolist()
        for place, value in zip(tested, values, strict=True):
            found[place][name] = value
    return found


def _family(pairs: Sequence[tuple[Entry, Entry]], compared: Sequence[Comparison]) -> list[tuple[Cell, ...]]:
    """The rows of one metric and format."""
    return [_row(*pair, c, p) for pair, c, p in zip(pairs, compared, adjusted(compared), strict=True)]


def _row(a: Entry, b: Entry, c: Comparison, holm_p: dict[str, float | None]) -> tuple[Cell, ...]:
    return (
        c.metric,
        a.format,
        a.label,
        b.label,
        c.n,
        c.a,
        c.b,
        c.difference,
        c.interval,
        c.sd,
        c.t,
        c.p_t,
        holm_p["p_t"],
        c.p_wilcoxon,
        holm_p["p_wilcoxon"],
        c.p_permutation,
        holm_p["p_permutation"],
        holm_p["p_equivalence"],
        c.smallest_effect,
        said(c, holm_p, (a.label, b.label)),
    )


def said(comparison: Comparison, holm_p: Mapping[str, float | None], names: tuple[str, str]) -> str:
    """The verdict in words, from adjusted p-values; a lower SD is the better one."""
    p, p_equivalence = holm_p["p_t"], holm_p["p_equivalence"]
    if comparison.difference is None or p is None or p_equivalence is None:
        return "too few problems"
    found = verdict(comparison.difference, p, p_equivalence)
    if found in ("equivalent", "inconclusive"):
        return found
    lower_wins = comparison.metric == "sd"
    winner = names[0] if (found == "better") != lower_wins else names[1]
    return f"{winner} {'steadier' if lower_wins else 'better'}"


def _common(a: Entry, b: Entry) -> list[tuple[int, int]]:
    """Places of the problems that are complete under both, in A's order."""
    there = {problem: place for place, problem in enumerate(b.problem_ids) if b.done[place]}
    return [
        (place, there[problem])
        for place, problem in enumerate(a.problem_ids)
        if a.done[place] and problem in there
    ]


def _rank(entry: Entry) -> tuple[float, str]:
    score = entry.summary.mean_score
    return (-score if score is not None else 1.0), entry.label


def _notes(margin: float) -> Iterator[str]:
    yield (
        "Paired over problems. Holm's adjustment covers all pairs of one metric and format. The verdict uses "
        f"adjusted p-values: equivalent when a difference of {100 * margin:g} points or more (for SD: "
        f"{margin:g}) can be excluded, better or worse when no difference can be, else inconclusive."
    )
