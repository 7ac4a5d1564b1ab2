"""Colors, axes, shortened names and titles, shared by all figures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

INK, MUTED, GRID, PAPER = "#20242a", "#68707b", "#d9dde3", "#ffffff"
# Okabe and Ito (2008): distinguishable with any color vision; without yellow, which is too pale.
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")

COLOURS = {INK: "ink", MUTED: "muted", GRID: "grid", PAPER: "paper"} | {
    colour: f"series-{number}" for number, colour in enumerate(SERIES, 1)
}
_MOST_DIGITS = 9  # maximum decimals of a tick's label
_FEWEST_TICKS = 4
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A drawn figure as SVG; `alt` is its text alternative."""

    name: str
    title: str
    alt: str
    svg: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Axis from `low` to `high`; a tick's label is its value times `scale`, without rounding."""

    label: str
    low: float
    high: float
    scale: float = 1.0
    whole: bool = False  # ticks at whole numbers only
    signed: bool = False
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """Return the position of a value on the axis: 0 at `low`, 1 at `high`."""
        low, high, at = self.low, self.high, value
        if self.logarithmic:
            low, high, at = math.log(low), math.log(high), math.log(value)
        return (at - low) / (high - low)

    def ticks(self) -> list[tuple[float, str]]:
        """Return (value, label) of each tick; labels have enough decimals to be exact (2.5 is never 3)."""
        found = _decades(self.low, self.high) if self.logarithmic else self._steps()
        shown = [place * self.scale for place in found]
        digits = [
            next((d for d in range(_MOST_DIGITS) if abs(round(each, d) - each) < _ROUNDING), _MOST_DIGITS)
            for each in shown
        ]
        if not self.logarithmic:  # all labels have the same number of decimals
            digits = [max(digits, default=0)] * len(digits)
        return [
            (place, f"{value:{'+' if self.signed and round(value, d) else ''},.{d}f}")
            for place, value, d in zip(found, shown, digits, strict=True)
        ]

    def _steps(self) -> list[float]:
        span = (self.high - self.low) * self.scale
        size = 10.0 ** math.floor(math.log10(span / _FEWEST_TICKS))
        step = max(size * each for each in (1, 2, 2.5, 5) if span / (size * each) >= _FEWEST_TICKS)
        step = (max(1.0, round(step)) if self.whole else step) / self.scale
        first, last = math.ceil(self.low / step - _ROUNDING), math.floor(self.high / step + _ROUNDING)
        return [number * step for number in range(first, last + 1)]


def _decades(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times each power of ten, between `low` and `high`."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    places = (factor * 10.0**power for power in powers for factor in (1, 2, 5))
    return [place for place in places if low <= place <= high]


def percent(label: str) -> Axis:
    """Return an axis from 0 to 100 %."""
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
    """Return an axis for all finite values, with a margin as a share of their range."""
    known = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min(known), max(known)
    room = (high - low) * margin or (abs(high) * 0.1 or 1.0)
    return Axis(label=label, low=low - room, high=high + room, scale=scale, whole=whole, signed=signed)


def cut_note(shown: Sequence[object], of: Sequence[object], what: str) -> str:
    """Return a note for a title if items are left out; `what` names the items, such as "first skills"."""
    kind, _, things = what.partition(" ")
    return f" (the {kind} {len(shown)} of {len(of)} {things})" if len(of) > len(shown) else ""


def shortened(name: str, characters: int = 42) -> str:
    """Return a name for an axis, with the middle of each line replaced by an ellipsis if it is too long."""
    return "\n".join(_shortened_line(line, characters) for line in name.split("\n"))


def _shortened_line(line: str, characters: int) -> str:
    if len(line) <= characters:
        return line
    head = (characters - 1) // 2
    return f"{line[:head]}…{line[head + 1 - characters :]}"
