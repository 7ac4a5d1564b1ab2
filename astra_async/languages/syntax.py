"""Syntax trees of tree-sitter, as the readers of tests read them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from astra_async.languages.altering import COMPARED, FEWER, in_loop, rows_anew
from astra_async.languages.other_values import arranged, values_exchanged, varied
from astra_async.languages.rows import telling, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tree_sitter import Node, Parser

    from astra_async.languages.altering import Alteration
    from astra_async.languages.rows import Choosing, Written


_NAMES = frozenset({"identifier", "shorthand_property_identifier", "shorthand_property_identifier_pattern"})
_PLAIN_TYPES = frozenset({"string", "number", "boolean", "any", "unknown"})
# What may be asked until it holds, in a file with one of these.
_TRIED_AGAIN = re.compile(rb"\b(?:waitFor\w*|poll|retry)\s*\(|\beventually\b|\bcatch\b|\brescue\b")
_UNSEEN = re.compile("splat|spread")  # what a list takes over from another
_TEXTS = frozenset({"string", "template_string"})
# Names that something else than the expression decides, and where an expression declares its own.
_FREE = frozenset({"identifier", "constant", "instance_variable", "global_variable", "self", "this"})
_DECLARING = frozenset({"block_parameters", "lambda_parameters", "formal_parameters"})
_OF_LANGUAGES = frozenset({"Array", "Object", "String", "Number", "Math", "JSON", "Set", "Map", "Hash"})
_UNWRITTEN = frozenset({"pair", "bare_string", "bare_symbol"})  # which nothing can stand around
_ACTING = re.compile("call|new|await|yield|lambda|block|assignment|update")
_GIVEN_IN_ORDER = frozenset({"array_pattern", "destructured_parameter", "block_parameters"})


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


class Loop(NamedTuple):
    """A loop over what stands in the source, whose target is each of the rows once."""

    node: Node
    over: Node
    target: Node
    rows: Sequence[Node]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestFile:
    """A test file as it is read.

    `scopes` are the types of nodes within which a name is one variable, `functions` the file's own by name;
    `names` are all places of a name, in the order of the text.
    `bound` says what names may be given that rows or a call give: by the identity of the node that declares
    them; `entered` are functions that are being read with a call's arguments.
    """

    __test__ = False

    root: Node
    text: bytes
    scopes: frozenset[str]
    functions: Mapping[str, Node] = field(default_factory=dict)
    names: dict[bytes, list[Node]] = field(default_factory=dict)
    bound: dict[int, list[Node]] = field(default_factory=dict)
    entered: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        for each in walk(self.root):
            if each.type in _NAMES:
                self.names.setdefault(each.text or b"", []).append(each)

    def meant(self, name: Node) -> list[Node]:
        """What a variable is given, if this is its one use beside the place that declares it; else itself."""
        uses = self._uses(name)
        if len(uses) != 2 or uses[1] != name:  # noqa: PLR2004
            return [name]
        declared = uses[0].parent
        if _is_typed(declared):
            return [name]
        if declared is not None and declared.type in {"variable_declarator", "assignment"}:
            return [_given(declared) or name]
        return self.bound.get(uses[0].id, [name])

    def declared(self, name: Node) -> Node | None:
        """What a constant is given where it is declared, however often it is used."""
        uses = self._uses(name)
        at = uses[0].parent if uses else None
        is_constant = at is not None and source(at.parent).startswith("const ")
        return _given(at) if at is not None and is_constant and at.type == "variable_declarator" else None

    def written_out(self, node: Node, asked: Alteration) -> Iterator[Alteration]:
        """An expression with other constants, of which one that is fixed in the text alone is made.

        A name stands for what it is given once; a text in which something is filled in, for what is around.
        """
        uses = self._uses(node)
        at = uses[0].parent if uses else None
        is_once = not any(part(each.parent, "left") == source(node) for each in uses[1:])
        is_declared = at is not None and is_once and at.type in {"assignment", "variable_declarator"}
        value = (_given(at) if at is not None and is_declared else None) or node
        is_text = value.type in _TEXTS and any(each.is_named for each in value.children)
        if is_text or is_fixed(value):
            yield from varied(asked, value.text or b"", is_text=is_text)

    def _uses(self, name: Node) -> list[Node]:
        """Where a variable stands, in the order of the text: in the smallest scope that has it twice."""
        at = name.parent if name.type == "identifier" else None
        uses: list[Node] = []
        while at is not None and len(uses) < 2:  # noqa: PLR2004 - declared, and used
            if at.type in self.scopes or at.parent is None:
                uses = self._within(at, name)
            at = at.parent
        return uses

    def _within(self, scope: Node, name: Node) -> list[Node]:
        known = self.names[name.text or b""]
        begin, end = (bisect_left(known, at, key=_begin) for at in (scope.start_byte, scope.end_byte))
        return known[begin:end]

    def shapes(
        self, nodes: Sequence[Node], *, lists: frozenset[str], tables: frozenset[str], plain: frozenset[str]
    ) -> Iterator[Alteration]:
        """Lists and tables, by the types of their nodes, of another shape; of a list in a list the outer one.

        `plain` are the types of nodes of constants, which may change places.
        """
        for each in (meant for node in nodes for meant in self.meant(node)):
            inner = elements(each) if each.type in lists | tables else []
            if each.type in tables and all(part.type == "pair" for part in inner):
                yield from arranged(self.text, spans([each])[0], spans(inner), kinds={FEWER})
                inner = [value for part in inner if (value := part.child_by_field_name("value")) is not None]
                values = spans([value for value in inner if value.type in plain])
                yield from values_exchanged(self.text, spans([each])[0], values)
            elif each.type in lists:
                constants = [at for at, part in enumerate(inner) if _is_made_of(part, plain | lists | tables)]
                yield from arranged(self.text, spans([each])[0], spans(inner), constants)
                inner = inner if len(inner) == 1 else []
            yield from self.shapes(inner, lists=lists, tables=tables, plain=plain) if inner else ()

    def bind(self, target: Node | None, given: Sequence[Node]) -> None:
        """What stands in `target` may be each of the nodes `given`, or what these hold in its place."""
        if target is None or target.type == "keyword_parameter":
            return
        if _is_typed(target):
            return
        target = next(filter(None, map(target.child_by_field_name, ("pattern", "left", "name"))), target)
        inner = [each for each in target.named_children if "comment" not in each.type]
        if target.type in _NAMES:
            self.bound[target.id] = list(given)
        elif target.type in _GIVEN_IN_ORDER and len(inner) == 1 + sum(
            each.type == "," for each in target.children
        ):
            rows = [elements(each) for each in given]
            for number, each in enumerate(inner) if min(map(len, rows), default=0) >= len(inner) else ():
                self.bind(each, [row[number] for row in rows])
        elif target.type == "object_pattern" and all(each.type == "object" for each in given):
            for name in (each for each in inner if each.type in _NAMES):
                pairs = [each for row in given for each in elements(row) if each.type == "pair"]
                values = [value for key, value in map(elements, pairs) if source(key) == source(name)]
                self.bind(name, values if len(values) == len(given) else ())

    def called(
        self, call: Node, function: Node, read: Callable[[], Iterable[Alteration]]
    ) -> Iterator[Alteration]:
        """What a function of the file asks with what this call gives it: places outside of the function.

        What it compares is noted in it, for all that call it.
        """
        parameters, given = inside(function, "parameters"), inside(call)
        if function.id in self.entered or len(given) > len(parameters):
            return
        before = dict(self.bound)
        self.entered.add(function.id)
        for parameter, argument in zip(parameters, given, strict=False):
            self.bind(parameter, self.meant(argument))
        found = list(read())
        self.entered.remove(function.id)
        self.bound.clear()  # what another call does not give is not what this one gave
        self.bound.update(before)
        inner = range(function.start_byte, function.end_byte)
        is_noted = not _TRIED_AGAIN.search(self.text)
        yield from (each for each in found if (each.kind == COMPARED and is_noted) or each.begin not in inner)

    def loop(
        self, loop: Loop, asked: Iterable[Alteration], how: Choosing | None, passes: Sequence[Written] = ()
    ) -> Iterator[Alteration]:
        """What a loop asks; `asked` is read with what its rows give.

        Without a way (`how`) to choose by a row a constant of its body is another one for all of them.
        `passes` count how often its body runs.
        """
        node, over, target, rows = loop
        if len(rows) > 1:
            self.bind(target, rows)
            names = [each for each in walk(target) if len(self.bound.get(each.id, ())) == len(rows)]
            columns = [(each.text or b"", spans(self.bound[each.id])) for each in names]
            is_written = not any(each.type in _UNWRITTEN for each in rows)
            told = telling(self.text, columns, how) if how and is_written else None
            # A function's parameter is given other rows by another call.
            is_own = not self.entered or over.start_byte <= rows[0].start_byte < over.end_byte
            again = [written(row) if is_own and _is_repeatable(row) else b"" for row in rows]
            yield from rows_anew(self.text, spans([over])[0], again, how, passes) if how and passes else ()
            yield from in_loop(asked, spans([node])[0], spans(rows), told)


def _is_made_of(node: Node, types: frozenset[str]) -> bool:
    """Whether a value is made of nodes of these types alone, and of the pairs of tables."""
    if node.type == "pair":
        return all(_is_made_of(each, types) for each in node.named_children[1:])
    holds = node.type in {"array", "object", "hash", "argument_list"}
    return node.type in types and (not holds or all(_is_made_of(each, types) for each in node.named_children))


def is_fixed(value: Node) -> bool:
    """Whether an expression has no names but its own, and those of what the language has."""
    nodes = list(walk(value))
    own = {each.text for holder in nodes if holder.type in _DECLARING for each in walk(holder)}
    own |= {each.text for node in nodes if (each := node.child_by_field_name("parameter")) is not None}
    names = (each for each in nodes if each.type in _FREE and source(each) not in _OF_LANGUAGES)
    return all(each.text in own or _is_called(each) for each in names)


def _is_repeatable(row: Node) -> bool:
    """Whether nothing but its value can come of it that a row is made once more."""
    types = {each.type for each in walk(row)}
    is_plain = is_fixed(row) or not any(map(_ACTING.search, types))
    return is_plain and not any("function" in each for each in types)


def _is_called(name: Node) -> bool:
    """Whether it is the name of a method, of which the receiver stands before it."""
    call = name.parent
    is_method = call is not None and call.child_by_field_name("method") == name
    return is_method and call is not None and call.child_by_field_name("receiver") is not None


def _given(declared: Node) -> Node | None:
    return declared.child_by_field_name("value") or declared.child_by_field_name("right")


def _begin(node: Node) -> int:
    return node.start_byte


def _is_typed(declared: Node | None) -> bool:
    """Whether TypeScript's compiler may refuse another constant for a variable."""
    annotation = part(declared, "type")
    return annotation.startswith(":") and annotation.lstrip(": ") not in _PLAIN_TYPES


def once(found: Iterable[tuple[str, Node]]) -> dict[str, Node]:
    """Nodes by names that no two of them have."""
    known = list(found)
    counts = Counter(name for name, _ in known)
    return {name: node for name, node in known if counts[name] == 1}


def elements(node: Node) -> list[Node]:
    """What a list holds, the two of a pair; nothing of what is no such thing or holds what is not seen."""
    inner = [each for each in node.named_children if "comment" not in each.type]
    is_known = node.type in {"array", "pair", "hash", "object", "string_array", "symbol_array"}
    return inner if is_known and not any(_UNSEEN.search(each.type) for each in inner) else []


def spans(nodes: Iterable[Node]) -> list[tuple[int, int]]:
    """Where nodes begin and end, in bytes."""
    return [(each.start_byte, each.end_byte) for each in nodes]


def others_named(constant: Node, root: Node, name: str) -> tuple[bytes, ...]:
    """Other constants of what holds one (`Reason.INVALID`) that a file names, if there are two at least.

    `name` is the field of the constant's own name. Two numbers of an answer's own may be equal
    (`Limits.SEATS`, `Limits.DAYS`), hardly three.
    """
    holder, own = part(constant, "object"), part(constant, name)
    others = sorted(_named_constants(root, constant.type, name).get(holder, set()) - {own})
    return tuple(f"{holder}.{each}".encode() for each in others) if own.isupper() and len(others) > 1 else ()


@lru_cache(maxsize=1)
def _named_constants(root: Node, kind: str, name: str) -> dict[str, set[str]]:
    """The constants that a file names, by what holds them."""
    found: dict[str, set[str]] = {}
    for each in walk(root):
        if each.type == kind and part(each, name).isupper():
            found.setdefault(part(each, "object"), set()).add(part(each, name))
    return found
