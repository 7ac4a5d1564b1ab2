"""Data types of a figure (axes, marks, legend) and its rendering as SVG.

No plotting library is used, because importing one takes longer than drawing all figures of a report.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal
from unicodedata import combining, east_asian_width

from markupsafe import escape

from astra_async.report.plots.style import GRID, INK, MUTED, PAPER, SERIES
from astra_async.report.table import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from astra_async.report.plots.style import Axis

Shape = Literal["circle", "square", "diamond", "up", "down", "cross", "tick"]
SHAPES: tuple[Shape, ...] = ("circle", "square", "diamond", "up", "down", "cross")

WIDTH = 548.0  # points; the text width of most papers
_FONT, _SMALL = 9.0, 8.0  # font sizes in points
_LINE = 12.0  # distance of text lines in points
_PAD = 6.0
_ROW = 23.0
_LEGEND_KEY = 22.0
_NARROW, _BROAD = frozenset("iljtfr.,:;|!'()[]{}I "), frozenset("mwMW@%")
_OUTLINES: dict[str, tuple[tuple[float, float], ...]] = {
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "diamond": ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
    "up": ((0, -1.1), (1.1, 0.9), (-1.1, 0.9)),
    "down": ((0, 1.1), (1.1, -0.9), (-1.1, -0.9)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dots:
    """Shapes at points; `size` is the radius in points, `sizes` the radius of each point."""

    xs: Sequence[float]
    ys: Sequence[float]
    colour: str = SERIES[0]
    shape: Shape = "circle"
    size: float = 3.0
    sizes: Sequence[float] = ()
    hollow: bool = False
    opacity: float = 1.0
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartLine:
    """Line through points, in their order."""

    xs: Sequence[float]
    ys: Sequence[float]
    colour: str = SERIES[0]
    width: float = 1.4
    dashed: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Horizontal bar from `start` to `end`, centered at row `y` and `thick` rows high."""

    start: float = 0.0
    end: float
    y: float
    thick: float = 0.66
    colour: str = SERIES[0]
    hollow: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Shaded vertical band from `start` to `end` on the x axis; a line if both are equal."""

    start: float
    end: float
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Text next to a point; never in the legend."""

    x: float
    y: float
    text: str
    colour: str = INK
    label: Literal[""] = ""


Mark = Dots | ChartLine | Bar | Band | Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One figure, with a `y` axis or with named `rows` from top to bottom; `alt` is its text alternative."""

    name: str
    title: str
    alt: str
    x: Axis
    y: Axis | None = None
    rows: Sequence[str] = ()
    row_height: float = 1.0  # multiple of the normal row height
    height: float = 250.0  # height of the plot area in points; not used with rows
    heading: str = ""
    marks: Sequence[Mark] = ()
    legend_columns: int = 2
    others: Sequence[Mark] = ()  # marks shown only in the legend

    def svg(self) -> str:
        """Return the figure as SVG, with the colors for print."""
        return _Drawing(self).svg()


class _Drawing:
    """Layout and SVG of a chart; coordinates are in points from the upper left corner."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.rows = [row.split("\n") for row in chart.rows]
        lines = [line for row in self.rows for line in row]
        ticks = [] if chart.y is None else [label for _, label in chart.y.ticks()]
        self.left = max(map(width_of, [*lines, *ticks]), default=0.0) + 2 * _PAD
        self.left += _LINE + _PAD if chart.y else 0.0
        self.top = _PAD + (_LINE + _PAD if chart.heading else 0.0)
        self.right = WIDTH - 2 * _PAD - 4.0
        rows = max(2, len(chart.rows))
        self.inner = _ROW * chart.row_height * rows if chart.rows else chart.height
        self.bottom = self.top + self.inner
        self.legend = _legend_rows(chart)

    def x(self, value: float) -> float:
        return self.left + self.chart.x.share(value) * (self.right - self.left)

    def y(self, value: float) -> float:
        if self.chart.y is None:
            share = (value + 0.6) / (max(2, len(self.chart.rows)) + 0.2)
            return self.top + share * self.inner
        return self.bottom - self.chart.y.share(value) * self.inner

    def svg(self) -> str:
        height = self.bottom + 2 * _LINE + 2 * _PAD + (len(self.legend) * (_LINE + 2) + _PAD)
        parts = [*self._frame(), *self._marks(), *self._below()]
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:.0f}" height="{height:.0f}"'
            f' viewBox="0 0 {WIDTH:.0f} {height:.0f}" font-family="DejaVu Sans, Verdana, sans-serif"'
            f' font-size="{_FONT:g}" fill="none" stroke-linecap="butt">\n'
            f'<rect width="100%" height="100%" fill="{PAPER}"/>\n' + "\n".join(parts) + "\n</svg>\n"
        )

    def _frame(self) -> Iterator[str]:
        chart = self.chart
        if chart.heading:
            yield _text(self.left, self.top - _PAD, chart.heading, size=_SMALL)
        for place, label in chart.x.ticks():
            yield _line([(self.x(place), self.top), (self.x(place), self.bottom)], GRID, 0.6)
            yield _text(self.x(place), self.bottom + _LINE, label, anchor="middle")
        for number, lines in enumerate(self.rows):
            first = self.y(number) + 3.2 - (len(lines) - 1) * _LINE / 2
            for line, text in enumerate(lines):
                yield _text(self.left - _PAD, first + line * _LINE, text, anchor="end")
        if chart.y:
            for place, label in chart.y.ticks():
                yield _line([(self.left, self.y(place)), (self.right, self.y(place))], GRID, 0.6)
                yield _text(self.left - _PAD, self.y(place) + 3.2, label, anchor="end")
            middle = (self.top + self.bottom) / 2
            turned = f' transform="rotate(-90 {_LINE:.1f} {middle:.1f})"'
            yield _text(_LINE, middle, chart.y.label, anchor="middle", more=turned)
        corners = [(self.left, self.top), (self.left, self.bottom), (self.right, self.bottom)]
        yield _line(corners, MUTED, 0.8)

    def _below(self) -> Iterator[str]:
        middle = (self.left + self.right) / 2
        yield _text(middle, self.bottom + 2 * _LINE + 2, self.chart.x.label, anchor="middle")
        widths = _legend_widths(self.legend)
        start = max(_PAD, (WIDTH - sum(widths) - len(widths) * (_LEGEND_KEY + 3 * _PAD)) / 2)
        for number, row in enumerate(self.legend):
            y, x = self.bottom + 2 * _LINE + 2 * _PAD + (number + 0.6) * (_LINE + 2), start
            for mark, wide in zip(row, widths, strict=False):
                yield from _key(mark, x, y)
                yield _text(x + _LEGEND_KEY + 4, y + 3, mark.label, size=_SMALL)
                x += wide + _LEGEND_KEY + 3 * _PAD

    def _marks(self) -> Iterator[str]:
        for mark in self.chart.marks:
            match mark:
                case Dots():
                    yield from self._dots(mark)
                case ChartLine():
                    points = [(self.x(x), self.y(y)) for x, y in _finite(mark.xs, mark.ys)]
                    yield _line(points, mark.colour, mark.width, dashed=mark.dashed)
                case Bar() if math.isfinite(mark.end):
                    yield self._bar(mark)
                case Band():
                    yield self._band(mark)
                case Words():
                    yield _text(self.x(mark.x) + 4, self.y(mark.y) + 3, mark.text, colour=mark.colour)

    def _dots(self, dots: Dots) -> Iterator[str]:
        sizes = dots.sizes or [dots.size] * len(dots.xs)
        for x, y, size in zip(dots.xs, dots.ys, sizes, strict=True):
            if math.isfinite(x) and math.isfinite(y):
                yield _shape(dots, self.x(x), self.y(y), size)

    def _band(self, band: Band) -> str:
        first, last = self.x(band.start), self.x(band.end)
        if first == last:
            return _line([(first, self.top), (first, self.bottom)], MUTED, 1.0)
        size = f'width="{last - first:.1f}" height="{self.inner:.1f}"'
        return f'<rect x="{first:.1f}" y="{self.top:.1f}" {size} fill="{MUTED}" opacity="0.15"/>'

    def _bar(self, bar: Bar) -> str:
        first, last = sorted((self.x(bar.start), self.x(bar.end)))
        low, high = sorted((self.y(bar.y - bar.thick / 2), self.y(bar.y + bar.thick / 2)))
        fill = f'stroke="{bar.colour}"' if bar.hollow else f'fill="{bar.colour}"'
        size = f'width="{last - first:.1f}" height="{high - low:.1f}"'
        return f'<rect x="{first:.1f}" y="{low:.1f}" {size} {fill}/>'


def width_of(text: str, size: float = _FONT) -> float:
    """Return the approximate width of a text in points; no font metrics are available."""
    return size * sum(map(_em, text))


def _em(character: str) -> float:
    if combining(character):
        return 0.0
    if east_asian_width(character) in "WF":
        return 1.05
    if character in _NARROW:
        return 0.36
    return 0.92 if character in _BROAD else 0.66 if character.isupper() else 0.61


def _legend_rows(chart: Chart) -> list[list[Mark]]:
    """Return the legend's rows, with as many columns as fit into the figure's width."""
    rows: list[list[Mark]] = []
    named = [mark for mark in (*chart.marks, *chart.others) if mark.label]
    for columns in range(min(chart.legend_columns, len(named)), 0, -1):
        rows = [named[start : start + columns] for start in range(0, len(named), columns)]
        if sum(width + _LEGEND_KEY + 3 * _PAD for width in _legend_widths(rows)) <= WIDTH - 2 * _PAD:
            break
    return rows


def _legend_widths(rows: Sequence[Sequence[Mark]]) -> list[float]:
    return [max(width_of(mark.label, _SMALL) for mark in column if mark) for column in zip_longest(*rows)]


def _key(mark: Mark, x: float, y: float) -> Iterator[str]:
    """Yield the SVG of the key before a legend text."""
    middle = x + _LEGEND_KEY / 2
    match mark:
        case ChartLine():
            yield _line([(x, y), (x + _LEGEND_KEY, y)], mark.colour, mark.width, dashed=mark.dashed)
        case Dots():
            yield _shape(mark, middle, y, min(mark.size, 4.0))
        case Bar():
            place = f'x="{x:.1f}" y="{y - 3.5:.1f}" width="{_LEGEND_KEY:g}" height="7"'
            yield f'<rect {place} fill="{mark.colour}"/>'
        case Band() | Words():
            pass


def _shape(dots: Dots, x: float, y: float, size: float) -> str:
    paint = (
        f'fill="{PAPER}" stroke="{dots.colour}" stroke-width="1.3"'
        if dots.hollow
        else f'fill="{dots.colour}"'
    )
    paint += f' opacity="{dots.opacity:g}"' if dots.opacity < 1 else ""
    if dots.shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}" {paint}/>'
    if dots.shape == "tick":
        return _line([(x, y - 3 * size), (x, y + 3 * size)], dots.colour, 2.0)
    if dots.shape == "cross":
        across = f"M{x - size:.1f} {y:.1f}H{x + size:.1f}M{x:.1f} {y - size:.1f}V{y + size:.1f}"
        return f'<path d="{across}" stroke="{dots.colour}" stroke-width="2"/>'
    points = " ".join(f"{x + dx * size:.1f},{y + dy * size:.1f}" for dx, dy in _OUTLINES[dots.shape])
    return f'<polygon points="{points}" {paint}/>'


def _line(points: Sequence[tuple[float, float]], colour: str, width: float, *, dashed: bool = False) -> str:
    if not points:
        return ""
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = f' stroke-dasharray="{3 * width:g} {2 * width:g}"' if dashed else ""
    return f'<polyline points="{places}" stroke="{colour}" stroke-width="{width:g}"{dash}/>'


def _text(  # noqa: PLR0913 - attributes of a text
    x: float, y: float, text: str, *, colour: str = INK, size: float = _FONT, anchor: str = "", more: str = ""
) -> str:
    style = (f' text-anchor="{anchor}"' if anchor else "") + (
        f' font-size="{size:g}"' if size != _FONT else ""
    )
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}"{style}{more}>{escape(visible(text))}</text>'


def _finite(xs: Sequence[float], ys: Sequence[float]) -> Iterator[tuple[float, float]]:
    for x, y in zip(xs, ys, strict=True):
        if math.isfinite(x) and math.isfinite(y):
            yield x, y
