"""Rust's tests for trials: functions marked as tests, with `assert_eq!`, `assert_ne!` and `assert!`.

See `languages.altering`. Of a source its tests alone are read (`items`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.languages.altering import (
    NOTHING,
    ORDER,
    SHAPES,
    Alteration,
    DeclaredTest,
    constant,
    in_loop,
)
from astra_async.languages.masking import at_top, closing, masked, parts_of, word_of
from astra_async.languages.other_values import arranged
from astra_async.languages.rows import Choosing, Rows
from astra_async.languages.rust.items import SKIPPED

if TYPE_CHECKING:
    from collections.abc import Iterator

_TEST = re.compile(
    r"#\s*\[\s*(?:\w+\s*::\s*)*test\s*\]((?:\s*#\s*\[[^\]]*\])*)\s*(?:pub\s+)?(?:async\s+)?fn\s+(\w+)\s*\(\s*\)[^{;]*\{"
)
_ASSERTION = re.compile(r"\b(?:assert_eq|assert_ne|assert)!\s*\(")
_LEAVES = re.compile(r"\breturn\b")
_FOR = re.compile(r"\bfor\s+(?P<row>\w+|\([\w\s,]*\))\s+in\s+\[")
_FOR_ROW = Choosing(b"%(row)b", b"(if %(variable)b == %(row)b { %(other)b } else { %(same)b })")
_PLAIN_ROW = re.compile(
    rb"""(?:[\s(),-]|\d[\w.]*|true|false|"[^"\\]*"|'[^'\\]')+"""
)  # can be copied and compared
_BRACE = re.compile(r"\s*\{")
_SKIPS = re.compile(r"\b(?:break|continue)\b")
_WRAPPED = re.compile(r"(?:Some|Ok|Err)\(\s*(.*?)\s*\)", re.DOTALL)
_VARIANT = re.compile(r"((?:\w+::)+)([A-Z]\w*[a-z]\w*)")
_MADE = re.compile(r"&?(?:(?:\w+::)*[A-Z]\w*(?:::(?:new|from))?\s*[({]|(?:vec!\s*)?\[)")
_OF_VARIANT = re.compile(r"&?(?:\w+::)*[A-Z]\w*::[A-Z]")
_LIST = re.compile(r"&?(?:vec!\s*)?\[")
_FIELD = re.compile(r"(\w+)\s*:(?!:)\s*")
# The tests' `None` may be a constant of the answer's, which is something: then there is a value in it. What
# an enumeration of the project calls so has none.
_OTHER_NONE = re.compile(rb"\benum\b[^}]*\bNone\b|\b[A-Z]\w*::(?:\*|\{[^}]*\bNone\b|None\b)")
_TWO = 2


def read_tests(_: str, source: bytes) -> tuple[DeclaredTest, ...]:
    """The tests of a file."""
    code = masked(source.decode("latin-1"), SKIPPED, nested=True)  # so that characters are bytes
    tests = []
    for found in _TEST.finditer(code):
        at = found.end() - 1
        end = closing(code, at)
        is_turned = "should_panic" in found[1] or "ignore" in found[1] or _LEAVES.search(code, at, end)
        asked = () if is_turned else tuple(_asked_by(source, code, at + 1, end))
        tests.append(DeclaredTest((found[2],), asked))
    return tuple(tests)


def _asked_by(source: bytes, code: str, begin: int, end: int) -> Iterator[Alteration]:
    for loop in at_top(code, begin, end, _FOR):
        yield from _in_loop(source, code, loop.span("row"), loop.end() - 1)
    for each in at_top(code, begin, end, _ASSERTION):
        parts = parts_of(code, each.end() - 1)
        name = each.start() + each[0].index("!")
        if each[0].startswith("assert!") and parts:
            start, stop = parts[0]
            yield Alteration(start, stop, others=(b"!(" + source[start:stop] + b")",))
        elif len(parts) >= _TWO:
            left, right = parts[:_TWO]
            is_equal = each[0].startswith("assert_eq")
            if is_equal:
                yield from _compared(source, code, left, right)
                yield from (shape for side in (left, right) for shape in _shapes(source, code, side))
            yield Alteration(each.start(), name, others=(b"assert_ne" if is_equal else b"assert_eq",))


def _in_loop(source: bytes, code: str, row: tuple[int, int], at: int) -> Iterator[Alteration]:
    """What a loop over an array that stands in it, in the brackets at `at`, asks for one of its rows."""
    rows, body = tuple(parts_of(code, at)), _BRACE.match(code, closing(code, at) + 1)
    if body and len(rows) > 1 and not _SKIPS.search(code, body.end(), closing(code, body.end() - 1)):
        end = closing(code, body.end() - 1)
        is_plain = all(_PLAIN_ROW.fullmatch(source, *each) for each in rows)
        told = Rows(source[slice(*row)], rows, _FOR_ROW) if is_plain else None
        yield from in_loop(_asked_by(source, code, body.end(), end), (body.end(), end), rows, told)


def _compared(
    source: bytes, code: str, left: tuple[int, int], right: tuple[int, int]
) -> Iterator[Alteration]:
    """The constants of two sides that are to be equal, else those that make values."""
    plain = [
        *_constants(source, *left, word_of(code[slice(*right)])),
        *_constants(source, *right, word_of(code[slice(*left)])),
    ]
    yield from plain or (each for side in (left, right) for each in _making(source, code, *side))


def _shapes(source: bytes, code: str, place: tuple[int, int]) -> Iterator[Alteration]:
    """A list that is expected, of another shape; an array of another length would be of another type."""
    if (made := _LIST.match(code, *place)) and closing(code, made.end() - 1) == place[1] - 1:
        parts = parts_of(code, made.end() - 1)
        plain = [number for number, part in enumerate(parts) if any(_constants(source, *part, ""))]
        if len(plain) == len(parts) > 1:  # what is moved twice, or of no known type, does not compile
            yield from arranged(source, place, parts, plain, SHAPES if "vec" in made[0] else {ORDER})


def _making(source: bytes, code: str, begin: int, end: int) -> Iterator[Alteration]:
    """The constant of which a structure, a variant or a `new` makes a value, or those of a list of them."""
    made = _MADE.match(code, begin, end)
    if not made or closing(code, made.end() - 1) != end - 1 or _OF_VARIANT.match(made[0]):
        return  # variants may be equal by their kind alone
    parts = parts_of(code, made.end() - 1)
    for start, stop in parts if len(parts) == 1 or made[0].endswith("[") else ():
        field = _FIELD.match(code, start, stop)
        value = field.end() if field else start
        yield from _constants(source, value, stop, field[1] if field else "")
        yield from _making(source, code, value, stop)


def _constants(source: bytes, begin: int, end: int, asked: str) -> Iterator[Alteration]:
    text = source.decode("latin-1")
    if found := _WRAPPED.fullmatch(text, begin, end):
        begin, end = found.span(1)
    if source[begin:end] == b"None" and not _OTHER_NONE.search(source):
        yield Alteration(begin, end, NOTHING, (b"Some(None.unwrap())",), asked)
    if source[begin : begin + 1] != b"'":  # no character, which only another one may replace
        yield from constant(source, begin, end, asked)
    if variant := _VARIANT.fullmatch(text, begin, end):
        yield Alteration(variant.start(2), end, kind=f"name {variant[1]}", asked=asked)
