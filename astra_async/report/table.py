"""Data type of all tables, independent of the output format (terminal, Markdown, CSV, HTML).

A cell holds the raw value: fractions instead of percentages, with all digits. `Column.kind` determines the
displayed text. An interval is one column in displayed tables and two (`_low`, `_high`) in CSV. A provisional
number is displayed with a tilde (`~71.2`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Self

Interval = tuple[float, float]
Cell = str | int | float | bool | Interval | None
Kind = Literal[
    "text",
    "count",
    "percent",  # a fraction, shown as 71.2
    "points",  # a difference of fractions, shown as +2.3
    "score",  # a spread on the score's own scale from 0 to 1, shown as 0.123
    "signed",  # a difference or correlation, shown as -0.164
    "p",  # a p-value
    "number",
    "usd",
    "seconds",
]
MAIN_TABLES = ("leaderboard", "problems", "pairwise", "skills", "formats")  # CSV files at the top level
# Control characters and bidirectional formatting characters, which `visible` replaces.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_MOST_DIGITS = 6
NOTHING = "–"  # noqa: RUF001 - an en dash is the sign for "no value"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        help: meaning of the column, with its unit.
        interval: True if cells are (low, high).
        of: function from a row's item to the cell (see `Table.of`); by default the item's key or attribute
            with the column's name.
    """

    name: str
    title: str
    kind: Kind = "text"
    _: KW_ONLY
    interval: bool = False
    help: str = ""
    of: Callable[[Any], Cell] | None = field(default=None, compare=False, repr=False)

    def cell(self, item: Any) -> Cell:
        """Return this column's cell in the row of an item."""
        return self.of(item) if self.of else _under(self.name, item)

    @property
    def numeric(self) -> bool:
        """True for numbers, which are aligned to the right."""
        return self.kind != "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Columns, rows and notes.

    Numbers of `provisional` rows (indexes) are displayed with a tilde. If the table is a part of another
    table, `within` is the name of that table, and the CSV file of that table has the values.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    provisional: frozenset[int] = frozenset()
    within: str = ""

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"table {self.name}: every row must have {len(self.columns)} cells")
        for column in self.columns:
            if column.kind not in _FORMATS:
                raise ValueError(
                    f"table {self.name}, column {column.name}: kind {column.kind!r} is not in {[*_FORMATS]}"
                )

    @classmethod
    def of(  # noqa: PLR0913 - what a table has
        cls,
        name: str,
        title: str,
        columns: Iterable[Column],
        items: Iterable[Any],
        *,
        notes: Iterable[str] = (),
        within: str = "",
        provisional: bool = False,
    ) -> Self:
        """Return a table with a row for each item; see `Column.cell`.

        With `provisional`, rows whose item is not `complete` are provisional.
        """
        columns, items = tuple(columns), tuple(items)
        return cls(
            name=name,
            title=title,
            columns=columns,
            rows=tuple(tuple(column.cell(item) for column in columns) for item in items),
            notes=tuple(notes),
            within=within,
            provisional=frozenset(
                place for place, item in enumerate(items) if provisional and not _under("complete", item)
            ),
        )

    @property
    def file(self) -> str:
        """CSV file with this table, relative to the report's directory."""
        name = self.within or self.name
        return f"{name}.csv" if name in MAIN_TABLES else f"tables/{name}.csv"

    def column(self, name: str) -> list[Cell]:
        """Return all cells of one column. Raises KeyError for an unknown name."""
        for place, column in enumerate(self.columns):
            if column.name == name:
                return [row[place] for row in self.rows]
        raise KeyError(name)

    def only(self, *names: str) -> Table:
        """Return the table with these columns only, in this order."""
        places = [[column.name for column in self.columns].index(name) for name in names]
        return replace(
            self,
            columns=tuple(self.columns[place] for place in places),
            rows=tuple(tuple(row[place] for place in places) for row in self.rows),
        )

    def insert(self, before: str, column: Column, cells: Sequence[Cell], notes: Sequence[str]) -> Table:
        """Return the table with another column before the column `before`, and with more notes."""
        at = [each.name for each in self.columns].index(before)
        return replace(
            self,
            columns=(*self.columns[:at], column, *self.columns[at:]),
            rows=tuple((*row[:at], cell, *row[at:]) for row, cell in zip(self.rows, cells, strict=True)),
            notes=(*self.notes, *notes),
        )

    def by_name(self) -> list[dict[str, Cell]]:
        """Return each row as a dictionary by column name."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def shown(self, place: int) -> list[str]:
        """Return the displayed texts of one row."""
        pairs = zip(self.rows[place], self.columns, strict=True)
        texts = [shown(cell, column.kind) for cell, column in pairs]
        if place not in self.provisional:
            return texts
        return [
            text if column.kind in ("text", "count") or text == NOTHING else f"~{text}"
            for text, column in zip(texts, self.columns, strict=True)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Result of `astra compare` or `astra plan`; `data` are wide tables for programs."""

    conclusions: tuple[str, ...]
    tables: tuple[Table, ...]
    warnings: tuple[str, ...]
    data: tuple[Table, ...] = ()

    def table(self, name: str) -> Table:
        """Return the table with this name."""
        return next(table for table in (*self.data, *self.tables) if table.name == name)

    def record(self) -> dict[str, object]:
        """Return conclusions, warnings, and each table by name with title, notes and rows, as JSON values."""
        return {
            "conclusions": self.conclusions,
            "warnings": self.warnings,
            "tables": {
                table.name: {"title": table.title, "notes": table.notes, "rows": records(table)}
                for table in (*self.data, *self.tables)
                if not table.within
            },
        }


# First columns of tables whose items have a label and a format.
ENTRY_COLUMNS = (Column("model", "Model", of=lambda item: _under("label", item)), Column("format", "Format"))


def visible(text: str) -> str:
    """Return the text with invisible and bidirectional control characters as code points: `<U+202E>`."""
    return _UNSEEN.sub(lambda found: f"<U+{ord(found.group()):04X}>", text)


def shown(cell: Cell, kind: Kind) -> str:
    """Return the displayed text of a cell."""
    if isinstance(cell, tuple):
        low, high = cell
        return (
            NOTHING if math.isnan(low) or math.isnan(high) else f"[{shown(low, kind)}, {shown(high, kind)}]"
        )
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, str):
        return visible(cell)
    if cell is None or math.isnan(cell):
        return NOTHING
    return _FORMATS[kind](cell)


def csv_header(columns: Sequence[Column]) -> list[str]:
    """Return the column names for CSV; an interval has two."""
    return [
        name
        for column in columns
        for name in ((f"{column.name}_low", f"{column.name}_high") if column.interval else (column.name,))
    ]


def csv_row(row: tuple[Cell, ...], columns: Sequence[Column]) -> list[str | int | float | None]:
    """Return raw values for CSV, with all digits; None (an empty field) for None and NaN."""
    values: list[str | int | float | None] = []
    for cell, column in zip(row, columns, strict=True):
        if column.interval:
            ends = cell if isinstance(cell, tuple) else (None, None)
            values.extend(None if _is_nothing(end) else end for end in ends)
        elif isinstance(cell, bool):
            values.append(str(cell).lower())
        elif not isinstance(cell, tuple):
            values.append(None if _is_nothing(cell) else cell)
    return values


def records(table: Table) -> list[dict[str, str | int | float | None]]:
    """Return rows as JSON objects with the raw values of `csv_row`, and `"never"` for an infinity."""
    names = csv_header(table.columns)
    return [
        {
            name: "never" if isinstance(value, float) and math.isinf(value) else value
            for name, value in zip(names, csv_row(row, table.columns), strict=True)
        }
        for row in table.rows
    ]


def described(table: Table) -> dict[str, object]:
    """Return a table as a JSON object: title, notes, CSV file, columns with their meaning, and rows."""
    return {
        "title": table.title,
        "file": table.file,
        "notes": table.notes,
        "columns": [
            {"name": name, "title": column.title, "kind": column.kind, "help": column.help}
            for column in table.columns
            for name in csv_header((column,))
        ],
        "provisional": sorted(table.provisional),
        "rows": records(table),
    }


def _under(name: str, item: Any) -> Any:
    return item[name] if isinstance(item, Mapping) else getattr(item, name)


def _is_nothing(value: str | float | None) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _number(value: float) -> str:
    if math.isinf(value):
        return "never"
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"  # noqa: PLR2004


def _in_percent(value: float, sign: str = "") -> str:
    """Format a fraction in percent with one decimal, or more if needed to differ from 0 and 100."""
    percent = round(100 * value, _MOST_DIGITS) + 0.0  # not -0.0
    for digits in range(1, _MOST_DIGITS):
        text = f"{percent:{sign}.{digits}f}"
        if float(text) not in (-100, 0, 100) or abs(percent - float(text)) < 10.0**-_MOST_DIGITS:
            break
    return text


def _in_dollars(value: float) -> str:
    """Format US dollars with cents from $1; smaller values with four decimals, or more for two digits."""
    if abs(value) >= 1 or value == 0:
        return f"{value:,.2f}"
    return f"{value:.{max(4, 1 - math.floor(math.log10(abs(value))))}f}"


_FORMATS: dict[Kind, Callable[[float], str]] = {
    "text": str,
    "count": lambda value: f"{value:,.0f}",
    "percent": _in_percent,
    "points": lambda value: _in_percent(value, "+"),
    "score": lambda value: f"{value:.3f}",
    "signed": lambda value: f"{value:+.3f}",
    "p": lambda value: "<0.001" if value < 0.001 else f"{value:.3f}",  # noqa: PLR2004 - the customary bound
    "number": _number,
    "usd": _in_dollars,
    "seconds": lambda value: f"{value:,.1f}",
}
