"""Test items inside Rust sources: items that are compiled only for tests.

If a file has such items, an answer may change everything else in it. The answer's test items are dropped and
the original ones restored: at the same positions if the counts are equal, else at the end. If the original
file has tests in an inline module, the answer may change the tests in inline modules.
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
    # A name after a literal is its suffix; a name after a single quote is a lifetime. Neither starts a
    # string.
    r"""|(?:(?<![\w'])[bc]?r(?P<hashes>#{0,255})".*?(?:"(?P=hashes)|\Z)"""
    r'|b?"(?:[^"\\]|\\.)*(?:"|\Z)'
    r"|b?'(?:\\(?:u\{\w*\}|[^\n]{1,3}?)|[^\\'\n])')\w*",
    re.DOTALL,
)
# `#[test]`, `#[tokio::test]`, `#[cfg(test)]`, `#[cfg(all(test, unix))]`.
_FOR_TESTS = re.compile(
    r"#\s*\[\s*(?:cfg\s*\(\s*(?:all\s*\([^()]*\b)?test\b|(?:\w+\s*::\s*)*(?:test|rstest|bench)\b)"
)
# `#[cfg(test)]` and `#[cfg(not(test))]` before items of one name are both code, not tests.
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
    """Yield (begin, end) of the test items at the top level of a file, including their attributes.

    Attributes at the end of the file without an item count as one, because they would apply to appended text.
    With `within`, items in inline modules are included.
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
    """Return the start of the doc comments before the item at `begin`."""
    while (line := text[text.rfind("\n", 0, max(begin - 1, 0)) + 1 : begin]).lstrip().startswith("///"):
        begin -= len(line)
    return begin


def parted(text: str) -> tuple[str, str]:
    """Split a source into the changeable part and its tests."""
    rest, tests = _pieces(text)
    return "".join(rest), "\n".join(tests)


def tests_in(text: str) -> str:
    """Return the tests of a source, including those in inline modules."""
    return "\n".join(_pieces(text, within=True)[1])


def _pieces(text: str, *, within: bool = False) -> tuple[list[str], list[str]]:
    """Split a source into the text between its test items, and the items with their doc comments."""
    rest, tests, at = [], [], 0
    code = masked(text, SKIPPED, nested=True) if len(text) <= MOST_CHARACTERS else ""
    for attributes, end in _for_tests(code, within=within):
        begin = _with_docs(text, attributes)
        rest.append(text[at:begin])
        tests.append(text[begin:end])
        at = end
    return [*rest, text[at:]], tests


def counting(pristine: str, answer: str) -> str:
    """Return an answer's text without the tests that are dropped."""
    return "".join(_pieces(answer, within=_reaches_within(pristine))[0])


def _reaches_within(pristine: str) -> bool:
    """Return True if an answer's tests in inline modules are also dropped."""
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
    # Invariant: the merged file has exactly the original tests, and no text of the answer became a test.
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
