"""Tables as text: for the terminal (rich) and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astra_async.report.table import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console
    from rich.table import Table as RichTable

    from astra_async.report.table import Table


_MOST_ROWS = 40


def render_terminal(tables: Sequence[Table], console: Console) -> None:
    """Print tables with their notes, at most 40 rows of each; one without rows is left out."""
    for table in tables:
        if table.rows:
            console.print(_rich_table(table))
            for note in (*_cut_note(table), *table.notes):
                console.print(note, style="dim", markup=False, highlight=False)
            console.print()


def markdown(table: Table) -> str:
    """One table in GitHub's Markdown, under a heading, its notes below."""
    return "\n".join([f"## {_escaped(table.title)}", "", *_markdown_rows(table), "", *_markdown_notes(table)])


def _rich_table(table: Table) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(title=Text(table.title), box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    for column in table.columns:
        drawn.add_column(Text(column.title), justify="right" if column.numeric else "left")
    for row in table.rows[:_MOST_ROWS]:
        # Text, not str: a model's name must not be read as console markup
        drawn.add_row(*(Text(shown(*pair)) for pair in zip(row, table.columns, strict=True)))
    return drawn


def _cut_note(table: Table) -> Iterator[str]:
    if len(table.rows) > _MOST_ROWS:
        yield f"The first {_MOST_ROWS} of {len(table.rows)} rows; the page has all of them."


def _markdown_rows(table: Table) -> Iterator[str]:
    if not table.rows:
        yield "Nothing to show."
        return
    yield _markdown_line([column.title for column in table.columns])
    yield _markdown_line(["---:" if column.numeric else ":---" for column in table.columns])
    for row in table.rows:
        yield _markdown_line([_escaped(shown(*pair)) for pair in zip(row, table.columns, strict=True)])


def _markdown_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_notes(table: Table) -> list[str]:
    return [line for note in table.notes for line in (_escaped(note), "")]


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is; line breaks would end a table's row."""
    flat = " ".join(text.split())
    return "".join(f"\\{character}" if character in r"\`*_{}[]<>|#" else character for character in flat)
