"""Twins of Ruby's test files: rspec, minitest with its specs, Rails' test cases, test-unit.

Examples in shared groups fail wherever the groups are used, and keep their titles there.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from tree_sitter import Language, Parser

from astra_async.integrity import ruby_falsehoods
from astra_async.integrity.rewriting import Rewritten, comments, draw_manner

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from tree_sitter import Node

    from astra_async.integrity.rewriting import Choice, Titles

_EXAMPLES = frozenset(
    {"it", "specify", "example", "scenario", "fit", "fspecify", "fexample", "focus", "its", "test", "should"}
)
_GROUPS = frozenset({"describe", "context", "feature", "fdescribe", "fcontext"})
_MINITEST = re.compile(rb"\b(?:Minitest|ActiveSupport|ActionDispatch|IntegrationTest|Test::Unit|must_\w+)\b")


class _Test(NamedTuple):
    titles: tuple[Titles, ...]  # those a report may give it; none if no source shows them
    why: str
    node: Node  # the method, or the block
    line: int


def rewrite(path: str, text: str, rng: random.Random, only: Choice = None) -> Rewritten:  # noqa: ARG001 - as in each language
    """The twin of a test file; see `rewriting.Rewriter`."""
    source = text.encode()
    root = _parser().parse(source).root_node
    if root.has_error:
        return Rewritten(text=text, left_out={"the file": "cannot be parsed"})
    tests = list(_tests(root, ()))
    runner = "minitest" if _MINITEST.search(source) else "rspec"
    pool = ruby_falsehoods.constants(root)
    pieces: list[tuple[int, str]] = []
    certain: list[Titles] = []
    for test in tests:
        if only is None or any(only(titles) for titles in test.titles):
            manner = draw_manner(rng)
            failing = ruby_falsehoods.failing(test.node, pool, rng, manner, rspec=runner == "rspec")
            pieces += _edits(test.node, failing, at_once=manner.at_once)
            certain += test.titles
    return Rewritten(
        text=_edited(source, pieces),
        runner=runner,
        certain=tuple(certain),
        left_out={f"line {test.line}": test.why for test in tests if test.why},
    )


def blurred(path: str, text: str, rng: random.Random) -> str:  # noqa: ARG001 - as in each language
    """The test file with comments at its end, unless data stands there."""
    if "__END__" in text:
        return text
    begin = "" if text.endswith("\n") or not text else "\n"
    return begin.join((text, "".join(f"{line}\n" for line in comments("#", rng))))


def tests_of(source: bytes) -> Iterator[tuple[tuple[Titles, ...], Node]]:
    """The tests whose names the source shows, each with its method or block."""
    root = _parser().parse(source).root_node
    for test in () if root.has_error else _tests(root, ()):
        if test.titles:
            yield test.titles, test.node


@cache
def _parser() -> Parser:
    import tree_sitter_ruby

    return Parser(Language(tree_sitter_ruby.language()))


def _tests(node: Node, groups: Titles) -> Iterator[_Test]:
    """Methods by the name of a test, and blocks of examples, in their order."""
    for child in node.named_children:
        inner = groups
        if child.type == "method" and _name(child).startswith("test_"):
            yield _Test(((*groups, _name(child)),), "", child, child.start_point.row + 1)
            continue
        if child.type in {"class", "module"}:
            inner = (*groups, _name(child))
        elif child.type == "call":
            block, name = child.child_by_field_name("block"), _method(child)
            if block is not None and _is_example(child, name):
                yield _example(child, block, groups, name)
                continue
            if name in _GROUPS:
                inner = (*groups, _title(child) or "")
        yield from _tests(child, inner)


def _is_example(call: Node, name: str) -> bool:
    if name == "define_method":
        first = _first_argument(call)
        return first is not None and b"test_" in (first.text or b"")
    return name in _EXAMPLES and call.child_by_field_name("receiver") is None


def _example(call: Node, block: Node, groups: Titles, name: str) -> _Test:
    title = None if name == "its" else _title(call)
    if title is None:
        why = "title is computed" if _first_argument(call) is not None else "has no title of its own"
        return _Test((), why, block, call.start_point.row + 1)
    titles: tuple[Titles, ...] = ((*groups, title),)
    if name == "test":  # what Rails makes of it
        titles += ((*groups, "test_" + re.sub(r"\s+", "_", title)),)
    return _Test(titles, "", block, call.start_point.row + 1)


def _name(node: Node) -> str:
    return _text(node.child_by_field_name("name"))


def _method(call: Node) -> str:
    return _text(call.child_by_field_name("method"))


def _text(node: Node | None) -> str:
    return "" if node is None or node.text is None else node.text.decode()


def _first_argument(call: Node) -> Node | None:
    arguments = call.child_by_field_name("arguments")
    return arguments.named_children[0] if arguments is not None and arguments.named_children else None


def _title(call: Node) -> str | None:
    """The title as far as it stands in the source as it is."""
    first = _first_argument(call)
    if first is None:
        return None
    if first.type in {"constant", "scope_resolution"}:
        return _text(first)
    if first.type == "simple_symbol":
        return _text(first)[1:]
    parts = first.named_children if first.type == "chained_string" else [first]
    if any(part.type != "string" for part in parts):
        return None
    contents = [piece for part in parts for piece in part.named_children]
    return (
        None if any(piece.type != "string_content" for piece in contents) else "".join(map(_text, contents))
    )


def _edits(node: Node, failing: str, *, at_once: bool) -> list[tuple[int, str]]:
    """What is inserted, and where, so that a method or a block fails."""
    begin, end = _inside(node)
    if not at_once:
        return [(begin, " begin; begin; "), (end, f"; end; ensure; {failing}; end ")]
    # An own `begin` for the body: a `rescue` of the method's or the block's would catch ours.
    failing = f"{failing}; begin; "
    if node.type == "method" and node.children[-1].type != "end":  # room for one expression
        return [(begin, f"begin; {failing}"), (end, "; end; end")]
    return [(begin, f" {failing}"), (end, "; end ")]


def _inside(node: Node) -> tuple[int, int]:
    """Where the body begins, behind parameters, and where it ends, before what closes it."""
    body, closing = node.child_by_field_name("body"), node.children[-1]
    if node.type == "method":
        if closing.type != "end":
            closing_at = closing.end_byte
            return (closing.start_byte, closing_at)
        return (closing.start_byte if body is None else body.start_byte, closing.start_byte)
    parameters = node.child_by_field_name("parameters")
    return ((parameters or node.children[0]).end_byte, closing.start_byte)


def _edited(source: bytes, pieces: list[tuple[int, str]]) -> str:
    done, out = 0, []
    for at, inserted in sorted(pieces, key=lambda piece: piece[0]):
        out += [source[done:at], inserted.encode()]
        done = at
    return b"".join([*out, source[done:]]).decode()
