"""The leaderboard (Table 3 of the paper) with its uncertainty, consistency and reliability."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from astra_async.listing import some
from astra_async.report.audited import audited, sensitivity
from astra_async.report.costs import mean_cost_usd, partly_known
from astra_async.report.entries import ranked
from astra_async.report.pairwise import changed_problems
from astra_async.report.problem_tables import provisional_tests
from astra_async.report.table import WHO, Column, Table
from astra_async.stats.intervals import median_interval, run_only_interval, total_interval
from astra_async.stats.spread import g_pass_at, mg_pass_at, pass_at, pass_hat, rms_within_sd

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from astra_async.report.entries import Entry
    from astra_async.report.pairwise import Found, Standing

_M = (2, 4, 8)  # the m of pass@m and pass^m
_MG = 8  # the m of mG-Pass@m

_INTERVALS = {
    "total": ("new problems", "over problems, recorded families drawn together: a new set like these"),
    "run_only": ("new samples", "for these very problems with new samples"),
}


def _interval(name: str, title: str, kind: str) -> Column:
    of, note = _INTERVALS[kind]
    return Column(f"{name}_{kind}", f"{title}, {of}", "percent", interval=True, help=f"95 % interval {note}")


def _half_pass(m: int, k: int, c: int) -> float:
    """G-Pass@m at a threshold of one half."""
    return g_pass_at(m, k, c, (m + 1) // 2)


class _Estimate(NamedTuple):
    """A chance over m of k samples: a column, how it is estimated for a problem, and m."""

    title: str
    help: str
    m: int
    of: Callable[[int, int, int], float]


_ESTIMATES = {
    **{f"pass_at_{m}": _Estimate(f"Pass@{m} %", f"at least one of {m} passes", m, pass_at) for m in _M},
    **{f"pass_hat_{m}": _Estimate(f"Pass^{m} %", f"all of {m} pass", m, pass_hat) for m in _M},
    f"g_pass_at_{_MG}": _Estimate(f"G-Pass@{_MG} %", f"at least half of {_MG} pass", _MG, _half_pass),
    f"mg_pass_at_{_MG}": _Estimate(
        f"mG-Pass@{_MG} %", f"G-Pass@{_MG} averaged over thresholds from half to all", _MG, mg_pass_at
    ),
}
_PASSES = tuple(Column(name, each.title, "percent", help=each.help) for name, each in _ESTIMATES.items())
_PASS_INTERVALS = tuple(
    Column(f"{name}_interval", f"{each.title}, 95 %", "percent", interval=True, help="for new problems")
    for name, each in _ESTIMATES.items()
)
_COLUMNS = (
    *WHO,
    Column("complete", "Complete", help="every planned sample of every problem is valid"),
    Column("n", "n", "count", help="problems"),
    Column("k", "k", "count", help="samples of each problem"),
    Column("planned", "Planned", "count", help="samples planned, n x k"),
    Column("valid", "Valid", "count", help="samples scored or without a solution"),
    Column("missing", "Missing", "count", help="planned samples without a result"),
    Column("no_solution", "No solution", "count", help="valid samples, 0 of T"),
    Column("mean_score", "Mean score %", "percent", help="equation 1 of the paper"),
    Column("pass_at_1", "Pass@1 %", "percent", help="equation 2 of the paper"),
    Column("median_sd", "Median SD", "score", help="equation 5 of the paper, ddof = 0"),
    *(_interval("mean_score", "Mean score", kind) for kind in _INTERVALS),
    *(_interval("pass_at_1", "Pass@1", kind) for kind in _INTERVALS),
    Column(
        "median_sd_interval",
        "Median SD, new problems",
        "score",
        interval=True,
        help="95 % interval with this k, between two of the problems' SDs; from six problems on",
    ),
    Column("rms_within_sd", "RMS within-SD", "score", help="ddof = 1; independent of k"),
    Column("between_sd", "Between-SD", "score", help="spread of problem means, ANOVA"),
    Column("icc", "ICC(1)", "score", help="share of the variance between problems"),
    *_PASSES,
    *_PASS_INTERVALS,
    Column("against_best", "Against the best", help="of the same format, by mean score: see pairwise.csv"),
    Column("flagged", "Flagged %", "percent", help="audited samples that pass a test and its mutated form"),
    Column("flagged_interval", "Flagged, 95 %", "percent", interval=True, help="for a new set of problems"),
    Column("cost_per_sample", "$ each", "usd", help="US dollars for a sample, all attempts"),
    Column("problems_begun", "Problems begun", "count", help="with a valid sample"),
    Column("problems_done", "Problems done", "count", help="with all k samples valid"),
)
_AGAINST_BEST: dict[Standing, str] = {  # what the best is against an entry, told of the entry
    "better": "behind",
    "worse": "ahead",
    "equivalent": "equivalent",
    "inconclusive": "not separable",
    "incomparable": "no common problem",
}
_OTHER_PROBLEMS = (
    "The rows are not all of the same problems, so that their means cannot be compared: pairs of models are,"
    " on the problems that both have."
)
_MIXED_K = (
    "No k: the problems of that row have different k. A median SD over them depends on the mixture: compare"
    " it only with one of the same."
)
_PROVISIONAL = (
    "~ is provisional: samples are missing, and the problems begun may be the easier or the harder ones;"
    " `astra status` names the command that fills them in."
)


def leaderboard(
    entries: Sequence[Entry], compared: Found, looks: Mapping[frozenset[str], Mapping[str, Standing]]
) -> Table:
    """Everything known of each entry, best mean score first, incomplete entries last.

    `compared` are the concluded pairs of the same entries, `looks` those of `deciding.looked_at`; without
    them nothing is said against the best.

    One wide table (leaderboard.csv); the functions below cut the tables for people out of it. The numbers
    of an incomplete entry are those of its valid samples so far, over the problems it has begun; its
    `complete` is false, and people see them with a tilde.
    """
    in_order = ranked(entries)
    items = (
        _record(entry) | {"against_best": _against_best(entry, in_order, compared, looks)}
        for entry in in_order
    )
    return Table.of("leaderboard", "Leaderboard", _COLUMNS, items, notes=_notes(entries), provisional=True)


def headline(wide: Table) -> Table:
    """The paper's Table 3 with interval, cost and counts; narrow enough for a terminal of 80 columns."""
    several = len(set(wide.column("format"))) > 1
    table = wide.only(
        *(("model", "format") if several else ("model",)),
        *("mean_score", "mean_score_total", "pass_at_1", "median_sd"),
        *(("flagged",) if any(wide.column("flagged")) else ()),
        *(("cost_per_sample",) if any(wide.column("cost_per_sample")) else ()),
        *("n", "k", "valid", "planned"),
    )
    columns = [replace(column, title="95 %") if column.interval else column for column in table.columns]
    valid = Column("valid", "Valid", "count", help="valid samples / samples planned")
    rows = tuple((*row[:-2], f"{row[-2]}/{row[-1]}") for row in table.rows)
    return replace(table, columns=(*columns[:-2], valid), rows=rows, within=wide.name)


def uncertainty(wide: Table) -> Table:
    """What the headline numbers would do with new problems, and with new samples."""
    table = wide.only(
        *("model", "format", "mean_score", "mean_score_total", "mean_score_run_only"),
        *("pass_at_1", "pass_at_1_total", "pass_at_1_run_only"),
    )
    note = (
        "New problems: for statements about problems like these. New samples: these very problems, only the"
        " model's own variability. Samples are never treated as n x k independent trials. Intervals are not"
        " symmetric near 0 and 100, and have a width even where all problems came out alike."
    )
    return _part(table, "uncertainty", "Uncertainty", [note])


def consistency(wide: Table) -> Table:
    """How much repeated samples of the same problem differ."""
    spread = ("median_sd", "median_sd_interval", "rms_within_sd", "between_sd", "icc")
    table = wide.only("model", "format", "k", *spread)
    notes = [
        (
            "Median SD follows the paper (population SD, ddof = 0) and depends on k: compare it between equal"
            " k only. RMS within-SD (ddof = 1) does not depend on k. SDs are on the scale from 0 to 1."
        ),
    ]
    if any(isinstance(cell, tuple) and cell[0] == cell[1] for cell in table.column("median_sd_interval")):
        notes.append("[0.000, 0.000]: so many problems never vary that the median would be 0 again.")
    if any(k == 1 for k in table.column("k")):
        notes.append("One sample of a problem has no SD: consistency takes k of at least 2.")
    if _MIXED_K in wide.notes:
        notes.append(_MIXED_K)
    return _part(table, "consistency", "Consistency", notes)


def reliability(wide: Table) -> Table:
    """What one gets from several samples: at least one right, or all of them."""
    note = (
        "Estimated without bias from k samples, averaged over problems. Pass@m: at least one of m samples"
        " passes all tests. Pass^m: all m do. G-Pass@m: at least half of m do. mG-Pass@m: averaged over"
        " thresholds from half of m to m."
    )
    table = wide.only("model", "format", "k", "pass_at_1", *_known(wide, _PASSES))
    return _part(table, "reliability", "Reliability", [note])


def reliability_intervals(wide: Table) -> Table:
    """The intervals of what `reliability` shows."""
    note = "95 % intervals for a new set of problems like these; recorded families are drawn together."
    table = wide.only("model", "format", "k", *_known(wide, _PASS_INTERVALS))
    return _part(table, "reliability_intervals", "Reliability, 95 % intervals", [note])


def _known(wide: Table, columns: Sequence[Column]) -> list[str]:
    names = [column.name for column in columns]
    return [name for name in names if any(cell is not None for cell in wide.column(name))]


def _part(table: Table, name: str, title: str, notes: Sequence[str]) -> Table:
    """Columns of the wide table as a table of their own."""
    return replace(table, name=name, within="leaderboard", title=title, notes=tuple(notes))


def curves(entries: Sequence[Entry]) -> Table:
    """Pass@m and pass^m for m from 1 to the fewest samples that a begun problem of the entry has."""
    columns = (
        *WHO,
        Column("m", "m", "count", help="samples that are looked at"),
        Column("pass_at", "Pass@m %", "percent", help="at least one passes all tests"),
        Column("pass_hat", "Pass^m %", "percent", help="all m do"),
    )
    items = (
        entry.who
        | {
            "m": m,
            "pass_at": _over_problems(entry, m, pass_at),
            "pass_hat": _over_problems(entry, m, pass_hat),
        }
        for entry in entries
        for m in range(1, min(entry.begun(entry.valid).tolist(), default=0) + 1)
    )
    return Table.of("curves", "Pass@m and pass^m for every m", columns, items, provisional=True)


def _against_best(
    entry: Entry,
    in_order: Sequence[Entry],
    compared: Found,
    looks: Mapping[frozenset[str], Mapping[str, Standing]],
) -> str:
    """What the comparison with the first entry of the same format has shown."""
    best = next(each for each in in_order if each.format == entry.format)
    standings = {
        pair.b.name: concluded["mean_score"].standing for pair, concluded in compared if pair.a is best
    }
    of_best = (each for each in looks.values() if best.name in each)
    standings |= {name: each[best.name] for each in of_best for name in each if name != best.name}
    if entry is not best:
        return _AGAINST_BEST[standings[entry.name]] if entry.name in standings else ""
    rivals = [each for each in in_order if each.format == entry.format and each.summary.valid]
    if len(rivals) < 2:  # noqa: PLR2004 - no other to be better than
        return ""
    if not entry.complete:
        return "highest so far"
    complete = [each for each in rivals if each.complete and each is not best]
    if any(standings.get(each.name) != "better" for each in complete):
        return "highest mean"
    return "best" if len(complete) == len(rivals) - 1 else "best of the complete"


def _record(entry: Entry) -> dict[str, Any]:
    summary, split, several = entry.summary, entry.split, entry.valid > 1
    means, passes, found = entry.begun(entry.means), entry.begun(entry.passes), audited(entry)
    families, (scores, passed, places) = entry.families_of(entry.valid > 0), entry.sampled()
    return asdict(summary) | {
        "label": entry.label,
        "n": summary.problems,
        "mean_score_total": total_interval(means, families),
        "mean_score_run_only": run_only_interval(means, scores, places),
        "pass_at_1_total": total_interval(passes, families),
        "pass_at_1_run_only": run_only_interval(passes, passed, places),
        "median_sd_interval": median_interval(entry.sds[several], entry.families_of(several)),
        "rms_within_sd": rms_within_sd(entry.score_variances),
        "between_sd": math.sqrt(split.between) if split else None,
        "icc": split.icc if split else None,
        **{name: _over_problems(entry, each.m, each.of) for name, each in _ESTIMATES.items()},
        **{
            f"{name}_interval": _interval_over_problems(entry, each, families)
            for name, each in _ESTIMATES.items()
        },
        "flagged": found.share,
        "flagged_interval": found.interval,
        "cost_per_sample": mean_cost_usd(entry),
    }


def _over_problems(entry: Entry, m: int, function: Callable[[int, int, int], float]) -> float | None:
    """Mean over the begun problems of pass@m or its relatives; None where one has fewer than m samples."""
    values = _by_problem(entry, m, function)
    return math.fsum(values) / len(values) if values else None


def _interval_over_problems(
    entry: Entry, estimate: _Estimate, families: NDArray[np.str_] | None
) -> tuple[float, float] | None:
    values = _by_problem(entry, estimate.m, estimate.of)
    return total_interval(np.array(values), families) if values else None


def _by_problem(entry: Entry, m: int, function: Callable[[int, int, int], float]) -> list[float]:
    """The estimate of each begun problem; none where one has fewer than m samples."""
    valid, perfect = entry.begun(entry.valid).tolist(), entry.begun(entry.perfect).tolist()
    if min(valid, default=0) < m:
        return []
    return [function(m, k, c) for k, c in zip(valid, perfect, strict=True)]


def _provisional(entries: Sequence[Entry]) -> str:
    """Return the note on problems whose number of tests no complete run confirms."""
    directories = {run.directory for entry in entries for run, _ in entry.parts}
    found = {name: why for each in sorted(directories) for name, why in provisional_tests(each).items()}
    if not found:
        return ""
    first = next(iter(found))
    return (
        f"The number of tests is provisional for {len(found)} problems ({some(list(found))})."
        f" {first}: {found[first]}."
    )


def _notes(entries: Sequence[Entry]) -> list[str]:
    notes = [
        (
            "Mean score and pass@1 in %, median SD (0 to 1) with ddof = 0. The 95 % interval is"
            " for the mean score on a new set of problems like these."
        )
    ]
    if not all(entry.complete for entry in entries):
        notes.append(_PROVISIONAL)
    if any(
        set(entry.problem_ids) != set(entries[0].problem_ids) or changed_problems(entry, entries[0])
        for entry in entries
    ):
        notes.append(_OTHER_PROBLEMS)
    if any(entry.summary.k is None and entry.summary.median_sd is not None for entry in entries):
        notes.append(_MIXED_K)
    elif len({entry.summary.k for entry in entries}) > 1:
        notes.append("The rows have different k: their median SDs cannot be compared.")
    notes += filter(None, map(sensitivity, entries))
    notes += filter(None, [_provisional(entries)])
    notes += filter(None, map(partly_known, entries))
    return notes
