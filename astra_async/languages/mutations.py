"""Find the places in test files that a mutation may change (docs/audit.md).

There are two mutation operators: replace an expected constant of an equality assertion by another constant,
or negate an assertion. Each language's `mutate.py` finds its tests and assertions in a tree-sitter tree and
describes them as `Assertion` values; this module converts them to places.

A place is used only if its assertion always runs. An assertion in a branch, in a loop over computed values or
in a callback may be skipped, so a correct solution could pass both forms of the test.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tree_sitter import Node, Parser


MOST_CHARACTERS = 400_000
_BLANKS = dict.fromkeys((0x200E, 0x200F), " ")  # direction marks, which Rust treats as white space
_PAIRS = {"(": ")", "[": "]", "{": "}"}


def masked(text: str, skipped: re.Pattern[str], *, nested: bool = False) -> str:
    """Replace comments matched by `skipped` with blanks, and strings with `_`; line ends are kept.

    With `nested`, a `/*` comment ends at its matching `*/`, because comments can be nested.
    """
    text, pieces, at = text.translate(_BLANKS), [], 0
    while found := skipped.search(text, at):
        end = _comment_end(text, found.start()) if nested and found[0].startswith("/*") else found.end()
        filler = " " if found[0][0] in "/#" else "_"
        pieces += [text[at : found.start()], re.sub(r"[^\n]", filler, text[found.start() : end])]
        at = end
    return "".join([*pieces, text[at:]])


def closing(code: str, at: int) -> int:
    """Return the position of the bracket that closes the one at `at`; the end of the text if unclosed."""
    opened, closed = code[at], _PAIRS[code[at]]
    depth = 0
    for found in re.compile(f"[{re.escape(opened + closed)}]").finditer(code, at):
        depth += 1 if found[0] == opened else -1
        if not depth:
            return found.start()
    return len(code)


def _comment_end(text: str, at: int) -> int:
    depth = 0
    for found in re.compile(r"/\*|\*/").finditer(text, at):
        depth += 1 if found[0] == "/*" else -1
        if not depth:
            return found.end()
    return len(text)


def at_top(code: str, begin: int, end: int, wanted: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield matches between two positions outside all brackets; a match may end with an opening bracket."""
    at = begin
    token = re.compile(rf"(?P<wanted__>{wanted.pattern})|[({{\[]", wanted.flags)
    while (found := token.search(code, at)) and found.start() < end:
        if found["wanted__"]:
            yield found
            at = closing(code, found.end() - 1) + 1 if found[0][-1] in _PAIRS else found.end()
        else:
            at = closing(code, found.start()) + 1


NEGATION = "negation"
_INTERPOLATION = re.compile("interpolation|substitution")
_WRITTEN_PREFIX_OR_SUFFIX = re.compile(rb"^[a-zA-Z]+(?=['\"])|(?<=\d)[a-zA-Z_]\w*$")


class Place(NamedTuple):
    """A byte range of a test file that a mutation replaces.

    For a negation, `kind` is NEGATION and `text` the replacement. Otherwise `kind` is the type of a constant
    and `text` its source.
    """

    path: str
    begin: int
    end: int
    kind: str
    text: str


class MutableTest(NamedTuple):
    """A test function; `title` is part of the name that a report gives it ("" if it is computed)."""

    title: str
    places: tuple[Place, ...]


# Finds the tests in all test files of one language; the argument maps paths to contents.
TestReader = Callable[[Mapping[str, bytes]], list[MutableTest]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """Node types of one language.

    `literals` maps a literal's node type to the type of its constant. Constants inside `opaque` nodes are
    inputs, not expected values. Assertions inside `conditional` nodes may be skipped. `declarations` maps a
    declaration's node type to its name and value fields.
    """

    module: str
    function: str = "language"
    literals: Mapping[str, str]
    names: frozenset[str]
    opaque: frozenset[str]
    conditional: frozenset[str]
    declarations: Mapping[str, tuple[str, str]]


class Assertion(NamedTuple):
    """An assertion: its node, the edit that negates it, and the operands of an equality."""

    node: Node
    negation: tuple[int, int, bytes] | None = None
    operands: tuple[Node, ...] = ()


@dataclass(slots=True)
class TestFile:
    """A parsed test file. Top-level declarations of `siblings` are visible in this file."""

    __test__ = False

    path: str
    source: bytes
    grammar: Grammar
    root: Node
    siblings: list[TestFile] = field(default_factory=list)

    @classmethod
    def parse(cls, path: str, source: bytes, grammar: Grammar) -> TestFile:
        """Parse a file; a syntax error leaves an error node in the tree."""
        return cls(path, source, grammar, _parser(grammar.module, grammar.function).parse(source).root_node)

    def declared(self, name: bytes, scope: Node) -> tuple[TestFile, Node] | None:
        """Return the value of a name that is declared exactly once in `scope`, else at the top of a file."""
        found = list(_values(self, name, scope))
        if not found:
            found = [each for file in (self, *self.siblings) for each in _values(file, name, file.root)]
        return found[0] if len(found) == 1 else None

    def constants(self, node: Node) -> Iterator[Place]:
        """Yield the literals of an expected value, except those in opaque nodes such as calls."""
        grammar = self.grammar
        if node.type in grammar.literals:
            if not any(_INTERPOLATION.search(each.type) for each in walk(node)):
                source = node.text or b""
                form = b"".join(_WRITTEN_PREFIX_OR_SUFFIX.findall(source)).decode()
                kind = grammar.literals[node.type] + form
                yield Place(self.path, node.start_byte, node.end_byte, kind, text_of(node))
        elif node.type not in grammar.opaque:
            for each in node.named_children:
                yield from self.constants(each)


@dataclass(frozen=True, slots=True)
class FoundTest:
    """A test function and its assertions; `rows` returns the table cells that a name refers to."""

    __test__ = False

    file: TestFile
    title: str
    body: Node
    assertions: tuple[Assertion, ...]
    rows: Callable[[Node], Sequence[tuple[TestFile, Node]]] = lambda _: ()
    always_runs: Callable[[Node], bool] = lambda _: False

    def mutable(self, asserted: Counter[str]) -> MutableTest:
        """Return the test with its distinct places. `asserted` counts the operands of the file by text."""
        sure = [each for each in self.assertions if not self._may_be_skipped(each.node)]
        operands = [node for each in sure for node in each.operands]
        places = dict.fromkeys(
            Place(self.file.path, begin, end, NEGATION, text.decode(errors="replace"))
            for begin, end, text in (each.negation for each in sure if each.negation)
        )
        for file, node in (found for operand in operands for found in self._values_of(operand, asserted)):
            places |= dict.fromkeys(file.constants(node))
        return MutableTest(self.title, tuple(places))

    def _may_be_skipped(self, node: Node) -> bool:
        above = node.parent
        while above is not None and above.id != self.body.id:
            if above.type in self.file.grammar.conditional and not self.always_runs(above):
                return True
            above = above.parent
        return False

    def _values_of(self, operand: Node, asserted: Counter[str]) -> Sequence[tuple[TestFile, Node]]:
        """Return the expressions that an operand refers to: itself, its declared value, or table cells.

        A declared value that is read outside assertions is also an input, so the value is not changed.
        """
        if rows := self.rows(operand):
            return rows
        if operand.type not in self.file.grammar.names:
            return [(self.file, operand)]
        found = self.file.declared(operand.text or b"", self.body)
        if found is None or found[0] is not self.file:
            return ()
        if self.body.start_byte <= found[1].start_byte < self.body.end_byte:
            scope, asserted = (
                self.body,
                Counter(text_of(node) for each in self.assertions for node in each.operands),
            )
        else:
            scope = self.file.root
        names = self.file.grammar.names
        uses = sum(each.type in names and each.text == operand.text for each in walk(scope))
        return [found] if uses == 1 + asserted[text_of(operand)] else ()


def read_files(
    files: Mapping[str, bytes],
    grammar: Callable[[str], Grammar],
    find: Callable[[TestFile], Iterable[FoundTest]],
) -> list[MutableTest]:
    """Find the tests of all files. Files of one folder share their top-level declarations."""
    parsed = [TestFile.parse(path, source, grammar(path)) for path, source in sorted(files.items())]
    for file in parsed:
        folder = file.path.rpartition("/")[0]
        file.siblings = [
            each for each in parsed if each is not file and each.path.rpartition("/")[0] == folder
        ]
    tests = []
    for file in parsed:
        found = list(find(file))
        asserted = Counter(
            text_of(node) for test in found for each in test.assertions for node in each.operands
        )
        tests += [test.mutable(asserted) for test in found]
    return tests


def walk(root: Node) -> Iterator[Node]:
    """Yield a node and all its descendants, in source order."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children)


def text_of(node: Node | None) -> str:
    """Return the source of a node; "" for None."""
    return "" if node is None else (node.text or b"").decode(errors="replace")


def part(node: Node | None, name: str) -> Node | None:
    """Return a field of a node, or None."""
    return None if node is None else node.child_by_field_name(name)


def arguments(node: Node | None, name: str = "arguments") -> tuple[Node, ...]:
    """Return the arguments of a call, without comments."""
    held = part(node, name)
    return tuple(each for each in held.named_children if "comment" not in each.type) if held else ()


def renamed(node: Node | None, names: Mapping[str, str], prefix: str = "") -> tuple[int, int, bytes] | None:
    """Return the edit that replaces an assertion's name with its opposite, if it has one."""
    other = names.get(text_of(node))
    return (
        None if node is None or other is None else (node.start_byte, node.end_byte, (prefix + other).encode())
    )


def wrapped(node: Node, form: str) -> tuple[int, int, bytes]:
    """Return the edit that negates an expression by a pattern such as `not ({})`."""
    return node.start_byte, node.end_byte, form.replace("{}", text_of(node)).encode()


def both_ways(names: Mapping[str, str]) -> dict[str, str]:
    """Return a table of opposites that works in both directions."""
    return {other: name for name, other in names.items()} | dict(names)


def _values(file: TestFile, name: bytes, scope: Node) -> Iterator[tuple[TestFile, Node]]:
    """Yield the values declared for a name in `scope`; for a file, only top-level declarations count."""
    is_top = scope.id == file.root.id
    for node in walk(scope):
        fields = file.grammar.declarations.get(node.type)
        if fields is None or (is_top and _depth(node) > _TOP_LEVEL):
            continue
        target, value = (_only(part(node, each)) for each in fields)
        if target is not None and value is not None and target.text == name:
            yield file, value


_TOP_LEVEL = 5  # a declaration in a class, or in a group of declarations


def _depth(node: Node) -> int:
    depth = 0
    while node.parent is not None:
        node, depth = node.parent, depth + 1
    return depth


def _only(node: Node | None) -> Node | None:
    """Unwrap a list of one expression."""
    is_list = node is not None and node.type == "expression_list"
    return node.named_children[0] if node is not None and is_list and node.named_child_count == 1 else node


@cache
def _parser(module: str, function: str) -> Parser:
    from tree_sitter import Language, Parser

    return Parser(Language(getattr(import_module(module), function)()))
