"""Find what a mutation may change in Java tests: JUnit 3 to 5, TestNG, AssertJ, Hamcrest and MockMvc."""

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
    wrapped,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

_GRAMMAR = Grammar(
    module="tree_sitter_java",
    literals={
        "decimal_integer_literal": "number", "decimal_floating_point_literal": "float",
        "string_literal": "text",
        "character_literal": "character", "true": "truth", "false": "truth",
    },
    names=frozenset({"identifier"}),
    opaque=frozenset({
        "field_access", "array_access", "binary_expression", "lambda_expression", "method_reference",
        "ternary_expression", "class_literal", "method_invocation", "object_creation_expression",
    }),
    conditional=frozenset({
        "if_statement", "for_statement", "enhanced_for_statement", "while_statement", "do_statement",
        "try_statement", "switch_expression", "ternary_expression", "lambda_expression", "catch_clause",
    }),
    declarations={"variable_declarator": ("name", "value")},
)  # fmt: skip
_OPPOSITES = both_ways({
    "assertEquals": "assertNotEquals", "assertTrue": "assertFalse", "assertNull": "assertNotNull",
    "assertSame": "assertNotSame", "isEqualTo": "isNotEqualTo", "isTrue": "isFalse", "isNull": "isNotNull",
    "isEmpty": "isNotEmpty", "contains": "doesNotContain", "isSameAs": "isNotSameAs", "isIn": "isNotIn",
    "isPositive": "isNotPositive", "isZero": "isNotZero", "exists": "doesNotExist",
}) | {"isPresent": "isEmpty"}  # fmt: skip
_FLUENT_EQUALITIES = {"isEqualTo", "containsExactly", "hasSize", "containsExactlyInAnyOrder", "hasToString"}
_HAMCREST_EQUALITIES = {"is", "equalTo", "hasSize", "contains"}
_COLLECTIONS = re.compile(r"(?:List|Set|Map|Arrays|Optional|Stream)\.(?:of|asList|entry)")
_IMPORTED = r"import\s+static\s+([\w.]*Assert\w*)\.(?:{name}|\*)\s*;"
_RUNS_ALL = {"assertAll", "assertDoesNotThrow"}
_MESSAGE_LAST = 2  # JUnit 5 and TestNG: what is compared comes before a message
_TEST_ANNOTATION = re.compile(r"@(?:\w+\.)*(?:Test|ParameterizedTest|RepeatedTest)\b")
_DISPLAY_NAME = re.compile(r'@DisplayName\(\s*"((?:[^"\\]|\\.)*)"')


def read_tests(files: Mapping[str, bytes]) -> list[MutableTest]:
    """Find the tests of Java files, by path."""
    return read_files(files, lambda _: _GRAMMAR, _tests)


def _tests(file: TestFile) -> Iterator[FoundTest]:
    text = file.source.decode(errors="replace")
    for node in walk(file.root):
        body, name = part(node, "body"), text_of(part(node, "name"))
        if node.type != "method_declaration" or body is None:
            continue
        modifiers = next((text_of(each) for each in node.named_children if each.type == "modifiers"), "")
        is_old = name.startswith("test") and "TestCase" in text
        if is_old or _TEST_ANNOTATION.search(modifiers):
            yield FoundTest(
                file=file,
                title="" if _DISPLAY_NAME.search(modifiers) else name,  # a report may give either name
                body=body,
                assertions=tuple(each for inner in walk(body) for each in _assertion(inner, text)),
                always_runs=_always_runs,
            )


def _assertion(node: Node, text: str) -> Iterator[Assertion]:
    name, given = part(node, "name"), arguments(node)
    if node.type != "method_invocation" or (not given and text_of(name) not in _OPPOSITES):
        return
    called, on = text_of(name), part(node, "object")
    if called == "assertThat":
        if len(given) > 1:  # Hamcrest
            yield Assertion(
                node, wrapped(given[-1], "org.hamcrest.CoreMatchers.not({})"), _matched(given[-1])
            )
    elif called.startswith("assert"):
        # A static import may name this assertion only, so its opposite is written with its class.
        found = re.search(_IMPORTED.replace("{name}", called), text) if on is None else None
        operands = given[: len(given) if len(given) <= _MESSAGE_LAST else 3] if "Equals" in called else ()
        sides = tuple(side for operand in operands for side in _expected(operand))
        if called in {"assertEquals", "assertArrayEquals", "assertIterableEquals"} or not sides:
            yield Assertion(node, renamed(name, _OPPOSITES, f"{found[1]}." if found else ""), sides)
    elif on is not None and text_of(on).startswith(("assertThat", "Assertions.assertThat")):
        operands = given if called in _FLUENT_EQUALITIES else ()
        negation = renamed(name, _OPPOSITES) if "assertThat" in text_of(part(on, "name")) else None
        yield Assertion(node, negation, tuple(side for operand in operands for side in _expected(operand)))
    elif called == "value" and "jsonPath" in text_of(on):
        yield Assertion(node, None, given)


def _matched(matcher: Node) -> tuple[Node, ...]:
    """Return the operands of a Hamcrest matcher of equality."""
    is_equality = text_of(part(matcher, "name")) in _HAMCREST_EQUALITIES
    return tuple(side for each in arguments(matcher) for side in _expected(each)) if is_equality else ()


def _expected(operand: Node) -> Iterator[Node]:
    """Yield an operand; of a collection that the test writes out, such as `List.of(1, 2)`, its elements."""
    called = f"{text_of(part(operand, 'object'))}.{text_of(part(operand, 'name'))}"
    if operand.type == "method_invocation" and _COLLECTIONS.fullmatch(called):
        for each in arguments(operand):
            yield from _expected(each)
    else:
        yield operand


def _always_runs(node: Node) -> bool:
    """Return True for the functions that `assertAll` calls."""
    call = node.parent.parent if node.type == "lambda_expression" and node.parent is not None else None
    return text_of(part(call, "name")) in _RUNS_ALL
