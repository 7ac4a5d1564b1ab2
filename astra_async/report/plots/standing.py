"""Figures on scores with intervals, SDs, pass@m, differences of pairs, and follow-up turns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from astra_async.report.entries import ranked
from astra_async.report.plots.chart import SHAPES, Band, Chart, ChartLine, Dots
from astra_async.report.plots.style import INK, MUTED, SERIES, Axis, cut_note, percent, shortened, wide_enough

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from astra_async.report.entries import Entry
    from astra_async.report.plots.chart import Mark
    from astra_async.report.table import Cell, Table
    from astra_async.report.tables import Report

_MOST_PAIRS = 28
_MARGIN = 0.02  # equivalence margin of the mean score


def charts(report: Report) -> Iterator[Chart]:
    """Yield the figures of the sections Leaderboard, Pairs and After feedback."""
    begun = with_results(report)
    if begun:
        yield _leaderboard(report.leaderboard, begun)
    if several := [entry for entry in begun if bool((entry.valid > 1).any())]:
        yield _sds(several)
    if begun and min(int(entry.valid[entry.valid > 0].min()) for entry in begun) > 1:
        yield _curves(report.table("curves"), begun)
    rows = [row for row in report.table("pairwise").by_name() if row["metric"] == "mean_score"]
    if any(row["difference_interval"] for row in rows):
        yield _pairs(rows)
    if any(section.name == "turns" for section in report.sections):
        yield _turns(begun, report.table("turns"), report.table("turn_gain"))


def with_results(report: Report) -> list[Entry]:
    """Return the entries with results, in leaderboard order."""
    return [entry for entry in ranked(report.entries) if entry.summary.valid]


def names_of(entries: Sequence[Entry]) -> list[str]:
    """Return the entries' names for an axis: with the format if there are several, with ~ if provisional."""
    several = len({entry.format for entry in entries}) > 1
    names = (entry.name if several else entry.label for entry in entries)
    return [name if entry.complete else f"~{name}" for name, entry in zip(names, entries, strict=True)]


def _leaderboard(table: Table, entries: Sequence[Entry]) -> Chart:
    rows = [row for row in table.by_name() if row["valid"]]
    names = names_of(entries)
    scores, passes = numbers(rows, "mean_score"), numbers(rows, "pass_at_1")
    both = (
        ("mean_score_total", 1.4, MUTED, "95 %, new problems like these"),
        ("mean_score_run_only", 4.0, SERIES[0], "95 %, new samples of these problems"),
    )
    text = "; ".join(f"{name} {100 * score:.1f} %" for name, score in zip(names, scores, strict=True))
    return Chart(
        name="leaderboard",
        title="Mean score and pass@1",
        alt=f"Dot plot of mean score with intervals, best first: {text}.",
        x=percent(f"% (n = {len(entries[0].problem_ids)} problems, k = {entries[0].summary.k})"),
        rows=[shortened(name) for name in names],
        marks=[
            *(
                ChartLine(xs=interval, ys=(place, place), colour=colour, width=width)
                for place, row in enumerate(rows)
                for name, width, colour, _ in both
                if isinstance(interval := row[name], tuple)
            ),
            Dots(xs=scores, ys=range(len(rows)), label="mean score"),
            Dots(
                xs=passes, ys=range(len(rows)), colour=SERIES[1], shape="diamond", hollow=True, label="pass@1"
            ),
        ],
        others=[
            ChartLine(xs=(), ys=(), colour=colour, width=width, label=what) for _, width, colour, what in both
        ],
        legend_columns=4,
    )


def _sds(entries: Sequence[Entry]) -> Chart:
    names = names_of(entries)
    rng = np.random.default_rng(0)  # vertical jitter, so that dots do not cover each other
    known = [entry.sds[~np.isnan(entry.sds)] for entry in entries]
    medians = [float(np.median(sds)) for sds in known]
    dots = [
        Dots(
            xs=sds.tolist(),
            ys=(place + rng.uniform(-0.24, 0.24, len(sds))).tolist(),
            size=1.8,
            opacity=0.55,
            label="" if place else "one problem",
        )
        for place, sds in enumerate(known)
    ]
    text = "; ".join(f"{name} {median:.3f}" for name, median in zip(names, medians, strict=True))
    return Chart(
        name="sd",
        title="Distribution of SD over problems",
        alt=f"One dot for each problem's SD, the median as a line. Medians: {text}.",
        x=Axis(  # the SD of values between 0 and 1 is at most 0.5
            label=f"SD of a problem's scores over k = {entries[0].summary.k} samples (0 to 1, ddof = 0)",
            low=-0.01,
            high=0.51,
        ),
        rows=[shortened(name) for name in names],
        row_height=1.3,
        marks=[
            *dots,
            Dots(xs=medians, ys=range(len(entries)), colour=INK, shape="tick", label="median SD"),
        ],
    )


def _curves(table: Table, entries: Sequence[Entry]) -> Chart:
    """Return the curves of pass@m (increasing) and pass^m (decreasing), which are equal at m = 1."""
    best = entries[: len(SERIES)]
    marks: list[Mark] = []
    for colour, entry, name in zip(SERIES, best, names_of(best), strict=False):
        mine = _rows_of(entry, table)
        places = numbers(mine, "m")
        marks.append(ChartLine(xs=places, ys=numbers(mine, "pass_at"), colour=colour, label=shortened(name)))
        marks.append(ChartLine(xs=places, ys=numbers(mine, "pass_hat"), colour=colour, dashed=True))
    cut = cut_note(best, entries, "best models")
    return _over_steps(
        name="curves",
        title=f"Pass@m and pass^m{cut}",
        alt=f"For each model a rising line of pass@m and a falling one of pass^m over m{cut}; see the table.",
        x="m samples (solid: at least one passes all tests; dashed: all of them do)",
        y="% of problems",
        marks=marks,
    )


def _turns(begun: Sequence[Entry], solved: Table, blind: Table) -> Chart:
    """Return the shares solved by turn, with feedback and with the same number of blind samples."""
    entries = [entry for entry in begun if _rows_of(entry, solved)]
    best = entries[: len(SERIES)]
    ends: list[str] = []
    marks: list[Mark] = []
    for colour, shape, entry, name in zip(SERIES, SHAPES, best, names_of(best), strict=False):
        mine, control = _rows_of(entry, solved), _rows_of(entry, blind)
        with_feedback, places = numbers(mine, "solved"), numbers(mine, "turn")
        without = [with_feedback[0], *numbers(control, "blind")]
        for values, is_blind in ((with_feedback, False), (without, True)):
            label = "" if is_blind else shortened(name)
            marks.append(ChartLine(xs=places, ys=values, colour=colour, dashed=is_blind))
            marks.append(
                Dots(xs=places, ys=values, colour=colour, shape=shape, hollow=is_blind, size=2.5, label=label)
            )
        ends.append(f"{name} {100 * with_feedback[-1]:.1f} and {100 * without[-1]:.1f}")
    cut = cut_note(best, entries, "best models")
    return _over_steps(
        name="turns",
        title=f"Solved by turn, and by as many blind samples{cut}",
        alt=f"Two lines for each model{cut}, with feedback and blind. At the last turn: {'; '.join(ends)} %.",
        x="turns r (solid: solved with feedback; dashed: pass@(r+1) of first answers)",
        y="% of samples that pass all tests",
        marks=marks,
    )


def _pairs(rows: Sequence[dict[str, Cell]]) -> Chart:
    several = len({row["format"] for row in rows}) > 1
    shown = [row for row in rows if isinstance(row["difference_interval"], tuple)][:_MOST_PAIRS]
    names = [f"{row['a']}\n- {row['b']}" + (f" ({row['format']})" if several else "") for row in shown]
    marks: list[Mark] = [Band(start=-_MARGIN, end=_MARGIN), Band(start=0, end=0)]
    ends = [-_MARGIN, _MARGIN]
    for place, (row, difference) in enumerate(zip(shown, numbers(shown, "difference"), strict=True)):
        real = str(row["verdict"]).lstrip("~") not in ("inconclusive", "equivalent")
        colour = SERIES[1] if real else SERIES[0]
        if isinstance(interval := row["difference_interval"], tuple):
            marks.append(ChartLine(xs=interval, ys=(place, place), colour=colour, width=1.6))
            ends += interval
        marks.append(Dots(xs=[difference], ys=[place], colour=colour, hollow=not real))
    cut = cut_note(shown, rows, "first pairs")
    text = "; ".join(
        f"{name}: {row['verdict']}".replace("\n", " ") for name, row in zip(names, shown, strict=True)
    )
    axis = "difference of mean scores in points, 95 % (grey: margin of 2 points)"
    return Chart(
        name="pairs",
        title=f"Differences of mean score between models{cut}",
        alt=f"Forest plot of paired differences{cut}. {text}.",
        x=wide_enough(axis, ends, scale=100, signed=True),
        rows=[shortened(name) for name in names],
        row_height=1.4,
        marks=marks,
        others=[
            Dots(xs=(), ys=(), colour=SERIES[1], label="significant difference (Holm)"),
            Dots(xs=(), ys=(), hollow=True, label="not shown to differ"),
        ],
    )


def _over_steps(*, name: str, title: str, alt: str, x: str, y: str, marks: Sequence[Mark]) -> Chart:
    """Return a chart of shares over whole numbers."""
    steps = wide_enough(
        x, [at for mark in marks if isinstance(mark, ChartLine) for at in mark.xs], whole=True
    )
    shares = Axis(label=y, low=-0.02, high=1.02, scale=100)
    return Chart(name=name, title=title, alt=alt, x=steps, y=shares, height=215, marks=marks)


def numbers(rows: Sequence[Mapping[str, Cell]], name: str) -> list[float]:
    """Return one column's numbers; NaN for cells without a number."""
    return [float(cell) if isinstance(cell := row[name], int | float) else math.nan for row in rows]


def _rows_of(entry: Entry, table: Table) -> list[dict[str, Cell]]:
    return [row for row in table.by_name() if (row["model"], row["format"]) == (entry.label, entry.format)]
