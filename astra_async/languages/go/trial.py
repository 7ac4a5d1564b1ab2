"""Go's tests for trials: functions that compare what they got in an `if` and call `t.Error` or `t.Fatal`.

See `languages.altering`. Subtests count where their names stand in the source; tables and loops do not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.languages.altering import LISTED, Alteration, DeclaredTest, constant
from astra_async.languages.go.lookup import SKIPPED
from astra_async.languages.masking import at_top, closing, masked, parts_of, trimmed, word_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_TEST = re.compile(r"^func (Test\w*)\(\s*(\w+) \*testing\.T\s*\) *\{", re.MULTILINE)
_SUBTEST = re.compile(r"\b\w+\.Run\(")
_NAMED_BODY = re.compile(r'\s*"([^"\\\n]*)"\s*,\s*func\(\s*\w+ \*testing\.T\s*\) *\{')
_IF = re.compile(r"\bif\b")
_BRACE = re.compile(r"\{")
_FAILS = re.compile(r"\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\(")
_LEAVES = re.compile(r"\breturn\b|\.Skip(?:f|Now)?\(|\bgoto\b")
_OR = re.compile(r"\|\|")
_AND = re.compile(r"&&")
_UNEQUAL = re.compile(r"!=")
_IS = re.compile(r"!\s*errors\.Is\(")


def read_tests(_: str, source: bytes) -> tuple[DeclaredTest, ...]:
    """The tests of a file."""
    code = masked(source.decode("latin-1"), SKIPPED)  # so that characters are bytes
    found = (_tests(source, code, each[1], each.end() - 1) for each in _TEST.finditer(code))
    return tuple(test for tests in found for test in tests)


def _tests(source: bytes, code: str, name: str, at: int) -> Iterator[DeclaredTest]:
    """The test whose body opens there, and its subtests."""
    end = closing(code, at)
    subtests = list(at_top(code, at + 1, end, _SUBTEST))
    for each in subtests:
        named = _NAMED_BODY.match(source.decode("latin-1"), each.end())
        if named:
            inner = re.sub(r"\s", "_", named[1]).encode("latin-1").decode(errors="replace")
            yield from _tests(source, code, f"{name}/{inner}", named.end() - 1)
        else:
            yield DeclaredTest((), ())
    if not subtests:
        yield DeclaredTest((name,), tuple(_asked_by(source, code, at + 1, end)))


def _asked_by(source: bytes, code: str, begin: int, end: int) -> Iterator[Alteration]:
    if leaving := next(at_top(code, begin, end, _LEAVES), None):
        end = leaving.start()
    for each in at_top(code, begin, end, _IF):
        body = next(at_top(code, each.end(), end, _BRACE), None)
        if body and _FAILS.search(code, body.start(), closing(code, body.start())):
            header = code[each.end() : body.start()]
            start = each.end() + header.rfind(";") + 1
            yield from _condition(source, code, start, body.start(), header[: max(header.rfind(";"), 0)])


def _condition(source: bytes, code: str, begin: int, end: int, given: str) -> Iterator[Alteration]:
    """What a condition asks that fails the test where any of its parts holds."""
    if next(at_top(code, begin, end, _AND), None):
        return
    cuts = list(at_top(code, begin, end, _OR))
    starts = [begin, *(each.end() for each in cuts)]
    for start, stop in zip(starts, [*(each.start() for each in cuts), end], strict=True):
        yield from _part(source, code, start, stop, given if len(starts) == 1 else "", alone=len(starts) == 1)


def _part(source: bytes, code: str, begin: int, end: int, given: str, *, alone: bool) -> Iterator[Alteration]:
    begin, end = trimmed(code, begin, end)
    unequal = next(at_top(code, begin, end, _UNEQUAL), None)
    if unequal:
        asked = word_of(given.rpartition("=")[2]) or word_of(code[begin : unequal.start()])
        yield from constant(source, *trimmed(code, unequal.end(), end), asked)
        if alone:
            yield Alteration(unequal.start(), unequal.end(), others=(b"==",))
        return
    is_denied = code[begin] == "!"
    if found := _IS.match(code, begin):
        # Never another error, which one error may wrap, too: one that is no other, and whose text is none's.
        for start, stop in parts_of(code, found.end() - 1)[1:2]:
            name = source[start:stop]
            texts = (b" + ".join([name + b".Error()"] * count) for count in (2, 3))
            if re.fullmatch(rb"[\w.]+", name):
                yield Alteration(start, stop, LISTED, tuple(b"errors.New(%b)" % text for text in texts))
    if alone and is_denied:
        yield Alteration(begin, begin + 1, others=(b"",))
    elif alone and re.fullmatch(r"[\w.]+(?:\(.*\))?", code[begin:end], re.DOTALL):
        yield Alteration(begin, begin, others=(b"!",))
