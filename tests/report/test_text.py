from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

from astra_async.report.table import NOTHING, Cell, Column, Kind, Table, csv_header, csv_row, shown
from astra_async.report.text import escaped, markdown, render_terminal
from astra_async.report.write import write_table

HOSTILE = "[red]a|b`<script>[/red]\n# c"


def table(*rows: tuple[Cell, ...], notes: tuple[str, ...] = ()) -> Table:
    return Table(
        name="t",
        title="Title",
        columns=(
            Column(name="model", title="Model"),
            Column(name="score", title="Mean score %", kind="percent"),
            Column(name="score_interval", title="95 %", kind="percent", interval=True),
        ),
        rows=rows,
        notes=notes,
    )


def printed(what: Table, width: int = 80) -> str:
    stream = io.StringIO()
    render_terminal([what], Console(file=stream, width=width))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("cell", "kind", "expected"),
    [
        (0.71234, "percent", "71.2"),
        (0.0234, "points", "+2.3"),
        (-0.0234, "points", "-2.3"),
        (0.12345, "score", "0.123"),
        (-0.164, "signed", "-0.164"),
        (0.0004, "p", "<0.001"),
        (0.04999, "p", "0.050"),
        (1234567, "count", "1,234,567"),
        (0.00123, "usd", "0.0012"),
        (1234.5, "usd", "1,234.50"),
        (6.7, "number", "6.7"),
        (22863.4, "number", "22,863"),
        (math.inf, "number", "never"),
        (math.nan, "percent", NOTHING),
        (None, "percent", NOTHING),
        (True, "text", "yes"),
        ((0.5, 0.75), "percent", "[50.0, 75.0]"),
        ((math.nan, math.nan), "percent", NOTHING),
    ],
)
def test_cells_are_shown_by_their_kind(cell: Cell, kind: Kind, expected: str) -> None:
    assert shown(cell, kind) == expected


def test_csv_has_raw_values_and_two_columns_for_an_interval() -> None:
    what = table(("a", 1 / 3, (0.1, 0.2)), ("b", None, None), ("c", math.nan, (math.nan, math.nan)))
    assert csv_header(what.columns) == ["model", "score", "score_interval_low", "score_interval_high"]
    rows = [csv_row(row, what.columns) for row in what.rows]
    assert rows == [["a", 1 / 3, 0.1, 0.2], ["b", None, None, None], ["c", None, None, None]]


def test_a_written_csv_quotes_what_must_be(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    write_table(path, table(('a,"b"', 0.5, None)))
    assert path.read_text() == 'model,score,score_interval_low,score_interval_high\n"a,""b""",0.5,,\n'


def test_a_row_of_the_wrong_length_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="must have 3 cells"):
        table(("a", 0.5))


def test_columns_are_chosen_by_name() -> None:
    what = table(("a", 0.5, None)).only("score", "model")
    assert what.rows == ((0.5, "a"),)
    assert what.column("model") == ["a"]
    with pytest.raises(KeyError):
        what.column("nothing")


def test_markdown_shows_hostile_names_as_they_are() -> None:
    text = markdown(table((HOSTILE, 0.5, (0.1, 0.2)), notes=("a note",)))
    row = next(line for line in text.splitlines() if "script" in line)
    assert row == r"| \[red\]a\|b\`\<script\>\[/red\] \# c | 50.0 | \[10.0, 20.0\] |"
    assert text.splitlines()[:4] == [
        "### Title",
        "",
        "| Model | Mean score % | 95 % |",
        "| :--- | ---: | ---: |",
    ]
    assert "a note" in text


def test_markdown_says_when_there_is_nothing() -> None:
    assert "Nothing to show." in markdown(table())


def test_the_terminal_shows_markup_in_names_as_text() -> None:
    text = printed(table((HOSTILE, 0.5, (0.1, 0.2)), notes=("[bold]note[/bold]",)), width=120)
    assert "[red]a|b`<script>[/red]" in text
    assert "[bold]note[/bold]" in text


def test_a_narrow_terminal_folds_names_and_never_cuts_numbers() -> None:
    text = printed(table(("a-model-with-a-very-long-name-that-must-fold", 0.5, (0.1, 0.2))), width=40)
    assert "[10.0, 20.0]" in text
    assert "50.0" in text
    assert max(map(len, text.splitlines())) <= 40


def test_a_table_wider_than_the_terminal_is_whole() -> None:
    columns = tuple(Column(name=f"c{i}", title=f"Column {i}", kind="percent") for i in range(20))
    what = Table(name="wide", title="Wide", columns=columns, rows=(tuple(i / 100 for i in range(20)),))
    text = printed(what, width=60)
    assert all(f"{i}.0" in text for i in range(20))


def test_an_empty_table_is_left_out_and_a_long_one_is_cut_with_a_note() -> None:
    assert printed(table()) == ""
    text = printed(table(*((f"m{i}", 0.5, None) for i in range(100))))
    assert "m39" in text
    assert "m40" not in text
    assert "The first 40 of 100 rows" in text


def test_markdown_holds_nothing_that_a_terminal_obeys() -> None:
    hostile = "\x1b[31mred\x1b[0m \x1b]0;owned\x07\x1b[2J\x9b1m\u202egnp.exe\ud800 | a\nb"
    assert escaped(hostile) == "red \\]0;owned\\[2J1mgnp.exe \\| a b"
