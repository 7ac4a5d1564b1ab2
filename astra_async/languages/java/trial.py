"""Java's tests for trials: JUnit 3 to 5 and TestNG, with AssertJ and Hamcrest. See `languages.altering`.

Constants are literals, and lists of them: an answer's own class may call things equal that differ.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from astra_async.languages.altering import Alteration, DeclaredTest, both_ways, constant, renamed
from astra_async.languages.syntax import inside, meant, parse, part, source, walk, word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

_TESTS = frozenset({"Test", "RepeatedTest", "ParameterizedTest", "Theory"})
_LITERALS = frozenset(
    {"string_literal", "decimal_integer_literal", "decimal_floating_point_literal", "true", "false"}
)
_LISTS = frozenset({"List.of", "Set.of", "Arrays.asList", "Map.of"})
_OPPOSITES = both_ways(
    {"assertTrue": "assertFalse", "assertNull": "assertNotNull", "assertEquals": "assertNotEquals"}
)
# AssertJ's, by what they are when turned; constants are read of the first two.
_FLUENT = both_ways(
    {"isEqualTo": "isNotEqualTo", "isTrue": "isFalse", "isNull": "isNotNull", "isEmpty": "isNotEmpty"}
)
_RAISED = (
    "IllegalArgumentException",
    "IllegalStateException",
    "NullPointerException",
    "UnsupportedOperationException",
)
_CONSTANT = re.compile(r"((?:[A-Z]\w*\.)+)[A-Z][A-Z0-9_]+")
_FACTORIES = frozenset({"of", "from", "valueOf"})
_SCOPES = frozenset({"method_declaration"})
_LEAVING = frozenset({"return_statement"})
# By what a file imports, the class of its framework's assertions: JUnit 5, TestNG, JUnit 4 and 3.
_ASSERTIONS = {
    "org.junit.jupiter": b"org.junit.jupiter.api.Assertions.",
    "org.testng": b"org.testng.Assert.",
    "org.junit": b"org.junit.Assert.",
    "junit.framework": b"junit.framework.Assert.",
}


def read_tests(_: str, text: bytes) -> tuple[DeclaredTest, ...]:
    """The tests of a file."""
    root = parse(text, "tree_sitter_java")
    if root.has_error:
        return ()
    imports = " ".join(source(each) for each in root.named_children if each.type == "import_declaration")
    methods = (each for each in walk(root) if each.type == "method_declaration")
    return tuple(test for each in methods if (test := _test(each, text, imports)) is not None)


def _test(method: Node, text: bytes, imports: str) -> DeclaredTest | None:
    modifiers = next((each for each in method.children if each.type == "modifiers"), None)
    annotations = (
        [each for each in modifiers.children if "annotation" in each.type] if modifiers is not None else []
    )
    short = {part(each, "name").rpartition(".")[2] for each in annotations}
    name, body = part(method, "name"), method.child_by_field_name("body")
    if body is None or not (short & _TESTS or (name.startswith("test") and "junit.framework" in imports)):
        return None
    shown = [
        source(each)[1:-1]
        for note in annotations
        if part(note, "name") == "DisplayName"
        for each in inside(note)
    ]
    once = short & _TESTS <= {"Test"} and not inside(method, "parameters")
    found = () if any(each.type in _LEAVING for each in walk(body)) else tuple(_asked_by(body, text, imports))
    return DeclaredTest((name, f"{name}()", *shown) if once else (), found)


def _asked_by(body: Node, text: bytes, imports: str) -> Iterator[Alteration]:
    """What every run of a test's body asks."""
    for each in body.named_children:
        inner = each.named_children[:1] if each.type == "expression_statement" else []
        if inner and inner[0].type == "method_invocation":
            yield from _assertion(inner[0], text, imports)


def _assertion(call: Node, text: bytes, imports: str) -> Iterator[Alteration]:
    name, given, at = part(call, "name"), inside(call), call.child_by_field_name("name")
    holder = part(call, "object")
    found: list[Alteration] = []
    opposites = _OPPOSITES
    if name == "assertEquals":
        asked = word(given[1]) if len(given) > 1 else ""
        found = list(_constants(given[:2], text, asked))
        if not found and "org.testng" not in imports:  # what is expected comes first
            found = [each for made in given[:1] for each in _constants(_made_of(made), text, asked)]
    elif name == "assertThrows" and given:
        raised = source(given[0]).removesuffix(".class")
        others = tuple(each.encode() for each in _RAISED if each != raised)
        begin = given[0].start_byte
        found = [Alteration(begin, begin + len(raised), "raised", others)] if raised in _RAISED else []
    elif holder.startswith("assertThat("):
        opposites = _FLUENT
        if name in {"isEqualTo", "hasSize"}:
            found = list(_constants(given[:1], text, word(call.child_by_field_name("object"))))
    elif name == "assertThat" and len(given) > 1 and part(given[1], "name") in {"is", "equalTo", "hasSize"}:
        found = list(_constants(inside(given[1]), text, word(given[0])))
    yield from found
    if "junit.framework" in imports and name == "assertEquals":
        return  # JUnit 3 has no opposite of it
    for each in renamed(text, at.start_byte, at.end_byte, opposites) if at is not None else ():
        # An assertion can be called by its name alone where it is imported; JUnit 3's are inherited.
        is_static = re.search(rf"import static [\w.]+\.(?:\*|{opposites[name]});", imports)
        known = opposites is _FLUENT or holder or is_static or "junit.framework" in imports
        # Where a framework's assertions are that the file does not import.
        far = next((each for package, each in _ASSERTIONS.items() if package in imports), b"")
        yield replace(each, others=((b"" if known else far) + each.others[0],))


def _made_of(call: Node) -> list[Node]:
    """What a factory (`Price.of(180)`) is given."""
    is_factory = call.type == "method_invocation" and part(call, "name") in _FACTORIES
    given = inside(call) if is_factory and part(call, "object")[:1].isupper() else []
    return given if len(given) == 1 else []


def _constants(nodes: list[Node], text: bytes, asked: str) -> Iterator[Alteration]:
    for node in (meant(each, _SCOPES) for each in nodes):
        if node.type in _LITERALS:
            yield from constant(text, node.start_byte, node.end_byte, asked)
        elif node.type == "binary_expression":
            sides = [node.child_by_field_name("left"), node.child_by_field_name("right")]
            yield from _constants([each for each in sides if each is not None], text, asked)
        elif node.type == "object_creation_expression" or (
            node.type == "method_invocation" and f"{part(node, 'object')}.{part(node, 'name')}" in _LISTS
        ):
            yield from _constants(inside(node), text, asked)
        elif node.type == "field_access" and (found := _CONSTANT.fullmatch(source(node))):
            yield Alteration(
                node.start_byte + len(found[1]), node.end_byte, kind=f"name {found[1]}", asked=asked
            )
