"""Tests in JavaScript and TypeScript for trials: jest, vitest, mocha with chai, jasmine, node:test.

A test is a call with a title and a function that asserts, whatever the file calls it. See
`languages.altering`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from astra_async.languages.altering import (
    FEWER,
    LISTED,
    NOTHING,
    SUBJECT,
    Alteration,
    DeclaredTest,
    declared_test,
)
from astra_async.languages.javascript.assertions import (
    ARRANGING,
    FUNCTIONS,
    asked_of_another,
    assertion,
    at_no_time,
    requested,
    turned,
)
from astra_async.languages.javascript.claims import chain_of, claim_of
from astra_async.languages.javascript.ends import around, callbacks_that_end, done_of, leaves_early
from astra_async.languages.javascript.noting import PASS, noting
from astra_async.languages.other_values import named
from astra_async.languages.rows import Choosing
from astra_async.languages.syntax import Loop, TestFile, elements, inside, once, parse, part, source, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from astra_async.languages.rows import Written


TYPESCRIPT = frozenset({"ts", "tsx", "mts", "cts"})
_TYPESCRIPT, _TSX = (("tree_sitter_typescript", f"language_{each}") for each in ("typescript", "tsx"))
_JAVASCRIPT = ("tree_sitter_javascript", "language")
_NAMES = frozenset({"it", "test", "specify", "fit", "ftest"})
_BY_ROWS = frozenset({"each", "for", "each()", "for()"})
_GIVEN = "shorthand_property_identifier_pattern"
_OTHER_RUNNERS = frozenset({"vitest", "@jest/globals", "node:test"})
_FUNCTIONS = FUNCTIONS | {"function_declaration"}
_SCOPES = _FUNCTIONS | {"method_definition"}
_FOR_ROW = Choosing(
    b"(%(name)b = %(row)b)",
    b"(%(variable)b === %(name)b ? %(other)b : %(same)b)",
    b"\n;var %(name)b;\n",
    (b"() => (%b)", b"null", b"@name@_rows(%(over)b, [%(rows)b], @first@)"),
)
# What is taken apart by its place, by an iterator that code may have replaced, is given another one.
_FOR_PARTS = _FOR_ROW._replace(
    anew=(b"() => (%b)", b"null", b"@name@_rows(%(over)b, [%(rows)b], @first@, true)")
)
_FOR_TYPED_ROW = _FOR_ROW._replace(declaration=b"\n;var %(name)b: any;\n")
_UNCLEAR = frozenset({"identifier", "call_expression", "new_expression", "template_string"})
_LEAVING = frozenset({"return_statement", "break_statement", "continue_statement"})
_NAMED = re.compile(rb"""^(?:'[^']*'|"[^"]*"|[^'"\w]|\d)*[a-zA-Z_$]""")
_TYPE = re.compile(rb"@(any|of|it)@")
_ESCAPED = re.compile(r"\\(.)")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


def read_tests(path: str, text: bytes) -> tuple[DeclaredTest, ...]:
    """The tests of a file."""
    root = _tree(path, text)
    if root is None or _waits(root):
        return ()
    file = TestFile(root=root, text=text, scopes=_SCOPES, functions=once(_functions(root)))
    is_typed = path.rpartition(".")[2].lower() in TYPESCRIPT
    tests = named(_tests(root, file), text, _declared(root), ARRANGING)
    tests = (_untyped(text, test) if is_typed else test for test in tests)
    return tuple(_with_types(test, b": any" if is_typed else b"") for test in tests)


def _with_types(test: DeclaredTest, of_any: bytes) -> DeclaredTest:
    """With what TypeScript wants behind a parameter that may be anything, and for one that is given back."""
    if test.noted is None:
        return test
    types = {b"any": of_any, b"of": b"<T>" if of_any else b"", b"it": b": T" if of_any else b""}
    also = ((place, _TYPE.sub(lambda found: types[found[1]], text)) for place, text in test.noted.also)
    return replace(test, noted=replace(test.noted, also=tuple(also)))


def _declared(root: Node) -> dict[bytes, bytes]:
    """The file's constants that are written without a name or a call in them."""
    declared = (each for line in root.named_children for each in line.named_children)
    found = ((part(each, "name"), each.child_by_field_name("value")) for each in declared)
    return {
        name.encode(): source(value).encode()
        for name, value in found
        if name and value is not None and not any(each.type in _UNCLEAR for each in walk(value))
    }


def _functions(root: Node) -> Iterator[tuple[str, Node]]:
    """The file's own functions with their names."""
    for each in walk(root):
        if each.type in {"variable_declarator", "function_declaration"}:
            function = each.child_by_field_name("value") or each
            yield part(each, "name"), function


def _waits(root: Node) -> bool:
    """Whether it is playwright's: its assertions wait until they hold, and so two of them may.

    Its fixtures may come from a file of the project: `test("it", async ({ page }) => ...)`.
    """
    if any(_takes_page(each) for each in walk(root) if each.type == "call_expression"):
        return True
    modules = {source(each)[1:-1] for each in walk(root) if each.type == "string"}
    return "@playwright/test" in modules and modules.isdisjoint(_OTHER_RUNNERS)


def _takes_page(call: Node) -> bool:
    """Whether a test's function takes a `page` that no rows of the test give it."""
    chain = chain_of(call.child_by_field_name("function"))
    if chain[0] not in _NAMES or _BY_ROWS & set(chain):
        return False
    functions = (each for each in inside(call) if each.type in FUNCTIONS)
    first = (each for function in functions for each in inside(function, "parameters")[:1])
    given = (each for parameter in first for each in walk(parameter))
    return any(each.type == _GIVEN and source(each) == "page" for each in given)


def _of_any_type(here: bytes, other: bytes) -> bytes:
    """An expression in place of what stands here, and which uses it."""
    return other + b" as any" if here in other else b"([%b, %b] as any)[1]" % (here, other)


def _untyped(text: bytes, test: DeclaredTest) -> DeclaredTest:
    """Lists and other subjects stand where the compiler expects another type.

    What is not used any more it may refuse.
    """
    places = (
        replace(each, others=tuple(_of_any_type(text[each.begin : each.end], other) for other in each.others))
        if each.kind in {LISTED, NOTHING, SUBJECT}
        else each
        for each in map(_typed, test.alterations)
        if not (each.kind == FEWER and _NAMED.search(b"".join(each.others)))
    )
    return replace(test, alterations=tuple(places))


def _typed(place: Alteration) -> Alteration:
    """With the type that a compiler wants for the variable that keeps a row."""
    rows = replace(place.rows, choosing=_FOR_TYPED_ROW) if place.rows else None
    return replace(place, rows=rows)


def _tree(path: str, text: bytes) -> Node | None:
    suffix = path.rpartition(".")[2].lower()
    grammars = {"tsx": [_TSX], "ts": [_TYPESCRIPT], "mts": [_TYPESCRIPT], "cts": [_TYPESCRIPT]}
    trees = (parse(text, *grammar) for grammar in grammars.get(suffix, [_JAVASCRIPT, _TSX]))
    return next((root for root in trees if not root.has_error), None)


def _tests(node: Node, file: TestFile) -> Iterator[DeclaredTest]:
    """The innermost calls that declare a test, in their order."""
    for child in node.named_children:
        inner = list(_tests(child, file))
        if not inner and child.type == "call_expression":
            inner = [test for test in [_test(child, file)] if test is not None]
        yield from inner


def _test(call: Node, file: TestFile) -> DeclaredTest | None:
    given = inside(call)
    # `fakeAsync(() => ...)`, `inject([...], (...) => ...)`: a call that is given the function.
    bodies = [
        each for wrap in given[1:] for each in (inside(wrap) if wrap.type == "call_expression" else [wrap])
    ]
    functions = [each for each in bodies if each.type in FUNCTIONS]
    chain = chain_of(call.child_by_field_name("function"))
    if not functions or len(given) < 2:  # noqa: PLR2004 - a title and a function
        return None
    title = _title(given[0])
    if chain[0].removesuffix("()") not in _NAMES and (
        title is None or len(chain) > 1 or not _asserts(functions[-1])
    ):
        return None
    if _BY_ROWS & set(chain):
        title = None
    asked = tuple(_asked_by(functions[-1], file)) or tuple(_asked_by(functions[-1], file, late=True))
    return declared_test((title,) if title else (), asked, around(functions[-1], file))


def _asserts(function: Node) -> bool:
    return any(
        each.type == "call_expression" and claim_of(each).chain[0] in {"expect()", "expect", "assert"}
        for each in walk(function)
    )


def _title(node: Node) -> str | None:
    """The title where it is written as one constant string."""
    if node.type == "binary_expression" and part(node, "operator") == "+":
        parts = [_title(each) for each in node.named_children]
        return None if None in parts else "".join(filter(None, parts))
    if node.type not in {"string", "template_string"} or "template_substitution" in {
        each.type for each in node.children
    }:
        return None
    return _ESCAPED.sub(r"\1", source(node)[1:-1])


def _asked_by(function: Node, file: TestFile, *, late: bool = False, done: str = "") -> Iterator[Alteration]:
    """What every run of a test's function asks.

    `late`: also what holds at no time of what it waits for, and what callbacks ask that the answer calls.
    `done` is what a callback calls at the test's end: with an error, it fails.
    """
    body = function.child_by_field_name("body")
    if body is None:
        return
    if body.type != "statement_block":
        yield from _statement(body, file, late=late)
        return
    done = done or done_of(function)
    if done == "next" or leaves_early(body, done):
        return
    for each in body.named_children:
        yield from _statement(each, file, late=late)
        if late and done and each.type == "expression_statement":
            yield from _requested(each.named_children[0], file)
            for callback in callbacks_that_end(each, done):
                yield from _asked_by(callback, file, done=done)


def _statement(statement: Node, file: TestFile, *, late: bool) -> Iterator[Alteration]:
    """What a statement asks: an assertion, or a promise that is awaited or given back."""
    if statement.type == "for_in_statement" and part(statement, "operator") == "of":
        target, over, body = map(statement.child_by_field_name, ("left", "right", "body"))
        yield from _loop(statement, target, over, body, file)
    node, waits = statement, False
    while node.type in {
        "expression_statement",
        "return_statement",
        "await_expression",
        "parenthesized_expression",
    }:
        waits |= node.type in {"return_statement", "await_expression"}
        if not node.named_children:
            return
        node = node.named_children[0]
    waits |= node is statement  # the function's own value
    yield from noting(node, file)
    if node.type == "member_expression" and claim_of(node).chain[0] == "expect()":
        yield from asked_of_another(node)
        yield from turned(node)
    if node.type != "call_expression":
        return
    function = node.child_by_field_name("function")
    own = file.functions.get(source(function))
    if own is not None and own.type in _FUNCTIONS and (waits or not _is_async(own)):
        yield from file.called(node, own, partial(_asked_by, own, file))
    elif function is not None and part(function, "property") == "forEach":
        for each in (each for each in inside(node)[:1] if each.type in FUNCTIONS and not _is_async(each)):
            target = next(iter(inside(each, "parameters")), None)
            over, body = function.child_by_field_name("object"), each.child_by_field_name("body")
            yield from _loop(statement, target, over, body, file)
    yield from assertion(node, file, waits=waits)
    if waits:
        yield from _promised(node, file, late=late)


def _is_async(function: Node) -> bool:
    return function.children[0].type == "async"


def _loop(
    statement: Node, target: Node | None, over: Node | None, body: Node | None, file: TestFile
) -> Iterator[Alteration]:
    """What a loop asks over rows that stand in the source."""
    if target is None or over is None or body is None:
        return
    if not any(each.type in _LEAVING for each in walk(body)):
        statements = body.named_children if body.type == "statement_block" else [body]
        asked = (found for each in statements for found in _statement(each, file, late=False))
        pattern = target.child_by_field_name("pattern") or target
        how = _FOR_PARTS if pattern.type == "array_pattern" else _FOR_ROW
        yield from file.loop(Loop(statement, over, target, _rows(over, file)), asked, how, _passes(body))


def _passes(body: Node) -> list[Written]:
    """What counts a pass of a loop or of a function that is called for each row."""
    begin, end = body.start_byte, body.end_byte
    if body.type == "statement_block":
        return [((begin + 1, begin + 1), b" %b;" % PASS)]
    is_value = body.parent is not None and body.parent.type in FUNCTIONS
    before, behind = (b"(%b, ", b")") if is_value else (b"{ %b; ", b" }")
    # Two statements that end in one place would have one brace.
    is_last = body.type != "for_in_statement"
    return [((begin, begin), before % PASS), ((end, end), behind)] if is_last else []


def _rows(over: Node, file: TestFile) -> list[Node]:
    """What a loop goes over, where it stands in the source, in its order: in tables indices are first."""
    held, *others = file.meant(over)
    if held.type == "call_expression" and chain_of(held) == ["Object", "entries()"]:
        held, *others = [each for given in inside(held)[:1] for each in file.meant(given)] or [over]
    rows = [] if others or held.type not in {"array", "object"} else elements(held)
    return sorted(rows, key=_index)


def _index(row: Node) -> tuple[bool, int]:
    key = part(row, "key").strip("'\"")
    return (False, int(key)) if _INDEX.fullmatch(key) else (True, 0)


def _promised(call: Node, file: TestFile, *, late: bool) -> Iterator[Alteration]:
    """What a promise asks that a test waits for."""
    if late and chain_of(call)[-1] == "waitFor()":
        for callback in (each for each in inside(call)[:1] if each.type in FUNCTIONS):
            yield from at_no_time(_asked_by(callback, file), file)
    for at, name in _calls(call):
        if name == "then":
            for callback in (each for each in inside(at)[:1] if each.type in FUNCTIONS):
                yield from _asked_by(callback, file)
    yield from _requested(call, file)


def _requested(call: Node, file: TestFile) -> Iterator[Alteration]:
    """What supertest's requests expect."""
    for at, name in _calls(call):
        if name == "expect":
            yield from requested(inside(at), file)


def _calls(call: Node) -> Iterator[tuple[Node, str]]:
    """The calls of a chain with the names of what they call, the last one first."""
    at: Node | None = call
    while at is not None and at.type == "call_expression":
        function = at.child_by_field_name("function")
        yield at, part(function, "property")
        at = None if function is None else function.child_by_field_name("object")
