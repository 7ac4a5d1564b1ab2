"""Find the parts of Python tests that a mutation may change (pytest, unittest and Django)."""

from __future__ import annotations

import re
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

_GRAMMAR = Grammar(
    module="tree_sitter_python",
    literals={"integer": "number", "float": "number", "string": "text", "true": "truth", "false": "truth"},
    names=frozenset({"identifier"}),
    opaque=frozenset({
        "call", "attribute", "subscript", "lambda", "binary_operator", "boolean_operator",
        "comparison_operator",
        "conditional_expression", "list_comprehension", "generator_expression", "dictionary_comprehension",
        "set_comprehension", "concatenated_string",
    }),
    conditional=frozenset({
        "if_statement", "for_statement", "while_statement", "try_statement", "match_statement",
        "function_definition", "lambda", "with_statement",
    }),
    declarations={"assignment": ("left", "right")},
)  # fmt: skip
_OPPOSITES = both_ways({
    "assertEqual": "assertNotEqual", "assertTrue": "assertFalse", "assertIs": "assertIsNot",
    "assertIsNone": "assertIsNotNone", "assertIn": "assertNotIn", "assertIsInstance": "assertNotIsInstance",
    "assertAlmostEqual": "assertNotAlmostEqual", "assertRegex": "assertNotRegex",
    "assertGreater": "assertLessEqual", "assertLess": "assertGreaterEqual",
    "assertContains": "assertNotContains",
}) | dict.fromkeys(
    ("assertListEqual", "assertDictEqual", "assertTupleEqual", "assertSetEqual", "assertMultiLineEqual"),
    "assertNotEqual",
)  # fmt: skip
_EQUALITIES = {"assertEqual", "assertIs", "assertCountEqual", "assertSequenceEqual"} | {
    name for name, other in _OPPOSITES.items() if other == "assertNotEqual"
}


def read_tests(files: Mapping[str, bytes]) -> list[MutableTest]:
    """Find the tests of Python files, by path."""
    return read_files(files, lambda _: _GRAMMAR, _tests)


def _tests(file: TestFile) -> Iterator[FoundTest]:
    for node in walk(file.root):
        name, body = text_of(part(node, "name")), part(node, "body")
        if node.type == "function_definition" and name.startswith("test") and body is not None:
            yield FoundTest(
                file=file,
                title=name,
                body=body,
                assertions=tuple(each for inner in walk(body) for each in _assertion(inner)),
                rows=partial(_rows, file, node),
                always_runs=partial(_always_runs, file),
            )


def _assertion(node: Node) -> Iterator[Assertion]:
    if node.type == "assert_statement":
        condition = node.named_children[0]
        operator = [each.type for each in condition.children if not each.is_named]
        is_equality = condition.type == "comparison_operator" and operator in (["=="], ["is"])
        operands = tuple(condition.named_children) if is_equality else ()
        yield Assertion(node, wrapped(condition, "not ({})"), operands)
    name = part(part(node, "function"), "attribute")
    if node.type == "call" and text_of(name).startswith("assert"):
        given = arguments(node)
        operands = given[:2] if text_of(name) in _EQUALITIES else ()
        # `assertNotContains` has no `count`.
        can_negate = text_of(name) != "assertContains" or len(given) == len(_RESPONSE_AND_TEXT)
        yield Assertion(node, renamed(name, _OPPOSITES) if can_negate else None, operands)


_KNOWN_CONTEXT = re.compile(
    r"(?:self|pytest|mock|unittest|tempfile|warnings|monkeypatch)\.|open\(|patch\b"
    r"|[\w.]+\.(?:test_client|app_context|test_request_context)\("
)
_RESPONSE_AND_TEXT = ("response", "text")


def _rows(file: TestFile, test: Node, operand: Node) -> list[tuple[TestFile, Node]]:
    """Return the cells that a name refers to in `parametrize` or in a loop over a literal table."""
    above = operand.parent
    while above is not None and above.id != test.id:
        table = _table(file, above)
        if table is not None:
            names = [
                text_of(each) for each in walk(part(above, "left") or above) if each.type == "identifier"
            ]
            return _column(file, names, text_of(operand), table)
        above = above.parent
    decorators = (
        test.parent.named_children if test.parent and test.parent.type == "decorated_definition" else []
    )
    for decorator in decorators:
        call = decorator.named_children[0] if decorator.named_children else decorator
        given = arguments(call)
        if text_of(part(call, "function")).endswith("parametrize") and len(given) > 1:
            names = [each.strip(" \"'[]()") for each in text_of(given[0]).split(",")]
            if found := _column(file, names, text_of(operand), given[1]):
                return found
    return []


def _always_runs(file: TestFile, node: Node) -> bool:
    """Return True for a loop over a literal table, and for a `with` that does not suppress errors.

    A context manager of the answer could suppress an AssertionError, so only known ones count.
    """
    if node.type == "with_statement":
        return all(_KNOWN_CONTEXT.match(text_of(each)) for each in walk(node) if each.type == "with_item")
    return _table(file, node) is not None


def _table(file: TestFile, node: Node) -> Node | None:
    """Return the literal table that a `for` statement iterates, if it is in the test file."""
    over = part(node, "right") if node.type == "for_statement" else None
    if over is not None and over.type == "identifier":
        declared = file.declared(over.text or b"", file.root)
        over = declared[1] if declared else None
    return over if over is not None and over.type in {"list", "tuple"} and over.named_child_count else None


def _column(file: TestFile, names: list[str], name: str, table: Node) -> list[tuple[TestFile, Node]]:
    if name not in names or table.type not in {"list", "tuple"}:
        return []
    at = names.index(name)
    cells: list[tuple[TestFile, Node]] = []
    for row in table.named_children:
        inner = arguments(row) if row.type == "call" else tuple(row.named_children)  # `pytest.param(...)`
        if len(names) == 1 and row.type != "call":
            cells.append((file, row))
        elif len(inner) >= len(names):
            cells.append((file, inner[at]))
    return cells
