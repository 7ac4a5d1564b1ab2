"""CSV bytes to rows of text that know their lines: encodings, separators, quotes, huge fields."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass

from astra_async.errors import ProblemsError

MAX_CSV_BYTES = 512 * 1024**2

_SEPARATORS = ",;\t|"
_EXCELS_OWN = re.compile(r'"?sep=([^\r\n"\w ])"?[,;\t| ]*(?=[\r\n])', re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One record: the line it begins on (from 1) and its cells as written."""

    line: int
    cells: tuple[str, ...]


def read_table(data: bytes, name: str) -> tuple[tuple[str, ...], tuple[Row, ...]]:
    """The header and the rows that are not blank; `name` is what errors call the file.

    The separator (comma, semicolon, tab or bar) is the one that divides the header into most columns, or
    stands in a line before it, `sep=;`, as Excel reads and writes it.

    Raises:
        ProblemsError: empty, too large, wrong encoding, or quotes that do not add up (with the line).
    """
    if len(data) > MAX_CSV_BYTES:
        raise ProblemsError(f"{name}: larger than {MAX_CSV_BYTES // 1024**2} MiB; split it")
    text = _decode(data, name)
    if text.lstrip()[:200].lower().startswith(("<!doctype html", "<html")):
        raise ProblemsError(f"{name} is an HTML page and no CSV: an error, a login or a preview in its place")
    named = _EXCELS_OWN.match(text)
    text = text[named.end() :] if named else text  # the end of the line stays, so that lines are counted
    rows = _rows(text, named[1] if named else _separator(text), name)
    if not rows:
        raise ProblemsError(f"{name} is empty: a header line and a row for each problem are expected")
    return rows[0].cells, rows[1:]


def _decode(data: bytes, name: str) -> str:
    encoding = "UTF-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "UTF-8"
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ProblemsError(f"{name}, line {line}: not {encoding} text; save the file as UTF-8") from error


def _separator(text: str) -> str:
    def columns(separator: str) -> int:
        try:
            rows = csv.reader(_lines(text), delimiter=separator, strict=True)
            return next((len(row) for row in rows if any(map(str.strip, row))), 0)
        except csv.Error:
            return 0

    return max(_SEPARATORS, key=columns)  # the comma comes first and wins a draw


def _lines(text: str) -> io.StringIO:
    return io.StringIO(text, newline="")  # the csv module wants line ends as they are


def _rows(text: str, separator: str, name: str) -> tuple[Row, ...]:
    # The limit is the csv module's own and holds for the whole process: widened here, then put back.
    usual = csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
    rows = []
    end = 0
    try:
        reader = csv.reader(_lines(text), delimiter=separator, strict=True)
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append(Row(line=end + 1, cells=tuple(cells)))
            end = reader.line_num
    except csv.Error as error:
        raise ProblemsError(f"{name}, line {end + 1}: {error}; check the quotes of this row") from error
    finally:
        csv.field_size_limit(usual)
    return tuple(rows)
