"""Find the parts of Go tests that a mutation may change (testing package and testify)."""

from __future__ import annotations

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

    Cells = list[tuple[TestFile, Node]]

_GRAMMAR = Grammar(
    module="tree_sitter_go",
    literals={
        "int_literal": "number", "float_literal": "float", "interpreted_string_literal": "text",
        "raw_string_literal": "raw text", "rune_literal": "rune", "true": "truth", "false": "truth",
    },
    names=frozenset({"identifier"}),
    opaque=frozenset({
        "call_expression", "selector_expression", "index_expression", "slice_expression", "binary_expression",
        "func_literal", "array_type", "nil",
    }),
    conditional=frozenset({
        "if_statement", "for_statement", "func_literal", "expression_switch_statement",
        "type_switch_statement",
        "select_statement", "go_statement", "defer_statement",
    }),
    declarations={
        "short_var_declaration": ("left", "right"), "var_spec": ("name", "value"), "const_spec": ("name",
        "value"),
    },
)  # fmt: skip
_FAILURES = {"Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"}
_EQUAL_FUNCTIONS = {"reflect.DeepEqual", "cmp.Equal", "slices.Equal", "maps.Equal", "bytes.Equal", "cmp.Diff"}
_OPPOSITES = both_ways({
    "Equal": "NotEqual", "True": "False", "Nil": "NotNil", "NoError": "Error", "Contains": "NotContains",
    "Empty": "NotEmpty", "Zero": "NotZero", "Same": "NotSame", "Equalf": "NotEqualf",
}) | {"EqualValues": "NotEqualValues"}  # fmt: skip
_EQUALITIES = {"Equal", "EqualValues", "Equalf", "ElementsMatch", "Len", "JSONEq"}


def read_tests(files: Mapping[str, bytes]) -> list[MutableTest]:
    """Find the tests of Go files, by path."""
    return read_files(files, lambda _: _GRAMMAR, _tests)


def _tests(file: TestFile) -> Iterator[FoundTest]:
    for node in file.root.named_children:
        name, body = text_of(part(node, "name")), part(node, "body")
        if node.type == "function_declaration" and name.startswith("Test") and body is not None:
            yield FoundTest(
                file=file,
                title=name,
                body=body,
                assertions=tuple(each for inner in walk(body) for each in _assertion(inner)),
                rows=partial(_rows, file, body),
                always_runs=partial(_always_runs, file, body),
            )


def _assertion(node: Node) -> Iterator[Assertion]:
    condition = part(node, "condition")
    if node.type == "if_statement" and condition is not None and part(node, "alternative") is None:
        calls = (each for each in walk(part(node, "consequence") or node) if each.type == "call_expression")
        if any(text_of(part(part(each, "function"), "field")) in _FAILURES for each in calls):
            yield Assertion(node, wrapped(condition, "!({})"), tuple(_operands(node, condition)))
    name, on = part(part(node, "function"), "field"), text_of(part(part(node, "function"), "operand"))
    if node.type == "call_expression" and on in {"assert", "require"}:
        operands = arguments(node)[1:3] if text_of(name) in _EQUALITIES else ()
        yield Assertion(node, renamed(name, _OPPOSITES), operands)


def _operands(node: Node, condition: Node) -> Iterator[Node]:
    """Yield the operands that a failure condition compares: sides of `!=`, arguments of DeepEqual."""
    if condition.type == "binary_expression":
        sides = [part(condition, "left"), part(condition, "right")]
        operator = text_of(part(condition, "operator"))
        for side in sides if operator in {"!=", "||"} else ():
            if side is not None and operator == "||":
                yield from _operands(node, side)
            elif side is not None:
                yield side
    if condition.type == "unary_expression" and text_of(part(condition, "operator")) == "!":
        call = part(condition, "operand")
        if text_of(part(call, "function")) in _EQUAL_FUNCTIONS:
            yield from arguments(call)[:2]
    for call in walk(part(node, "initializer") or condition):
        if text_of(part(call, "function")) == "cmp.Diff":
            yield from arguments(call)[:2]


def _always_runs(file: TestFile, body: Node, node: Node) -> bool:
    """Return True for the function passed to `t.Run`, and for a loop over a literal table."""
    if node.type == "for_statement":
        return _table(file, body, node) is not None
    call = node.parent.parent if node.type == "func_literal" and node.parent is not None else None
    return text_of(part(part(call, "function"), "field")) == "Run"


def _table(file: TestFile, body: Node, loop: Node) -> tuple[TestFile, Node] | None:
    """Return the composite literal that a `range` iterates, possibly from another file of the package."""
    ranged = next((each for each in loop.named_children if each.type == "range_clause"), None)
    over = part(ranged, "right")
    found = (file, over) if over is not None else None
    if over is not None and over.type == "identifier":
        found = file.declared(over.text or b"", body)
    return found if found and found[1].type == "composite_literal" else None


def _rows(file: TestFile, body: Node, operand: Node) -> Cells:
    """Return the values of a table of cases that `c.want` or the variable of a `range` refers to."""
    above = operand.parent
    while above is not None and above.id != body.id:
        ranged = next((each for each in above.named_children if each.type == "range_clause"), None)
        table = _table(file, body, above) if above.type == "for_statement" and ranged else None
        names = [text_of(each) for each in (part(ranged, "left") or above).named_children] if table else []
        if (
            table
            and names
            and operand.type == "selector_expression"
            and text_of(part(operand, "operand")) in names
        ):
            return _cells(*table, text_of(part(operand, "field")))
        if table and text_of(operand) == names[-1] and operand.type == "identifier":
            return [(table[0], value) for _, value in _elements(part(table[1], "body"))]
        above = above.parent
    return []


def _cells(file: TestFile, table: Node, field: str) -> Cells:
    """Return one field of all rows, by key or by position in the struct."""
    fields = [
        text_of(name)
        for each in _struct_fields(file, part(table, "type"))
        for name in each.children_by_field_name("name")
    ]
    cells: Cells = []
    for _, row in _elements(part(table, "body")):
        row = part(row, "body") or row  # noqa: PLW2901 - if the row repeats its type
        elements = list(_elements(row))
        keyed = {key: value for key, value in elements if key}
        if field in keyed:
            cells.append((file, keyed[field]))
        elif not keyed and field in fields and len(elements) == len(fields):
            cells.append((file, elements[fields.index(field)][1]))
    return cells


def _elements(literal: Node | None) -> Iterator[tuple[str, Node]]:
    """Yield key ("" without one) and value of each element of a composite literal."""
    for each in literal.named_children if literal is not None else ():
        key, value = text_of(part(each, "key")), part(each, "value") or each
        while value.type == "literal_element" and value.named_children:
            value = value.named_children[0]
        if each.type != "comment":
            yield key, value


def _struct_fields(file: TestFile, node: Node | None) -> Iterator[Node]:
    """Yield the field declarations of a struct type, inline or declared by name in the package."""
    element = part(node, "element") or part(node, "value")
    if element is not None and element.type == "type_identifier":
        specs = (
            each for found in (file, *file.siblings) for each in walk(found.root) if each.type == "type_spec"
        )
        element = next(
            (part(each, "type") for each in specs if text_of(part(each, "name")) == text_of(element)), None
        )
    for each in walk(element) if element is not None else ():
        if each.type == "field_declaration":
            yield each
