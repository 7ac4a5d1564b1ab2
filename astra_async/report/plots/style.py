"""What all figures share: colours, sizes, names of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

INK, MUTED, GRID, PAPER = "#20242a", "#68707b", "#d9dde3", "#ffffff"
# Okabe and Ito (2008): distinguishable with any kind of colour vision; yellow is left out (too pale)
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = ("o", "s", "D", "^", "v", "P")
COLOURS = {INK: "ink", MUTED: "muted", GRID: "grid", PAPER: "paper"} | {
    colour: f"series-{number}" for number, colour in enumerate(SERIES, 1)
}
WIDTH_IN = 7.6
_ROW_IN = 0.32
_MOST_DIGITS = 9  # of a tick's label

RC: dict[Any, Any] = {  # the type stubs know the keys of one matplotlib version only
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "text.parse_math": False,  # a model's name may hold a dollar sign
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.use_mathtext": False,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "svg.fonttype": "none",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """A figure before it is saved."""

    name: str
    title: str
    alt: str
    figure: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A saved figure; `alt` says in words what it shows."""

    name: str
    title: str
    alt: str
    svg: str
    png: bytes


def row_figure(names: Sequence[str], *, rows_each: float = 1.0) -> tuple[Figure, Axes]:
    """An empty figure with one named row for each name, the first on top."""
    from matplotlib.figure import Figure

    height = 1.1 + _ROW_IN * rows_each * max(2, len(names))
    figure = Figure(figsize=(WIDTH_IN, height), layout="constrained")
    axes = figure.add_subplot()
    axes.set_yticks(range(len(names)), [shortened(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    return figure, axes


def share_figure(entries: int, *, of: str, over: str) -> tuple[Figure, Axes]:
    """An empty figure of shares `of` something (0 to 100 %) over whole numbers, for so many entries."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(WIDTH_IN, 3.4 + 0.18 * entries), layout="constrained")
    axes = figure.add_subplot()
    axes.set_ylim(-0.02, 1.02)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    exact_ticks(axes.xaxis)
    exact_ticks(axes.yaxis, scale=100)
    axes.set_ylabel(of)
    axes.set_xlabel(over)
    return figure, axes


def percent_axis(axes: Axes, label: str) -> None:
    """An axis from 0 to 100 %."""
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1.0], ["0", "20", "40", "60", "80", "100"])
    axes.set_xlabel(label)


def exact_ticks(axis: Axis, *, scale: float = 1, signed: bool = False) -> None:
    """Label every tick with all the digits that its place has: 2.5 is never called 3, nor 0.0159 0.016."""

    def label(value: float, _: float) -> str:
        ticks = [float(tick) * scale for tick in axis.get_majorticklocs()]
        digits = next((d for d in range(_MOST_DIGITS) if all(_is_at(t, d) for t in ticks)), _MOST_DIGITS)
        return f"{value * scale:{'+' if signed and round(value * scale, digits) else ''},.{digits}f}"

    axis.set_major_formatter(label)


def _is_at(tick: float, digits: int) -> bool:
    return bool(abs(round(tick, digits) - tick) < 10.0**-_MOST_DIGITS)


def legend_below(axes: Axes, columns: int) -> None:
    """A legend under the axis label, where it can cover nothing."""
    axes.figure.legend(loc="outside lower center", ncols=columns)


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
