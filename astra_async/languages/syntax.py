"""Syntax trees of tree-sitter, as the readers of tests read them."""

from __future__ import annotations

import re
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


def meant(name: Node, scopes: frozenset[str]) -> Node:
    """What a variable was given where it is declared, if this is its one use in the function; else itself.

    `scopes` are the types of nodes within which a name is one variable.
    """
    at = name.parent if name.type == "identifier" else None
    while at is not None and at.type not in scopes:
        at = at.parent
    if at is None:
        return name
    uses = [each for each in walk(at) if each.type == name.type and each.text == name.text]
    declared = uses[0].parent if len(uses) == 2 and uses[1] == name else None  # noqa: PLR2004 - given, and used
    given = None
    if declared is not None and declared.type in {"variable_declarator", "assignment"}:
        given = declared.child_by_field_name("value") or declared.child_by_field_name("right")
    return given or name


def source(node: Node | None) -> str:
    """The node's text; nothing for no node."""
    return "" if node is None else (node.text or b"").decode(errors="replace")


def word(node: Node | None) -> str:
    """What an expression gives, in the word that its text ends with."""
    return str((re.findall(r"\w+", source(node)) or [""])[-1])


def part(node: Node | None, name: str) -> str:
    """The text of a field of the node; nothing for no node or no such field."""
    return "" if node is None else source(node.child_by_field_name(name))


def inside(node: Node | None, name: str = "arguments") -> list[Node]:
    """What a field of the node holds, without comments; nothing where the node has no such field."""
    held = None if node is None else node.child_by_field_name(name)
    return [] if held is None else [each for each in held.named_children if "comment" not in each.type]
