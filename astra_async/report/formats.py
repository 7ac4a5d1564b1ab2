"""XML against JSON (paper, section 4.4, tables 5 and 6), and answers that could not be used (4.5)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from astra_async.report.pairwise import Pair
from astra_async.report.table import WHO, Column, Table, unfinished
from astra_async.stats.intervals import bounds, total_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.report.entries import Entry
    from astra_async.report.table import Cell
    from astra_async.types import Failure

_RATES: tuple[tuple[Failure, str], ...] = (
    ("format_error", "Format errors"),
    ("refusal", "Refusals"),
    ("truncated", "Cut answers"),
    ("context_exceeded", "Context exceeded"),
)


def format_scores(entries: Sequence[Entry]) -> Table:
    """The same model on XML and on JSON side by side (tables 5 and 6)."""
    pairs = both_formats(entries)
    rows = [(pair.a.label, *_headline(pair.a), *_headline(pair.b)) for pair in pairs]
    return Table(
        name="format_scores",
        within="formats",
        title="XML and JSON",
        columns=(
            WHO[0],
            Column("xml_mean_score", "XML mean score %", "percent"),
            Column("xml_pass_at_1", "XML pass@1 %", "percent"),
            Column("json_mean_score", "JSON mean score %", "percent"),
            Column("json_pass_at_1", "JSON pass@1 %", "percent"),
        ),
        rows=tuple(rows),
        provisional=unfinished(pair.complete for pair in pairs),
    )


def both_formats(entries: Sequence[Entry]) -> list[Pair]:
    """Each model that was asked for both formats: XML as A, JSON as B."""
    by_key = {(entry.label, entry.format): entry for entry in entries}
    return [
        Pair(
            a=by_key[label, "xml"],
            b=by_key[label, "json"],
            a_name=f"{label} (xml)",
            b_name=f"{label} (json)",
            format="xml/json",
        )
        for label in dict.fromkeys(entry.label for entry in entries)
        if (label, "xml") in by_key and (label, "json") in by_key
    ]


def answer_rates(entries: Sequence[Entry]) -> Table:
    """How often an answer could not be used, with intervals (section 4.5)."""
    begun = [entry for entry in entries if entry.summary.valid]
    return Table(
        name="answer_rates",
        title="Answers that could not be used",
        columns=(
            *WHO,
            Column("valid", "Valid", "count", help="samples"),
            *(
                column
                for name, title in _RATES
                for column in (
                    Column(name, title, "count"),
                    Column(f"{name}_rate", "%", "percent"),
                    Column(f"{name}_interval", "95 %", "percent", interval=True),
                )
            ),
        ),
        rows=tuple(_rate_row(entry) for entry in begun),
        provisional=unfinished(entry.complete for entry in begun),
        notes=(
            (
                "Share of a problem's valid samples, averaged over the problems begun; the interval is for"
                " new problems like these."
            ),
        ),
    )


def _headline(entry: Entry) -> tuple[Cell, Cell]:
    return entry.summary.mean_score, entry.summary.pass_at_1


def _rate_row(entry: Entry) -> tuple[Cell, ...]:
    cells: list[Cell] = [*entry.who, entry.summary.valid]
    for name, _ in _RATES:
        hits = entry.begun(entry.failed(name))
        shares = hits / entry.begun(entry.valid)
        interval = bounds(total_interval(shares, entry.families_of(entry.valid > 0)))
        cells += [int(hits.sum()), math.fsum(shares) / len(shares), interval]
    return tuple(cells)
