"""Figures of a report as SVG, with colors safe for color-blind readers and with text alternatives.

`chart` draws the SVG. `inline` replaces the colors by the page's CSS variables for light and dark mode. `png`
renders a figure as PNG.
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

_PNG_ZOOM = 3  # pixels per point: 216 dots per inch
_HEAD = re.compile(r'<svg [^>]*?viewBox="([0-9. ]+)"([^>]*)>')


def draw_all(report: Report) -> list[Plot]:
    """Return every figure for which the report has data, in the order of its sections."""
    return [
        Plot(name=chart.name, title=visible(chart.title), alt=visible(chart.alt), svg=chart.svg())
        for part in (standing, groups, scatter)
        for chart in part.charts(report)
    ]


def inline(plot: Plot) -> str:
    """Return the figure as an SVG element for the page, with CSS variables as colors and a flexible size."""
    svg = plot.svg
    for colour, variable in COLOURS.items():
        svg = svg.replace(colour, f"var(--{variable})")
    label = f'class="plot" role="img" aria-label="{escape(plot.alt)}"'
    return _HEAD.sub(lambda head: f'<svg {label} viewBox="{head[1]}"{head[2]}>', svg, count=1)


def png(plot: Plot) -> bytes:
    """Return the figure as PNG. Raises UsageError if resvg-py or a font is not installed."""
    try:
        import resvg_py
    except ImportError as error:
        raise UsageError("resvg-py is not installed: pip install 'astra_async[png]'") from error
    picture = bytes(resvg_py.svg_to_bytes(svg_string=plot.svg, zoom=_PNG_ZOOM))
    wordless = re.sub(r"<text .*?</text>", "", plot.svg)
    if picture == bytes(resvg_py.svg_to_bytes(svg_string=wordless, zoom=_PNG_ZOOM)):
        raise UsageError("no font is installed for the text in PNG files: apt-get install fonts-dejavu-core")
    return picture
