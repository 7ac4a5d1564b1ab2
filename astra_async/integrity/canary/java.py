"""Falsehoods for JUnit 5 and JUnit 4, in Java that compiles whatever a test class imports.

A file that does not compile would leave no report at all, which proves nothing: every name is written in
full, and only classes get more methods (an interface or a record may not hold these).
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from astra_async.integrity.canary.frameworks import Framework
    from astra_async.integrity.canary.words import Words

SUFFIXES = frozenset({"java"})

_PACKAGE = re.compile(r"^[ \t]{0,20}package\s+([\w.]{1,200})\s{0,5};", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]{0,20}import\s+([\w.]{1,200})\s{0,5};", re.MULTILINE)
_CLASS_NAME = re.compile(r"(?<![\w.])[A-Z]\w{0,80}\b")
_CLASS_NAMES = 200  # of a test, that are loaded
_TRIES = 200  # to find a name that comes late
_EARLIEST = -(1 << 31)
_MAX_CLASSES = 20  # of a file, that get falsehoods
# In what is quoted or a comment no brace counts; what is not closed ends with the file.
_QUOTED = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)"
    r'|"""(?:[^"\\]|\\.|"(?!""))*(?:"""|\Z)|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'',
    re.DOTALL,
)
_BRACE = re.compile(r"[{}]")
_TYPE = re.compile(r"(?<![@\w.])(class|interface|enum|record)\s+\w")
_ANNOTATION = re.compile(r"@(?:[\w.]{1,80}\.)?(?:Test|ParameterizedTest|RepeatedTest|TestFactory)\b")
_TOKEN = re.compile(r"[(){};]|@[\w.]+|\w+")
_DISPLAY_NAME = re.compile(
    r'(@(?:org\.junit\.jupiter\.api\.)?DisplayName\s{0,5}\(\s{0,5})"(?:[^"\\\n]|\\.){0,300}"'
)


class _Version(NamedTuple):
    """What tells the version of JUnit in a test's text, and what it calls a test and its assertions."""

    sign: re.Pattern[str]
    test: str
    package: str
    name: str


_JUPITER = _Version(
    re.compile(r"\borg\.junit\.jupiter\b"),
    "@org.junit.jupiter.api.Test",
    "org.junit.jupiter.api",
    "Assertions",
)
_JUNIT_4 = _Version(
    re.compile(r"\borg\.junit\.(?!jupiter|platform)"), "@org.junit.Test", "org.junit", "Assert"
)
# Whose falsehoods run first would load the real assertions, before code of the solution puts others in
# their place: a class of its own, which may come first, leaves them alone.
_WITHOUT_ASSERTIONS = (
    'throw new AssertionError("{s}");',
    'throw new java.io.IOException("{s}");',
    'throw new IllegalStateException("{s}");',
)
_BOTH = (
    "{A}.assertEquals({a}, {b});",
    '{A}.assertEquals("{s}", "{t}");',
    "{A}.assertEquals(java.util.Collections.singletonList({a}), java.util.Collections.singletonList({b}));",
    "{A}.assertArrayEquals(new int[] {{{a}}}, new int[] {{{b}}});",
    "{A}.assertTrue({a} < {b});",
    "{A}.assertFalse({a} > {b});",
    '{A}.assertNull("{s}");',
    "{A}.assertNotNull(null);",
    '{A}.assertSame("{s}", "{t}");',
    '{A}.fail("{s}");',
    *_WITHOUT_ASSERTIONS,
)
_JUPITER_ONLY = (
    "{A}.assertNotEquals({a}, {a});",
    "{A}.assertThrows(java.io.IOException.class, () -> {{ }});",
    '{A}.assertAll(() -> {A}.assertEquals("{s}", "{t}"));',
)
_HAMCREST = "org.hamcrest.MatcherAssert.assertThat({a}, org.hamcrest.CoreMatchers.is({b}));"
_ASSERTJ = "org.assertj.core.api.Assertions.assertThat({a}).isEqualTo({b});"


def standalone(model: str, framework: Framework, words: Words) -> str:  # noqa: ARG001 - as in each language
    """A whole test class that loads the classes of the project that `model`, a test of its folder, names.

    Loading one may fail: that must not matter. The file's name must be the class's, `class_name`.
    """
    package = _PACKAGE.search(model)
    version = _version(model)
    if version is None:
        return ""
    names = ", ".join(f'"{name}"' for name in _loaded(model, package[1] if package else ""))
    loading = (
        f"    static {{\n        for (String {words.name} : new String[] {{{names}}}) {{\n"
        f"            try {{ Class.forName({words.name}); }} catch (Throwable problem) {{ continue; }}\n"
        "        }\n    }\n"
    )
    head = f"{package[0].strip()}\n\n" if package else ""
    cases = _cases([*_WITHOUT_ASSERTIONS], version, words, _EARLIEST)
    return f"{head}public class {class_name(words)} {{\n{loading}{cases}}}\n"


def is_known(text: str) -> bool:
    """Whether a test is written for a version of JUnit for which there are falsehoods."""
    return _version(text) is not None


def class_name(words: Words) -> str:
    """The class of a standalone file, such as runners take for a test."""
    return f"{words.token.title()}Test"


def appended(text: str, framework: Framework, words: Words) -> str:  # noqa: ARG001 - as in each language
    """The text of an existing test file with methods that must fail and run after those of each test class.

    JUnit 5 runs nested classes when it is done with the methods beside them: there they stand once more.
    """
    version = _version(text)
    if version is None:
        return text
    latest = max((_hash(text[begin:end]) for begin, end in _test_names(text)), default=_EARLIEST)
    falsehoods = _falsehoods(text, version)
    falsehoods += [each for falsehood in falsehoods for each in _as_in(text, falsehood, version)]
    pieces, done = [], 0
    for end in _class_ends(text):
        pieces += [text[done:end], "\n", _cases(falsehoods, version, words, latest)]
        if version is _JUPITER:
            cases = _cases(falsehoods, version, words, _EARLIEST)
            pieces.append(
                f"    @org.junit.jupiter.api.Nested\n    class {words.word().title()} {{\n{cases}    }}\n"
            )
        done = end
    return "".join([*pieces, text[done:]])


def emptied(text: str, framework: Framework, words: Words) -> str:  # noqa: ARG001 - as in each language
    """The test file with every test under another, random name.

    The tests still use the solution, which may forge a report only then; what else the file declares
    for other tests stays, so that it compiles.
    """
    pieces, done = [], 0
    for begin, end in _test_names(text):
        pieces += [text[done:begin], words.identifier()]
        done = end
    other = "".join([*pieces, text[done:]])
    return _DISPLAY_NAME.sub(lambda found: f'{found[1]}"{words.title()}"', other)


def _version(text: str) -> _Version | None:
    return next((version for version in (_JUPITER, _JUNIT_4) if version.sign.search(text)), None)


def _loaded(model: str, package: str) -> Iterator[str]:
    """Names of classes that may be the project's: imported ones, and those of the test's own package."""
    own = dict.fromkeys(_CLASS_NAME.findall(model))
    imported = dict.fromkeys(_IMPORT.findall(model))
    prefix = f"{package}." if package else ""
    yield from list(dict.fromkeys([*imported, *(f"{prefix}{name}" for name in own)]))[:_CLASS_NAMES]


def _code(text: str) -> str:
    """The text with blanks for all that is quoted or a comment, each character in its place."""
    return _QUOTED.sub(lambda found: " " * len(found[0]), text)


def _test_names(text: str) -> Iterator[tuple[int, int]]:
    """Where the names of test methods stand."""
    code, done = _code(text), 0
    marks = [mark.span() for mark in _ANNOTATION.finditer(code)]
    for (_, after), (following, _) in pairwise([*marks, (len(code), len(code))]):
        begin, end = _method_name(code, after, following)
        if done <= begin < end:
            done = end
            yield begin, end


def _method_name(code: str, start: int, end: int) -> tuple[int, int]:
    """Where the name of the method declared from `start` on stands; an empty span if there is none."""
    depth, word, name = 0, (start, start), (start, start)
    for token in _TOKEN.finditer(code, start, end):
        if token[0] in "{;" and depth == 0:
            break
        if token[0] == "(":
            name = word if depth == 0 else name
            depth += 1
        elif token[0] == ")":
            depth -= 1
        word = token.span() if token[0].isidentifier() else (start, start)
    return name


def _class_ends(text: str) -> list[int]:
    """Where the closing brace of each top-level class with tests stands."""
    code = _code(text)
    ends, depth, opened, header = [], 0, 0, 0
    for brace in _BRACE.finditer(code):
        if brace[0] == "{":
            opened = brace.start() if depth == 0 else opened
            depth += 1
            continue
        depth -= 1
        if depth == 0:
            kinds = _TYPE.findall(code, header, opened)
            if kinds[-1:] == ["class"] and _ANNOTATION.search(code, opened, brace.start()):
                ends.append(brace.start())
            header = brace.end()
    return ends[:_MAX_CLASSES]


def _falsehoods(text: str, version: _Version) -> list[str]:
    """The falsehoods that compile beside any test that has the text's libraries."""
    falsehoods = [*_BOTH]
    falsehoods += _JUPITER_ONLY if version is _JUPITER else ()
    falsehoods += [_HAMCREST] if "org.hamcrest." in text else []
    falsehoods += [_ASSERTJ] if "org.assertj." in text else []
    return falsehoods


def _cases(falsehoods: list[str], version: _Version, words: Words, latest: int) -> str:
    return "".join(
        f"    {version.test}\n    public void {_late_name(words, latest)}() throws Throwable {{\n"
        f"        {_filled(each, version, words)}\n    }}\n"
        for each in words.shuffled(falsehoods)
    )


def _late_name(words: Words, latest: int) -> str:
    """A name that both versions of JUnit, which go by the hash of names, run after the class's own tests."""
    names = (words.identifier() for _ in range(_TRIES))
    return next((name for name in names if _hash(name) > latest), "") or words.identifier()


def _hash(name: str) -> int:
    """What String.hashCode gives: a signed number of 32 bits."""
    value = 0
    for character in name:
        value = (value * 31 + ord(character)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _as_in(text: str, falsehood: str, version: _Version) -> Iterator[str]:
    """The falsehood as the tests write it, where a class of the solution could take the name's place."""
    method = falsehood.removeprefix("{A}.").partition("(")[0]
    package, name = re.escape(version.package), version.name
    if method == falsehood.partition("(")[0]:
        return
    star = re.search(rf"\bimport\s+{package}\.(?:\*|{name})\s?;", text)
    if star and re.search(rf"(?<![\w.]){name}\.{method}\s?\(", text):
        yield falsehood.replace("{A}", name)
    static = re.search(rf"\bimport\s+static\s+{package}\.{name}\.(?:\*|{method})\s?;", text)
    if static and re.search(rf"(?<![\w.]){method}\s?\(", text):
        yield falsehood.replace("{A}.", "")


def _filled(falsehood: str, version: _Version, words: Words) -> str:
    a, b = words.number(), -words.number()
    assertions = f"{version.package}.{version.name}"
    return falsehood.format(A=assertions, a=a, b=b, s=words.word(), t=words.word())
