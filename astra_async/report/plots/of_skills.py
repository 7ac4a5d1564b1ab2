"""Skills themselves: how often each occurs (paper, figures 1 and 2), and who is best at it (table 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from astra_async.report.by_skill import KINDS
from astra_async.report.plots.standing import numbers, rows_of
from astra_async.report.plots.style import (
    INK,
    SERIES,
    Sketch,
    cut_note,
    exact_ticks,
    percent_axis,
    row_figure,
    shortened,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from astra_async.report.by_skill import SkillKind
    from astra_async.report.table import Cell
    from astra_async.report.tables import Report

_MOST_ROWS = 48
_NAMED_CHARACTERS = 34
_BESIDE: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}


def sketches(report: Report) -> Iterator[Sketch]:
    """A figure of the frequencies of each kind of skill, and one of its winners; none without skills."""
    for kind in KINDS:
        if found := rows_of(report.table(f"{kind}_skill_frequency")):
            yield _frequency(found, kind)
        if won := rows_of(report.table(f"{kind}_skill_winners")):
            yield _winners(won, kind)


def _frequency(rows: Sequence[Mapping[str, Cell]], kind: SkillKind) -> Sketch:
    shown = rows[:_MOST_ROWS]
    figure, axes = row_figure([str(row["skill"]) for row in shown])
    counts = numbers(shown, "n")
    axes.barh(range(len(shown)), counts, height=0.66, color=SERIES[0])
    for place, count in enumerate(counts):
        axes.annotate(f"{count:.0f}", (count, place), **_BESIDE)
    axes.set_xlim(0, max(counts) * 1.08)
    axes.set_xlabel("problems")
    exact_ticks(axes.xaxis)
    cut = cut_note(shown, rows, "first skills")
    said = "; ".join(f"{row['skill']} {count:.0f}" for row, count in zip(shown, counts, strict=True))
    return Sketch(
        name=f"{kind}_skill_frequency",
        title=f"Occurrence of each {KINDS[kind]}{cut}",
        alt=f"Bars of the number of problems with each {KINDS[kind]}{cut}: {said}.",
        figure=figure,
    )


def _winners(rows: Sequence[Mapping[str, Cell]], kind: SkillKind) -> Sketch:
    several = len({row["format"] for row in rows}) > 1
    shown = rows[:_MOST_ROWS]
    names = [f"{row['skill']} (n={row['n']})" + (f", {row['format']}" if several else "") for row in shown]
    figure, axes = row_figure(names)
    for place, (row, score) in enumerate(zip(shown, numbers(shown, "mean_score"), strict=True)):
        alone = not row["not_separable"]
        colour = SERIES[0] if alone else "none"
        axes.barh(place, score, height=0.66, color=colour, edgecolor=SERIES[0])
        winners = shortened(str(row["winners"]), _NAMED_CHARACTERS)
        colour = "white" if alone else INK
        axes.annotate(winners, (0, place), color=colour, fontsize=8, **_BESIDE)
    percent_axis(axes, "mean score % of the best (filled: separable from all others; hollow: not)")
    cut = cut_note(shown, rows, "first skills")
    said = "; ".join(f"{name}: {row['winners']}" for name, row in zip(names, shown, strict=True))
    return Sketch(
        name=f"{kind}_skill_winners",
        title=f"Winning models by {KINDS[kind]}{cut}",
        alt=f"A bar for the best model of each {KINDS[kind]}{cut}. {said}.",
        figure=figure,
    )
