"""The leaderboard (Table 3 of the paper) with its uncertainty, consistency and reliability."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from astra_async.report.table import WHO, Column, Table
from astra_async.stats.intervals import clustered_interval, run_only_interval, total_interval
from astra_async.stats.passes import mg_pass_at, pass_at, pass_hat
from astra_async.stats.spread import (
    median_interval,
    median_sd_run_interval,
    rms_within_sd,
    variance_split,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from astra_async.report.entries import Entry
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
        help="95 % t interval over the problems: a new set of problems like these",
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
        help="95 % t interval over the problems",
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
        help="new problems: bootstrap over problems (BCa)",
    ),
    Column(
        name="median_sd_run_interval",
        title="Median SD, new samples",
        kind="score",
        interval=True,
        help="these problems: bootstrap of each problem's samples",
    ),
    Column(name="rms_within_sd", title="RMS within-SD", kind="score", help="ddof = 1; independent of k"),
    Column(name="between_sd", title="Between-SD", kind="score", help="spread of problem means, ANOVA"),
    Column(name="icc", title="ICC(1)", kind="score", help="share of the variance between problems"),
)
_SO_FAR = (
    Column(name="problems_begun", title="Problems begun", kind="count", help="with a valid sample"),
    Column(name="problems_done", title="Problems done", kind="count", help="with all k samples valid"),
    Column(name="mean_score_so_far", title="Mean score so far %", kind="percent", help="begun problems"),
    Column(name="pass_at_1_so_far", title="Pass@1 so far %", kind="percent", help="begun problems"),
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
_WITHHELD = (
    "Incomplete: the headline is withheld until every problem has its k valid samples; run the same command"
    " again to fill in what is missing."
)


def leaderboard(entries: Sequence[Entry]) -> Table:
    """Everything known of each entry, best mean score first, incomplete entries last.

    One wide table (leaderboard.csv); the functions below cut the tables for people out of it. Headline
    numbers and what is derived from them are None for an incomplete entry.
    """
    rows = [_row(entry) for entry in sorted(entries, key=_rank)]
    columns = (*WHO, *_COUNTS, *_HEADLINE, *_INTERVALS, *_SPREAD, *_PASSES, *_SO_FAR)
    return Table(
        name="leaderboard",
        title="Leaderboard",
        columns=columns,
        rows=tuple(rows),
        notes=tuple(_notes(entries)),
    )


def headline(wide: Table) -> Table:
    """The paper's Table 3 with interval and counts; narrow enough for a terminal of 80 columns."""
    table = wide.only(
        *("model", "format", "mean_score", "mean_score_total", "pass_at_1", "median_sd"),
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
    notes = [
        (
            "New problems: t interval over the n problem means, for statements about problems like these. "
            "New samples: these very problems, only the model's own variability. Samples are never treated as"
            " n x k independent trials."
        )
    ]
    if any(isinstance(cell, tuple) and cell[0] == cell[1] for row in table.rows for cell in row):
        notes.append(
            "An interval without width means that all problems (or samples) came out alike, not that the"
            " number is certain."
        )
    return replace(table, name="uncertainty", title="Uncertainty", notes=tuple(notes))


def consistency(wide: Table) -> Table:
    """How much repeated samples of the same problem differ."""
    table = wide.only(
        "model",
        "format",
        "k",
        "median_sd",
        "median_sd_interval",
        "median_sd_run_interval",
        "rms_within_sd",
        "between_sd",
        "icc",
    )
    notes = (
        (
            "Median SD follows the paper (population SD, ddof = 0) and depends on k: compare it between equal"
            " k only. RMS within-SD (ddof = 1) does not depend on k. SDs are on the scale from 0 to 1."
        ),
    )
    return replace(table, name="consistency", title="Consistency", notes=notes)


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
        title="Reliability",
        notes=notes,
    )


def so_far(wide: Table) -> Table:
    """The incomplete entries, with what their valid samples say so far."""
    complete = wide.column("complete")
    table = wide.only("model", "format", "valid", "planned", *(column.name for column in _SO_FAR))
    rows = tuple(row for row, done in zip(table.rows, complete, strict=True) if not done)
    notes = ("Over the problems begun, which may be the easier or the harder ones: no headline.",)
    return Table(name="so_far", title="Incomplete: so far", columns=table.columns, rows=rows, notes=notes)


def _rank(entry: Entry) -> tuple[bool, float, str, str]:
    score = entry.summary.mean_score
    return not entry.summary.complete, -(score if score is not None else -1.0), entry.label, entry.format


def _row(entry: Entry) -> tuple[Cell, ...]:
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
    so_far_cells: tuple[Cell, ...] = (
        summary.problems_begun,
        summary.problems_done,
        summary.mean_score,
        summary.pass_at_1,
    )
    derived = len(_HEADLINE) + len(_INTERVALS) + len(_SPREAD) + len(_PASSES)
    return (
        entry.label,
        entry.format,
        *counts,
        *(_derived(entry) if summary.complete else (None,) * derived),
        *so_far_cells,
    )


def _derived(entry: Entry) -> tuple[Cell, ...]:
    summary = entry.summary
    return (
        summary.mean_score,
        summary.pass_at_1,
        summary.median_sd,
        _pair(total_interval(entry.means)),
        _pair(run_only_interval(entry.means, entry.score_variances, entry.valid)),
        _clustered(entry),
        _pair(total_interval(entry.passes)),
        _pair(run_only_interval(entry.passes, entry.pass_variances, entry.valid)),
        median_interval(entry.sds),
        median_sd_run_interval(entry.samples()),
        rms_within_sd(entry.score_variances),
        *_split(entry),
        *(_over_problems(entry, m, pass_at) for m in _M),
        *(_over_problems(entry, m, pass_hat) for m in _M),
        _over_problems(entry, _MG, mg_pass_at),
    )


def _split(entry: Entry) -> tuple[Cell, Cell]:
    split = variance_split(entry.means, entry.score_variances, entry.valid)
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
    return _pair(clustered_interval(entry.means, families))


def _over_problems(entry: Entry, m: int, function: Callable[[int, int, int], float]) -> float | None:
    """Mean over problems of pass@m or its relatives; None where a problem has fewer than m samples."""
    if bool((entry.valid < m).any()):
        return None
    values = [function(m, k, c) for k, c in zip(entry.valid.tolist(), entry.perfect.tolist(), strict=True)]
    return math.fsum(values) / len(values)


def _pair(estimate: Estimate | None) -> tuple[float, float] | None:
    """An interval clipped to where a score can lie."""
    if estimate is None:
        return None
    low, high = np.clip([estimate.low, estimate.high], 0, 1).tolist()
    return low, high


def _notes(entries: Sequence[Entry]) -> list[str]:
    notes = [
        (
            "Mean score and pass@1 in %, median SD (0 to 1) with ddof = 0. The 95 % interval is"
            " for the mean score on a new set of problems like these."
        )
    ]
    if not all(entry.summary.complete for entry in entries):
        notes.append(_WITHHELD)
    if len({entry.summary.k for entry in entries}) > 1:
        notes.append("The rows have different k: their median SDs cannot be compared.")
    return notes
