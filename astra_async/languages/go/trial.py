"""Go's tests for trials: functions that compare what they got in an `if` and call `t.Error` or `t.Fatal`.

Or that call testify's `assert` and `require`. See `languages.altering`. Subtests count where their names
stand in the source, in the rows of a table, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from astra_async.languages.altering import (
    LISTED,
    RAISED,
    Alteration,
    DeclaredTest,
    both_ways,
    constant,
    renamed,
)
from astra_async.languages.go.lookup import SKIPPED
from astra_async.languages.masking import at_top, closing, masked, parts_of, trimmed, without, word_of
from astra_async.languages.other_values import arranged

if TYPE_CHECKING:
    from collections.abc import Iterator

_TEST = re.compile(r"^func (Test\w*)\(\s*(\w+) \*testing\.T\s*\) *\{", re.MULTILINE)
_SUBTEST = re.compile(r"\b\w+\.Run\(")
_NAMED_BODY = re.compile(r'\s*"([^"\\\n]*)"\s*,\s*func\(\s*\w+ \*testing\.T\s*\) *\{')
_IF = re.compile(r"\bif\b")
_BRACE = re.compile(r"\{")
_FAILS = re.compile(r"\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\(")
_FUNCTION = re.compile(r"\bfunc\s*\([^{]*\{")
_LEAVES = re.compile(r"\b(?:return|goto)\b")
_OR = re.compile(r"\|\|")
_AND = re.compile(r"&&")
_UNEQUAL = re.compile(r"!=")
_TABLE = re.compile(r"\bfor\s+\w+\s*,\s*(?P<row>\w+)\s*:=\s*range\s+(?:(?P<rows>\w+)\s*\{|(?=\[))")
_ROWS = re.compile(r"\[\]\s*(?:struct\s*(?=\{)|\*?\w+\s*(?=\{))")
_KEY = re.compile(r"(\w+)\s*:(?!=)\s*")
_FIELD = re.compile(r"^\s*(\w+(?:\s*,\s*\w+)*)\s+\S", re.MULTILINE)
_TOLD = re.compile(r"\.(?:Error|Fatal|Log|Skip)f?\([^\n]*")  # what a failure says
_SAME = re.compile(r"!\s*(?:reflect\.DeepEqual|slices\.Equal)\(")
_SLICE = re.compile(r"(?:\[\])+\*?[\w.]+\{")
_ASKED_ERROR = re.compile(r"\berrors\.Is\([^,\n]*,\s*([\w.]+)\)")
_OTHER_TEXTS = tuple(  # of an error, its parts exchanged
    b'func() error { it := %%b.Error(); at := len(it) / %d; return errors.New(it[at:] + "~" + it[:at]) }()'
    % part
    for part in (2, 3)
)
# Another by name, where `errors.Is` tells the two apart: an answer decides itself which of its own are alike.
_OTHER_ERROR = (
    b"func() error { if errors.Is(%(it)b, %(other)b) || errors.Is(%(other)b, %(it)b) "
    b'{ return errors.New("~") }; return %(other)b }()'
)
_FEWEST_ERRORS = 3  # beside the one that is expected, so that each repetition may ask for another
_IS = re.compile(r"!\s*errors\.Is\(")
# testify's: the arguments that may be constants, one of which the other has to equal.
_TESTIFY = re.compile(r"\b(?:assert|require)\.(?P<name>\w+)\(")
# An object of it, whose methods are not given the test.
_WITHOUT_T = re.compile(r"\b(?:assert|require)\s*:?=")
_EXPECTED = {"Equal": (1, 2), "EqualValues": (1, 2), "Exactly": (1, 2), "Len": (2,), "EqualError": (2,)}
_CONTRARY = both_ways({
    "Equal": "NotEqual", "True": "False", "Nil": "NotNil", "NoError": "Error", "Empty": "NotEmpty",
    "Contains": "NotContains", "ErrorIs": "NotErrorIs",
})  # fmt: skip


def read_tests(_: str, source: bytes) -> tuple[DeclaredTest, ...]:
    """The tests of a file."""
    code = masked(source.decode("latin-1"), SKIPPED)  # so that characters are bytes
    found = (_tests(source, code, each[1], each.end() - 1) for each in _TEST.finditer(code))
    return tuple(test for tests in found for test in tests)


@dataclass(frozen=True, slots=True)
class _Table:
    """Rows that a loop goes over: what stands in each by the name of its field, and the loop's body."""

    variable: str
    rows: list[dict[str, tuple[int, int]]]
    begin: int
    end: int


def _tests(source: bytes, code: str, name: str, at: int) -> Iterator[DeclaredTest]:
    """The test whose body opens there, and its subtests."""
    end = closing(code, at)
    subtests = list(at_top(code, at + 1, end, _SUBTEST))
    for each in subtests:
        named = _NAMED_BODY.match(source.decode("latin-1"), each.end())
        if named:
            yield from _tests(source, code, f"{name}/{_shown(named[1])}", named.end() - 1)
        else:
            yield DeclaredTest((), ())
    tables = [] if subtests else list(_tables(code, at + 1, end))
    by_row = [test for table in tables for test in _rows_tests(source, code, name, table)]
    yield from by_row
    if not subtests and not by_row:
        later = (each for table in tables for each in _asked_of(source, code, table, table.rows[1:]))
        yield DeclaredTest((name,), (*_asked_by(source, code, at + 1, end), *later))


def _shown(name: str) -> str:
    """A subtest's name as reports show it."""
    return re.sub(r"\s", "_", name).encode("latin-1").decode(errors="replace")


def _rows_tests(source: bytes, code: str, name: str, table: _Table) -> Iterator[DeclaredTest]:
    """The subtests of a table: each row is one, named by a field of it."""
    for each in at_top(code, table.begin, table.end, _SUBTEST):
        field = re.compile(rf"{table.variable}\s*\.\s*(\w+)\s*,").match(code, each.end())
        for row in table.rows:
            begin, end = row.get(field[1], (0, 0)) if field else (0, 0)
            found = constant(source, begin, end)
            titles = (f"{name}/{_shown(source[begin + 1 : end - 1].decode('latin-1'))}",) if found else ()
            yield DeclaredTest(titles, tuple(_asked_of(source, code, table, [row])))


def _tables(code: str, begin: int, end: int) -> Iterator[_Table]:
    """The loops over rows that stand in them, or in a variable that is used for nothing else."""
    for found in at_top(code, begin, end, _TABLE):
        name, at = found["rows"], found.end()
        if name:
            declared = re.search(rf"\b{name}\s*:=\s*(?=\[)", code[begin : found.start()])
            is_alone = len(re.findall(rf"\b{name}\b", code[begin:end])) == 1 + bool(declared)
            at = begin + declared.end() if declared and is_alone else end
        listed = _ROWS.match(code, at, end)
        if listed is None:
            continue
        opening, fields = listed.end(), ""
        if "struct" in listed[0]:
            after = closing(code, opening) + 1
            opening, fields = after, code[opening + 1 : after - 1].replace(";", "\n")
        if code[opening : opening + 1] != "{":
            continue
        names = [each for line in _FIELD.findall(fields) for each in re.split(r"\s*,\s*", line)]
        rows = [dict(_cells(code, row, names)) for row, _ in parts_of(code, opening) if code[row] == "{"]
        body = found.end() - 1 if name else code.find("{", closing(code, opening))
        if rows and body > 0:
            yield _Table(found["row"], rows, body + 1, closing(code, body))


def _cells(code: str, row: int, names: list[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    for number, (begin, end) in enumerate(parts_of(code, row)):
        if key := _KEY.match(code, begin, end):
            yield key[1], (key.end(), end)
        elif number < len(names):
            yield names[number], (begin, end)


def _asked_of(
    source: bytes, code: str, table: _Table, rows: list[dict[str, tuple[int, int]]]
) -> Iterator[Alteration]:
    """What these rows expect: constants of a field that the body compares, and uses for nothing else."""
    begin, end = table.begin, table.end
    for subtest in at_top(code, begin, end, _SUBTEST):  # the body is that of the subtest
        if opening := _BRACE.search(code, subtest.end(), end):
            begin, end = opening.end(), closing(code, opening.start())
    uses = _TOLD.sub("", code[begin:end])
    for field, asked in _compared(code, table.variable, begin, end):
        if len(re.findall(rf"\b{table.variable}\.{field}\b", uses)) == 1:
            for place in (row[field] for row in rows if field in row):
                yield from _constant(source, *place, asked) or _listed(source, code, *place, asked)


def _compared(code: str, variable: str, begin: int, end: int) -> Iterator[tuple[str, str]]:
    """The fields of a row that have to be equal to something, with a word for what that is."""
    for start, stop, given in _conditions(code, begin, end):
        compared = rf"(?:!=\s*|{_SAME.pattern}.*,\s*){variable}\.(\w+)\s*\)?\s*(?=$|\|\|)"
        for field in re.findall(compared, code[start:stop]):
            yield field, word_of(given.rpartition("=")[2]) or field
    for call, parts in _testify(code, begin, end):
        for at in _EXPECTED.get(call["name"], ()):
            texts = [code[slice(*part)].strip() for part in parts[at : at + 1]]
            yield from (
                (text.partition(".")[2], "") for text in texts if re.fullmatch(rf"{variable}\.\w+", text)
            )


def _asked_by(source: bytes, code: str, begin: int, end: int) -> Iterator[Alteration]:
    for start, stop, given in _conditions(code, begin, end):
        yield from _condition(source, code, start, stop, given)
    for call, parts in _testify(code, begin, end):
        for at in _EXPECTED.get(call["name"], ()):
            for part in parts[at : at + 1]:
                yield from _constant(source, *part, "") or _listed(source, code, *part, "")
        for part in parts[2:3] if call["name"] == "ErrorIs" and b'"errors"' in source else ():
            yield from _other_errors(source, code, *part)
        yield from renamed(source, *call.span("name"), _CONTRARY)


@lru_cache(maxsize=1)
def _has_testify(code: str) -> bool:
    """Whether a file calls testify's functions, and they are given the test."""
    return bool(_TESTIFY.search(code)) and not _WITHOUT_T.search(code)


def _testify(code: str, begin: int, end: int) -> Iterator[tuple[re.Match[str], list[tuple[int, int]]]]:
    """The assertions of testify that every run meets, by their names, with where their arguments stand."""
    if _has_testify(code):
        for each in at_top(code, begin, begin + _reached(code, begin, end), _TESTIFY):
            yield each, parts_of(code, each.end() - 1)


def _fails(code: str, at: int) -> bool:
    """Whether the block that opens there fails the test, whatever else it asks."""
    return next(at_top(code, at + 1, closing(code, at), _FAILS), None) is not None


def _reached(code: str, begin: int, end: int) -> int:
    """How much of this code every run reaches that does not fail: up to where it may leave."""
    outside = without(code, _FUNCTION, begin, end)
    for found in _LEAVES.finditer(outside):
        block = outside.rfind("{", 0, found.start())
        if block < 0 or not _FAILS.search(outside, block, found.start()):
            return found.start()
    return len(outside)


def _conditions(code: str, begin: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Where conditions stand that fail the test, and what an `if` is given before."""
    end = begin + _reached(code, begin, end)
    for each in at_top(code, begin, end, _IF):
        body = next(at_top(code, each.end(), end, _BRACE), None)
        is_else = code[begin : each.start()].rstrip().endswith("else")
        if body and not is_else and _fails(code, body.start()):
            header = code[each.end() : body.start()]
            start = each.end() + header.rfind(";") + 1
            yield start, body.start(), header[: max(header.rfind(";"), 0)]


def _constant(source: bytes, begin: int, end: int, asked: str) -> tuple[Alteration, ...]:
    """A constant that is no character, which only another one may replace."""
    return () if source[begin : begin + 1] == b"'" else constant(source, begin, end, asked)


def _listed(source: bytes, code: str, begin: int, end: int, asked: str) -> Iterator[Alteration]:
    """The constants of a slice that is expected, and the slice of another shape, where it is made of them."""
    if (made := _SLICE.match(code, begin)) and closing(code, made.end() - 1) == end - 1:
        parts = parts_of(code, made.end() - 1)
        found = [_constant(source, *part, asked) for part in parts]
        if all(found):  # Go refuses a variable that is not used any more
            yield from (each for constants in found for each in constants)
            yield from arranged(source, (begin, end), parts, range(len(parts)))


def _condition(source: bytes, code: str, begin: int, end: int, given: str) -> Iterator[Alteration]:
    """What a condition asks that fails the test where any of its parts holds."""
    if next(at_top(code, begin, end, _AND), None):
        return
    cuts = list(at_top(code, begin, end, _OR))
    starts = [begin, *(each.end() for each in cuts)]
    for start, stop in zip(starts, [*(each.start() for each in cuts), end], strict=True):
        yield from _part(source, code, start, stop, given if len(starts) == 1 else "", alone=len(starts) == 1)


@lru_cache(maxsize=1)
def _errors(code: str) -> tuple[bytes, ...]:
    """The errors by name of which the tests ask whether one is it."""
    return tuple(dict.fromkeys(each.encode("latin-1") for each in _ASKED_ERROR.findall(code)))


def _other_errors(source: bytes, code: str, begin: int, end: int) -> Iterator[Alteration]:
    """An error by name: as one that is no other, whose text none begins with or holds; or as others by name.

    One error may well be of two kinds.
    """
    name = source[begin:end]
    if re.fullmatch(rb"[\w.]+", name):
        yield Alteration(begin, end, LISTED, tuple(each.replace(b"%b", name) for each in _OTHER_TEXTS))
        named = ({b"it": name, b"other": each} for each in _errors(code) if each != name)
        others = tuple(_OTHER_ERROR % each for each in named)
        if len(others) >= _FEWEST_ERRORS:
            yield Alteration(begin, end, RAISED, others)


def _part(source: bytes, code: str, begin: int, end: int, given: str, *, alone: bool) -> Iterator[Alteration]:
    begin, end = trimmed(code, begin, end)
    unequal = next(at_top(code, begin, end, _UNEQUAL), None)
    if unequal:
        asked = word_of(given.rpartition("=")[2]) or word_of(code[begin : unequal.start()])
        yield from _constant(source, *trimmed(code, unequal.end(), end), asked)
        if alone:
            yield Alteration(unequal.start(), unequal.end(), others=(b"==",))
        return
    is_denied = code[begin] == "!"
    if found := _IS.match(code, begin):
        for start, stop in parts_of(code, found.end() - 1)[1:2]:
            yield from _other_errors(source, code, start, stop)
    if found := _SAME.match(code, begin):
        for start, stop in parts_of(code, found.end() - 1):
            yield from _listed(source, code, start, stop, "")
    if alone and is_denied:
        yield Alteration(begin, begin + 1, others=(b"",))
    elif alone and re.fullmatch(r"[\w.]+(?:\(.*\))?", code[begin:end], re.DOTALL):
        yield Alteration(begin, begin, others=(b"!",))
