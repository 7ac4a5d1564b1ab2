"""Ruby's tests for trials: rspec, minitest with its specs, Rails' test cases. See `languages.altering`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.languages.altering import (
    Alteration,
    DeclaredTest,
    TestFile,
    both_ways,
    constant,
    listed,
    renamed,
    within,
)
from astra_async.languages.syntax import inside, meant, parse, part, source, walk, word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

_EXAMPLES = frozenset({"it", "specify", "example", "scenario", "fit", "its", "test", "should"})
_EXACT = frozenset({"eq", "eql", "be", "equal", "have_attributes", "have_http_status"})
# Matchers of capybara, which wait until they hold.
_WAITING = (
    "have_content", "have_text", "have_css", "have_selector", "have_link", "have_button", "have_field",
)  # fmt: skip
_OPPOSITES = both_ways({
    "assert": "refute", "assert_equal": "refute_equal", "assert_nil": "refute_nil",
    "assert_includes": "refute_includes", "assert_empty": "refute_empty", "assert_match": "refute_match",
    "must_equal": "wont_equal", "must_be_nil": "wont_be_nil", "must_include": "wont_include",
    "must_be_empty": "wont_be_empty", "to": "not_to",
}) | {"to_not": "to"}  # fmt: skip
_SCOPES = frozenset({"method", "block", "do_block"})
_NO_VALUES = frozenset({"pair", "splat_argument", "hash_splat_argument", "block_argument"})
_LEAVING = frozenset({"return", "next", "break", "redo", "rescue", "rescue_modifier"})
_MINITEST = re.compile(rb"\b(?:Minitest|ActiveSupport|ActionDispatch|IntegrationTest|Test::Unit|must_\w+)\b")


def read_tests(_: str, text: bytes) -> TestFile:
    """The tests of a file."""
    root = parse(text, "tree_sitter_ruby")
    if root.has_error:
        return TestFile(())
    return TestFile(tuple(_tests(root, text)), "minitest" if _MINITEST.search(text) else "rspec")


def _tests(node: Node, text: bytes) -> Iterator[DeclaredTest]:
    """Methods by the name of a test, and blocks of examples, in their order."""
    for child in node.named_children:
        name = part(child, "method") if child.type == "call" else part(child, "name")
        if child.type == "method" and name.startswith("test_"):
            yield DeclaredTest((name,), _asked_by(child, text))
            continue
        block = child.child_by_field_name("block") if child.type == "call" else None
        if block is not None and name in _EXAMPLES and child.child_by_field_name("receiver") is None:
            title = _title(child) if name != "its" else ""
            titles = (title, "test_" + re.sub(r"\s+", "_", title)) if name == "test" else (title,)
            yield DeclaredTest(titles if title else (), _asked_by(block, text))
            continue
        yield from _tests(child, text)


def _title(call: Node) -> str:
    """The title as far as it stands in the source as it is."""
    first = next(iter(inside(call)), None)
    strings = [] if first is None else first.named_children if first.type == "chained_string" else [first]
    pieces = [piece for each in strings for piece in each.named_children]
    is_plain = {each.type for each in strings} <= {"string"} and {each.type for each in pieces} <= {
        "string_content"
    }
    return "".join(map(source, pieces)) if is_plain else ""


def _asked_by(test: Node, text: bytes) -> tuple[Alteration, ...]:
    """What every run of a test's method or block asks."""
    body = test.child_by_field_name("body")
    if body is None or any(each.type in _LEAVING for each in walk(test)):
        return ()
    calls = [body] if body.type == "call" else [each for each in body.named_children if each.type == "call"]
    return tuple(found for call in calls for found in _assertion(call, text))


def _assertion(call: Node, text: bytes) -> Iterator[Alteration]:
    name, given, at = part(call, "method"), inside(call), call.child_by_field_name("method")
    receiver = call.child_by_field_name("receiver")
    found: list[Alteration] = []
    if name in {"to", "not_to", "to_not"}:
        matcher = part(given[0], "method") or source(given[0]) if given else ""
        if matcher.startswith(_WAITING):
            return
        if name == "to" and matcher in _EXACT:
            found = list(_constants(inside(given[0]), text, word(receiver)))
        elif name == "to" and matcher == "include":
            found = [each for at in inside(given[0])[:1] for each in within(text, at.start_byte, at.end_byte)]
        if name == "to" and not found and given and given[0].type == "call":
            found = list(_listed(inside(given[0])[:1], text))
    elif name == "must_equal" or (name == "assert_equal" and receiver is None):
        found = list(_constants(given[:1], text, word(receiver or (given[1] if len(given) > 1 else None))))
        found = found or list(_listed(given[:1], text))
    elif receiver is not None and not name.startswith(("must_", "wont_")):
        return
    yield from found
    if at is not None:
        yield from renamed(text, at.start_byte, at.end_byte, _OPPOSITES)


def _listed(nodes: list[Node], text: bytes) -> Iterator[Alteration]:
    """A value that no constant is, as a list."""
    for node in nodes:
        if node.type not in _NO_VALUES:
            yield listed(text, node.start_byte, node.end_byte)


def _constants(nodes: list[Node], text: bytes, asked: str) -> Iterator[Alteration]:
    """The constants of which a value is made, if it is made of constants, lists and hashes of them."""
    for node in (meant(each, _SCOPES) for each in nodes):
        if node.type in {"string", "integer", "float", "true", "false"}:
            yield from constant(text, node.start_byte, node.end_byte, asked)
        elif node.type in {"array", "hash"}:
            yield from _constants(node.named_children, text, asked)
        elif node.type == "pair":
            value = node.child_by_field_name("value")
            yield from _constants([value] if value is not None else [], text, part(node, "key").strip("\"':"))
