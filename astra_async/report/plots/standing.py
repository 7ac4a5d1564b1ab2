"""Where each entry stands: scores with intervals, SDs, differences of pairs, and what feedback is worth."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from astra_async.report.plots.style import (
    INK,
    MARKERS,
    MUTED,
    SERIES,
    Sketch,
    cut_note,
    exact_ticks,
    legend_below,
    percent_axis,
    row_figure,
    share_figure,
    shortened,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from astra_async.report.entries import Entry
    from astra_async.report.table import Cell, Table
    from astra_async.report.tables import Report

_MOST_PAIRS = 28


def sketches(report: Report) -> Iterator[Sketch]:
    """The figures of the sections Leaderboard, Pairs, and After feedback, where there is one."""
    begun = ranked(report)
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


def ranked(report: Report) -> list[Entry]:
    """Entries with results, in the order of the leaderboard: complete ones first, best mean score first."""
    return [entry for entry in sorted(report.entries, key=attrgetter("rank")) if entry.summary.valid]


def names_of(entries: Sequence[Entry]) -> list[str]:
    """What to call entries beside an axis: with the format only where there are several, ~ if provisional."""
    several = len({entry.format for entry in entries}) > 1
    names = (entry.name if several else entry.label for entry in entries)
    return [name if entry.complete else f"~{name}" for name, entry in zip(names, entries, strict=True)]


def _leaderboard(table: Table, entries: Sequence[Entry]) -> Sketch:
    rows = [row for row in table.by_name() if row["valid"]]
    names = names_of(entries)
    figure, axes = row_figure(names)
    for place, row in enumerate(rows):
        for name, width, colour in (
            ("mean_score_total", 1.4, MUTED),
            ("mean_score_run_only", 4.0, SERIES[0]),
        ):
            if isinstance(interval := row[name], tuple):
                axes.plot(interval, [place, place], color=colour, linewidth=width, solid_capstyle="butt")
    scores, passes = numbers(rows, "mean_score"), numbers(rows, "pass_at_1")
    places = range(len(rows))
    axes.plot(scores, places, "o", color=SERIES[0], markersize=6, label="mean score")
    axes.plot(passes, places, "D", color=SERIES[1], fillstyle="none", markersize=5, label="pass@1")
    axes.plot([], [], color=SERIES[0], linewidth=4, label="95 %, new samples of these problems")
    axes.plot([], [], color=MUTED, linewidth=1.4, label="95 %, new problems like these")
    percent_axis(axes, f"% (n = {len(entries[0].problem_ids)} problems, k = {entries[0].summary.k})")
    legend_below(axes, 4)
    said = "; ".join(f"{name} {100 * score:.1f} %" for name, score in zip(names, scores, strict=True))
    return Sketch(
        name="leaderboard",
        title="Mean score and pass@1",
        alt=f"Dot plot of mean score with intervals, best first: {said}.",
        figure=figure,
    )


def _sds(entries: Sequence[Entry]) -> Sketch:
    names = names_of(entries)
    figure, axes = row_figure(names, rows_each=1.3)
    rng = np.random.default_rng(0)  # the jitter only separates dots that would cover each other
    known = [entry.sds[~np.isnan(entry.sds)] for entry in entries]
    for place, sds in enumerate(known):
        jitter = place + rng.uniform(-0.24, 0.24, len(sds))
        axes.plot(sds, jitter, "o", color=SERIES[0], markersize=3.5, alpha=0.55, markeredgewidth=0)
    medians = [float(np.median(sds)) for sds in known]
    axes.plot(
        medians, range(len(entries)), "|", color=INK, markersize=20, markeredgewidth=2, label="median SD"
    )
    axes.plot([], [], "o", color=SERIES[0], markersize=3.5, alpha=0.55, label="one problem")
    axes.set_xlim(-0.01, 0.51)  # no SD of values between 0 and 1 is above 0.5
    axes.set_xlabel(f"SD of a problem's scores over k = {entries[0].summary.k} samples (0 to 1, ddof = 0)")
    legend_below(axes, 2)
    said = "; ".join(f"{name} {median:.3f}" for name, median in zip(names, medians, strict=True))
    return Sketch(
        name="sd",
        title="Distribution of SD over problems",
        alt=f"One dot for each problem's SD, the median as a line. Medians: {said}.",
        figure=figure,
    )


def _curves(table: Table, entries: Sequence[Entry]) -> Sketch:
    """Pass@m rises and pass^m falls with m; the two meet at m = 1."""
    best = entries[: len(SERIES)]
    figure, axes = share_figure(
        len(best),
        of="% of problems",
        over="m samples (solid: at least one passes all tests; dashed: all of them do)",
    )
    for colour, entry, name in zip(SERIES, best, names_of(best), strict=False):
        mine = _rows_of(entry, table)
        places = numbers(mine, "m")
        axes.plot(places, numbers(mine, "pass_at"), "-", color=colour, label=shortened(name))
        axes.plot(places, numbers(mine, "pass_hat"), "--", color=colour)
    legend_below(axes, 2)
    cut = cut_note(best, entries, "best models")
    return Sketch(
        name="curves",
        title=f"Pass@m and pass^m{cut}",
        alt=f"For each model a rising line of pass@m and a falling one of pass^m over m{cut}; see the table.",
        figure=figure,
    )


def _turns(begun: Sequence[Entry], solved: Table, blind: Table) -> Sketch:
    """What feedback is worth: solved by turn beside what as many blind samples would have solved."""
    entries = [entry for entry in begun if _rows_of(entry, solved)]
    best = entries[: len(SERIES)]
    figure, axes = share_figure(
        len(best),
        of="% of samples that pass all tests",
        over="turns r (solid: solved with feedback; dashed: pass@(r+1) of first answers)",
    )
    said = []
    for colour, marker, entry, name in zip(SERIES, MARKERS, best, names_of(best), strict=False):
        mine, control = _rows_of(entry, solved), _rows_of(entry, blind)
        with_feedback, places = numbers(mine, "solved"), numbers(mine, "turn")
        without = [with_feedback[0], *numbers(control, "blind")]
        axes.plot(places, with_feedback, f"-{marker}", color=colour, markersize=5, label=shortened(name))
        axes.plot(places, without, f"--{marker}", color=colour, markersize=5, fillstyle="none")
        said.append(f"{name} {100 * with_feedback[-1]:.1f} and {100 * without[-1]:.1f}")
    legend_below(axes, 2)
    cut = cut_note(best, entries, "best models")
    return Sketch(
        name="turns",
        title=f"Solved by turn, and by as many blind samples{cut}",
        alt=f"Two lines for each model{cut}, with feedback and blind. At the last turn: {'; '.join(said)} %.",
        figure=figure,
    )


def _pairs(rows: Sequence[dict[str, Cell]]) -> Sketch:
    several = len({row["format"] for row in rows}) > 1
    shown = [row for row in rows if isinstance(row["difference_interval"], tuple)][:_MOST_PAIRS]
    names = [f"{row['a']}\n- {row['b']}" + (f" ({row['format']})" if several else "") for row in shown]
    figure, axes = row_figure(names, rows_each=1.4)
    axes.axvspan(-0.02, 0.02, color=MUTED, alpha=0.15, linewidth=0)
    axes.axvline(0, color=MUTED, linewidth=1)
    for place, (row, difference) in enumerate(zip(shown, numbers(shown, "difference"), strict=True)):
        real = str(row["verdict"]).lstrip("~") not in ("inconclusive", "equivalent")
        colour = SERIES[1] if real else SERIES[0]
        axes.plot(_interval(row), [place, place], color=colour, linewidth=1.6)
        fill = "full" if real else "none"
        axes.plot([difference], [place], "o", color=colour, markersize=5.5, fillstyle=fill)
    axes.plot([], [], "o-", color=SERIES[1], label="a real difference (Holm)")
    axes.plot([], [], "o-", color=SERIES[0], fillstyle="none", label="not shown to differ")
    exact_ticks(axes.xaxis, scale=100, signed=True)
    axes.set_xlabel("difference of mean scores in points, 95 % (grey: margin of 2 points)")
    legend_below(axes, 2)
    cut = cut_note(shown, rows, "first pairs")
    said = "; ".join(
        f"{name}: {row['verdict']}".replace("\n", " ") for name, row in zip(names, shown, strict=True)
    )
    return Sketch(
        name="pairs",
        title=f"Differences of mean score between models{cut}",
        alt=f"Forest plot of paired differences{cut}. {said}.",
        figure=figure,
    )


def numbers(rows: Sequence[Mapping[str, Cell]], name: str) -> list[float]:
    """One column's numbers; NaN for nothing."""
    return [float(cell) if isinstance(cell := row[name], int | float) else math.nan for row in rows]


def _interval(row: dict[str, Cell]) -> tuple[float, float]:
    cell = row["difference_interval"]
    return cell if isinstance(cell, tuple) else (math.nan, math.nan)


def _rows_of(entry: Entry, table: Table) -> list[dict[str, Cell]]:
    return [row for row in table.by_name() if (row["model"], row["format"]) == (entry.label, entry.format)]
