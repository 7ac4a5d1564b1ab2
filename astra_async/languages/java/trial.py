"""Java's tests for trials: JUnit 3 to 5 and TestNG, with AssertJ, Hamcrest, MockMvc and REST Assured.

See `languages.altering`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from astra_async.languages.altering import (
    RAISED,
    Alteration,
    DeclaredTest,
    both_ways,
    declared_test,
    far,
    held_by_none,
    renamed,
    unequal,
)
from astra_async.languages.java.noting import around, noting
from astra_async.languages.java.values import LITERALS, ROWS, constants
from astra_async.languages.other_values import arranged, of_other_parts
from astra_async.languages.syntax import Loop, TestFile, inside, once, parse, part, source, spans, walk, word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

_TESTS = frozenset({"Test", "RepeatedTest", "ParameterizedTest", "Theory"})
# An expression that is expected, as a list of it.
_AS_LIST = (b"java.util.Collections.singletonList(%b)", b"java.util.Arrays.asList(%b, 0)")
_DELTA = 3  # the argument of `assertEquals` that says by how much two numbers may differ
_OPPOSITES = both_ways(
    {"assertTrue": "assertFalse", "assertNull": "assertNotNull", "assertEquals": "assertNotEquals"}
)
# AssertJ's, by what they are when turned.
_FLUENT = both_ways(
    {"isEqualTo": "isNotEqualTo", "isTrue": "isFalse", "isNull": "isNotNull", "isEmpty": "isNotEmpty"}
    | {"isPresent": "isNotPresent", "isZero": "isNotZero", "isInstanceOf": "isNotInstanceOf"}
    | {"contains": "doesNotContain", "startsWith": "doesNotStartWith", "endsWith": "doesNotEndWith"}
    | {"containsKey": "doesNotContainKey"}
)
# AssertJ's, of values and of errors.
_ASSERT_THAT, _THROWN = "assertThat(", ("assertThatThrownBy(", "assertThatCode(")
_THEN = ".then()"  # REST Assured's, before what is expected
_EQUAL = frozenset({
    "isEqualTo", "hasSize", "hasMessage", "hasToString", "containsExactly", "containsExactlyInAnyOrder",
    "containsOnly",
})  # fmt: skip
# What is looked for, by AssertJ's names and Hamcrest's: it becomes what none holds.
_WITHIN = frozenset({
    "contains", "startsWith", "endsWith", "containsKey", "containsEntry", "hasMessageContaining",
    "hasMessageStartingWith", "containsString", "hasItem", "hasItems", "hasEntry", "hasKey",
})  # fmt: skip
_ERRORS = frozenset({"assertThrows", "assertThatExceptionOfType"})
_KINDS = frozenset({"isInstanceOf", "isExactlyInstanceOf"})
# Spring's MockMvc: matchers whose argument of this number is a constant, by what begins their chain.
_ANSWERED = {
    ("status", "is"): 0, ("jsonPath", "value"): 0, ("content", "string"): 0, ("view", "name"): 0,
    ("header", "string"): 1, ("model", "attribute"): 1, ("", "redirectedUrl"): 0,
}  # fmt: skip
_EXISTS = both_ways({"exists": "doesNotExist", "isEmpty": "isNotEmpty"})
# Of these an answer has one.
_STATUSES = tuple(
    f"is{each}".encode()
    for each in ("Ok", "Created", "NoContent", "Found", "BadRequest", "Forbidden", "NotFound", "Conflict")
)
_HAMCREST = frozenset({"is", "equalTo", "hasSize", "contains", "containsInAnyOrder"})
_ALIKE = frozenset({"assertEquals", "assertIterableEquals", "assertLinesMatch"})
# What another error is asked as: none from which an answer's own would be derived.
_RAISED = (
    "java.util.EmptyStackException",
    "java.nio.BufferUnderflowException",
    "java.nio.ReadOnlyBufferException",
)
_FACTORIES = frozenset({"of", "from", "valueOf"})
_SCOPES = frozenset({"method_declaration"})
_ALONE = frozenset({"expression_statement", "lambda_expression"})
_LEAVING = frozenset({"return_statement"})
_LEAVING_LOOPS = _LEAVING | {"break_statement", "continue_statement"}
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
    methods = [each for each in walk(root) if each.type == "method_declaration"]
    file = TestFile(
        root=root, text=text, scopes=_SCOPES, functions=once((part(each, "name"), each) for each in methods)
    )
    return tuple(test for each in methods if (test := _test(each, file, imports)) is not None)


def _test(method: Node, file: TestFile, imports: str) -> DeclaredTest | None:
    modifiers = next((each for each in method.children if each.type == "modifiers"), None)
    annotations = (
        [each for each in modifiers.children if "annotation" in each.type] if modifiers is not None else []
    )
    short = {part(each, "name").rpartition(".")[2] for each in annotations}
    name = part(method, "name")
    if method.child_by_field_name("body") is None or not (
        short & _TESTS or (name.startswith("test") and "junit.framework" in imports)
    ):
        return None
    shown = [
        source(each)[1:-1]
        for note in annotations
        if part(note, "name") == "DisplayName"
        for each in inside(note)
    ]
    once = short & _TESTS <= {"Test"} and not inside(method, "parameters")
    statements = _body(method)
    found = () if statements is None else tuple(_asked_by(statements, file, imports))
    titles = (name, f"{name}()", *shown) if once else ()
    return declared_test(titles, found, around(method, imports) if statements is not None else ())


def _asked_by(body: Node, file: TestFile, imports: str) -> Iterator[Alteration]:
    """What every run of a test's body asks."""
    for each in body.named_children if body.type == "block" else [body]:
        inner = each.named_children[:1] if each.type == "expression_statement" else [each]
        if inner and inner[0].type == "method_invocation":
            for link in _links(inner[0]):
                yield from _assertion(link, file, imports)
        elif each.type == "enhanced_for_statement":
            yield from _loop(each, file, imports)


def _links(call: Node | None) -> list[Node]:
    """The calls of a chain (`assertThat(x).isNotNull().isEqualTo(5)`), in their order."""
    found: list[Node] = []
    while call is not None and call.type == "method_invocation":
        found.append(call)
        call = call.child_by_field_name("object")
    return found[::-1]


def _body(method: Node | None) -> Node | None:
    """The statements of a method, of which each call runs all."""
    body = None if method is None else method.child_by_field_name("body")
    return None if body is None or any(each.type in _LEAVING for each in walk(body)) else body


def _loop(statement: Node, file: TestFile, imports: str) -> Iterator[Alteration]:
    """What a loop asks of each value of a list that stands in the source: its type would take no pairs."""
    target, over, body = map(statement.child_by_field_name, ("name", "value", "body"))
    if target is None or over is None or body is None:
        return
    if not any(each.type in _LEAVING_LOOPS for each in walk(body)):
        rows = [row for each in file.meant(over) for row in _rows(each)]
        yield from file.loop(Loop(statement, over, target, rows), _asked_by(body, file, imports), None)


def _rows(node: Node) -> list[Node]:
    """What a list holds that stands in the source."""
    if node.type == "method_invocation" and f"{part(node, 'object')}.{part(node, 'name')}" in ROWS:
        return inside(node)
    return inside(node, "value") if node.type == "array_creation_expression" else []


def _assertion(call: Node, file: TestFile, imports: str) -> Iterator[Alteration]:
    name, given, at = part(call, "name"), inside(call), call.child_by_field_name("name")
    holder = part(call, "object")
    if holder in {"", "this"} and (body := _body(file.functions.get(name))) is not None:
        yield from file.called(call, file.functions[name], lambda: _asked_by(body, file, imports))
    opposites = _FLUENT if holder.startswith(_ASSERT_THAT) else _OPPOSITES
    yield from noting(call, file, imports)
    yield from _asked_by_call(call, file, imports)
    if name == "assertAll":
        bodies = [each.child_by_field_name("body") for each in given]
        yield from (asked for each in bodies if each for asked in _asked_by(each, file, imports))
    if name in {*_ALIKE, "isEqualTo"}:
        yield from _shapes(given[:1], file)
    is_last = call.parent is not None and call.parent.type in _ALONE
    if not is_last or ("junit.framework" in imports and name == "assertEquals"):
        return  # nothing follows some opposites (`isNull`); JUnit 3 has none of equality
    for each in renamed(file.text, at.start_byte, at.end_byte, opposites) if at is not None else ():
        # An assertion can be called by its name alone where it is imported; JUnit 3's are inherited.
        is_static = re.search(rf"import static [\w.]+\.(?:\*|{opposites[name]});", imports)
        known = opposites is _FLUENT or holder or is_static or "junit.framework" in imports
        # Where a framework's assertions are that the file does not import.
        holding = next((each for package, each in _ASSERTIONS.items() if package in imports), b"")
        yield replace(each, others=((b"" if known else holding) + each.others[0],))


def _asked_by_call(call: Node, file: TestFile, imports: str) -> list[Alteration]:
    """What is expected by a call, or by one link of a chain of calls, as something else."""
    name, given, about = part(call, "name"), inside(call), call.child_by_field_name("object")
    is_error = source(about).startswith(_THROWN)
    if name in _ALIKE:
        return _equal(given, file, imports)
    if name in _ERRORS or (is_error and name in _KINDS):
        return _raised(given)
    is_about = is_error or source(about).startswith(_ASSERT_THAT)
    if is_about and name in _EQUAL | _WITHIN:
        found = constants(given, file, word(about))
        return list(held_by_none(file.text, found) if name in _WITHIN else found)
    if name == "assertThat":
        return [each for matcher in given[1:] for each in _hamcrest(matcher, file, word(given[0]))]
    if name in {"andExpect", "andExpectAll"}:
        return [each for matcher in given for each in _answered(matcher, file)]
    return list(_rest_assured(name, given, file)) if _THEN in source(about) else []


def _rest_assured(name: str, given: list[Node], file: TestFile) -> Iterator[Alteration]:
    """What a link behind `then()` asks of an answer: `statusCode(200)`, `body("path", equalTo("x"))`."""
    plain = {"statusCode": 0, "header": 1, "body": 1}.get(name, len(given))
    for each in given[plain::2]:
        yield from constants([each], file, name)
        yield from _hamcrest(each, file, name)


def _raised(given: list[Node]) -> list[Alteration]:
    """The error whose class is given first, as another one."""
    others = tuple(f"{each}.class".encode() for each in _RAISED)
    is_named = bool(given) and source(given[0]).endswith(".class")
    return [Alteration(*spans(given)[0], RAISED, others)] if is_named else []


def _hamcrest(matcher: Node, file: TestFile, asked: str) -> Iterator[Alteration]:
    """The constant of a matcher that stands for equality, or that is looked for."""
    name = part(matcher, "name")
    yield from constants(inside(matcher), file, asked) if name in _HAMCREST else ()
    if name in _WITHIN - _HAMCREST:
        yield from held_by_none(file.text, constants(inside(matcher), file, asked))


def _answered(matcher: Node, file: TestFile) -> Iterator[Alteration]:
    """What MockMvc's `andExpect` asks of an answer."""
    name, given, at = part(matcher, "name"), inside(matcher), matcher.child_by_field_name("name")
    begun = part(matcher.child_by_field_name("object"), "name")
    place = _ANSWERED.get((begun, name), len(given))
    for each in given[place : place + 1]:
        yield from constants([each], file, name)
    for each in given[1:] if name == "jsonPath" else given[place : place + 1]:
        yield from _hamcrest(each, file, name)
    if at is not None and begun == "status" and name.encode() in _STATUSES:
        others = tuple(each for each in _STATUSES if each != name.encode())
        yield Alteration(at.start_byte, at.end_byte, "status", others)
    elif at is not None and begun == "jsonPath":
        yield from renamed(file.text, at.start_byte, at.end_byte, _EXISTS)


def _equal(given: list[Node], file: TestFile, imports: str) -> list[Alteration]:
    """The constants of two sides that are to be equal, else those that make what is expected, else a list."""
    if len(given) >= _DELTA and given[0].type == "string_literal" and "org.junit.jupiter" not in imports:
        given = given[1:]  # JUnit 3 and 4 are given what a failure says first
    asked = word(given[1]) if len(given) > 1 else ""
    found = list(constants(given[:2], file, asked))
    if not found and "org.testng" not in imports:  # what is expected comes first
        found = [each for made in given[:1] for each in constants(_made_of(made), file, asked)]
        both = given[:1] if len(given) < _DELTA else []
        found = found or [other for each in both for other in _other_value(each, file)]
    is_near = len(given) >= _DELTA and given[2].type != "string_literal"
    return list(far(file.text, found)) if is_near else found


def _other_value(node: Node, file: TestFile) -> Iterator[Alteration]:
    """A value that is expected as a list of it; what a function of the file makes, also of other parts."""
    listed = unequal(file.text, node.start_byte, node.end_byte, _AS_LIST)
    yield listed
    if not part(node, "object") and part(node, "name") in file.functions:
        yield from of_other_parts(file.text, listed, spans(inside(node)))


def _shapes(nodes: list[Node], file: TestFile) -> Iterator[Alteration]:
    """Lists that are expected, of another shape."""
    for each in (meant for node in nodes for meant in file.meant(node)):
        if each.type == "method_invocation" and f"{part(each, 'object')}.{part(each, 'name')}" in ROWS:
            inner = inside(each)
            plain = [number for number, value in enumerate(inner) if value.type in LITERALS]
            yield from arranged(file.text, spans([each])[0], spans(inner), plain)


def _made_of(call: Node) -> list[Node]:
    """What a factory (`Price.of(180)`) is given."""
    is_factory = call.type == "method_invocation" and part(call, "name") in _FACTORIES
    given = inside(call) if is_factory and part(call, "object")[:1].isupper() else []
    return given if len(given) == 1 else []
