"""Ruby's tests for trials: rspec, minitest with its specs, Rails' test cases. See `languages.altering`."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from astra_async.languages.altering import Alteration, DeclaredTest, declared_test
from astra_async.languages.other_values import named
from astra_async.languages.rows import Choosing
from astra_async.languages.ruby.assertions import ARRANGING, PLAIN, assertion
from astra_async.languages.ruby.noting import PASS, around
from astra_async.languages.syntax import (
    Loop,
    TestFile,
    elements,
    inside,
    once,
    parse,
    part,
    source,
    spans,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node


_EXAMPLES = frozenset({"it", "specify", "example", "scenario", "fit", "its", "test", "should"})
# Assertions that call their block, once.
_CALLING = frozenset({"assert_difference", "assert_no_difference", "assert_changes", "assert_no_changes"})
_SCOPES = frozenset({"method", "block", "do_block"})
_TARGETS = frozenset({"identifier", "destructured_parameter"})
_FOR_ROW = Choosing(
    b"($%(name)b = %(row)b)",
    b"(%(variable)b.equal?($%(name)b) ? %(other)b : %(same)b)",
    anew=(b"-> { %b }", b"nil", b"$@name@.rows(%(over)b, [%(rows)b], @first@)"),
)
_BODIES = frozenset({"body_statement", "block_body"})
_LEAVING = frozenset({"return", "next", "break", "redo", "rescue", "rescue_modifier"})


def read_tests(_: str, text: bytes) -> tuple[DeclaredTest, ...]:
    """The tests of a file."""
    root = parse(text, "tree_sitter_ruby")
    if root.has_error:
        return ()
    functions = once((part(each, "name"), each) for each in walk(root) if each.type == "method")
    tests = _tests(root, TestFile(root=root, text=text, scopes=_SCOPES, functions=functions))
    return tuple(named(tests, text, _declared(root), ARRANGING))


def _declared(root: Node) -> dict[bytes, bytes]:
    """The file's constants that are written as one constant each, or a list of them."""
    found = (
        (each.child_by_field_name(name) for name in ("left", "right"))
        for each in walk(root)
        if each.type == "assignment"
    )
    return {
        source(name).encode(): source(value).encode()
        for name, value in found
        if name is not None and name.type == "constant" and value is not None
        if value.type in PLAIN or (elements(value) and all(each.type in PLAIN for each in elements(value)))
    }


def _tests(node: Node, file: TestFile) -> Iterator[DeclaredTest]:
    """Methods by the name of a test, and blocks of examples, in their order."""
    for child in node.named_children:
        name = part(child, "method") if child.type == "call" else part(child, "name")
        if child.type == "method" and name.startswith("test_"):
            yield _test((name,), child, file)
            continue
        block = child.child_by_field_name("block") if child.type == "call" else None
        if block is not None and name in _EXAMPLES and child.child_by_field_name("receiver") is None:
            title = _title(child) if name != "its" else ""
            titles = (title, "test_" + re.sub(r"\s+", "_", title)) if name == "test" else (title,)
            yield _test(titles if title else (), block, file)
            continue
        yield from _tests(child, file)


def _title(call: Node) -> str:
    """The title as far as it stands in the source as it is."""
    first = next(iter(inside(call)), None)
    strings = [] if first is None else first.named_children if first.type == "chained_string" else [first]
    pieces = [piece for each in strings for piece in each.named_children]
    is_plain = {each.type for each in strings} <= {"string"} and {each.type for each in pieces} <= {
        "string_content"
    }
    return "".join(map(source, pieces)) if is_plain else ""


def _test(titles: tuple[str, ...], test: Node, file: TestFile) -> DeclaredTest:
    """A test's method or block, by its names; nothing is noted in a method without an end."""
    body = test.child_by_field_name("body")
    has_end = body is not None and body.type in _BODIES
    noting = around(file.root, file.text, spans([body])[0]) if has_end and body is not None else ()
    return declared_test(titles, _asked_by(test, file), noting)


def _asked_by(test: Node, file: TestFile) -> tuple[Alteration, ...]:
    """What every run of a test's method or block asks."""
    body = test.child_by_field_name("body")
    if body is None or any(each.type in _LEAVING for each in walk(test)):
        return ()
    return tuple(_statements(body, file))


def _statements(body: Node, file: TestFile) -> Iterator[Alteration]:
    """What each run of these statements asks."""
    calls = [body] if body.type == "call" else [each for each in body.named_children if each.type == "call"]
    for call in calls:
        own = file.functions.get(part(call, "method")) if part(call, "receiver") in {"", "self"} else None
        if own is not None:
            yield from file.called(call, own, partial(_asked_by, own, file))
        elif part(call, "method") == "each":
            yield from _loop(call, file)
        else:
            yield from assertion(call, file)
            block = call.child_by_field_name("block") if part(call, "method") in _CALLING else None
            yield from _asked_by(block, file) if block is not None else ()


def _loop(call: Node, file: TestFile) -> Iterator[Alteration]:
    """What a loop asks over rows that stand in the source."""
    over, block = call.child_by_field_name("receiver"), call.child_by_field_name("block")
    body = None if block is None else block.child_by_field_name("body")
    if over is not None and block is not None and body is not None:
        rows = [row for each in file.meant(over) for row in elements(each)]
        given = block.child_by_field_name("parameters")
        if given is not None and {each.type for each in given.named_children} <= _TARGETS:
            target = given.named_children[0] if len(given.named_children) == 1 else given
            passes = [((body.end_byte, body.end_byte), PASS)]
            yield from file.loop(Loop(call, over, target, rows), _statements(body, file), _FOR_ROW, passes)
