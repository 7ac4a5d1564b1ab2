"""Values that Java's tests expect: literals, lists of them, objects made of them. See `languages.altering`.

An answer's own class may call things equal that differ.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from astra_async.languages.altering import MADE, Alteration, constant
from astra_async.languages.other_values import of_other_parts
from astra_async.languages.syntax import TestFile, inside, others_named, part, source, spans, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

LITERALS = frozenset(
    {"string_literal", "decimal_integer_literal", "decimal_floating_point_literal", "true", "false"}
)
ROWS = frozenset({"List.of", "Arrays.asList"})
_LISTS = ROWS | {"Set.of", "Map.of"}
_MOST = 8  # other objects that may stand in the place of one
# Classes whose equality is Java's own.
_BUILT_IN = frozenset({
    "BigDecimal", "BigInteger", "Integer", "Long", "Double", "String", "URI", "LocalDate", "LocalTime",
    "LocalDateTime", "Instant", "Duration", "Period", "Year", "YearMonth", "Optional", "OptionalInt",
})  # fmt: skip


def constants(nodes: list[Node], file: TestFile, asked: str) -> Iterator[Alteration]:
    """The constants of which these values are made."""
    for node in (meant for each in nodes for meant in file.meant(each)):
        if node.type in LITERALS:
            yield from constant(file.text, node.start_byte, node.end_byte, asked)
        elif node.type == "binary_expression" and not any(each.type == "identifier" for each in walk(node)):
            sides = [node.child_by_field_name("left"), node.child_by_field_name("right")]
            yield from constants([each for each in sides if each is not None], file, asked)
        elif part(node, "type") in _BUILT_IN or (
            node.type == "method_invocation" and f"{part(node, 'object')}.{part(node, 'name')}" in _LISTS
        ):
            yield from constants(inside(node), file, asked)
        elif node.type == "field_access" and (others := _named_alike(node, file)):
            yield Alteration(node.start_byte, node.end_byte, "named", others)
        elif node.type == "object_creation_expression":
            alone = list(constants(inside(node), file, asked)) if len(inside(node)) == 1 else []
            yield from alone or _others_made(node, file)
            place = Alteration(node.start_byte, node.end_byte, asked=asked)
            yield from of_other_parts(file.text, place, spans(inside(node)))


def _named_alike(constant: Node, file: TestFile) -> tuple[bytes, ...]:
    """Other constants of the same class (`Reason.INVALID`) that the file names."""
    is_class = part(constant, "object").rpartition(".")[2][:1].isupper()
    return others_named(constant, file.root, "field") if is_class else ()


def _others_made(made: Node, file: TestFile) -> Iterator[Alteration]:
    """Another object of the class that the file makes, if nothing in it is the same.

    An answer's equality may be that of a number; what a variable holds may not be known there.
    """
    given = [source(each) for each in inside(made)]
    known = _objects(file.root).get(part(made, "type"), ())
    others = (
        text for text, parts in known if len(parts) == len(given) and not any(map(str.__eq__, parts, given))
    )
    if some := tuple(islice(others, _MOST)):
        yield Alteration(made.start_byte, made.end_byte, MADE, some)


@lru_cache(maxsize=1)
def _objects(root: Node) -> dict[str, list[tuple[bytes, list[str]]]]:
    """The objects that a file makes without its variables, by their class: their text and their parts."""
    found: dict[str, list[tuple[bytes, list[str]]]] = {}
    for each in walk(root):
        is_made = each.type == "object_creation_expression" and inside(each)
        if is_made and not any(_is_variable(inner) for inner in walk(each)):
            parts = [source(value) for value in inside(each)]
            found.setdefault(part(each, "type"), []).append((source(each).encode(), parts))
    return found


def _is_variable(node: Node) -> bool:
    is_name = node.parent is not None and node == node.parent.child_by_field_name("name")
    return node.type == "identifier" and source(node)[:1].islower() and not is_name
