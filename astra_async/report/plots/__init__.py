"""Figures: one visual language, safe for the colour-blind, each with a text that says what it shows.

Drawn by matplotlib without pyplot and without global state. `inline` turns a figure's colours into the
page's own, so that one drawing serves light, dark and print.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from astra_async.report.plots import groups, scatter, standing
from astra_async.report.plots.style import COLOURS, RC, Plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from astra_async.report.plots.style import Sketch
    from astra_async.report.tables import Report

_PNG_DPI = 160
_SIZE = re.compile(r'<svg [^>]*?viewBox="0 0 ([0-9.]+) ([0-9.]+)"[^>]*>')


def draw_all(report: Report) -> list[Plot]:
    """Every figure that the report's data allows, in the order of its sections."""
    import matplotlib as mpl

    with mpl.rc_context(RC):
        return [_render(sketch) for part in (standing, groups, scatter) for sketch in part.sketches(report)]


def inline(plot: Plot) -> str:
    """The figure as an SVG element for the page: colours are CSS variables, the size adapts."""
    from markupsafe import escape

    svg = plot.svg[plot.svg.index("<svg ") :]
    for colour, variable in COLOURS.items():
        svg = svg.replace(colour, f"var(--{variable})")
    match = _SIZE.match(svg)
    if match is None:  # matplotlib has always written a viewBox
        return svg
    width, height = match.groups()
    head = f'<svg class="plot" role="img" aria-label="{escape(plot.alt)}" viewBox="0 0 {width} {height}">'
    return head + svg[match.end() :]


def _render(sketch: Sketch) -> Plot:
    import matplotlib as mpl

    # the salt makes ids within a figure repeatable, and different from those of the page's other figures
    with mpl.rc_context({"svg.hashsalt": sketch.name}):
        svg = _saved(sketch.figure, "svg", metadata={"Date": None, "Creator": None}).decode()
    return Plot(
        name=sketch.name,
        title=sketch.title,
        alt=sketch.alt,
        svg=svg,
        png=_saved(sketch.figure, "png", dpi=_PNG_DPI),
    )


def _saved(figure: Figure, file_format: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format=file_format, **options)
    return stream.getvalue()
