"""The report as one self-contained HTML page: no request to anywhere, works from disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astra_async.report.table import shown

if TYPE_CHECKING:
    from astra_async.report.tables import Report


def page_html(report: Report) -> str:
    """The whole page; everything that came from a model or a CSV is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("astra_async.report", "template"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("index.html").render(report=report, shown=shown)
