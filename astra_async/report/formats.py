"""XML against JSON (paper, section 4.4, tables 5 and 6), and answers that could not be used (4.5)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from astra_async.report.pairwise import Pair
from astra_async.report.table import WHO, Column, Table
from astra_async.stats.intervals import total_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from astra_async.report.entries import Entry, Floats
    from astra_async.report.table import Interval
    from astra_async.types import Failure

_RATES: tuple[tuple[Failure, str], ...] = (
    ("format_error", "Format errors"),
    ("refusal", "Refusals"),
    ("truncated", "Cut answers"),
    ("context_exceeded", "Context exceeded"),
)


def format_scores(entries: Sequence[Entry]) -> Table:
    """The same model on XML and on JSON side by side (tables 5 and 6)."""
    columns = (
        Column("model", "Model", of=lambda pair: pair.a.label),
        Column("xml_mean_score", "XML mean score %", "percent", of=lambda pair: pair.a.summary.mean_score),
        Column("xml_pass_at_1", "XML pass@1 %", "percent", of=lambda pair: pair.a.summary.pass_at_1),
        Column("json_mean_score", "JSON mean score %", "percent", of=lambda pair: pair.b.summary.mean_score),
        Column("json_pass_at_1", "JSON pass@1 %", "percent", of=lambda pair: pair.b.summary.pass_at_1),
    )
    pairs = both_formats(entries)
    return Table.of("format_scores", "XML and JSON", columns, pairs, within="formats", provisional=True)


def both_formats(entries: Sequence[Entry]) -> list[Pair]:
    """Each model that was asked for both formats: XML as A, JSON as B."""
    by_key = {(entry.label, entry.format): entry for entry in entries}
    return [
        Pair.of(by_key[label, "xml"], by_key[label, "json"])
        for label in dict.fromkeys(entry.label for entry in entries)
        if (label, "xml") in by_key and (label, "json") in by_key
    ]


def answer_rates(entries: Sequence[Entry]) -> Table:
    """How often an answer could not be used, with intervals (section 4.5)."""
    columns = (
        *WHO,
        Column("valid", "Valid", "count", help="samples", of=lambda entry: entry.summary.valid),
        *(column for failure, title in _RATES for column in _rate(failure, title)),
    )
    note = (
        "Share of a problem's valid samples, averaged over the problems begun; the interval is for"
        " new problems like these."
    )
    begun = (entry for entry in entries if entry.summary.valid)
    title = "Answers that could not be used"
    return Table.of("answer_rates", title, columns, begun, notes=(note,), provisional=True)


def _rate(failure: Failure, title: str) -> Iterator[Column]:
    """How often, the share of the samples, and its interval."""

    def shares(entry: Entry) -> Floats:
        found: Floats = entry.begun(entry.failed(failure)) / entry.begun(entry.valid)
        return found

    def mean(entry: Entry) -> float:
        return math.fsum(shares(entry)) / len(shares(entry))

    def interval(entry: Entry) -> Interval | None:
        return total_interval(shares(entry), entry.families_of(entry.valid > 0))

    yield Column(failure, title, "count", of=lambda entry: int(entry.failed(failure).sum()))
    yield Column(f"{failure}_rate", "%", "percent", of=mean)
    yield Column(f"{failure}_interval", "95 %", "percent", interval=True, of=interval)
