"""The leaderboard (Table 3 of the paper) with its uncertainty, consistency and reliability."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING

from astra_async.report.costs import mean_cost_usd
from astra_async.report.table import WHO, Column, Table
from astra_async.stats.intervals import (
    clustered_interval,
    median_interval,
    run_only_interval,
    total_interval,
)
from astra_async.stats.passes import mg_pass_at, pass_at, pass_hat
from astra_async.stats.spread import rms_within_sd, variance_split

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from astra_async.report.entries import Entry
    from astra_async.report.pairwise import Judged, Metric, Pair
    from astra_async.report.table import Cell
    from astra_async.stats.intervals import Estimate

_M = (2, 4, 8)  # the m of pass@m and pass^m
_MG = 8  # the m of mG-Pass@m

_COUNTS = (
    Column(name="complete", title="Complete", help="every planned sample of every problem is valid"),
    Column(name="n", title="n", kind="count", help="problems"),
    Column(name="k", title="k", kind="count", help="samples of each problem"),
    Column(name="planned", title="Planned", kind="count", help="samples planned, n x k"),
    Column(name="valid", title="Valid", kind="count", help="samples scored or without a solution"),
    Column(name="missing", title="Missing", kind="count", help="planned samples without a result"),
    Column(name="no_solution", title="No solution", kind="count", help="valid samples, 0 of T"),
)
_HEADLINE = (
    Column(name="mean_score", title="Mean score %", kind="percent", help="equation 1 of the paper"),
    Column(name="pass_at_1", title="Pass@1 %", kind="percent", help="equation 2 of the paper"),
    Column(name="median_sd", title="Median SD", kind="score", help="equation 5 of the paper, ddof = 0"),
)
_INTERVALS = (
    Column(
        name="mean_score_total",
        title="Mean score, new problems",
        kind="percent",
        interval=True,
        help="95 % interval over the problems: a new set of problems like these",
    ),
    Column(
        name="mean_score_run_only",
        title="Mean score, new samples",
        kind="percent",
        interval=True,
        help="95 % interval for these very problems with new samples",
    ),
    Column(
        name="mean_score_clustered",
        title="Mean score, by family",
        kind="percent",
        interval=True,
        help="95 % interval with families of problems as clusters",
    ),
    Column(
        name="pass_at_1_total",
        title="Pass@1, new problems",
        kind="percent",
        interval=True,
        help="95 % interval over the problems: a new set of problems like these",
    ),
    Column(
        name="pass_at_1_run_only",
        title="Pass@1, new samples",
        kind="percent",
        interval=True,
        help="95 % interval for these very problems with new samples",
    ),
)
_SPREAD = (
    Column(
        name="median_sd_interval",
        title="Median SD, new problems",
        kind="score",
        interval=True,
        help="95 % interval with this k, between two of the problems' SDs; from six problems on",
    ),
    Column(name="rms_within_sd", title="RMS within-SD", kind="score", help="ddof = 1; independent of k"),
    Column(name="between_sd", title="Between-SD", kind="score", help="spread of problem means, ANOVA"),
    Column(name="icc", title="ICC(1)", kind="score", help="share of the variance between problems"),
)
_STANDING = (
    Column(
        name="against_best",
        title="Against the best",
        help="of the same format, by mean score: see pairwise.csv",
    ),
    Column(name="cost_per_sample", title="$ each", kind="usd", help="US dollars for a sample, all attempts"),
)
_BEGUN = (
    Column(name="problems_begun", title="Problems begun", kind="count", help="with a valid sample"),
    Column(name="problems_done", title="Problems done", kind="count", help="with all k samples valid"),
)
_PASSES = (
    *(
        Column(
            name=f"pass_at_{m}",
            title=f"Pass@{m} %",
            kind="percent",
            help=f"at least one of {m} samples passes",
        )
        for m in _M
    ),
    *(
        Column(name=f"pass_hat_{m}", title=f"Pass^{m} %", kind="percent", help=f"all of {m} samples pass")
        for m in _M
    ),
    Column(
        name=f"mg_pass_at_{_MG}",
        title=f"mG-Pass@{_MG} %",
        kind="percent",
        help=f"G-Pass@{_MG} averaged over thresholds from half to all",
    ),
)
_PROVISIONAL = (
    "~ is provisional: samples are missing, and the problems begun may be the easier or the harder ones. Run "
    "the same command again to fill them in."
)


def leaderboard(entries: Sequence[Entry], compared: Sequence[tuple[Metric, Pair, Judged]]) -> Table:
    """Everything known of each entry, best mean score first, incomplete entries last.

    `compared` are the judged pairs of the same entries.

    One wide table (leaderboard.csv); the functions below cut the tables for people out of it. The numbers
    of an incomplete entry are those of its valid samples so far, over the problems it has begun; its
    `complete` is false, and people see them with a tilde.
    """
    ranked = sorted(entries, key=_rank)
    return Table(
        name="leaderboard",
        title="Leaderboard",
        columns=(*WHO, *_COUNTS, *_HEADLINE, *_INTERVALS, *_SPREAD, *_PASSES, *_STANDING, *_BEGUN),
        rows=tuple(_row(entry, _against_best(entry, ranked, compared)) for entry in ranked),
        notes=tuple(_notes(entries)),
        provisional=frozenset(place for place, entry in enumerate(ranked) if not entry.summary.complete),
    )


def headline(wide: Table) -> Table:
    """The paper's Table 3 with interval, cost and counts; narrow enough for a terminal of 80 columns."""
    several = len(set(wide.column("format"))) > 1
    table = wide.only(
        *(("model", "format") if several else ("model",)),
        *("mean_score", "mean_score_total", "pass_at_1", "median_sd"),
        *(("cost_per_sample",) if any(wide.column("cost_per_sample")) else ()),
        *("n", "k", "valid", "planned"),
    )
    columns = [replace(column, title="95 %") if column.interval else column for column in table.columns]
    valid = Column(name="valid", title="Valid", kind="count", help="valid samples / samples planned")
    rows = tuple((*row[:-2], f"{row[-2]}/{row[-1]}") for row in table.rows)
    return replace(table, columns=(*columns[:-2], valid), rows=rows)


def uncertainty(wide: Table) -> Table:
    """What the headline numbers would do with new problems, and with new samples."""
    names = ["model", "format", "mean_score", "mean_score_total", "mean_score_run_only"]
    if any(cell is not None for cell in wide.column("mean_score_clustered")):
        names.append("mean_score_clustered")
    table = wide.only(*names, "pass_at_1", "pass_at_1_total", "pass_at_1_run_only")
    notes = (
        (
            "New problems: for statements about problems like these. New samples: these very problems, only"
            " the model's own variability. Samples are never treated as n x k independent trials. Intervals"
            " are not symmetric near 0 and 100, and have a width even where all problems came out alike."
        ),
    )
    return replace(table, name="uncertainty", within="leaderboard", title="Uncertainty", notes=notes)


def consistency(wide: Table) -> Table:
    """How much repeated samples of the same problem differ."""
    table = wide.only(
        "model",
        "format",
        "k",
        "median_sd",
        "median_sd_interval",
        "rms_within_sd",
        "between_sd",
        "icc",
    )
    notes = [
        (
            "Median SD follows the paper (population SD, ddof = 0) and depends on k: compare it between equal"
            " k only. RMS within-SD (ddof = 1) does not depend on k. SDs are on the scale from 0 to 1."
        )
    ]
    if any(isinstance(cell, tuple) and cell[0] == cell[1] for cell in table.column("median_sd_interval")):
        notes.append("[0.000, 0.000]: so many problems never vary that the median would be 0 again.")
    if any(k == 1 for k in table.column("k")):
        notes.append("One sample of a problem has no SD: consistency takes k of at least 2.")
    return replace(table, name="consistency", within="leaderboard", title="Consistency", notes=tuple(notes))


def reliability(wide: Table) -> Table:
    """What one gets from several samples: at least one right, or all of them."""
    known = [column.name for column in _PASSES if any(cell is not None for cell in wide.column(column.name))]
    notes = (
        (
            "Estimated without bias from k samples, averaged over problems. Pass@m: at least one of m samples"
            " passes all tests. Pass^m: all m do. mG-Pass@m: averaged over thresholds from half of m to m."
        ),
    )
    return replace(
        wide.only("model", "format", "k", "pass_at_1", *known),
        name="reliability",
        within="leaderboard",
        title="Reliability",
        notes=notes,
    )


def _rank(entry: Entry) -> tuple[bool, float, str, str]:
    score = entry.summary.mean_score
    return not entry.summary.complete, -(score if score is not None else -1.0), entry.label, entry.format


def _against_best(
    entry: Entry, ranked: Sequence[Entry], compared: Sequence[tuple[Metric, Pair, Judged]]
) -> str:
    """What the comparison with the first entry of the same format has shown."""
    best = next(each for each in ranked if each.format == entry.format)
    rivals = [each for each in ranked if each.format == entry.format and each.summary.valid]
    if entry is best:
        if len(rivals) < 2:  # noqa: PLR2004 - nobody to be better than
            return ""
        if not entry.summary.complete:
            return "best so far"
        return "best" if all(each.summary.complete for each in rivals) else "best of the complete"
    found = (
        j for metric, pair, j in compared if metric == "mean_score" and pair.a is best and pair.b is entry
    )
    verdict = next((judged.verdict for judged in found), "inconclusive")
    return {"better": "behind", "equivalent": "equivalent"}.get(verdict, "not separable")


def _row(entry: Entry, against_best: str) -> tuple[Cell, ...]:
    summary = entry.summary
    counts: tuple[Cell, ...] = (
        summary.complete,
        summary.problems,
        summary.k,
        summary.planned,
        summary.valid,
        summary.missing,
        summary.no_solution,
    )
    return (
        entry.label,
        entry.format,
        *counts,
        *_derived(entry),
        against_best,
        mean_cost_usd(entry),
        summary.problems_begun,
        summary.problems_done,
    )


def _derived(entry: Entry) -> tuple[Cell, ...]:
    summary, begun = entry.summary, entry.valid > 0
    means, passes, valid = entry.means[begun], entry.passes[begun], entry.valid[begun]
    sds = entry.sds[entry.valid > 1]
    return (
        summary.mean_score,
        summary.pass_at_1,
        summary.median_sd,
        _pair(total_interval(means)),
        _pair(run_only_interval(means, entry.score_variances[begun], valid)),
        _clustered(entry),
        _pair(total_interval(passes)),
        _pair(run_only_interval(passes, entry.pass_variances[begun], valid)),
        median_interval(sds),
        rms_within_sd(entry.score_variances),
        *_split(entry),
        *(_over_problems(entry, m, pass_at) for m in _M),
        *(_over_problems(entry, m, pass_hat) for m in _M),
        _over_problems(entry, _MG, mg_pass_at),
    )


def _split(entry: Entry) -> tuple[Cell, Cell]:
    several = entry.valid > 1
    split = variance_split(entry.means[several], entry.score_variances[several], entry.valid[several])
    return (math.sqrt(split.between), split.icc) if split else (None, None)


def _clustered(entry: Entry) -> tuple[float, float] | None:
    """None unless some family holds several problems; a problem without a family is its own."""
    families = [
        run.settings.problems[problem].family or f"problem {problem}"
        for run, _ in entry.parts
        for problem in run.problems
    ]
    if len(set(families)) == len(families):
        return None
    begun = entry.valid > 0
    return _pair(clustered_interval(entry.means[begun], list(compress(families, begun))))


def _over_problems(entry: Entry, m: int, function: Callable[[int, int, int], float]) -> float | None:
    """Mean over the begun problems of pass@m or its relatives; None where one has fewer than m samples."""
    begun = entry.valid > 0
    if not begun.any() or bool((entry.valid[begun] < m).any()):
        return None
    pairs = zip(entry.valid[begun].tolist(), entry.perfect[begun].tolist(), strict=True)
    values = [function(m, k, c) for k, c in pairs]
    return math.fsum(values) / len(values)


def _pair(estimate: Estimate | None) -> tuple[float, float] | None:
    return (estimate.low, estimate.high) if estimate else None


def _notes(entries: Sequence[Entry]) -> list[str]:
    notes = [
        (
            "Mean score and pass@1 in %, median SD (0 to 1) with ddof = 0. The 95 % interval is"
            " for the mean score on a new set of problems like these."
        )
    ]
    if not all(entry.summary.complete for entry in entries):
        notes.append(_PROVISIONAL)
    if len({entry.summary.k for entry in entries}) > 1:
        notes.append("The rows have different k: their median SDs cannot be compared.")
    return notes
