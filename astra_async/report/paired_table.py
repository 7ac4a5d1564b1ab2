"""Table of paired comparisons, used for pairwise.csv, formats.csv, agents and `astra compare`."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from astra_async.report.common_problems import MAIN_METRICS, METRICS, left_out
from astra_async.report.estimates import ESTIMATES
from astra_async.report.pairwise import EQUIVALENCE_MARGIN, by_format
from astra_async.report.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from astra_async.report.common_problems import Metric
    from astra_async.report.pairwise import Concluded, Found, Pair
    from astra_async.report.table import Cell, Kind

DISPLAYED = (
    *("a", "b", "format", "verdict", "difference", "difference_interval", "n", "a_value", "b_value"),
    *("p_t", "p_t_holm", "p_wilcoxon", "p_permutation", "smallest_effect"),
)
_NOTE = (
    "Comparisons are paired over problems; a family of problems is one unit. Holm's adjustment"
    " covers all rows"
    " of one metric and format; in the comparison of agents it covers all rows of one metric. Better: the"
    " t-test and the sign-flip test are both significant after adjustment. The interval also allows for rare"
    " large losses that were not observed, so it may include 0. Equivalent: a difference of"
    f" {100 * EQUIVALENCE_MARGIN:g} points or more ({EQUIVALENCE_MARGIN:g} for SD) can be excluded,"
    " which needs"
    " about 140 problems. Inconclusive: all other cases, including those that missing samples could change."
)
_RELIABILITY_NOTE = (
    "Pass@m is the probability that at least one of m samples passes all tests, Pass^m that all of them do,"
    " and G-Pass@m that at least half of them do. Holm's adjustment covers the rows of one metric. The"
    " metrics are not adjusted for one another."
)


def paired_table(name: str, title: str, found: Found) -> Table:
    """Return the wide table, with one row for each metric and pair."""
    found = by_format(found)
    notes = (_NOTE, *left_out((pair.a, pair.b) for pair, _ in found)) if found else ()
    items = (
        _record(pair, concluded[metric])
        for metric in METRICS
        for pair, concluded in found
        if metric in concluded
    )
    return Table.of(name, title, _columns("score"), items, notes=notes, provisional=True)


def verdict_text(concluded: Concluded, names: tuple[str, str]) -> str:
    """Return the conclusion in words; the lower SD wins."""
    if concluded.conclusion in ("equivalent", "inconclusive"):
        return concluded.conclusion
    lower_wins = concluded.comparison.metric == "sd"
    winner = names[0] if (concluded.conclusion == "better") != lower_wins else names[1]
    return f"{winner} {'steadier' if lower_wins else 'better'}"


def swap_sides(table: Table) -> Table:
    """Return the table with A and B exchanged, for differences B - A."""
    other = {"a": "b", "b": "a", "a_value": "b_value", "b_value": "a_value"}
    columns = [
        replace(column, title="B - A") if column.name == "difference" else column for column in table.columns
    ]
    turned = table.only(*(other.get(column.name, column.name) for column in columns))
    return replace(turned, columns=tuple(columns))


def display_tables(wide: Table) -> Iterator[Table]:
    """Yield one table for each main metric, and one for all estimates over m samples (`reliability`).

    The tables have the main columns, and the reasons in the notes.
    """
    for metric, title in MAIN_METRICS.items():
        yield _displayed(wide, metric, title if metric == "sd" else title.lower(), {metric: title})
    yield _displayed(wide, "reliability", "reliability", {name: METRICS[name] for name in ESTIMATES})


def _displayed(wide: Table, name: str, title: str, metrics: Mapping[Metric, str]) -> Table:
    named = wide.column("metric")
    places = [place for place, metric in enumerate(named) if metric in metrics]
    rows = tuple((metrics[str(named[place])], *wide.rows[place][1:]) for place in places)
    notes = {"mean_score": wide.notes, "reliability": (_RELIABILITY_NOTE,) if rows else ()}
    table = Table(
        name=f"{wide.name}_{name}",
        within=wide.name,
        title=f"{wide.title}: {title}",
        columns=_columns("score" if name == "sd" else "percent"),
        rows=rows,
        notes=(*_reasons(wide, rows), *notes.get(name, ())),
        provisional=frozenset(new for new, old in enumerate(places) if old in wide.provisional),
    )
    return table.only(*(DISPLAYED if len(metrics) == 1 else ("metric", *DISPLAYED)))


def _reasons(wide: Table, rows: Sequence[tuple[Cell, ...]]) -> Iterator[str]:
    why = [column.name for column in wide.columns].index("why")
    reasons = dict.fromkeys(str(row[why]) for row in rows if row[why])
    if reasons:
        yield f"Inconclusive: {'; '.join(reasons)}."


def _columns(kind: Kind) -> tuple[Column, ...]:
    """Return all columns; `kind` is `percent` (with differences in points) or `score` (0 to 1)."""
    signed: Kind = "points" if kind == "percent" else "signed"
    return (
        Column("metric", "Metric"),
        Column("format", "Format"),
        Column("a", "A"),
        Column("b", "B"),
        Column("n", "n", "count", help="problems complete under both; in rows with ~, problems begun"),
        Column("families", "Families", "count", help="units of the tests: families, or problems without one"),
        Column("differing", "Differing", "count", help="units with a difference other than 0"),
        Column("a_value", "A's value", kind),
        Column("b_value", "B's value", kind),
        Column("difference", "A - B", signed, help="mean difference over problems"),
        Column(
            "difference_interval",
            "95 % interval",
            signed,
            interval=True,
            help="of the difference, for new problems like these",
        ),
        Column("sd_difference", "SD of differences", "score", help="ddof = 1"),
        Column("t", "t", "number", help="families - 1 degrees of freedom"),
        Column("p_t", "p, t-test", "p", help="paired, two-sided"),
        Column("p_t_holm", "Holm", "p", help="p of the t-test, adjusted over all rows of this metric"),
        Column("p_wilcoxon", "Wilcoxon", "p", help="signed-rank test, zeros by Pratt's method"),
        Column("p_wilcoxon_holm", "Wilcoxon, Holm", "p"),
        Column("p_permutation", "Sign flips", "p", help="permutation test"),
        Column("p_permutation_holm", "Sign flips, Holm", "p"),
        Column(
            "p_equivalence_holm",
            "Equivalence, Holm",
            "p",
            help="1 - the highest level at which the interval is within the margin",
        ),
        Column(
            "smallest_effect",
            "Detectable effect",
            kind,
            help="smallest difference that the t-test finds with 80 % power at 5 %, unadjusted",
        ),
        Column("verdict", "Conclusion", help="by both tests after Holm's adjustment"),
        Column("why", "Why", help="reason why a conclusion is impossible"),
    )


def _record(pair: Pair, concluded: Concluded) -> dict[str, Any]:
    names = pair.a_name, pair.b_name
    return (
        asdict(concluded.comparison)
        | {f"{name}_holm": p for name, p in concluded.holm.items()}
        | {"format": pair.format, "a": pair.a_name, "b": pair.b_name, "why": concluded.why}
        | {
            "verdict": f"{'' if pair.complete else '~'}{verdict_text(concluded, names)}",
            "complete": pair.complete,
        }
    )
