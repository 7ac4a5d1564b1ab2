"""Constants to which a test's assertions compare, where every run of it meets them: by language."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from astra_async.integrity.syntax import inside, part, source, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tree_sitter import Node

_METHODS = frozenset({"assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertIn"})
_JEST = frozenset({"toBe", "toEqual", "toStrictEqual"})
_CHAI = frozenset({"equal", "equals", "eq", "eql"})
_CHAI_WORDS = frozenset({"to", "be", "deep", "have", "is"})
_ASSERT = frozenset({"equal", "strictEqual", "deepEqual", "deepStrictEqual"})
_LEAVING = frozenset({"return", "return_statement", "next", "break", "redo", "rescue", "rescue_modifier"})
_DIGITS = 9  # of a Java `int`


class Constant(NamedTuple):
    """A constant in a file: where it stands, in bytes, and what it is."""

    begin: int
    end: int
    value: float | str


def in_python(body: Iterable[ast.stmt], data: bytes) -> Iterator[Constant]:
    """The constants of a test's own statements, in a file that is `data`."""
    starts = [0]
    for line in data.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    nodes = (found for each in body for found in _expected(each))
    return (found for node in nodes if (found := _python_constant(node, starts, data)) is not None)


def _expected(statement: ast.stmt) -> Iterator[ast.Constant]:
    """The constants that a statement expects: of `assert x == 5`, `self.assertEqual(x, [1, 2])`."""
    sides: list[ast.expr] = []
    if isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Compare):
        if len(statement.test.ops) == 1 and isinstance(statement.test.ops[0], ast.Eq):
            sides = [statement.test.left, *statement.test.comparators]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        if isinstance(function, ast.Attribute) and function.attr in _METHODS:
            sides = statement.value.args[: 1 if function.attr == "assertIn" else 2]
    constant = [each for each in sides if _is_constant(each)]
    if len(constant) == 1 and (len(sides) > 1 or len(constant) == len(sides)):
        yield from _inside(constant[0])


def _is_constant(node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Tuple):
        return all(map(_is_constant, node.elts))
    if isinstance(node, ast.Dict):
        return all(isinstance(key, ast.Constant) for key in node.keys) and all(map(_is_constant, node.values))
    return isinstance(node, ast.Constant)


def _inside(node: ast.expr) -> Iterator[ast.Constant]:
    if isinstance(node, ast.Constant):
        yield node
    parts = node.values if isinstance(node, ast.Dict) else getattr(node, "elts", [])
    for each in parts:
        yield from _inside(each)


def _python_constant(node: ast.Constant, starts: list[int], data: bytes) -> Constant | None:
    """The constant, where it is a number or a text that stands on one line as it is."""
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | float | str) or node.lineno != node.end_lineno:
        return None
    begin = starts[node.lineno - 1] + node.col_offset
    end = starts[node.lineno - 1] + (node.end_col_offset or 0)
    try:
        same = ast.literal_eval(data[begin:end].decode()) == value
    except (SyntaxError, ValueError):
        return None
    return Constant(begin, end, value) if same and (isinstance(value, str) or value >= 0) else None


def in_javascript(statements: Iterable[Node]) -> Iterator[Constant]:
    """The constants of a test's own statements."""
    calls = (call for each in statements if (call := _call(each)) is not None)
    return _plain(found for call in calls if (found := _compared(call)) is not None)


def _call(statement: Node) -> Node | None:
    inner = statement.named_children[:1] if statement.type == "expression_statement" else []
    while inner and inner[0].type == "await_expression":
        inner = inner[0].named_children[:1]
    return inner[0] if inner and inner[0].type == "call_expression" else None


def _compared(call: Node) -> Node | None:
    """What a call of an assertion compares to: the argument of `expect(x).toBe(5)`."""
    function, arguments = call.child_by_field_name("function"), inside(call)
    if function is None or function.type != "member_expression":
        return None
    name, holder = part(function, "property"), function.child_by_field_name("object")
    if source(holder) == "assert" and name in _ASSERT and len(arguments) == 2:  # noqa: PLR2004 - given, expected
        return arguments[1]
    words = set[str]()
    while holder is not None and holder.type == "member_expression":
        words.add(part(holder, "property"))
        holder = holder.child_by_field_name("object")
    asserts = (name in _JEST and not words) or (name in _CHAI and bool(words) and words <= _CHAI_WORDS)
    is_expect = (
        holder is not None and holder.type == "call_expression" and part(holder, "function") == "expect"
    )
    return arguments[0] if asserts and is_expect and len(arguments) == 1 else None


def in_ruby(test: Node) -> Iterable[Constant]:
    """The constants of a test's own statements."""
    body = test.child_by_field_name("body")
    if body is None or any(each.type in _LEAVING for each in walk(test)):
        return ()
    is_one = body.type == "call"  # a method without an end
    calls = [body] if is_one else [each for each in body.named_children if each.type == "call"]
    return _plain(found for call in calls if (found := _equal_to(call)) is not None)


def _equal_to(call: Node) -> Node | None:
    """What `expect(x).to eq(5)`, `_(x).must_equal 5` and `assert_equal 5, x` compare to."""
    name, given = part(call, "method"), inside(call)
    if name == "to" and len(given) == 1 and given[0].type == "call":
        is_equal = part(given[0], "method") in {"eq", "eql"}
        return next(iter(inside(given[0])), None) if is_equal else None
    if name == "must_equal" or (name == "assert_equal" and call.child_by_field_name("receiver") is None):
        return next(iter(given), None)
    return None


def in_java(body: Node | None) -> Iterable[Constant]:
    """The constants of a test's own statements: literals, as an answer's class may equal anything."""
    if body is None or any(each.type in _LEAVING for each in walk(body)):
        return ()
    calls = (each.named_children[0] for each in body.named_children if each.type == "expression_statement")
    return _plain(each for call in calls for each in _literals(call))


def _literals(call: Node) -> list[Node]:
    """The one literal that `assertEquals` compares to, whichever side it stands on."""
    if call.type != "method_invocation" or part(call, "name") != "assertEquals":
        return []
    sides = [each for each in inside(call)[:2] if each.type in {"string_literal", "decimal_integer_literal"}]
    return sides if len(sides) == 1 else []


def _plain(nodes: Iterable[Node]) -> Iterator[Constant]:
    """Numbers and texts without escapes, also in lists and objects."""
    for node in nodes:
        text = source(node)
        if (
            node.type in {"string", "string_literal"}
            and text[:1] in {"'", '"'}
            and not {"\\", "#"} & set(text)
        ):
            yield Constant(node.start_byte, node.end_byte, text[1:-1])
        elif node.type in {"number", "integer", "decimal_integer_literal"}:
            if text.isdecimal() and len(text) <= _DIGITS:
                yield Constant(node.start_byte, node.end_byte, int(text))
        elif node.type == "array":
            yield from _plain(node.named_children)
        elif node.type in {"object", "hash"}:
            values = (each.child_by_field_name("value") for each in node.named_children)
            yield from _plain(each for each in values if each is not None)
