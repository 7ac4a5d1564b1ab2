"""Map CSV columns to fields, by aliases, case-insensitive names and `--column`."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.errors import ProblemsError
from astra_async.listing import some
from astra_async.problems.cells import read_id, read_list, read_paths, read_seconds, read_tests

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


MAX_CSV_BYTES = 512 * 1024**2

_SEPARATORS = ",;\t|"
_EXCELS_OWN = re.compile(r'"?sep=([^\r\n"\w ])"?[,;\t| ]*(?=[\r\n])', re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One CSV record: its first line (from 1) and its unparsed cells."""

    line: int
    cells: tuple[str, ...]


def read_table(data: bytes, name: str) -> tuple[tuple[str, ...], tuple[Row, ...]]:
    """Return the header and the non-blank rows of a CSV; errors call the file `name`.

    The separator (comma, semicolon, tab or bar) is taken from Excel's `sep=;` line if the file begins with
    one; otherwise it is the one that splits the header into most columns.

    Raises:
        ProblemsError: the file is too large or empty, not UTF-8 or UTF-16, or has unbalanced quotes.
    """
    if len(data) > MAX_CSV_BYTES:
        raise ProblemsError(f"{name}: larger than {MAX_CSV_BYTES // 1024**2} MiB; split it")
    text = _decode(data, name)
    if text.lstrip()[:200].lower().startswith(("<!doctype html", "<html")):
        raise ProblemsError(f"{name} is an HTML page, not a CSV; check the address and the login")
    named = _EXCELS_OWN.match(text)
    text = text[named.end() :] if named else text  # keep the line end, so that line numbers stay right
    rows = _rows(text, named[1] if named else _separator(text), name)
    if not rows:
        raise ProblemsError(f"{name} is empty; add a header line and one row per problem")
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

    return max(_SEPARATORS, key=columns)  # on a tie, max returns the first: the comma


def _lines(text: str) -> io.StringIO:
    return io.StringIO(text, newline="")  # the csv module needs unconverted line ends


def _rows(text: str, separator: str, name: str) -> tuple[Row, ...]:
    # The csv module's field limit is global to the process, so restore the previous value afterwards.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvColumn:
    """A CSV field: help text, accepted column names (folded, preferred first) and the cell parser."""

    help: str
    names: tuple[str, ...]
    read: Callable[[str], object] = str.strip


# The first name of each field is its own name; if several columns match, the earliest alias wins.
# fmt: off
COLUMNS: Mapping[str, CsvColumn] = {
    "id": CsvColumn(
        help="Unique id of the problem; up to 200 characters on one line.",
        names=(
            "id", "questionid", "problemid", "qid", "taskid", "challengeid", "questionnumber", "question",
        ),
        read=read_id,
    ),
    "problem_statement": CsvColumn(
        help="Task for the model, used verbatim.",
        names=(
            "problemstatement", "statement", "questionstatement", "problemdescription",
            "questiondescription", "description", "questiontext", "problem", "instructions", "body",
        ),
        read=str,
    ),
    "project": CsvColumn(
        help="Folder, archive (.zip), https:// or s3:// URL; relative to the CSV, or to --projects.",
        names=(
            "project", "projecturl", "projectzip", "projectpath", "projectlocation", "projectfolder",
            "projectfiles", "projectfile", "projects3key", "s3url", "s3uri", "s3path", "s3key",
            "s3location", "zipurl", "zipfile", "zip", "archive", "source", "sourceurl",
        ),
    ),
    "name": CsvColumn(
        help="Title in tables; defaults to the id.",
        names=("name", "title", "questionname", "questiontitle", "problemname", "problemtitle"),
    ),
    "main_skill": CsvColumn(
        help="Skill under which reports count the problem.",
        names=("mainskill", "primaryskill", "skill", "maintopic"),
    ),
    "sub_skills": CsvColumn(
        help="List of additional skills.",
        names=("subskills", "subskill", "skills", "secondaryskills", "topics", "tags"),
        read=read_list,
    ),
    "family": CsvColumn(
        help="Name shared by variants of one task, which the bootstrap resamples together.",
        names=("family", "problemfamily", "taskfamily"),
    ),
    "test_command": CsvColumn(
        help="Bash command that runs the tests in the project's folder.",
        names=("testcommand", "testcmd", "command", "scoringcommand", "runtests"),
    ),
    "result_files": CsvColumn(
        help="List of test reports (paths, globs) of the command; if empty, its output is parsed as TAP.",
        names=(
            "resultfiles", "resultfile", "reportfiles", "reportfile", "testreports", "testreport",
            "outputfiles", "outputfile", "scoringfiles", "reports", "report",
        ),
        read=read_paths,
    ),
    "tests": CsvColumn(
        help="Tests that count: names, or JSON objects {name, file, type, weight}; discovered if empty.",
        names=("tests", "testcases", "testcase", "testnames", "expectedtests", "unittests"),
        read=read_tests,
    ),
    "image": CsvColumn(
        help="Docker image for the tests; if empty, --image, else one built from the project.",
        names=("image", "dockerimage", "containerimage", "docker"),
    ),
    "timeout_s": CsvColumn(
        help="Time limit of the tests in seconds; overrides timeout_s in [sandbox].",
        names=("timeouts", "timeout", "timeoutseconds", "timeoutsec", "timelimit", "timelimits"),
        read=read_seconds,
    ),
    "readonly_paths": CsvColumn(
        help="List of paths and patterns that an answer may not change.",
        names=("readonlypaths", "readonlypath", "readonlyfiles", "readonly"),
        read=read_paths,
    ),
    "hidden_paths": CsvColumn(
        help="List of paths and patterns that the prompt does not show and an answer may not change.",
        names=("hiddenpaths", "hiddenfilespaths", "hiddenfilepaths", "hiddenfiles"),
        read=read_paths,
    ),
    "reference": CsvColumn(
        help="Correct solution: folder, archive, or JSON file {path: content}; shown to no model.",
        names=(
            "reference", "referencesolution", "referencepath", "referenceurl", "solution", "solutionpath",
        ),
    ),
}
# fmt: on
REQUIRED = ("id", "problem_statement", "project")


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvColumns:
    """The column index and header of each field, the unused headers, and warnings on ambiguous columns."""

    index: Mapping[str, int]
    headers: Mapping[str, str]
    unused: tuple[str, ...]
    warnings: tuple[str, ...]
    width: int

    def text(self, row: Row, field: str) -> str:
        """Return a row's unparsed cell; '' if the row or the file lacks the column."""
        at = self.index.get(field)
        return row.cells[at] if at is not None and at < len(row.cells) else ""


def fold(name: str) -> str:
    """Return a column name in lower case without spaces, dashes, underscores and dots."""
    return re.sub(r"[\s_.\-\u2010-\u2015]+", "", name).casefold()


def match_columns(
    header: Sequence[str],
    mapping: Mapping[str, str],
    name: str,
    *,
    fields: Sequence[str] = tuple(COLUMNS),
    required: Sequence[str] = REQUIRED,
) -> CsvColumns:
    """Find each field's column; `mapping` is field -> column from `--column`.

    Raises:
        ProblemsError: the mapping names an unknown field or column, or a required column is missing. The
            message lists the columns found, the missing ones, and the option that maps them.
    """
    folded = [fold(cell) for cell in header]
    index = _mapped(mapping, header, folded, name)
    warnings = []
    for field in fields:
        if field in index:
            continue
        aliases = COLUMNS[field].names
        fits = [at for alias in aliases for at, cell in enumerate(folded) if cell == alias]
        fits = [at for at in fits if at not in index.values()]
        if fits:
            index[field] = fits[0]
        if len(fits) > 1:
            named = ", ".join(repr(header[at].strip()) for at in fits)
            warnings.append(
                f"columns {named} all match {field}; the first is used; choose with --column {field}=NAME"
            )
    if missing := [field for field in required if field not in index]:
        raise ProblemsError(
            f"{name}, line 1: no column for {', '.join(missing)}; columns found: {_listed(header)}; "
            f"map it with --column {missing[0]}=COLUMN"
        )
    return CsvColumns(
        index=index,
        headers={field: header[at].strip() for field, at in index.items()},
        unused=tuple(
            cell.strip() for at, cell in enumerate(header) if at not in index.values() and cell.strip()
        ),
        warnings=tuple(warnings),
        width=len(header),
    )


def _mapped(
    mapping: Mapping[str, str], header: Sequence[str], folded: list[str], name: str
) -> dict[str, int]:
    index: dict[str, int] = {}
    for given, column in mapping.items():
        field = _field(given)
        if field is None:
            raise ProblemsError(f"--column {given}={column}: no such field; fields are {', '.join(COLUMNS)}")
        exact = [cell.strip() for cell in header]
        if column.strip() in exact:
            index[field] = exact.index(column.strip())
        elif fold(column) in folded:
            index[field] = folded.index(fold(column))
        else:
            found = _listed(header)
            raise ProblemsError(f"{name}: no column for --column {given}={column}; columns found: {found}")
    return index


def _field(given: str) -> str | None:
    """Return the field with this name or alias; None if there is no such field."""
    folded = fold(given)
    own = {fold(field): field for field in COLUMNS}
    return own.get(folded) or next((name for name, each in COLUMNS.items() if folded in each.names), None)


def _listed(header: Sequence[str]) -> str:
    names = [cell.strip()[:60] for cell in header if cell.strip()]
    return some(names, 40) or "none"
