"""Statements that fail, in Java that compiles in any test method of their file.

An assertion is written as the file writes its own, by the same name or class, where that can only mean the
library's; else every name stands in full. `throw` hides behind a condition: javac refuses what cannot be
reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.integrity.rewriting import letters, quoted
from astra_async.integrity.syntax import inside, part, source, walk

if TYPE_CHECKING:
    import random

    from tree_sitter import Node

_OWN = 0.75  # of the assertions are of the test's own kinds
_MOST = 3  # assertions of a test
JUPITER, JUNIT_4, TESTNG, JUNIT_3 = (
    "org.junit.jupiter.api.Assertions",
    "org.junit.Assert",
    "org.testng.Assert",
    "junit.framework.TestCase",  # the same methods as in its Assert, which is deprecated
)
_TRUTHS = frozenset({"org.assertj.core.api.Assertions", "com.google.common.truth.Truth"})
_HAMCREST = frozenset({"org.hamcrest.MatcherAssert", "org.junit.Assert"})
_CLASSES = frozenset({JUPITER, JUNIT_4, TESTNG, JUNIT_3, "junit.framework.Assert"})
# {a}, {b} are unlike numbers, {s}, {t} unlike words; {L} is a constant of the test, {O} differs from it.
_EVERYWHERE = {
    "assertEquals": (
        "{p}assertEquals({a}, {b});",
        "{p}assertEquals({s}, {t});",
        "{p}assertEquals(java.util.Arrays.asList({a}), java.util.Arrays.asList({b}));",
    ),
    "assertTrue": ("{p}assertTrue({a} < 0);", "{p}assertTrue({s}.isEmpty());"),
    "assertFalse": ("{p}assertFalse({a} > 0);", "{p}assertFalse({s}.equals({s}));"),
    "assertNull": ("{p}assertNull({s});",),
    "assertNotNull": ("{p}assertNotNull(null);",),
    "assertSame": ("{p}assertSame({s}, {t});",),
    "assertNotSame": ("{p}assertNotSame({s}, {s});",),
    "fail": ("{p}fail({s});",),
}
_SOMEWHERE = {  # where the test uses them itself
    "assertArrayEquals": ("{p}assertArrayEquals(new int[] {{{a}}}, new int[] {{{b}}});",),
    "assertNotEquals": ("{p}assertNotEquals({s}, {s});", "{p}assertNotEquals({a}, {a});"),
    "assertThrows": (
        "{p}assertThrows(java.io.IOException.class, () -> {{ }});",
        '{p}assertThrows(java.io.IOException.class, () -> Integer.parseInt("{w}"));',
    ),
    "assertDoesNotThrow": ('{p}assertDoesNotThrow(() -> {{ Integer.parseInt("{w}"); }});',),
    "assertAll": ("{p}assertAll(() -> {p}assertEquals({s}, {t}));",),
    "assertInstanceOf": ("{p}assertInstanceOf(java.util.Map.class, {s});",),
    "assertIterableEquals": (
        "{p}assertIterableEquals(java.util.Arrays.asList({a}), java.util.Arrays.asList({b}));",
    ),
}
_CONSTANT = ("{p}assertEquals({L}, {O});", "{p}assertEquals({O}, {L});")
_FLUENT = (
    "{p}assertThat({a}).isEqualTo({b});",
    "{p}assertThat({s}).isEqualTo({t});",
    "{p}assertThat({s}).isNull();",
    "{p}assertThat({s}.isEmpty()).isTrue();",
    "{p}assertThat(java.util.Arrays.asList({s})).contains({t});",
)
_MATCHED = (
    "org.hamcrest.MatcherAssert.assertThat({a}, org.hamcrest.CoreMatchers.is({b}));",
    "{p}assertThat({s}, org.hamcrest.CoreMatchers.is({t}));",
    "{p}assertThat({s}, org.hamcrest.CoreMatchers.nullValue());",
)
_ERRORS = ("throw new java.lang.AssertionError({s})", "throw new java.lang.AssertionError({s}, null)")
_EXCEPTIONS = (
    "throw new java.lang.IllegalStateException({s})",
    "throw new java.lang.UnsupportedOperationException({s})",
    "throw new java.lang.IllegalArgumentException({s})",
    "java.lang.Integer.parseInt({s})",
    "java.util.Objects.requireNonNull(null, {s})",
    "new java.util.ArrayList<java.lang.String>().iterator().next()",
)
_CHECKED = ("throw new java.io.IOException({s})",)
_ONLY_STATE = ("throw new java.lang.IllegalStateException({s})",)
_LITERALS = {
    "decimal_integer_literal": "int",
    "string_literal": "string",
    "character_literal": "char",
    "true": "true",
    "false": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Falsehoods:
    """What a file's tests may be made to fail with, and how the file itself writes its assertions.

    `prefixes` by a library's class; `static` has the class of what is called by its bare name.
    """

    library: str
    prefixes: dict[str, str]
    static: dict[str, str]
    fluent: str | None = None
    matched: str | None = None

    @classmethod
    def of(cls, root: Node, library: str) -> Falsehoods:
        """Those of a file by its tree; `library` is the class of its framework's assertions."""
        prefixes, static = _imports(root)
        hidden = {part(node, "name") for node in walk(root) if node.type == "method_declaration"}
        if any(node.type == "superclass" for node in walk(root)):
            hidden |= set(static)  # what is inherited hides what is imported
        open_names = {name: where for name, where in static.items() if name not in hidden}
        called = {where: f"{name}." for name, where in prefixes.items()}
        fluent = _prefix(open_names, called, _TRUTHS)
        matched = _prefix(open_names, called, _HAMCREST) if "org.hamcrest" in source(root) else None
        return cls(library=library, prefixes=called, static=open_names, fluent=fluent, matched=matched)

    def assertions(self, body: Node, rng: random.Random, *, alone: bool) -> str:
        """False assertions for a test with this body; one `alone` where the method may not end early.

        Each of them has to fail: where one does not, nothing else is asserted, and the test passes.
        """
        own = self._own(body)
        made = [self._assertion(own, rng) for _ in range(1 if alone else rng.randint(1, _MOST))]
        caught = letters(rng, 9)
        tried = (
            f"try {{ {each} return; }} catch (java.lang.Throwable {caught}) {{ }} " for each in made[:-1]
        )
        return f"{''.join(tried)}{made[-1]}"

    def _assertion(self, own: list[str], rng: random.Random) -> str:
        if own and rng.random() < _OWN:
            return _filled(rng.choice(own), rng)
        name = rng.choice(sorted(_EVERYWHERE))
        return _filled(rng.choice(_EVERYWHERE[name]).replace("{p}", self._written(name, rng)), rng)

    def _own(self, body: Node) -> list[str]:
        """Templates of the kinds that the test uses itself, with its constants."""
        found: list[str] = []
        for node in walk(body):
            if node.type != "method_invocation":
                continue
            name, scope = part(node, "name"), part(node, "object")
            if name == "assertThat" and scope in {"", "Assertions", "Truth", "MatcherAssert", "Assert"}:
                found += [each.replace("{p}", self.fluent) for each in _FLUENT if self.fluent is not None]
                found += [each.replace("{p}", self.matched) for each in _MATCHED if self.matched is not None]
                continue
            prefix = self._prefix_of(name, scope)
            templates = _EVERYWHERE.get(name) or _SOMEWHERE.get(name) or ()
            found += [each.replace("{p}", prefix) for each in templates]
            if name == "assertEquals":
                found += [each.replace("{p}", prefix) for each in _with_constants(node, body)]
        return found

    def _prefix_of(self, name: str, scope: str) -> str:
        """How the file's own use of an assertion may be repeated; in full where it could mean another."""
        if not scope and self.static.get(name) in _CLASSES:
            return ""
        return f"{scope}." if f"{scope}." in self.prefixes.values() else f"{self.library}."

    def _written(self, name: str, rng: random.Random) -> str:
        ways = [f"{self.library}."]
        if self.library in self.prefixes:
            ways.append(self.prefixes[self.library])
        if self.static.get(name) == self.library:
            ways.append("")
        return rng.choice(ways)


def exception(rng: random.Random, *, allowed: str, checked: bool) -> str:
    """A statement that throws what is allowed: any, an `error`, a `state` (IllegalStateException) alone.

    A test that expects whatever could be thrown fails when `nothing` is.
    """
    choices = {"any": _ERRORS + _EXCEPTIONS + (_CHECKED if checked else ()), "error": _ERRORS}
    made = _filled(rng.choice(choices.get(allowed, _ONLY_STATE)), rng)
    if allowed == "nothing":
        made = "return"
    bare = made.startswith(("throw", "return"))
    return f"if ({quoted(rng)}.length() > {rng.randint(0, 4)}) {made};" if bare else f"{made};"


def idle(rng: random.Random) -> str:
    """A statement such as `exception` gives, which never throws."""
    made = _filled(rng.choice(_ERRORS + _ONLY_STATE), rng)
    return f"if ({quoted(rng)}.length() > {rng.randint(11, 15)}) {made};"


def _imports(root: Node) -> tuple[dict[str, str], dict[str, str]]:
    """The classes of assertions that the file knows by a short name, and methods that it knows by theirs."""
    classes: dict[str, str] = {}
    methods: dict[str, str] = {}
    known = _CLASSES | _TRUTHS | _HAMCREST
    for node in root.children:
        if node.type != "import_declaration":
            continue
        name = next((source(each) for each in node.named_children if each.type == "scoped_identifier"), "")
        kinds = {each.type for each in node.children}
        owner, _, last = name.rpartition(".")
        if "static" not in kinds and "asterisk" in kinds:
            classes |= {each.rpartition(".")[2]: each for each in known if each.rpartition(".")[0] == name}
        elif "static" not in kinds and name in known:
            classes[last] = name
        elif "asterisk" in kinds and name in known:
            methods |= dict.fromkeys([*_EVERYWHERE, *_SOMEWHERE] if name in _CLASSES else [], name)
            methods |= {"assertThat": name} if name in _TRUTHS | _HAMCREST else {}
        elif owner in known:
            methods[last] = owner
    return classes, methods


def _prefix(static: dict[str, str], called: dict[str, str], wanted: frozenset[str]) -> str | None:
    """How the `assertThat` of one of the wanted classes is written in the file."""
    if static.get("assertThat") in wanted:
        return ""
    return next((prefix for where, prefix in called.items() if where in wanted), None)


def _with_constants(call: Node, body: Node) -> list[str]:
    """Templates with the call's constants, and others of their type: of the test, if it has more of them."""
    found: list[str] = []
    for node in inside(call)[:2]:
        kind, text = _LITERALS.get(node.type), source(node)
        if kind is None or "\\" in text or '"""' in text or "\n" in text:
            continue
        braced = text.replace("{", "{{").replace("}", "}}")
        near = {source(each) for each in walk(body) if each.type == node.type == "decimal_integer_literal"}
        others = [_other(kind, text), *sorted(each for each in near if each.isdigit() and each != text)]
        found += [
            each.replace("{L}", braced).replace("{O}", other)
            for each in _CONSTANT
            for other in others
            if other == others[0] or text.isdigit()
        ]
    return found


def _other(kind: str, text: str) -> str:
    """A constant of the same type that differs."""
    if kind in {"true", "false"}:
        return "false" if kind == "true" else "true"
    if kind == "int":
        return f"-{{a}}{'L' if text[-1] in 'lL' else ''}"
    if kind == "char":
        return "'x'" if text != "'x'" else "'y'"
    return '"{w} {w}"'


def _filled(template: str, rng: random.Random) -> str:
    first, second = rng.sample(range(2, 10_000), 2)
    word = quoted(rng)
    return template.format(a=first, b=second, s=word, t=f'{word[:-1]}y"', w=word.strip('"'))
