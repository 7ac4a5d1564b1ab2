"""Figures: one visual language, safe for the colour-blind, each with a text that says what it shows.

They are drawn as SVG by `chart`. `inline` turns a figure's colours into the page's own, so that one drawing
serves light, dark and print; `png` makes a picture of one, for those who want it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markupsafe import escape

from astra_async.errors import UsageError
from astra_async.report.plots import groups, scatter, standing
from astra_async.report.plots.style import COLOURS, Plot
from astra_async.report.table import visible

if TYPE_CHECKING:
    from astra_async.report.tables import Report

_PNG_ZOOM = 3  # of a point: 216 dots an inch
_HEAD = re.compile(r'<svg [^>]*?viewBox="([0-9. ]+)"([^>]*)>')


def draw_all(report: Report) -> list[Plot]:
    """Every figure that the report's data allows, in the order of its sections."""
    return [
        Plot(name=chart.name, title=visible(chart.title), alt=visible(chart.alt), svg=chart.svg())
        for part in (standing, groups, scatter)
        for chart in part.charts(report)
    ]


def inline(plot: Plot) -> str:
    """The figure as an SVG element for the page: colours are CSS variables, the size adapts."""
    svg = plot.svg
    for colour, variable in COLOURS.items():
        svg = svg.replace(colour, f"var(--{variable})")
    label = f'class="plot" role="img" aria-label="{escape(plot.alt)}"'
    return _HEAD.sub(lambda head: f'<svg {label} viewBox="{head[1]}"{head[2]}>', svg, count=1)


def png(plot: Plot) -> bytes:
    """The figure as a picture. Raises UsageError where the library for it is missing, or any font."""
    try:
        import resvg_py
    except ImportError as error:
        raise UsageError("resvg-py is not installed: pip install 'astra_async[png]'") from error
    picture = bytes(resvg_py.svg_to_bytes(svg_string=plot.svg, zoom=_PNG_ZOOM))
    wordless = re.sub(r"<text .*?</text>", "", plot.svg)
    if picture == bytes(resvg_py.svg_to_bytes(svg_string=wordless, zoom=_PNG_ZOOM)):
        raise UsageError("no font is installed, and a picture would have no words: try fonts-dejavu-core")
    return picture
