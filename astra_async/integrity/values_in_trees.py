"""Constants to which assertions in JavaScript, Ruby and Java tests compare, where every run meets them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from astra_async.integrity import java_twin, ruby_twin
from astra_async.integrity.javascript_names import Names
from astra_async.integrity.javascript_tests import declared_tests
from astra_async.integrity.javascript_twin import open_block, tree_of
from astra_async.integrity.syntax import source, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tree_sitter import Node

    from astra_async.integrity.rewriting import Titles

    Found = Iterator[tuple[tuple[Titles, ...], list["Constant"]]]

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


def in_javascript(path: str, data: bytes) -> Found:
    """The tests of a file, and the constants of each."""
    root = tree_of(path, data)
    if root is None:
        return
    for test in declared_tests(root, Names(root))[0]:
        block = None if test.doubt else open_block(test)
        statements = block.named_children if block is not None else []
        calls = (call for each in statements if (call := _call(each)) is not None)
        arguments = (found for call in calls if (found := _compared(call)) is not None)
        if test.titles:
            yield (test.titles,), list(_plain(arguments))


def _call(statement: Node) -> Node | None:
    inner = statement.named_children[:1] if statement.type == "expression_statement" else []
    while inner and inner[0].type == "await_expression":
        inner = inner[0].named_children[:1]
    return inner[0] if inner and inner[0].type == "call_expression" else None


def _compared(call: Node) -> Node | None:
    """What a call of an assertion compares to: the argument of `expect(x).toBe(5)`."""
    function, given = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    if function is None or given is None or function.type != "member_expression":
        return None
    arguments = [each for each in given.named_children if each.type != "comment"]
    name, holder = (
        source(function.child_by_field_name("property")),
        function.child_by_field_name("object"),
    )
    if source(holder) == "assert" and name in _ASSERT and len(arguments) == 2:  # noqa: PLR2004 - given, expected
        return arguments[1]
    words = set[str]()
    while holder is not None and holder.type == "member_expression":
        words.add(source(holder.child_by_field_name("property")))
        holder = holder.child_by_field_name("object")
    asserts = (name in _JEST and not words) or (name in _CHAI and bool(words) and words <= _CHAI_WORDS)
    is_expect = (
        holder is not None
        and holder.type == "call_expression"
        and source(holder.child_by_field_name("function")) == "expect"
    )
    return arguments[0] if asserts and is_expect and len(arguments) == 1 else None


def in_ruby(_: str, data: bytes) -> Found:
    """The tests of a file, and the constants of each."""
    for titles, node in ruby_twin.tests_of(data):
        body = node.child_by_field_name("body")
        constants: list[Constant] = []
        if body is not None and not any(each.type in _LEAVING for each in walk(node)):
            is_one = body.type == "call"  # a method without an end
            calls = [body] if is_one else [each for each in body.named_children if each.type == "call"]
            constants = list(_plain(found for call in calls if (found := _equal_to(call)) is not None))
        yield titles, constants


def _equal_to(call: Node) -> Node | None:
    """What `expect(x).to eq(5)`, `_(x).must_equal 5` and `assert_equal 5, x` compare to."""
    name, given = source(call.child_by_field_name("method")), _given(call)
    if name == "to" and len(given) == 1 and given[0].type == "call":
        matcher = given[0]
        is_equal = source(matcher.child_by_field_name("method")) in {"eq", "eql"}
        return next(iter(_given(matcher)), None) if is_equal else None
    if name == "must_equal" or (name == "assert_equal" and call.child_by_field_name("receiver") is None):
        return next(iter(given), None)
    return None


def in_java(_: str, data: bytes) -> Found:
    """The tests of a file, and the constants of each.

    Literals alone: what an answer's own class equals is its own affair.
    """
    for titles, method in java_twin.tests_of(data):
        body = method.child_by_field_name("body")
        constants: list[Constant] = []
        if body is not None and not any(each.type in _LEAVING for each in walk(body)):
            calls = (
                each.named_children[0] for each in body.named_children if each.type == "expression_statement"
            )
            found = (each for call in calls for each in _literals(call))
            constants = list(_plain(found))
        yield titles, constants


def _literals(call: Node) -> list[Node]:
    """The one literal that `assertEquals` compares to, whichever side it stands on."""
    if call.type != "method_invocation" or source(call.child_by_field_name("name")) != "assertEquals":
        return []
    sides = [each for each in _given(call)[:2] if each.type in {"string_literal", "decimal_integer_literal"}]
    return sides if len(sides) == 1 else []


def _given(call: Node) -> list[Node]:
    arguments = call.child_by_field_name("arguments")
    return (
        [each for each in arguments.named_children if each.type != "comment"] if arguments is not None else []
    )


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
