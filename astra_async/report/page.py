"""Report as one self-contained HTML page that makes no network requests.

Text from a model, a CSV file or a container is escaped by the template, embedded as JSON without `<`, or
compressed and shown as text only. A content security policy forbids all requests and all scripts except the
page's own script.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.listing import counted
from astra_async.report.packed_row import FAILURES
from astra_async.report.page_samples import BUDGET_BYTES, embed
from astra_async.report.plots import inline
from astra_async.report.problem_tables import problem_infos
from astra_async.report.table import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from markupsafe import Markup

    from astra_async.report.entries import Entry
    from astra_async.report.page_samples import Embedded
    from astra_async.report.plots.style import Plot
    from astra_async.report.table import Cell, Table
    from astra_async.report.tables import Report

MOST_ROWS = 1_000  # maximum rows of a table; the CSV files have all rows
MOST_COLUMNS = 256  # maximum samples of a problem in the map
_SHARED = ("dom", "terminal", "sorting", "record")  # modules shared with the viewer
_SCRIPTS = ("page", "map", "sample")
_MODULE_WORDS = re.compile(r"^(?:import .*\n|export )", re.MULTILINE)
_FOLDED = (
    *("problems", "difficulty", "tests", "curves", "fingerprints", "inputs", "events", "published"),
    "turn_skills",
)


def page_html(report: Report, plots: Sequence[Plot], budget_bytes: int = BUDGET_BYTES) -> str:
    """Return the whole page, with up to `budget_bytes` of compressed samples."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("astra_async.report", "template"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["isolated"] = _isolating(report)
    script, headline = _script(), report.table("leaderboard")
    embedded = embed(report.entries, budget_bytes)
    data = orjson.dumps(_data(report.entries, embedded)).decode()
    return environment.get_template("report.html").render(
        report=report,
        plots={plot.name: (plot, Markup(inline(plot))) for plot in plots},  # noqa: S704 - escaped by chart
        style=Markup(_text("shared/base.css") + _text("template/style.css")),  # noqa: S704 - package files
        script=Markup(script),  # noqa: S704 - a package file
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=Markup(data.replace("<", "\\u003c")),  # noqa: S704 - cannot end the script element
        embedded=embedded,
        zip=zip,
        sort_value=_sort_value,
        most_rows=MOST_ROWS,
        folded=_FOLDED,
        facts=_facts(report),
        standing=_leaderboard_rows(report.leaderboard, headline),
        headline=headline,
        turns_title=next((each.title for each in headline.columns if each.name == "after_turns"), ""),
        data_files=report.files(),
    )


def _isolating(report: Report) -> Callable[[str], Markup]:
    """Return a template filter that wraps each name in `<bdi>`, which isolates the direction of its text."""
    from markupsafe import Markup, escape

    names = {visible(name) for entry in report.entries for name in (entry.label, entry.name)}
    any_name = re.compile("|".join(re.escape(str(escape(name))) for name in sorted(names, key=len)[::-1]))

    def isolated(text: str) -> Markup:
        safe = str(escape(visible(text)))
        return Markup(any_name.sub(r"<bdi>\g<0></bdi>", safe) if names else safe)  # noqa: S704 - escaped above

    return isolated


def _script() -> str:
    """Return all scripts as one function, without `import` and `export`; their names must not clash."""
    shared = (_MODULE_WORDS.sub("", _text(f"shared/{name}.js")) for name in _SHARED)
    own = (_text(f"template/{name}.js") for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{"".join(shared)}{"".join(own)}}})();'


def _text(path: str) -> str:
    return (files("astra_async.report") / path).read_text(encoding="utf-8")


def _facts(report: Report) -> list[str]:
    """Return the parts of the line under the title: size, time and directory of the runs."""
    entries = report.entries
    ks = sorted({run.settings.samples for run in report.runs})
    problems = {problem for entry in entries for problem in entry.problem_ids}
    valid = sum(entry.summary.valid for entry in entries)
    planned = sum(entry.summary.planned for entry in entries)
    last = max((run.finished_at for run in report.runs), default="")[:16].replace("T", " ")
    formats = " and ".join(dict.fromkeys(entry.format.upper() for entry in entries))
    return [
        counted(len({entry.label for entry in entries}), "model") + (f" on {formats}" if formats else ""),
        counted(len(problems), "problem"),
        f"k = {', '.join(map(str, ks))}",
        f"{valid:,} of {planned:,} results",
        *([f"last sample {last} UTC"] if last else []),
        str(report.runs[0].directory) if len(report.runs) == 1 else counted(len(report.runs), "run"),
    ]


def _leaderboard_rows(wide: Table, headline: Table) -> list[dict[str, Any]]:
    """Return the rows of the first table, with the positions of their bars in % of the bar's width."""
    several = len(set(wide.column("format"))) > 1
    rows = []
    for place, (cells, shown) in enumerate(zip(wide.by_name(), headline.by_name(), strict=True)):
        raw = shown | cells
        interval, score = raw["mean_score_total"], raw["mean_score"]
        low, high = interval if isinstance(interval, tuple) else (None, None)
        rows.append(
            {
                "name": visible(f"{raw['model']} ({raw['format']})" if several else str(raw["model"])),
                "complete": raw["complete"],
                "texts": dict(zip(shown, headline.shown(place), strict=True))
                | dict(zip(cells, wide.shown(place), strict=True)),
                "raw": {name: _sort_value(cell) for name, cell in raw.items()},
                "low": None if low is None else round(100 * low, 2),
                "width": None if low is None or high is None else round(100 * (high - low), 2),
                "at": round(100 * score, 2) if isinstance(score, float) else None,
            }
        )
    return rows


def _data(entries: Sequence[Entry], embedded: Embedded) -> dict[str, Any]:
    """Return the data for the page's script: the map of samples, and the chunk of each embedded sample."""
    return {
        "failures": [failure or "" for failure in FAILURES],
        "entries": [_entry_data(entry) for entry in entries],
        "problems": {
            problem: " ".join([info.name, info.main_skill, *info.sub_skills])
            for problem, info in problem_infos(entries).items()
        },
        "chunks": [(chunk.entry, chunk.problem, chunk.samples) for chunk in embedded.chunks],
    }


def _entry_data(entry: Entry) -> dict[str, Any]:
    """Return an entry's T by problem, and tests passed (-1: missing) and failure by sample."""
    columns = min(int(entry.planned.max(initial=0)), MOST_COLUMNS)
    passed: list[list[float]] = [[-1] * min(int(k), columns) for k in entry.planned]
    failure = [[0] * min(int(k), columns) for k in entry.planned]
    for run, rows in entry.rows_by_run():
        kept = rows[rows["sample"] < columns]
        names = ("problem", "sample", "passed", "score", "rewarded", "failure")
        for problem, sample, tests, score, rewarded, kind in zip(
            *(kept[name].tolist() for name in names), strict=True
        ):
            place = entry.places[run.problems[problem]]
            passed[place][sample] = score if rewarded else tests
            failure[place][sample] = kind
    return {
        "name": visible(entry.name),
        "label": visible(entry.label),
        "model": entry.model,
        "format": entry.format,
        "directory": str(entry.parts[0][0].directory),
        "problems": entry.problem_ids,
        "totals": [0 if total != total else int(total) for total in entry.totals.tolist()],  # noqa: PLR0124 - NaN
        "means": [None if mean != mean else round(mean, 6) for mean in entry.means.tolist()],  # noqa: PLR0124 - NaN
        "left_out": int(entry.planned.max(initial=0)) - columns,
        "passed": passed,
        "failure": failure,
    }


def _sort_value(cell: Cell) -> str:
    """Return the sort key of a cell: the raw number, the middle of an interval, or the text."""
    if cell is None:
        return ""
    if isinstance(cell, tuple):
        return repr(sum(cell) / 2)
    return str(cell)
