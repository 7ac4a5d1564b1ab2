"""The twin of a Java test file: JUnit 3, 4 and 5, and TestNG."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.integrity.java_falsehoods import (
    JUNIT_3,
    JUNIT_4,
    JUPITER,
    TESTNG,
    Falsehoods,
    exception,
    idle,
)
from astra_async.integrity.rewriting import Choice, Rewritten, Titles, draw_manner
from astra_async.integrity.syntax import Insertions, above, parse, source, walk

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from tree_sitter import Node

SUFFIXES = frozenset({"java"})
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    """A test method; `allowed` is what it may throw so that it fails, `nothing` where it must not throw."""

    method: Node
    library: str
    titles: tuple[Titles, ...]
    doubt: str = ""
    allowed: str = "any"

    @property
    def key(self) -> str:
        return self.titles[0][-1]


def rewrite(path: str, text: str, rng: random.Random, only: Choice = None) -> Rewritten:
    """The twin of a test file; see `rewriting.Rewriter`."""
    data = text.encode(errors="replace")
    root = parse(data, "tree_sitter_java")
    if not path.endswith(".java") or root.has_error:
        return Rewritten(text=text, left_out={path: "this file's syntax is not understood"})
    edits = Insertions(data)
    certain: list[Titles] = []
    left_out: dict[str, str] = {}
    tests = list(_tests(root))
    for test in tests:
        chosen = only is None or any(only(titles) for titles in test.titles)
        if test.doubt:
            left_out[test.key] = test.doubt
        elif chosen:
            certain += test.titles
        if chosen and (only is None or not test.doubt):
            _make_fail(test, edits, Falsehoods.of(root, test.library), rng)
    runner = _RUNNERS[tests[0].library] if tests else ""
    return Rewritten(text=edits.text(), runner=runner, certain=tuple(certain), left_out=left_out)


def blurred(path: str, text: str, rng: random.Random) -> str:
    """The test file with statements in its tests that do nothing; the tests are the same.

    Not comments alone: a compiled class has none, and its bytes would be those that one knows.
    """
    data = text.encode(errors="replace")
    root = parse(data, "tree_sitter_java")
    if not path.endswith(".java") or root.has_error:
        return text
    edits = Insertions(data)
    for test in _tests(root):
        block = test.method.child_by_field_name("body")
        if block is not None:
            edits.within(block, f" {idle(rng)}")
    edits.at(len(data), f"\n// {_words(rng)}\n")
    return edits.text()


def tests_of(data: bytes) -> Iterator[tuple[tuple[Titles, ...], Node]]:
    """The test methods whose names the source shows."""
    root = parse(data, "tree_sitter_java")
    for test in () if root.has_error else _tests(root):
        if not test.doubt:
            yield test.titles, test.method


def _tests(root: Node) -> Iterator[_Test]:
    imported = _Imports(root)
    for method in walk(root):
        if method.type != "method_declaration" or method.child_by_field_name("body") is None:
            continue
        test = _test(method, imported)
        if test is not None:
            yield test


class _Imports:
    """Which class a short name in the file means."""

    def __init__(self, root: Node) -> None:
        self._names: dict[str, str] = {}
        self._packages: list[str] = []
        for node in root.children:
            if node.type == "import_declaration" and not any(part.type == "static" for part in node.children):
                name = next((source(part) for part in node.named_children if "identifier" in part.type), "")
                if any(part.type == "asterisk" for part in node.children):
                    self._packages.append(name)
                else:
                    self._names[name.rpartition(".")[2]] = name

    def test(self, annotation: Node) -> str:
        """The assertions' class of the framework whose test the annotation makes; empty for another."""
        name = source(annotation.child_by_field_name("name"))
        full = [name, self._names.get(name, "")]
        if not full[1]:
            full += [f"{package}.{name}" for package in self._packages]
        return next((_TESTS[each] for each in full if each in _TESTS), "")

    def is_junit_3(self, name: str) -> bool:
        """Whether a class with this superclass holds JUnit 3's tests."""
        if name == "TestCase" and "junit.framework" in self._packages:
            return True
        return self._names.get(name, name) == "junit.framework.TestCase"


def _test(method: Node, imported: _Imports) -> _Test | None:
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
    own = [source(holder.child_by_field_name("name")) for holder in reversed(holders)]
    name = source(method.child_by_field_name("name"))
    shown = [_string(each) for each in annotations if _short(each) == "DisplayName"]
    allowed = _allowed(values.get("expected", "") + values.get("expectedExceptions", ""))
    return _Test(
        method=method,
        library=library,
        titles=tuple((*own, each) for each in (name, f"{name}()", *filter(None, shown))),
        doubt=_doubt(method, holders, names | outer, values)
        or ("" if allowed else "it expects any Throwable"),
        allowed=allowed if "TestFactory" not in names or _dynamic(method) else "any",
    )


def _by_class(method: Node, holder: Node, imported: _Imports) -> str:
    """The framework of a method that is a test because of its class."""
    text = source(_modifiers(method))
    plain = "public" in text.split() and source(method.child_by_field_name("type")) == "void"
    if not plain or (_parameters(method) and "@" not in text):
        return ""
    superclass = source(holder.child_by_field_name("superclass")).removeprefix("extends").strip()
    if imported.is_junit_3(superclass):
        return JUNIT_3 if source(method.child_by_field_name("name")).startswith("test") else ""
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


def _make_fail(test: _Test, edits: Insertions, falsehoods: Falsehoods, rng: random.Random) -> None:
    manner = draw_manner(rng)
    block = test.method.child_by_field_name("body")
    if block is None:
        return
    checked = bool(_CHECKED.intersection(_thrown(test.method)))
    if manner.assertion and test.allowed in {"any", "error"}:
        alone = source(test.method.child_by_field_name("type")) != "void" and not _dynamic(test.method)
        fail = falsehoods.assertions(block, rng, alone=alone or test.allowed == "error")
    else:
        fail = exception(rng, allowed=test.allowed, checked=checked)
    generated = _dynamic(test.method)
    if generated:
        for code in generated:
            _at_once(code, fail, edits)
    elif (
        manner.at_once
        or test.allowed == "nothing"
        or source(test.method.child_by_field_name("type")) != "void"
    ):
        edits.within(block, f" {fail}")
    else:
        caught = "".join(rng.choices(string.ascii_lowercase, k=9))
        after = f" }} catch (java.lang.Throwable {caught}) {{ }} }} finally {{ {fail} }} "
        edits.within(block, " try { try {", after)


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
        if node.type == "method_invocation" and source(node.child_by_field_name("name")) == "dynamicTest":
            arguments = node.child_by_field_name("arguments")
            if arguments is not None and arguments.named_children:
                last = arguments.named_children[-1]
                written = last.child_by_field_name("body") if last.type == "lambda_expression" else None
                found.append(written or last)
    return found


def _modifiers(node: Node) -> Node | None:
    return next((part for part in node.children if part.type == "modifiers"), None)


def _annotations(node: Node) -> list[Node]:
    modifiers = _modifiers(node)
    return [part for part in modifiers.children if "annotation" in part.type] if modifiers is not None else []


def _short(annotation: Node) -> str:
    return source(annotation.child_by_field_name("name")).rpartition(".")[2]


def _values(annotation: Node) -> dict[str, str]:
    given = annotation.child_by_field_name("arguments")
    pairs = given.named_children if given is not None else []
    return {
        source(pair.child_by_field_name("key")): source(pair.child_by_field_name("value"))
        for pair in pairs
        if pair.type == "element_value_pair"
    }


def _string(annotation: Node) -> str:
    """The text of `@DisplayName("text")`, where it is one plain string."""
    pieces = [part for part in walk(annotation) if part.type in {"string_fragment", "escape_sequence"}]
    return source(pieces[0]) if len(pieces) == 1 and pieces[0].type == "string_fragment" else ""


def _parameters(method: Node) -> list[Node]:
    given = method.child_by_field_name("parameters")
    return [part for part in given.named_children if "parameter" in part.type] if given is not None else []


def _thrown(method: Node) -> list[str]:
    return [source(part) for each in method.children if each.type == "throws" for part in each.named_children]


def _words(rng: random.Random) -> str:
    words = (
        "".join(rng.choices(string.ascii_lowercase, k=rng.randint(2, 9))) for _ in range(rng.randint(1, 12))
    )
    return " ".join(words)
