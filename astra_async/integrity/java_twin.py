"""The twin of a Java test file: JUnit 3, 4 and 5, and TestNG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.integrity.expected_values import in_java
from astra_async.integrity.java_falsehoods import (
    JUNIT_3,
    JUNIT_4,
    JUPITER,
    TESTNG,
    Falsehoods,
    exception,
    idle,
)
from astra_async.integrity.rewriting import DeclaredTest, NotUnderstoodError, draw_manner, letters, words
from astra_async.integrity.syntax import Insertions, above, inside, parse, part, source, walk

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from tree_sitter import Node

    from astra_async.integrity.expected_values import Constant

_JUPITER_TESTS = "org.junit.jupiter.api."
# An annotation that makes a method a test, with the class of its framework's assertions.
_TESTS = {
    f"{_JUPITER_TESTS}Test": JUPITER,
    f"{_JUPITER_TESTS}RepeatedTest": JUPITER,
    f"{_JUPITER_TESTS}TestFactory": JUPITER,
    f"{_JUPITER_TESTS}TestTemplate": JUPITER,
    "org.junit.jupiter.params.ParameterizedTest": JUPITER,
    "org.junit.Test": JUNIT_4,
    "org.junit.experimental.theories.Theory": JUNIT_4,
    "org.testng.annotations.Test": TESTNG,
}
_RUNNERS = {JUPITER: "JUnit 5", JUNIT_4: "JUnit 4", TESTNG: "TestNG", JUNIT_3: "JUnit 3"}
_EXECUTABLE = "org.junit.jupiter.api.function.Executable"
_IGNORED = frozenset({"Disabled", "Ignore"})
_REPEATED = frozenset({"ParameterizedTest", "RepeatedTest", "TestTemplate", "Theory"})
# What TestNG calls round the tests of a class that is a test as a whole.
_CONFIGURING = ("Before", "After", "DataProvider", "Factory", "Parameters", "Override")
_TYPES = frozenset({"class_declaration", "interface_declaration", "record_declaration", "enum_declaration"})
_CHECKED = frozenset({"Exception", "Throwable", "IOException", "java.io.IOException"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JavaTest(DeclaredTest):
    """A test method of a framework, whose assertions' class is `library`.

    `allowed` is what it may throw so that it fails, `nothing` where it must not throw.
    """

    body: Node
    library: str
    allowed: str


class Tests:
    """The tests of a file; see `rewriting.TestFile`."""

    def __init__(self, _: str, text: str) -> None:
        self._data = text.encode(errors="replace")
        self._root = parse(self._data, "tree_sitter_java")
        if self._root.has_error:
            raise NotUnderstoodError("this file's syntax is not understood")
        self.tests = list(_tests(self._root))
        self.left_out: Mapping[str, str] = {}
        self.runner = _RUNNERS[self.tests[0].library] if self.tests else ""

    def twin(self, failing: Collection[JavaTest], rng: random.Random) -> str:
        """The file in which these tests fail."""
        edits = Insertions(self._data)
        libraries = {test.library for test in failing}
        falsehoods = {library: Falsehoods.of(self._root, library) for library in libraries}
        for test in failing:
            _make_fail(test, edits, falsehoods[test.library], rng)
        return edits.text()

    def blurred(self, rng: random.Random) -> str:
        """The file with statements in its tests that do nothing.

        Not comments alone: a compiled class has none, and its bytes would be those that one knows.
        """
        edits = Insertions(self._data)
        for test in self.tests:
            edits.within(test.body, f" {idle(rng)}")
        edits.at(len(self._data), f"\n// {words(rng)}\n")
        return edits.text()

    @staticmethod
    def constants(test: JavaTest) -> Iterable[Constant]:
        """What its assertions compare to."""
        return in_java(test.body)


def _tests(root: Node) -> Iterator[JavaTest]:
    imported = _Imports(root)
    for method in walk(root):
        body = method.child_by_field_name("body") if method.type == "method_declaration" else None
        test = _test(method, body, imported) if body is not None else None
        if test is not None:
            yield test


class _Imports:
    """Which class a short name in the file means."""

    def __init__(self, root: Node) -> None:
        self._names: dict[str, str] = {}
        self._packages: list[str] = []
        for node in root.children:
            if node.type == "import_declaration" and not any(each.type == "static" for each in node.children):
                name = next((source(each) for each in node.named_children if "identifier" in each.type), "")
                if any(each.type == "asterisk" for each in node.children):
                    self._packages.append(name)
                else:
                    self._names[name.rpartition(".")[2]] = name

    def test(self, annotation: Node) -> str:
        """The assertions' class of the framework whose test the annotation makes; empty for another."""
        name = part(annotation, "name")
        full = [name, self._names.get(name, "")]
        if not full[1]:
            full += [f"{package}.{name}" for package in self._packages]
        return next((_TESTS[each] for each in full if each in _TESTS), "")

    def is_junit_3(self, name: str) -> bool:
        """Whether a class with this superclass holds JUnit 3's tests."""
        if name == "TestCase" and "junit.framework" in self._packages:
            return True
        return self._names.get(name, name) == "junit.framework.TestCase"


def _test(method: Node, body: Node, imported: _Imports) -> JavaTest | None:
    annotations = _annotations(method)
    holders = [node for node in above(method) if node.type in _TYPES]
    library = next(filter(None, map(imported.test, annotations)), "")
    if not library and holders:
        library = _by_class(method, holders[0], imported)
    names = {_short(each) for each in annotations}
    outer = {_short(each) for holder in holders for each in _annotations(holder)}
    values = {key: value for each in annotations for key, value in _values(each).items()}
    if not library or (names | outer) & _IGNORED or values.get("enabled") == "false":
        return None
    own = [part(holder, "name") for holder in reversed(holders)]
    name = part(method, "name")
    shown = [_string(each) for each in annotations if _short(each) == "DisplayName"]
    doubt = _doubt(method, holders, names | outer, values)
    return JavaTest(
        node=method,
        body=body,
        library=library,
        titles=tuple((*own, each) for each in (name, f"{name}()", *filter(None, shown)) if not doubt),
        key=name,
        doubt=doubt,
        allowed=_allowed(values.get("expected", "") + values.get("expectedExceptions", "")),
    )


def _by_class(method: Node, holder: Node, imported: _Imports) -> str:
    """The framework of a method that is a test because of its class."""
    text = source(_modifiers(method))
    plain = "public" in text.split() and part(method, "type") == "void"
    if not plain or (_parameters(method) and "@" not in text):
        return ""
    superclass = part(holder, "superclass").removeprefix("extends").strip()
    if imported.is_junit_3(superclass):
        return JUNIT_3 if part(method, "name").startswith("test") else ""
    if any(_short(each).startswith(_CONFIGURING) for each in _annotations(method)):
        return ""
    return next((TESTNG for each in _annotations(holder) if imported.test(each) == TESTNG), "")


def _doubt(method: Node, holders: list[Node], names: set[str], values: dict[str, str]) -> str:
    """Why a report's name for the test cannot be told, or whether it fails."""
    if "TestFactory" in names:
        return "its tests are generated"
    if names & _REPEATED or "dataProvider" in values or "invocationCount" in values or _parameters(method):
        return "it runs several times under names of their own"
    if "Parameterized" in source(_modifiers(holders[0])) or "ParameterizedClass" in names:
        return "its class runs several times under names of their own"
    if holders[0].type == "interface_declaration" or "abstract" in source(_modifiers(holders[0])).split():
        return "other classes inherit it"
    return "it may fail at times" if "successPercentage" in values else ""


def _allowed(expected: str) -> str:
    """What a test that expects these exceptions may throw so that it fails."""
    names = {each.strip(" {}").removesuffix(".class").rpartition(".")[2] for each in expected.split(",")}
    names.discard("")
    if not names:
        return "any"
    if not any(each.endswith(("Error", "Failure")) or each == "Throwable" for each in names):
        return "error"
    return (
        "nothing"
        if names & {"Throwable", "Exception", "RuntimeException", "IllegalStateException"}
        else "state"
    )


def _make_fail(test: JavaTest, edits: Insertions, falsehoods: Falsehoods, rng: random.Random) -> None:
    manner = draw_manner(rng)
    generated, gives = _dynamic(test.node), part(test.node, "type") != "void"
    if manner.assertion and test.allowed in {"any", "error"}:
        alone = (gives and not generated) or test.allowed == "error"
        fail = falsehoods.assertions(test.body, rng, alone=alone)
    else:
        checked = bool(_CHECKED.intersection(_thrown(test.node)))
        fail = exception(rng, allowed=test.allowed, checked=checked)
    if generated:
        for code in generated:
            _at_once(code, fail, edits)
    elif manner.at_once or test.allowed == "nothing" or gives:
        edits.within(test.body, f" {fail}")
    else:
        after = f" }} catch (java.lang.Throwable {letters(rng, 9)}) {{ }} }} finally {{ {fail} }} "
        edits.within(test.body, " try { try {", after)


def _at_once(code: Node, fail: str, edits: Insertions) -> None:
    if code.parent is not None and code.parent.type == "argument_list":
        edits.around(code, f"() -> {{ {fail} (({_EXECUTABLE}) ", ").execute(); }")
    elif code.type == "block":
        edits.within(code, f" {fail}")
    else:
        edits.around(code, f"{{ {fail} ", "; }")


def _dynamic(method: Node) -> list[Node]:
    """The code of the tests that a factory makes one by one."""
    found = []
    for node in walk(method):
        if node.type == "method_invocation" and part(node, "name") == "dynamicTest":
            for last in inside(node)[-1:]:
                written = last.child_by_field_name("body") if last.type == "lambda_expression" else None
                found.append(written or last)
    return found


def _modifiers(node: Node) -> Node | None:
    return next((each for each in node.children if each.type == "modifiers"), None)


def _annotations(node: Node) -> list[Node]:
    modifiers = _modifiers(node)
    return [each for each in modifiers.children if "annotation" in each.type] if modifiers is not None else []


def _short(annotation: Node) -> str:
    return part(annotation, "name").rpartition(".")[2]


def _values(annotation: Node) -> dict[str, str]:
    pairs = (each for each in inside(annotation) if each.type == "element_value_pair")
    return {part(pair, "key"): part(pair, "value") for pair in pairs}


def _string(annotation: Node) -> str:
    """The text of `@DisplayName("text")`, where it is one plain string."""
    pieces = [each for each in walk(annotation) if each.type in {"string_fragment", "escape_sequence"}]
    return source(pieces[0]) if len(pieces) == 1 and pieces[0].type == "string_fragment" else ""


def _parameters(method: Node) -> list[Node]:
    return [each for each in inside(method, "parameters") if "parameter" in each.type]


def _thrown(method: Node) -> list[str]:
    return [source(name) for each in method.children if each.type == "throws" for name in each.named_children]
