"""Syntax trees of tree-sitter, as the rewriters for JavaScript and Java read them; edits by position."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node, Parser


@cache
def _parser(module: str, function: str) -> Parser:
    from tree_sitter import Language, Parser

    return Parser(Language(getattr(import_module(module), function)()))


def parse(text: bytes, module: str, function: str = "language") -> Node:
    """The root of a text's tree, by the grammar that `function` of the package `module` gives."""
    return _parser(module, function).parse(text).root_node


def walk(root: Node) -> Iterator[Node]:
    """The node and all nodes in it, in the order of the text."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children)


def above(node: Node) -> Iterator[Node]:
    """The nodes that hold the node, innermost first."""
    at = node.parent
    while at is not None:
        yield at
        at = at.parent


def source(node: Node | None) -> str:
    """The node's text; nothing for no node."""
    return "" if node is None else (node.text or b"").decode(errors="replace")


def part(node: Node | None, name: str) -> str:
    """The text of a field of the node; nothing for no node or no such field."""
    return "" if node is None else source(node.child_by_field_name(name))


def inside(node: Node | None, name: str = "arguments") -> list[Node]:
    """What a field of the node holds, without comments; nothing where the node has no such field."""
    held = None if node is None else node.child_by_field_name(name)
    return [] if held is None else [each for each in held.named_children if "comment" not in each.type]


def place(node: Node) -> str:
    """Where the node stands, for people."""
    return f"line {node.start_point[0] + 1}"


class Insertions:
    """Texts to put into another, which is otherwise left as it is."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._at: list[tuple[int, int, bytes]] = []

    def around(self, node: Node, before: str, after: str) -> None:
        """Put a text before a node and another behind it; what is put around later stands further inside."""
        order = len(self._at)
        self._at += [(node.start_byte, order, before.encode()), (node.end_byte, -order, after.encode())]

    def within(self, node: Node, first: str, last: str = "") -> None:
        """Put texts right behind a node's first character, a bracket, and right before its last."""
        order = len(self._at)
        self._at += [(node.start_byte + 1, order, first.encode()), (node.end_byte - 1, -order, last.encode())]

    def at(self, position: int, text: str) -> None:
        """Put a text at a byte position."""
        self._at.append((position, len(self._at), text.encode()))

    def text(self) -> str:
        """The whole text with all that was put into it."""
        pieces, done = [], 0
        for position, _, piece in sorted(self._at):
            pieces += [self._text[done:position], piece]
            done = position
        return b"".join([*pieces, self._text[done:]]).decode(errors="replace")
