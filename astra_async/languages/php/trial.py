"""PHP's tests for trials: methods of PHPUnit's test cases, and of Laravel's answers.

See `languages.altering`.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from astra_async.languages.altering import (
    COMPARED,
    FEWER,
    KEYS,
    NUMBER,
    RAISED,
    SHAPES,
    SOMETHING,
    SUBJECT,
    TEXT,
    Alteration,
    DeclaredTest,
    both_ways,
    compared,
    constant,
    declared_test,
    far,
    in_loop,
    listed,
    renamed,
    table_key,
    within,
)
from astra_async.languages.masking import at_top, closing, parts_of, trimmed, without, word_of
from astra_async.languages.other_values import arranged
from astra_async.languages.php.code import only_code
from astra_async.languages.rows import Choosing, telling

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_METHOD = re.compile(r"\bfunction\s+(\w+)\s*\(([^()]*)\)[^{;]*\{")
_MARKED = re.compile(rb"#\[[^\]]*\bTest\b|@test\b")  # an attribute, or a word in a comment
_ASSERTION = re.compile(r"(?:->|\b(?:self|static)\s*::)\s*(?P<name>\w+)\s*\(")
_FUNCTION = re.compile(r"\bfunction\b[^;{]*\{")
_LEAVES = re.compile(r"\breturn\b")
_FOREACH = re.compile(r"\bforeach\s*\(\s*\[")
_TARGET = re.compile(r"\s*as\s+(\$\w+|\[[\s\w$,]*\])\s*")
_FOR_ROW = Choosing(b"($%(name)b = %(row)b)", b"(%(variable)b === $%(name)b ? %(other)b : %(same)b)")
_KIND = re.compile(rb"[\\\w]+|\$\w+")  # what may stand behind `instanceof`
_BRACE = re.compile(r"\s*\{")
_SKIPS = re.compile(r"\b(?:return|break|continue)\b")
_CLASS = re.compile(r"\\?(?:\w+\\)*(\w+)::class")
_OPPOSITES = both_ways({
    "assertSame": "assertNotSame", "assertEquals": "assertNotEquals", "assertTrue": "assertFalse",
    "assertNull": "assertNotNull", "assertCount": "assertNotCount", "assertContains": "assertNotContains",
    "assertEmpty": "assertNotEmpty", "assertInstanceOf": "assertNotInstanceOf",
    "assertArrayHasKey": "assertArrayNotHasKey",
    "assertStringContainsString": "assertStringNotContainsString",
    "assertStringStartsWith": "assertStringStartsNotWith", "assertStringEndsWith": "assertStringEndsNotWith",
    "assertMatchesRegularExpression": "assertDoesNotMatchRegularExpression",
    "assertEqualsCanonicalizing": "assertNotEqualsCanonicalizing",
    "assertObjectHasProperty": "assertObjectNotHasProperty", "assertIsArray": "assertIsNotArray",
    "assertIsString": "assertIsNotString", "assertIsInt": "assertIsNotInt",
    "assertFileExists": "assertFileDoesNotExist", "assertDatabaseHas": "assertDatabaseMissing",
    "assertSee": "assertDontSee", "assertSeeText": "assertDontSeeText", "assertGuest": "assertAuthenticated",
})  # fmt: skip
_EXACT = frozenset({
    "assertSame", "assertEquals", "assertCount", "assertEqualsWithDelta", "assertEqualsCanonicalizing",
})  # fmt: skip
# Laravel's, of an answer: the argument that is expected, and those that expect a part of what there is.
_ANSWERED = {
    "assertStatus": 0, "assertJsonPath": 1, "assertJsonCount": 0, "assertExactJson": 0, "assertJson": 0,
    "assertJsonFragment": 0, "assertRedirect": 0, "assertLocation": 0, "assertHeader": 1, "assertViewIs": 0,
    "assertSessionHas": 1, "assertDatabaseCount": 1,
}  # fmt: skip
_PARTIAL = frozenset({"assertJson", "assertJsonFragment"})
# Of these an answer has one.
_STATUSES = tuple(
    f"assert{each}".encode()
    for each in ("Ok", "Created", "NoContent", "Unauthorized", "Forbidden", "NotFound", "Unprocessable")
)
# What an assertion implies, in the language's own words: of its first argument, or of both.
_ONE, _OTHER = "$@name@[0]", "$@name@[1]"
_NO_ARRAY = f"!\\is_array({_OTHER})"
_COUNTED = f"{_ONE} instanceof \\Traversable || {_ONE} instanceof \\Countable"
_HOLDS = {
    "assertTrue": f"{_ONE} === true", "assertFalse": f"{_ONE} === false", "assertNull": f"{_ONE} === null",
    "assertNotNull": f"{_ONE} !== null",
    "assertSame": f"{_ONE} === {_OTHER}", "assertEquals": f"{_ONE} == {_OTHER}",
    "assertNotSame": f"{_ONE} !== {_OTHER}", "assertCount": f"{_NO_ARRAY} || {_ONE} == \\count({_OTHER})",
    "assertContains": f"{_NO_ARRAY} || \\in_array({_ONE}, {_OTHER}, true)",
    "assertNotContains": f"{_NO_ARRAY} || !\\in_array({_ONE}, {_OTHER}, true)",
    "assertEmpty": f"{_COUNTED} || !{_ONE}", "assertNotEmpty": f"{_COUNTED} || {_ONE}",
    "assertInstanceOf": f"{_OTHER} instanceof {_ONE}",
    "assertGreaterThan": f"{_OTHER} > {_ONE}", "assertGreaterThanOrEqual": f"{_OTHER} >= {_ONE}",
    "assertLessThan": f"{_OTHER} < {_ONE}", "assertLessThanOrEqual": f"{_OTHER} <= {_ONE}",
    "assertArrayHasKey": f"{_NO_ARRAY} || \\array_key_exists({_ONE}, {_OTHER})",
    "assertStringContainsString": f"\\str_contains({_OTHER}, {_ONE})",
    "assertStringNotContainsString": f"!\\str_contains({_OTHER}, {_ONE})",
}  # fmt: skip
_BEGUN = b" static $@name@_begun = 0; $@name@_begun++; $@name@ = [0, 0];"
_ALL_HOLDS = b"""
if (!\\in_array(false, \\array_slice($@name@, 2))
    && ($@name@_begun < 2 || \\substr('@held@', -9) === 'each time')) { throw new \\Exception('@held@'); }"""
_CAUGHT = (
    b"""
} catch (\\Throwable $@name@_it) { $@name@[] = $@name@_it instanceof %b;"""
    + _ALL_HOLDS
    + b" throw $@name@_it; }"
)
# What an assertion does not hold of, whatever is asked about: the argument that is written differently.
_LISTS = (b"[%b]", b"[[%b]]")
_OTHERS: dict[str, tuple[int, tuple[bytes, ...]]] = {
    "assertTrue": (0, (b"!(%b)", b"![%b]")), "assertFalse": (0, (b"!(%b)", b"[%b]")),
    "assertNull": (0, (*_LISTS, *SOMETHING)), "assertEmpty": (0, _LISTS), "assertContains": (0, _LISTS),
    "assertInstanceOf": (1, _LISTS), "assertArrayHasKey": (1, _LISTS),
    "assertGreaterThan": (0, _LISTS), "assertGreaterThanOrEqual": (0, _LISTS),  # a list is above all numbers
    "assertLessThan": (1, _LISTS), "assertLessThanOrEqual": (1, _LISTS),
}  # fmt: skip
_WITHIN = frozenset({
    "assertContains", "assertStringContainsString", "assertSee", "assertSeeText", "assertStringStartsWith",
    "assertStringEndsWith", "expectExceptionMessage",
})  # fmt: skip
# Exceptions of PHP's own of which none is another's kind.
_RAISED = (
    "InvalidArgumentException", "LengthException", "DomainException", "OutOfRangeException",
    "OverflowException", "UnderflowException", "OutOfBoundsException", "RangeException",
    "UnexpectedValueException",
)  # fmt: skip
_NO_BASES = ("ErrorException", "ArithmeticError", "AssertionError")  # of errors that programs declare
_STATEMENT = re.compile(r";\s*(?=[$(]|new\b|\\?[A-Z][\w\\]*::)")  # that gives something
_ARROW = re.compile(r"=>")
_MADE = re.compile(r"new\s+\\?[\w\\]+\s*\(")
_TWO = 2


def read_tests(_: str, source: bytes) -> tuple[DeclaredTest, ...]:
    """The tests of a file."""
    code = only_code(source.decode("latin-1"))  # so that characters are bytes
    tests = []
    for found in _METHOD.finditer(code):
        before = max(code.rfind(each, 0, found.start()) for each in "{};")
        if not (found[1].startswith("test") or _MARKED.search(source, before + 1, found.start())):
            continue
        at = found.end() - 1
        begin, end = at + 1, closing(code, at)
        raising, last = _raising(source, code, begin, end)
        around = ((begin, begin), _BEGUN), ((end, end), last)
        leaves = _LEAVES.search(without(code, _FUNCTION, begin, end))
        # Of a test with arguments each set of data is a test, of a name of its own.
        titles = () if found[2].strip() else (found[1],)
        asked = [*raising, *_asked_by(source, code, begin, end)]
        tests.append(declared_test(titles, asked, () if leaves else around))
    return tuple(tests)


def _raising(source: bytes, code: str, begin: int, end: int) -> tuple[list[Alteration], bytes]:
    """What notes the error with which a test is to end, and what says at its end that all held."""
    for each in at_top(code, begin, end, _ASSERTION):
        kind = source[each.end() : closing(code, each.end() - 1)].removesuffix(b"::class")
        if each["name"] == "expectException" and _KIND.fullmatch(kind):
            stop = code.find(";", each.end()) + 1
            # What comes of it is kept, as it may raise when it goes because nobody has asked it anything.
            places = [stop, *(found.end() for found in at_top(code, stop - 1, end, _STATEMENT))]
            texts = [b" try {", *[b"$@name@_kept[] = "] * (len(places) - 1)]
            also = [((at, at), text) for at, text in zip(places, texts, strict=True)]
            return [Alteration(*each.span(), COMPARED, also=tuple(also))], _CAUGHT.replace(b"%b", kind)
    return [], _ALL_HOLDS


def _asked_by(source: bytes, code: str, begin: int, end: int) -> Iterator[Alteration]:
    if leaving := _LEAVES.search(without(code, _FUNCTION, begin, end)):
        end = begin + leaving.start()
    for loop in at_top(code, begin, end, _FOREACH):
        yield from _in_loop(source, code, loop)
    for each in at_top(code, begin, end, _ASSERTION):
        parts = parts_of(code, each.end() - 1)
        if each["name"] == "expectException" and parts:
            yield from _raised(source, *parts[0])
        elif each["name"] in _EXACT and len(parts) >= _TWO:
            found = _expected(source, code, parts[0], word_of(code[slice(*parts[1])]))
            found = _ALMOST.get(each["name"], lambda _, same: same)(source, found)
            yield from found
        elif each["name"] in _WITHIN and parts:
            yield from within(source, *parts[0])
        yield from _answered(source, code, each, parts)
        if holds := _HOLDS.get(each["name"]):
            patterns = [f"[{_ONE} = %b, $@name@[] = {holds}][0]"]
            if _OTHER in holds:
                patterns = [f"({_ONE} = %b)", f"[{_OTHER} = %b, $@name@[] = {holds}][0]"]
            yield from compared(source, parts, [each.encode() for each in patterns], b" . ")
        at, others = _OTHERS.get(each["name"], (_TWO, ()))
        if others and len(parts) > at:
            yield replace(listed(source, *parts[at], others), kind=SUBJECT)
        yield from renamed(source, each.start("name"), each.end("name"), _OPPOSITES)


def _answered(
    source: bytes, code: str, called: re.Match[str], parts: list[tuple[int, int]]
) -> Iterator[Alteration]:
    """What Laravel's assertions ask of an answer."""
    name, before = called["name"], " ".join(source[slice(*each)].decode("latin-1") for each in parts[:1])
    place = _ANSWERED.get(name, len(parts))
    for part in parts[place : place + 1]:
        asked = re.findall(r"\w+", before)[-1:] if place else [name]
        found = _expected(source, code, part, "".join(asked))
        yield from (each for each in found if name not in _PARTIAL or each.kind not in {*KEYS, *SHAPES})
    if name.encode() in _STATUSES and not parts:
        others = tuple(each for each in _STATUSES if each != name.encode())
        yield Alteration(*called.span("name"), "status", others)


def _in_loop(source: bytes, code: str, loop: re.Match[str]) -> Iterator[Alteration]:
    """What a loop over a list that stands in it asks for one of its rows."""
    opening, head = loop.end() - 1, closing(code, code.find("(", loop.start()))
    listed = closing(code, opening)
    target, body = _TARGET.fullmatch(code, listed + 1, head), _BRACE.match(code, head + 1)
    rows, end = parts_of(code, opening), closing(code, body.end() - 1) if body else head
    if target and body and len(rows) > 1 and not _SKIPS.search(code, body.end(), end):
        names = [each.encode() for each in re.findall(r"\$\w+", target[1])]
        cells = [parts_of(code, each[0]) if code[each[0]] == "[" else [] for each in rows]
        is_whole, has_all = target[1][0] == "$", all(len(row) == len(names) for row in cells)
        columns = [rows] if is_whole else [*zip(*cells, strict=True)] if has_all else []
        is_keyed = any(
            "=>" in code[slice(*each)].partition("[")[0] for each in [*rows, *itertools.chain(*columns)]
        )
        told = telling(source, zip(names, columns, strict=False), _FOR_ROW) if not is_keyed else None
        yield from in_loop(_asked_by(source, code, body.end(), end), (body.end(), end), rows, told)


def _expected(source: bytes, code: str, place: tuple[int, int], asked: str) -> Iterator[Alteration]:
    """The constant that is expected, or those that the object is made of."""
    made = _MADE.match(code, *place)
    if made and closing(code, made.end() - 1) == place[1] - 1:
        parts = parts_of(code, made.end() - 1)
        yield from constant(source, *parts[0], asked) if len(parts) == 1 else ()
    elif code[place[0]] == "[" and closing(code, place[0]) == place[1] - 1:
        yield from _members(source, code, place, asked)
    else:
        yield from constant(source, *place, asked)


def _members(source: bytes, code: str, place: tuple[int, int], asked: str) -> Iterator[Alteration]:
    """The constants of a list or table that is expected, and the same of another shape."""
    parts, plain, is_table = parts_of(code, place[0]), list[int](), False
    for number, (begin, end) in enumerate(parts):
        arrow = _ARROW.search(code, begin, end)
        value = trimmed(code, arrow.end() if arrow else begin, end)
        found = list(_expected(source, code, value, asked))
        if not found and code[value[0]] not in ".&[":
            yield listed(source, *value)
        if arrow:
            is_table = True
            yield from table_key(source, *trimmed(code, begin, arrow.start()), quoted=True)
        plain += [number] if found and not arrow else []
        is_inner = not arrow and len(parts) > 1
        yield from (each for each in found if not (is_inner and each.kind in SHAPES))
    yield from arranged(source, place, parts, plain, {FEWER} if is_table else SHAPES)


def _firm(source: bytes, found: Iterable[Alteration]) -> Iterator[Alteration]:
    """`assertEquals` compares loosely: `true` equals all but zero, texts, too; so zero is the other one."""
    for each in found:
        is_loose = each.kind in {NUMBER, TEXT} and source[each.begin : each.end] not in {b"0", b""}
        yield replace(each, others=(b"0",)) if is_loose else each


_ALMOST = {"assertEquals": _firm, "assertEqualsWithDelta": far}


def _raised(source: bytes, begin: int, end: int) -> Iterator[Alteration]:
    named = _CLASS.fullmatch(source.decode("latin-1"), begin, end)
    if named:
        kinds = _RAISED if named[1] in _RAISED else _NO_BASES
        others = tuple(f"\\{each}::class".encode() for each in kinds if each != named[1])
        yield Alteration(begin, end, kind=RAISED, others=others)
