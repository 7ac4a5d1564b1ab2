"""Rendering of tables as text: for the terminal (rich) and as Markdown."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table as RichTable

    from astra_async.report.table import Column, Findings, Table
    from astra_async.report.tables import Report

_FOR_LOOKING_UP = ("problems", "tests", "curves", "inputs", "fingerprints", "turn_skills")

# Color codes, control characters and bidirectional formatting characters.
_OBEYED = re.compile(
    "\x1b\\[[0-9;:]*m|[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_MOST_ROWS = 40
_TEXT_FOLDS = 14
_GAP = 2  # spaces between two cells


def print_report(report: Report, console: Console, *, everything: bool) -> None:
    """Print the conclusions and the leaderboard, or with `everything` all tables except reference tables."""
    _print_head(report, console, simulated=report.simulated)
    read = [table for table in report.tables() if table.name not in _FOR_LOOKING_UP]
    render_terminal(read if everything else read[:1], console)


def print_findings(found: Findings, console: Console) -> None:
    """Print the result of `astra compare` or `astra plan`."""
    _print_head(found, console)
    render_terminal(found.tables, console)


def render_terminal(tables: Sequence[Table], console: Console) -> None:
    """Print tables with their notes, at most 40 rows each; a table without rows is left out."""
    for table in tables:
        if table.rows:
            # Not cropped: the last column, often the conclusion, must not be lost in a narrow terminal.
            console.print(_rich_table(table, console.width), crop=False, soft_wrap=True)
            count = len(table.rows)
            cut = f"The first {_MOST_ROWS} of {count} rows are shown; the HTML page has all rows."
            for note in (*([cut] if count > _MOST_ROWS else []), *table.notes):
                console.print(note, style="dim", markup=False, highlight=False)
            console.print()


def markdown(table: Table) -> str:
    """Return a table in GitHub's Markdown, with a heading and the notes below."""
    heads = [column.title for column in table.columns]
    signs = ["---:" if column.numeric else ":---" for column in table.columns]
    rows = [[escaped(text) for text in table.shown(place)] for place in range(len(table.rows))]
    lines = [f"| {' | '.join(cells)} |" for cells in (heads, signs, *rows)] if rows else ["Nothing to show."]
    notes = [line for note in table.notes for line in (escaped(note), "")]
    return "\n".join([f"### {escaped(table.title)}", "", *lines, "", *notes])


def escaped(text: str) -> str:
    """Return text escaped for Markdown, without terminal codes and line breaks (which end a table row)."""
    flat = _OBEYED.sub("", " ".join(text.split()))
    return "".join(f"\\{character}" if character in r"\`*_{}[]<>|#~" else character for character in flat)


def _print_head(found: Report | Findings, console: Console, *, simulated: bool = False) -> None:
    for warning in found.warnings:
        console.print(f"warning: {warning}", style="yellow", markup=False, highlight=False)
    if simulated:
        note = "These models are simulated. The numbers do not describe any real model."
        console.print(note, style="bold")
    for sentence in found.conclusions:
        console.print(sentence, markup=False, highlight=False)
    if found.conclusions:
        console.print()


def _rich_table(table: Table, terminal: int) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    rows = [table.shown(place) for place in range(min(_MOST_ROWS, len(table.rows)))]
    least = [_least_width(column, [row[place] for row in rows]) for place, column in enumerate(table.columns)]
    needed = sum(least) + _GAP * (len(least) + 1)
    drawn = RichTable(
        title=Text(table.title),
        box=box.SIMPLE_HEAD,
        title_justify="left",
        title_style="bold",
        pad_edge=False,
        collapse_padding=True,
        width=needed if needed > terminal else None,
    )
    for column, width in zip(table.columns, least, strict=True):
        # Numbers are never folded, because a part of a number would be misread; only texts are.
        drawn.add_column(
            Text("\n".join(textwrap.wrap(column.title, width)) if column.numeric else column.title),
            justify="right" if column.numeric else "left",
            no_wrap=column.numeric,
            overflow="fold",
            min_width=width,
        )
    for row in rows:
        # As Text, because rich would interpret brackets in a str as markup.
        drawn.add_row(*map(Text, row))
    return drawn


def _least_width(column: Column, texts: Sequence[str]) -> int:
    """Return the minimum width of a column.

    A numeric column needs its longest cell and its title's longest word. A text column folds at 14
    characters.
    """
    cells = max(map(len, texts), default=0)
    title = max(map(len, column.title.split()), default=1)
    return max(cells, title) if column.numeric else max(min(cells, _TEXT_FOLDS), title)
