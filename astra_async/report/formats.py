"""XML against JSON (paper, section 4.4, tables 5 and 6), and answers that could not be used (4.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from astra_async.report.load import FAILURES
from astra_async.report.pairwise import METRICS, adjusted, compare_entries, said
from astra_async.report.table import WHO, Column, Table
from astra_async.stats.intervals import clustered_wilson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.report.entries import Entry
    from astra_async.report.pairwise import Comparison
    from astra_async.report.table import Cell
    from astra_async.types import Failure

_RATES: tuple[tuple[Failure, str], ...] = (
    ("format_error", "Format errors"),
    ("refusal", "Refusals"),
    ("truncated", "Cut answers"),
    ("context_exceeded", "Context exceeded"),
)


def format_scores(entries: Sequence[Entry]) -> Table:
    """The same model on XML and on JSON side by side (tables 5 and 6); complete entries only."""
    rows: list[tuple[Cell, ...]] = []
    for xml, json in _both(entries):
        cells = [
            value if entry.summary.complete else None
            for entry in (xml, json)
            for value in (entry.summary.mean_score, entry.summary.pass_at_1)
        ]
        rows.append((xml.label, *cells))
    return Table(
        name="format_scores",
        title="XML and JSON",
        columns=(
            WHO[0],
            Column(name="xml_mean_score", title="XML mean score %", kind="percent"),
            Column(name="xml_pass_at_1", title="XML pass@1 %", kind="percent"),
            Column(name="json_mean_score", title="JSON mean score %", kind="percent"),
            Column(name="json_pass_at_1", title="JSON pass@1 %", kind="percent"),
        ),
        rows=tuple(rows),
    )


def format_tests(entries: Sequence[Entry], margin: float) -> Table:
    """Paired tests of XML against JSON for each model and metric (formats.csv); Holm over the models."""
    pairs = list(_both(entries))
    compared = [list(compare_entries(xml, json, margin)) for xml, json in pairs]
    rows: list[tuple[Cell, ...]] = []
    for place in range(len(METRICS)):
        rows += _family(pairs, [comparisons[place] for comparisons in compared])
    return Table(
        name="formats",
        title="XML against JSON, paired over problems",
        columns=(
            Column(name="metric", title="Metric"),
            WHO[0],
            Column(name="n", title="n", kind="count"),
            Column(name="xml", title="XML", kind="score"),
            Column(name="json", title="JSON", kind="score"),
            Column(name="difference", title="XML - JSON", kind="signed"),
            Column(name="difference_interval", title="95 % interval", kind="signed", interval=True),
            Column(name="p_t", title="p, t-test", kind="p"),
            Column(name="p_t_holm", title="Holm", kind="p", help="over all models of this metric"),
            Column(name="p_wilcoxon", title="Wilcoxon", kind="p"),
            Column(name="p_permutation", title="Sign flips", kind="p"),
            Column(name="verdict", title="Verdict", help="after Holm"),
        ),
        rows=tuple(rows),
        notes=("Scores from 0 to 1. A difference counts only if its test says so.",) if rows else (),
    )


def answer_rates(entries: Sequence[Entry]) -> Table:
    """How often an answer could not be used, with intervals (section 4.5)."""
    return Table(
        name="answer_rates",
        title="Answers that could not be used",
        columns=(
            *WHO,
            Column(name="valid", title="Valid", kind="count", help="samples"),
            *(
                column
                for name, title in _RATES
                for column in (
                    Column(name=name, title=title, kind="count"),
                    Column(name=f"{name}_rate", title="%", kind="percent"),
                    Column(name=f"{name}_interval", title="95 %", kind="percent", interval=True),
                )
            ),
        ),
        rows=tuple(_rate_row(entry) for entry in entries if entry.summary.valid),
        notes=(
            (
                "Share of valid samples; Wilson intervals on the effective number of them, for those of one"
                " problem resemble each other."
            ),
        ),
    )


def _both(entries: Sequence[Entry]) -> list[tuple[Entry, Entry]]:
    by_key = {(entry.label, entry.format): entry for entry in entries}
    labels = dict.fromkeys(entry.label for entry in entries)
    return [
        (by_key[label, "xml"], by_key[label, "json"])
        for label in labels
        if (label, "xml") in by_key and (label, "json") in by_key
    ]


def _family(pairs: Sequence[tuple[Entry, Entry]], compared: Sequence[Comparison]) -> list[tuple[Cell, ...]]:
    return [
        (
            METRICS[c.metric],
            xml.label,
            c.n,
            c.a,
            c.b,
            c.difference,
            c.interval,
            c.p_t,
            holm_p["p_t"],
            c.p_wilcoxon,
            c.p_permutation,
            said(c, holm_p, ("XML", "JSON")),
        )
        for (xml, _), c, holm_p in zip(pairs, compared, adjusted(compared), strict=True)
    ]


def _rate_row(entry: Entry) -> tuple[Cell, ...]:
    cells: list[Cell] = [entry.label, entry.format, entry.summary.valid]
    for name, _ in _RATES:
        successes, trials = _counts(entry, name)
        total = int(successes.sum())
        cells += [total, total / int(trials.sum()), clustered_wilson(successes, trials)]
    return tuple(cells)


def _counts(entry: Entry, failure: Failure) -> tuple[np.ndarray, np.ndarray]:
    """How many samples of each problem failed in this way, and how many there are."""
    successes, trials = [], []
    for run, rows in entry.rows_by_run():
        problems = len(run.problems)
        hit = rows["failure"] == FAILURES.index(failure)
        successes.append(np.bincount(rows["problem"][hit], minlength=problems))
        trials.append(np.bincount(rows["problem"], minlength=problems))
    return np.concatenate(successes), np.concatenate(trials)
