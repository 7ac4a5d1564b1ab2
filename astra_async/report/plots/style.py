"""What all figures share: axes, names of rows, and what a title says of what is left out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.report.plots.chart import GRID, INK, MUTED, PAPER, SERIES, Axis

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

COLOURS = {INK: "ink", MUTED: "muted", GRID: "grid", PAPER: "paper"} | {
    colour: f"series-{number}" for number, colour in enumerate(SERIES, 1)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A drawn figure; `alt` says in words what it shows."""

    name: str
    title: str
    alt: str
    svg: str


def percent(label: str) -> Axis:
    """An axis from 0 to 100 %."""
    return Axis(label=label, low=0.0, high=1.0, scale=100)


def wide_enough(
    label: str,
    values: Iterable[float],
    *,
    margin: float = 0.05,
    scale: float = 1.0,
    whole: bool = False,
    signed: bool = False,
) -> Axis:
    """An axis that holds all finite values, with a margin as a share of their range."""
    known = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min(known), max(known)
    room = (high - low) * margin or (abs(high) * 0.1 or 1.0)
    return Axis(label=label, low=low - room, high=high + room, scale=scale, whole=whole, signed=signed)


def cut_note(shown: Sequence[object], of: Sequence[object], what: str) -> str:
    """What a title says where not all are shown: `what` says which, such as "first skills"."""
    kind, _, things = what.partition(" ")
    return f" (the {kind} {len(shown)} of {len(of)} {things})" if len(of) > len(shown) else ""


def shortened(name: str, characters: int = 42) -> str:
    """A name that fits beside an axis, its middle left out; each of its lines for itself."""
    return "\n".join(_shortened_line(line, characters) for line in name.split("\n"))


def _shortened_line(line: str, characters: int) -> str:
    if len(line) <= characters:
        return line
    head = (characters - 1) // 2
    return f"{line[:head]}…{line[head + 1 - characters :]}"
