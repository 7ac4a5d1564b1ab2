"""Find what a mutation may change in PHPUnit tests."""

from __future__ import annotations

import re
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
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

_GRAMMAR = Grammar(
    module="tree_sitter_php",
    function="language_php",
    literals={
        "integer": "number", "float": "float", "string": "text", "encapsed_string": "quoted text",
        "boolean": "truth",
    },
    names=frozenset({"variable_name"}),
    opaque=frozenset({
        "function_call_expression", "member_call_expression", "scoped_call_expression",
        "member_access_expression",
        "object_creation_expression", "subscript_expression", "binary_expression", "anonymous_function",
        "arrow_function", "conditional_expression", "class_constant_access_expression",
    }),
    conditional=frozenset({
        "if_statement", "foreach_statement", "for_statement", "while_statement", "do_statement",
        "try_statement",
        "switch_statement", "match_expression", "anonymous_function", "arrow_function",
        "conditional_expression",
    }),
    declarations={"assignment_expression": ("left", "right")},
)  # fmt: skip
_OPPOSITES = both_ways({
    "assertSame": "assertNotSame", "assertEquals": "assertNotEquals", "assertTrue": "assertNotTrue",
    "assertFalse": "assertNotFalse", "assertNull": "assertNotNull", "assertCount": "assertNotCount",
    "assertEmpty": "assertNotEmpty", "assertContains": "assertNotContains",
    "assertArrayHasKey": "assertArrayNotHasKey", "assertInstanceOf": "assertNotInstanceOf",
    "assertStringContainsString": "assertStringNotContainsString",
    "assertGreaterThan": "assertLessThanOrEqual", "assertLessThan": "assertGreaterThanOrEqual",
})  # fmt: skip
_EQUALITIES = {
    "assertSame",
    "assertEquals",
    "assertCount",
    "assertEqualsCanonicalizing",
    "assertJsonStringEqualsJsonString",
}
_TEST = re.compile(r"#\[\s*(?:\w+\\)*Test\b|@test\b")


def read_tests(files: Mapping[str, bytes]) -> list[MutableTest]:
    """Find the tests of PHP files, by path."""
    return read_files(files, lambda _: _GRAMMAR, _tests)


def _tests(file: TestFile) -> Iterator[FoundTest]:
    for node in walk(file.root):
        name, body = text_of(part(node, "name")), part(node, "body")
        if node.type != "method_declaration" or body is None:
            continue
        before = node.prev_named_sibling
        doc = text_of(before) if before is not None and before.type == "comment" else ""
        if name.startswith("test") or _TEST.search(doc + text_of(part(node, "attributes"))):
            found = tuple(each for inner in walk(body) for each in _assertion(inner))
            yield FoundTest(file=file, title=name, body=body, assertions=found)


def _assertion(node: Node) -> Iterator[Assertion]:
    name = part(node, "name")
    if node.type in {"member_call_expression", "scoped_call_expression"} and text_of(name).startswith(
        "assert"
    ):
        given = [each.named_children[-1] for each in arguments(node) if each.named_children]
        operands = tuple(given[:2]) if text_of(name) in _EQUALITIES else ()
        yield Assertion(node, renamed(name, _OPPOSITES), operands)
