"""What feedback is worth: solved by turn beside what as many blind samples would have solved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astra_async.report.plots.standing import names_of, numbers, ranked, rows_of
from astra_async.report.plots.style import (
    MARKERS,
    SERIES,
    Sketch,
    cut_note,
    legend_below,
    share_figure,
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
    best = entries[: len(SERIES)]
    figure, axes = share_figure(
        len(best),
        of="% of samples that pass all tests",
        over="turns r (solid: solved with feedback; dashed: pass@(r+1) of first answers)",
    )
    said = []
    for colour, marker, entry, name in zip(SERIES, MARKERS, best, names_of(best), strict=False):
        mine, control = (
            [row for row in rows if (row["model"], row["format"]) == (entry.label, entry.format)]
            for rows in (solved, blind)
        )
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
