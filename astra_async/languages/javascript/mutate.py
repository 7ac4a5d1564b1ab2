"""Find the parts of JavaScript and TypeScript tests that a mutation may change.

Supported: Jest, Vitest, Jasmine, Mocha with Chai, node:test, AVA, tap and supertest.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from astra_async.languages.mutations import (
    Assertion,
    FoundTest,
    Grammar,
    MutableTest,
    TestFile,
    arguments,
    both_ways,
    part,
    read_files,
    renamed,
    text_of,
    walk,
    wrapped,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

_FUNCTIONS = frozenset({"arrow_function", "function_expression", "function_declaration", "method_definition"})
_GRAMMAR = Grammar(
    module="tree_sitter_javascript",
    literals={
        "number": "number", "string": "text", "template_string": "text", "true": "truth", "false": "truth",
    },
    names=frozenset({"identifier"}),
    opaque=frozenset({
        "call_expression", "new_expression", "member_expression", "subscript_expression", "binary_expression",
        "ternary_expression", "await_expression", "regex", *_FUNCTIONS,
    }),
    conditional=frozenset({
        "if_statement", "for_statement", "for_in_statement", "while_statement", "do_statement",
        "try_statement",
        "switch_statement", "ternary_expression", *_FUNCTIONS,
    }),
    declarations={"variable_declarator": ("name", "value")},
)  # fmt: skip
_TYPESCRIPT = replace(_GRAMMAR, module="tree_sitter_typescript", function="language_typescript")
_GRAMMARS = {
    **dict.fromkeys(("ts", "mts", "cts"), _TYPESCRIPT),
    "tsx": replace(_TYPESCRIPT, function="language_tsx"),
}
_OPPOSITES = both_ways({
    "equal": "notEqual", "strictEqual": "notStrictEqual", "deepEqual": "notDeepEqual", "is": "not",
    "deepStrictEqual": "notDeepStrictEqual", "same": "notSame", "isTrue": "isFalse", "isNull": "isNotNull",
    "isOk": "isNotOk", "isEmpty": "isNotEmpty", "include": "notInclude", "match": "notMatch", "true": "false",
    "isUndefined": "isDefined", "truthy": "falsy", "property": "notProperty",
}) | {"doesNotMatch": "match"}  # fmt: skip
_TRUTHS = {"assert", "ok"}  # `assert(x)`, `assert.ok(x)`
_EQUALITIES = {
    *(
        "toBe",
        "toEqual",
        "toStrictEqual",
        "toMatchObject",
        "toHaveLength",
        "toHaveBeenCalledTimes",
        "toHaveValue",
    ),
    *(
        "equal",
        "equals",
        "eq",
        "eql",
        "strictEqual",
        "deepEqual",
        "deepStrictEqual",
        "is",
        "same",
        "lengthOf",
    ),
}
_ASSERTING_OBJECTS = re.compile(r"(?:.*\.)?(?:assert|t|test|chai\.assert|strict)")
_TESTS = re.compile(r"(?:it|test|specify)(?:\.(?:only|concurrent|each\b.*))?", re.DOTALL)
_ALWAYS_CALL = {"then", "end", "act"}
_RETRYING = re.compile(rb"@playwright/test|cypress")  # their assertions wait until they hold


def read_tests(files: Mapping[str, bytes]) -> list[MutableTest]:
    """Find the tests of JavaScript and TypeScript files, by path."""
    sure = {path: source for path, source in files.items() if not _RETRYING.search(source)}
    return read_files(sure, lambda path: _GRAMMARS.get(path.rpartition(".")[2], _GRAMMAR), _tests)


def _tests(file: TestFile) -> Iterator[FoundTest]:
    for node in walk(file.root):
        given = arguments(node)
        body = next((each for each in given[1:] if each.type in _FUNCTIONS), None)
        if node.type != "call_expression" or body is None:
            continue
        called = part(node, "function")
        if not _TESTS.fullmatch(text_of(called)):
            continue
        title = (
            re.split(r"%|\$", text_of(given[0])[1:-1])[0]
            if given[0].type in {"string", "template_string"}
            else ""
        )
        yield FoundTest(
            file=file,
            title=title.replace("\\", ""),
            body=body,
            assertions=tuple(each for inner in walk(body) for each in _assertion(inner)),
            rows=partial(_rows, file, body, called),
            always_runs=partial(_always_runs, file),
        )


def _assertion(node: Node) -> Iterator[Assertion]:
    called = part(node, "function")
    if (node.type == "call_expression" and text_of(called) in {"expect", "expect.soft"}) or (
        node.type == "member_expression" and text_of(part(node, "property")) == "should"
    ):
        yield _chained(node, node)
    elif node.type == "call_expression" and called is not None:
        name, given = part(called, "property") or called, arguments(node)
        on = text_of(part(called, "object"))
        if (text_of(name) in _TRUTHS and given and on in {"", "assert", "t"}) and text_of(called) != "ok":
            yield Assertion(node, wrapped(given[0], "!({})"))
        elif on and _ASSERTING_OBJECTS.fullmatch(on):
            yield Assertion(
                node, renamed(name, _OPPOSITES), given[:2] if text_of(name) in _EQUALITIES else ()
            )
        elif on and text_of(name) == "expect" and given and not given[0].type.endswith("string"):
            yield Assertion(node, None, given)  # supertest: a status or a body


def _chained(subject: Node, top: Node) -> Assertion:
    """Return the assertion that starts with `expect(x)` or `x.should`."""
    operands: tuple[Node, ...] = ()
    negated: Node | None = None
    while top.parent is not None and top.parent.type in {"member_expression", "call_expression"}:
        if top.parent.type == "call_expression" and part(top.parent, "function") != top:
            break
        inner, top = top, top.parent
        if text_of(part(top, "property")) == "not":
            negated = part(top, "property")
        elif top.type == "call_expression" and text_of(part(inner, "property")) in _EQUALITIES:
            operands = arguments(top)
    if negated is not None:
        before = negated.prev_sibling
        begin = before.start_byte if before is not None else negated.start_byte
        return Assertion(top, (begin, negated.end_byte, b""))
    return Assertion(top, (subject.end_byte, subject.end_byte, b".not"), operands)


def _always_runs(file: TestFile, node: Node) -> bool:
    """Return True for a callback that a passing test has run, and for a loop over a literal table."""
    if node.type == "for_in_statement":
        return _table(file, part(node, "right")) is not None
    call = node.parent.parent if node.parent is not None and node.parent.type == "arguments" else None
    name = part(call, "function")
    if text_of(part(name, "property") or name) == "forEach":
        return _table(file, part(name, "object")) is not None
    return call is not None and text_of(part(name, "property") or name) in _ALWAYS_CALL


def _table(file: TestFile, node: Node | None) -> Node | None:
    if node is not None and node.type == "identifier":
        declared = file.declared(node.text or b"", file.root)
        node = declared[1] if declared else None
    return node if node is not None and node.type == "array" and node.named_child_count else None


def _rows(file: TestFile, body: Node, called: Node | None, operand: Node) -> list[tuple[TestFile, Node]]:
    """Return the cells that a name refers to in `test.each` or in a loop over a literal table."""
    name = text_of(operand)
    each = part(called, "function") if called is not None and called.type == "call_expression" else None
    if text_of(each).endswith(".each") and arguments(called):
        table = _table(file, arguments(called)[0])
        if table is not None and (found := _column(file, part(body, "parameters"), name, table)):
            return found
    above = operand.parent
    while above is not None and above.id != file.root.id:
        over = part(above, "right") if above.type == "for_in_statement" else None
        target = part(above, "left")
        call = above.parent.parent if above.type in _FUNCTIONS and above.parent is not None else None
        if call is not None and text_of(part(part(call, "function"), "property")) == "forEach":
            over, target = part(part(call, "function"), "object"), part(above, "parameters")
        table = _table(file, over)
        if table is not None and (found := _column(file, target, name, table)):
            return found
        above = above.parent
    return []


def _column(file: TestFile, target: Node | None, name: str, table: Node) -> list[tuple[TestFile, Node]]:
    """Return the cells that a pattern such as `(a, b)`, `[a, b]` or `({ a, b })` binds to a name."""
    while target is not None and target.named_child_count == 1 and target.type != "object_pattern":
        target = target.named_children[0]
        target = part(target, "pattern") or target
    if target is None:
        return []
    names = [text_of(each) for each in target.named_children]
    cells = []
    for row in table.named_children:
        if target.type == "object_pattern" and row.type == "object":
            pairs = [each for each in row.named_children if text_of(part(each, "key")) == name]
            cells += [(file, value) for each in pairs if (value := part(each, "value")) is not None]
        elif name in names and row.type == "array" and row.named_child_count >= len(names):
            cells.append((file, row.named_children[names.index(name)]))
    return cells
