"""Tests inside of sources: the items of a Rust file that are compiled for tests alone.

Of a file with such items an answer changes all but them: those of its own are dropped, and the pristine ones
put back, in the places of its own where it has as many, else at the end. Where a project's file has tests in
a module within the file, those of such modules are the answer's own matter.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from astra_async.languages.language import Merge
from astra_async.languages.mutations import MOST_CHARACTERS, closing, masked
from astra_async.types import Dropped

if TYPE_CHECKING:
    from collections.abc import Iterator

SKIPPED = re.compile(
    r"//[^\n]*|/\*|\A#!(?!\s*\[)[^\n]*"
    # A name at a literal's end is its suffix, one behind a single quote a lifetime: neither begins a text.
    r"""|(?:(?<![\w'])[bc]?r(?P<hashes>#{0,255})".*?(?:"(?P=hashes)|\Z)"""
    r'|b?"(?:[^"\\]|\\.)*(?:"|\Z)'
    r"|b?'(?:\\(?:u\{\w*\}|[^\n]{1,3}?)|[^\\'\n])')\w*",
    re.DOTALL,
)
# `#[test]`, `#[tokio::test]`, `#[cfg(test)]`, `#[cfg(all(test, unix))]`.
_FOR_TESTS = re.compile(
    r"#\s*\[\s*(?:cfg\s*\(\s*(?:all\s*\([^()]*\b)?test\b|(?:\w+\s*::\s*)*(?:test|rstest|bench)\b)"
)
# `#[cfg(test)]` and `#[cfg(not(test))]` before items of one name: both are code, as one is in every build.
_ITEM = (
    r"\s*\][^;{]{0,300}?\b(fn|const|static|struct|enum|type|trait)"
    r"\s+(?!(?:unsafe|async|extern|fn|mut)\b)(\w+)"
)
_TEST_HALF = re.compile(r"#\s*\[\s*cfg\s*\(\s*test\s*\)" + _ITEM)
_OTHER_HALF = re.compile(r"#\s*\[\s*cfg\s*\(\s*not\s*\(\s*test\s*\)\s*\)" + _ITEM)
_NAMED = re.compile(r"\b(?:mod|fn|use|struct|impl|const|static|macro_rules\s*!)\s+([\w:]+)")
_TO_SEMICOLON = re.compile(
    r"\s*(?:pub(?:\s*\([^()]*\))?\s+)?(?:use|const|static|type|extern\s+crate)\b(?!\s+(?:unsafe\s+)?fn)"
)
_STOP = re.compile(r"[;{(\[]")
_TOKEN = re.compile(r"#\s*\[|\bmod\s+(?:r#)?\w+\s*\{|[{(\[]")
_ATTRIBUTE = re.compile(r"\s*#\s*\[")
_NEXT = re.compile(r"\S")


def _for_tests(code: str, *, within: bool) -> Iterator[tuple[int, int]]:
    """Where items for tests stand at the top of a file, from their attributes to their end.

    Attributes at the end of the file that no item follows are one, too: they would fall on what is put there.
    `within`: and those in modules within the file.
    """
    at, halves = 0, set(_OTHER_HALF.findall(code))
    while found := _TOKEN.search(code, at):
        begin, at = found.start(), found.end()
        if found[0][0] != "#":
            if found[0][0] != "m" or not within:
                at = closing(code, at - 1) + 1
            continue
        at = begin
        while attribute := _ATTRIBUTE.match(code, at):
            at = closing(code, attribute.end() - 1) + 1
        if not _NEXT.search(code, at):
            yield begin, len(code)
        elif marks := _FOR_TESTS.findall(code[begin:at]):
            half = _TEST_HALF.match(code, begin) if len(marks) == 1 else None
            at = _item_end(code, at)
            if not half or half.groups() not in halves:
                yield begin, at


def _item_end(code: str, at: int) -> int:
    ends_so = _TO_SEMICOLON.match(code, at)
    while found := _STOP.search(code, at):
        if found[0] == ";":
            return found.end()
        at = closing(code, found.start()) + 1
        if found[0] == "{" and not ends_so:
            return at
    return len(code)


def _with_docs(text: str, begin: int) -> int:
    """Where the comments begin that belong to the item which begins there."""
    while (line := text[text.rfind("\n", 0, max(begin - 1, 0)) + 1 : begin]).lstrip().startswith("///"):
        begin -= len(line)
    return begin


def parted(text: str) -> tuple[str, str]:
    """What of a source may change, and its tests."""
    rest, tests = _pieces(text)
    return "".join(rest), "\n".join(tests)


def tests_in(text: str) -> str:
    """The tests of a source, those in modules within it, too."""
    return "\n".join(_pieces(text, within=True)[1])


def _pieces(text: str, *, within: bool = False) -> tuple[list[str], list[str]]:
    """What may change before each item for tests and after the last, and these items with their comments."""
    rest, tests, at = [], [], 0
    code = masked(text, SKIPPED, nested=True) if len(text) <= MOST_CHARACTERS else ""
    for attributes, end in _for_tests(code, within=within):
        begin = _with_docs(text, attributes)
        rest.append(text[at:begin])
        tests.append(text[begin:end])
        at = end
    return [*rest, text[at:]], tests


def counting(pristine: str, answer: str) -> str:
    """What of an answer's text for a pristine one may count: all but the tests that are dropped."""
    return "".join(_pieces(answer, within=_reaches_within(pristine))[0])


def _reaches_within(pristine: str) -> bool:
    """Whether an answer's tests in modules within the file are dropped, too."""
    return _pieces(pristine)[1] == _pieces(pristine, within=True)[1]


def _merged(path: str, pristine: str, answer: str) -> tuple[str | None, list[Dropped]]:
    theirs = _pieces(pristine)[1]
    within = _reaches_within(pristine)
    rest, own = _pieces(answer, within=within)
    reason = "protected_test" if theirs else "own_test"
    if len(own) == len(theirs) and own == _pieces(answer)[1]:
        text = "".join(chain.from_iterable(zip(rest, [*theirs, ""], strict=True)))
    else:
        blocks = ("".join(rest).rstrip("\n"), "\n".join(theirs).strip("\n"))
        text = "\n\n".join(filter(None, blocks)) + "\n"
    # Invariant: the tests are found again as they are, and nothing of the answer's has become one of them.
    if "".join(_pieces(text, within=within)[1]).strip("\n") != "".join(theirs).strip("\n"):
        return None, [Dropped(path=path, reason=reason)]
    dropped = []
    if own and "\n".join(own) not in "\n".join(theirs):
        named = _NAMED.search("\n".join(own))
        dropped = [Dropped(path=f"{path}#{named[1] if named else 'tests'}", reason=reason)]
    return text, dropped


TESTS_INSIDE = Merge(
    takes=lambda path, _: path.endswith(".rs"), merged=_merged, parted=parted, is_enough=False, new=True
)
