"""Twins of Ruby's test files: rspec, minitest with its specs, Rails' test cases, test-unit.

Examples in shared groups fail wherever the groups are used, and keep their titles there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.integrity import ruby_falsehoods
from astra_async.integrity.expected_values import in_ruby
from astra_async.integrity.rewriting import DeclaredTest, comments, draw_manner
from astra_async.integrity.syntax import Insertions, inside, parse, part, place, source

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Iterable, Iterator

    from tree_sitter import Node

    from astra_async.integrity.expected_values import Constant
    from astra_async.integrity.rewriting import Titles

_EXAMPLES = frozenset(
    {"it", "specify", "example", "scenario", "fit", "fspecify", "fexample", "focus", "its", "test", "should"}
)
_GROUPS = frozenset({"describe", "context", "feature", "fdescribe", "fcontext"})
_MINITEST = re.compile(rb"\b(?:Minitest|ActiveSupport|ActionDispatch|IntegrationTest|Test::Unit|must_\w+)\b")


class Tests:
    """The tests of a file; see `rewriting.TestFile`."""

    def __init__(self, path: str, text: str) -> None:
        self._text = text
        self._data = text.encode(errors="replace")
        self._root = parse(self._data, "tree_sitter_ruby")
        self.left_out, self.tests, self.runner = dict[str, str](), list[DeclaredTest](), ""
        if self._root.has_error:
            self.left_out = {path: "cannot be parsed"}
        else:
            self.tests = list(_tests(self._root, ()))
            self.runner = "minitest" if _MINITEST.search(self._data) else "rspec"

    def twin(self, failing: Collection[DeclaredTest], rng: random.Random) -> str:
        """The file in which these tests fail."""
        pool, edits = ruby_falsehoods.constants(self._root), Insertions(self._data)
        for test in failing:
            manner = draw_manner(rng)
            fail = ruby_falsehoods.failing(test.node, pool, rng, manner, rspec=self.runner == "rspec")
            _make_fail(test.node, fail, edits, at_once=manner.at_once)
        return edits.text()

    def blurred(self, rng: random.Random) -> str:
        """The file with comments at its end, unless data stands there."""
        return self._text if "__END__" in self._text else self._text + comments(self._text, rng)

    @staticmethod
    def constants(test: DeclaredTest) -> Iterable[Constant]:
        """What its assertions compare to."""
        return in_ruby(test.node)


def _tests(node: Node, groups: Titles) -> Iterator[DeclaredTest]:
    """Methods by the name of a test, and blocks of examples, in their order."""
    for child in node.named_children:
        inner = groups
        if child.type == "method" and part(child, "name").startswith("test_"):
            titles = (*groups, part(child, "name"))
            yield DeclaredTest(node=child, titles=(titles,), key=place(child))
            continue
        if child.type in {"class", "module"}:
            inner = (*groups, part(child, "name"))
        elif child.type == "call":
            block, name = child.child_by_field_name("block"), part(child, "method")
            if block is not None and _is_example(child, name):
                yield _example(child, block, groups, name)
                continue
            if name in _GROUPS:
                inner = (*groups, _title(child) or "")
        yield from _tests(child, inner)


def _is_example(call: Node, name: str) -> bool:
    if name == "define_method":
        return any("test_" in source(first) for first in inside(call)[:1])
    return name in _EXAMPLES and call.child_by_field_name("receiver") is None


def _example(call: Node, block: Node, groups: Titles, name: str) -> DeclaredTest:
    title = None if name == "its" else _title(call)
    if title is None:
        doubt = "title is computed" if inside(call) else "has no title of its own"
        return DeclaredTest(node=block, titles=(), key=place(call), doubt=doubt)
    titles: tuple[Titles, ...] = ((*groups, title),)
    if name == "test":  # what Rails makes of it
        titles += ((*groups, "test_" + re.sub(r"\s+", "_", title)),)
    return DeclaredTest(node=block, titles=titles, key=place(call))


def _title(call: Node) -> str | None:
    """The title as far as it stands in the source as it is."""
    first = next(iter(inside(call)), None)
    if first is None:
        return None
    if first.type in {"constant", "scope_resolution"}:
        return source(first)
    if first.type == "simple_symbol":
        return source(first)[1:]
    strings = first.named_children if first.type == "chained_string" else [first]
    contents = [piece for each in strings for piece in each.named_children]
    is_plain = {each.type for each in strings} <= {"string"} and {each.type for each in contents} <= {
        "string_content"
    }
    return "".join(map(source, contents)) if is_plain else None


def _make_fail(node: Node, fail: str, edits: Insertions, *, at_once: bool) -> None:
    """Insert what makes a method or a block fail."""
    begin, end = _inside(node)
    if not at_once:
        before, after = " begin; begin; ", f"; end; ensure; {fail}; end "
    # An own `begin` for the body: a `rescue` of the method's or the block's would catch ours.
    elif node.type == "method" and node.children[-1].type != "end":  # room for one expression
        before, after = f"begin; {fail}; begin; ", "; end; end"
    else:
        before, after = f" {fail}; begin; ", "; end "
    edits.at(begin, before)
    edits.at(end, after)


def _inside(node: Node) -> tuple[int, int]:
    """Where the body begins, behind parameters, and where it ends, before what closes it."""
    body, closing = node.child_by_field_name("body"), node.children[-1]
    if node.type == "method":
        if closing.type != "end":
            return (closing.start_byte, closing.end_byte)
        return (closing.start_byte if body is None else body.start_byte, closing.start_byte)
    parameters = node.child_by_field_name("parameters")
    return ((parameters or node.children[0]).end_byte, closing.start_byte)
