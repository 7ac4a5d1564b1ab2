"""What feedback is worth: solved by turn beside what as many blind samples would have solved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astra_async.report.plots.standing import numbers, ranked, rows_of
from astra_async.report.plots.style import (
    MARKERS,
    SERIES,
    WIDTH_IN,
    Sketch,
    exact_ticks,
    legend_below,
    shortened,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from astra_async.report.entries import Entry
    from astra_async.report.table import Cell
    from astra_async.report.tables import Report


def sketches(report: Report) -> Iterator[Sketch]:
    """The figure of the section After feedback, where there is one."""
    if not any(section.name == "turns" for section in report.sections):
        return
    solved, blind = rows_of(report.table("turns")), rows_of(report.table("turn_gain"))
    with_turns = {(row["model"], row["format"]) for row in solved}
    entries = [entry for entry in ranked(report) if (entry.label, entry.format) in with_turns]
    yield _solved(entries, solved, blind)


def _solved(
    entries: Sequence[Entry], solved: Sequence[Mapping[str, Cell]], blind: Sequence[Mapping[str, Cell]]
) -> Sketch:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    best = entries[: len(SERIES)]
    figure = Figure(figsize=(WIDTH_IN, 3.4 + 0.18 * len(best)), layout="constrained")
    axes = figure.add_subplot()
    said = []
    for colour, marker, entry in zip(SERIES, MARKERS, best, strict=False):
        mine = [row for row in solved if (row["model"], row["format"]) == (entry.label, entry.format)]
        control = [row for row in blind if (row["model"], row["format"]) == (entry.label, entry.format)]
        with_feedback = numbers(mine, "solved")
        without = [with_feedback[0], *numbers(control, "blind")]
        places = numbers(mine, "turn")
        name = entry.label if len({each.format for each in entries}) == 1 else entry.name
        axes.plot(places, with_feedback, f"-{marker}", color=colour, markersize=5, label=shortened(name))
        axes.plot(places, without, f"--{marker}", color=colour, markersize=5, fillstyle="none")
        said.append(f"{name} {100 * with_feedback[-1]:.1f} and {100 * without[-1]:.1f}")
    axes.set_ylim(-0.02, 1.02)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    exact_ticks(axes.xaxis)
    exact_ticks(axes.yaxis, scale=100)
    axes.set_ylabel("% of samples that pass all tests")
    axes.set_xlabel("turns r (solid: solved with feedback; dashed: pass@(r+1) of first answers)")
    legend_below(axes, 2)
    cut = f" (the best {len(best)} of {len(entries)} models)" if len(entries) > len(best) else ""
    return Sketch(
        name="turns",
        title=f"Solved by turn, and by as many blind samples{cut}",
        alt=f"Two lines for each model{cut}, with feedback and blind. At the last turn: {'; '.join(said)} %.",
        figure=figure,
    )
