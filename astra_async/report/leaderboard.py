"""Leaderboard (paper, table 3), with tables on uncertainty, consistency and reliability."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from astra_async.listing import some
from astra_async.report.audited import audited, sensitivity
from astra_async.report.common_problems import changed_problems
from astra_async.report.costs import mean_cost_usd, partly_known
from astra_async.report.entries import ranked
from astra_async.report.estimates import ESTIMATES, estimated
from astra_async.report.problem_tables import provisional_tests
from astra_async.report.table import ENTRY_COLUMNS, Column, Table
from astra_async.stats.intervals import median_interval, run_only_interval, total_interval
from astra_async.stats.spread import pass_at, pass_hat, rms_within_sd

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from astra_async.report.entries import Entry
    from astra_async.report.pairwise import Found, Standing

_INTERVALS = {
    "total": ("new problems", "for a new set of problems like these; recorded families are drawn together"),
    "run_only": ("new samples", "for new samples of the same problems"),
}


def _interval(name: str, title: str, kind: str) -> Column:
    of, note = _INTERVALS[kind]
    return Column(f"{name}_{kind}", f"{title}, {of}", "percent", interval=True, help=f"95 % interval {note}")


_PASSES = tuple(
    Column(name, f"{each.title} %", "percent", help=each.help) for name, each in ESTIMATES.items()
)
_PASS_INTERVALS = tuple(
    Column(f"{name}_interval", f"{each.title}, 95 %", "percent", interval=True, help="for new problems")
    for name, each in ESTIMATES.items()
)
_COLUMNS = (
    *ENTRY_COLUMNS,
    Column("complete", "Complete", help="every planned sample of every problem is valid"),
    Column("n", "n", "count", help="problems"),
    Column("k", "k", "count", help="samples of each problem"),
    Column("planned", "Planned", "count", help="samples planned, n x k"),
    Column("valid", "Valid", "count", help="samples scored or without a solution"),
    Column("missing", "Missing", "count", help="planned samples without a result"),
    Column("no_solution", "No solution", "count", help="valid samples without a usable answer, score 0"),
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
        help="95 % interval for new problems with the same k (order statistics); needs six problems",
    ),
    Column("rms_within_sd", "RMS within-SD", "score", help="ddof = 1; independent of k"),
    Column("between_sd", "Between-SD", "score", help="SD of problem means without sampling noise, by ANOVA"),
    Column("icc", "ICC(1)", "score", help="share of the variance between problems"),
    *_PASSES,
    *_PASS_INTERVALS,
    Column("against_best", "Against the best", help="by mean score, within the format; see pairwise.csv"),
    Column("flagged", "Flagged %", "percent", help="audited samples that pass a test and its mutated form"),
    Column("flagged_interval", "Flagged, 95 %", "percent", interval=True, help="for a new set of problems"),
    Column("cost_per_sample", "$ each", "usd", help="US dollars for a sample, all attempts"),
    Column("problems_begun", "Problems begun", "count", help="problems with a valid sample"),
    Column("problems_done", "Problems done", "count", help="problems with all samples valid"),
)
_AGAINST_BEST: dict[Standing, str] = {  # from the conclusion on the best entry to the cell of the other entry
    "better": "behind",
    "higher": "behind, interval contains 0",
    "worse": "ahead",
    "lower": "ahead, interval contains 0",
    "equivalent": "equivalent",
    "inconclusive": "not separable",
    "incomparable": "no common problem",
}
_OTHER_PROBLEMS = (
    "The rows cover different problems, so their means are not comparable. Pairs of models are"
    " compared on the problems that both have."
)
_MIXED_K = (
    "A row without k has problems with different numbers of samples. Its median SD is comparable only with a"
    " row that has the same numbers."
)
_PROVISIONAL = (
    "A number with ~ is provisional: samples are missing, and the problems begun may be easier or harder than"
    " average. `astra status` shows the command that completes the run."
)


def leaderboard(
    entries: Sequence[Entry], compared: Found, looks: Mapping[frozenset[str], Mapping[str, Standing]]
) -> Table:
    """Return the wide table of leaderboard.csv: highest mean score first, incomplete entries last.

    `compared` has the concluded pairs of these entries, and `looks` the result of `interim_conclusions`; the
    column `against_best` is filled from both. The functions below select columns for the tables that people
    read. An incomplete entry has the numbers of its valid samples over the problems begun; its `complete` is
    false, and the numbers are shown with a tilde.
    """
    in_order = ranked(entries)
    items = (
        _record(entry) | {"against_best": _against_best(entry, in_order, compared, looks)}
        for entry in in_order
    )
    return Table.of("leaderboard", "Leaderboard", _COLUMNS, items, notes=_notes(entries), provisional=True)


def headline(wide: Table) -> Table:
    """Return the paper's table 3 with interval, cost and counts; it fits a terminal of 80 columns."""
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
    """Return the intervals of mean score and pass@1 for new problems and for new samples."""
    table = wide.only(
        *("model", "format", "mean_score", "mean_score_total", "mean_score_run_only"),
        *("pass_at_1", "pass_at_1_total", "pass_at_1_run_only"),
    )
    note = (
        '"New problems" is the interval for another set of problems like these. "New samples" is the interval'
        " for the same problems; it covers only the variation between samples. The n x k samples are not"
        " treated as independent trials. Intervals are asymmetric near 0 and 100 %, and their width"
        " is above 0 even if all problems have the same result."
    )
    return _part(table, "uncertainty", "Uncertainty", [note])


def consistency(wide: Table) -> Table:
    """Return the spread of repeated samples of the same problem."""
    spread = ("median_sd", "median_sd_interval", "rms_within_sd", "between_sd", "icc")
    table = wide.only("model", "format", "k", *spread)
    notes = [
        (
            "Median SD is defined as in the paper (population SD, ddof = 0). It depends on k, so compare it"
            " only between rows with equal k. RMS within-SD (ddof = 1) does not depend on k. SDs are on the"
            " scale from 0 to 1."
        ),
    ]
    if any(isinstance(cell, tuple) and cell[0] == cell[1] for cell in table.column("median_sd_interval")):
        notes.append(
            "An interval [0.000, 0.000] means that most problems have the same score in every sample."
        )
    if any(k == 1 for k in table.column("k")):
        notes.append("One sample of a problem has no SD. Consistency needs k of at least 2.")
    if _MIXED_K in wide.notes:
        notes.append(_MIXED_K)
    return _part(table, "consistency", "Consistency", notes)


def reliability(wide: Table) -> Table:
    """Return the probabilities that at least one, at least half, or all of m samples pass all tests."""
    note = (
        "Unbiased estimates from k samples, averaged over problems. Pass@m is the probability that at least"
        " one of m samples passes all tests, G-Pass@m that at least half of them do, and Pass^m that all of"
        " them do. mG-Pass@m is the average of G-Pass@m over the thresholds above half of m."
    )
    table = wide.only("model", "format", "k", "pass_at_1", *_known(wide, _PASSES))
    return _part(table, "reliability", "Reliability", [note])


def reliability_intervals(wide: Table) -> Table:
    """Return the intervals of the columns of `reliability`."""
    note = "95 % intervals for a new set of problems like these; recorded families are drawn together."
    table = wide.only("model", "format", "k", *_known(wide, _PASS_INTERVALS))
    return _part(table, "reliability_intervals", "Reliability, 95 % intervals", [note])


def _known(wide: Table, columns: Sequence[Column]) -> list[str]:
    names = [column.name for column in columns]
    return [name for name in names if any(cell is not None for cell in wide.column(name))]


def _part(table: Table, name: str, title: str, notes: Sequence[str]) -> Table:
    """Return columns of the wide table as a separate table."""
    return replace(table, name=name, within="leaderboard", title=title, notes=tuple(notes))


def curves(entries: Sequence[Entry]) -> Table:
    """Return pass@m and pass^m for m from 1 to the smallest number of samples of a begun problem."""
    columns = (
        *ENTRY_COLUMNS,
        Column("m", "m", "count", help="number of samples drawn"),
        Column("pass_at", "Pass@m %", "percent", help="at least one of m samples passes all tests"),
        Column("pass_hat", "Pass^m %", "percent", help="all m samples pass all tests"),
    )
    items = (
        entry.cells
        | {
            "m": m,
            "pass_at": _mean(_estimated(entry, m, pass_at)),
            "pass_hat": _mean(_estimated(entry, m, pass_hat)),
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
    """Return the conclusion from comparing an entry with the first entry of the same format."""
    best = next(each for each in in_order if each.format == entry.format)
    standings = {
        pair.b.name: concluded["mean_score"].standing for pair, concluded in compared if pair.a is best
    }
    of_best = (each for each in looks.values() if best.name in each)
    standings |= {name: each[best.name] for each in of_best for name in each if name != best.name}
    if entry is not best:
        return _AGAINST_BEST[standings[entry.name]] if entry.name in standings else ""
    rivals = [each for each in in_order if each.format == entry.format and each.summary.valid]
    if len(rivals) < 2:  # noqa: PLR2004 - there is nothing to compare with
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
    estimates = {name: _estimated(entry, each.m, each.of) for name, each in ESTIMATES.items()}
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
        **{name: _mean(values) for name, values in estimates.items()},
        **{
            f"{name}_interval": total_interval(values, families) if len(values) else None
            for name, values in estimates.items()
        },
        "flagged": found.share,
        "flagged_interval": found.interval,
        "cost_per_sample": mean_cost_usd(entry),
    }


def _estimated(entry: Entry, m: int, function: Callable[[int, int, int], float]) -> NDArray[np.float64]:
    """Return the estimate of each begun problem; an empty array if a problem has fewer than m samples."""
    values = estimated(function, m, entry.begun(entry.valid), entry.begun(entry.perfect))
    return values[:0] if np.isnan(values).any() else values


def _mean(values: NDArray[np.float64]) -> float | None:
    return math.fsum(values) / len(values) if len(values) else None


def _provisional(entries: Sequence[Entry]) -> str:
    """Return the note on problems whose number of tests is not confirmed by a complete test run."""
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
            "Mean score and pass@1 are in %; median SD is on the scale from 0 to 1 (ddof = 0). The 95 %"
            " interval is for the mean score on a new set of problems like these."
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
        notes.append("The rows have different k, so their median SDs are not comparable.")
    notes += filter(None, map(sensitivity, entries))
    notes += filter(None, [_provisional(entries)])
    notes += filter(None, map(partly_known, entries))
    return notes
