"""Find the types that a new source would shadow.

A class path has one class per name. A type of the same package takes precedence over `import x.*` and over
`java.lang`, but not over a type imported by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from astra_async.languages.language import INSTALLED, PROTECTED
from astra_async.languages.project_files import split

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from astra_async.languages.project_files import Pristine


_UNICODE_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u+([0-9a-fA-F]{4})")
_PIECE = re.compile(
    r"(?P<skip>\s+|//[^\r\n]*|/\*.*?(?:\*/|\Z))"
    r'|(?P<text>"""(?:[^\\]|\\.)*?(?:"""|\Z)|"(?:[^"\\\n]|\\.)*"?|\'(?:[^\'\\\n]|\\.)*\'?)'
    r"|(?P<name>[^\W\d]\w*|\$[\w$]*|`[^`\n]*`)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_DECLARING = frozenset({"class", "interface", "enum", "record", "object", "trait"})
_LONGEST_NAME = 100  # tokens (names and dots) of one import


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaNames:
    """The names in one source: `types` declared at the top level, all identifiers as `names`.

    `imported` has the simple names imported one by one; `wholly` the packages and types imported with `*`.
    """

    package: str
    types: frozenset[str]
    imported: frozenset[str]
    wholly: frozenset[str]
    names: frozenset[str]


@lru_cache(maxsize=256)  # answers often contain identical files
def java_names(text: str) -> JavaNames:
    """Tokenize a source and collect its names; never fails, even if the text is not Java."""
    text = _UNICODE_ESCAPE.sub(lambda found: found[1] + chr(int(found[2], 16)), text)
    found = (each for each in _PIECE.finditer(text) if each.lastgroup in {"name", "other"})
    pieces = [each[0].strip("`") or "`" for each in found]
    imports = list(_stated("import", pieces))
    package = next(_stated("package", pieces), [])
    return JavaNames(
        package=".".join(package),
        types=frozenset(_top_level(pieces)),
        imported=frozenset(words[-1] for words in imports if words and words[-1] != "*"),
        wholly=frozenset(".".join(words[:-1]) for words in imports if words and words[-1] == "*"),
        names=frozenset(piece for piece in pieces if piece[0].isalpha() or piece[0] in "_$"),
    )


def _stated(word: str, pieces: list[str]) -> Iterator[list[str]]:
    """Yield the dotted name after each `package` or `import`."""
    for at, piece in enumerate(pieces):
        if piece == word:
            yield _dotted(pieces[at + 1 : at + _LONGEST_NAME])


def _dotted(pieces: list[str]) -> list[str]:
    """Return the leading dotted name of a token list."""
    words: list[str] = []
    after_dot = True
    for piece in pieces:
        if piece == "static" and not words:
            continue
        if piece == ".":
            after_dot = True
        elif after_dot and (piece == "*" or piece.isidentifier()):
            words.append(piece)
            after_dot = False
        else:
            break
    return words


def _top_level(pieces: list[str]) -> Iterator[str]:
    depth = 0
    for piece, following in pairwise((*pieces, "")):
        if piece in _DECLARING and depth == 0 and following.isidentifier():
            yield following
        depth += (piece in "{(") - (piece in "})")


SOURCES = frozenset({"java", "kt", "kts", "groovy", "scala"})
_HEAD = 20_000  # characters searched for the package statement, after leading comments
_SERVICE = re.compile(r"(?:^|/)META-INF/services/([^/]+)$", re.IGNORECASE)
_ASSERTING = re.compile(r"Assert|Assum|Matcher|Mock|Test")  # no problem asks for types named so
_USUAL_PACKAGES = (
    "org.junit", "org.hamcrest", "org.mockito", "org.assertj", "org.opentest4j", "org.apiguardian",
    "org.testng", "org.springframework", "org.gradle", "org.apache", "org.xmlunit", "junit", "com.google",
    "org.slf4j", "com.fasterxml", "net.bytebuddy", "org.objenesis",
)  # fmt: skip
_PLATFORM_PACKAGES = ("java", "javax", "jakarta", "jdk", "sun", "com.sun", "kotlin", "scala", "groovy")
_LANG = frozenset({
    "Object", "String", "StringBuilder", "StringBuffer", "CharSequence", "Character", "Boolean", "Byte",
    "Short", "Integer", "Long", "Float", "Double", "Number", "Math", "StrictMath", "System", "Runtime",
    "Thread", "ThreadLocal", "Runnable", "Iterable", "Comparable", "Cloneable", "AutoCloseable", "Class",
    "ClassLoader", "Enum", "Record", "Void", "Process", "ProcessBuilder", "StackTraceElement", "Throwable",
    "Exception", "RuntimeException", "Error", "AssertionError", "IllegalArgumentException",
    "IllegalStateException", "NullPointerException", "IndexOutOfBoundsException", "ArithmeticException",
    "ClassCastException", "UnsupportedOperationException", "NumberFormatException", "InterruptedException",
    "ArrayIndexOutOfBoundsException", "CloneNotSupportedException", "SecurityException", "Override",
    "Deprecated", "FunctionalInterface", "SafeVarargs", "SuppressWarnings", "Package", "Module", "Appendable",
})  # fmt: skip
# Types that tests commonly use from packages imported with `*`.
_USUAL_TYPES = {
    package: frozenset(names.split())
    for package, names in {
        "org.junit": "Assert Assume Test Before After BeforeClass AfterClass Ignore Rule",
        "org.junit.jupiter.api": (
            "Assertions Assumptions Test BeforeEach AfterEach BeforeAll AfterAll Disabled DisplayName Nested"
            " RepeatedTest TestFactory DynamicTest Tag Timeout Order"
        ),
        "org.hamcrest": "MatcherAssert Matchers CoreMatchers Matcher BaseMatcher Description",
        "org.assertj.core.api": "Assertions Assert BDDAssertions SoftAssertions",
        "org.mockito": "Mockito ArgumentMatchers BDDMockito Mock InjectMocks Spy",
        "org.testng": "Assert Reporter",
        "org.testng.annotations": "Test BeforeMethod AfterMethod BeforeClass AfterClass",
        "java.util": (
            "List ArrayList LinkedList Map HashMap TreeMap LinkedHashMap Set HashSet TreeSet LinkedHashSet"
            " Collection Collections Arrays Objects Optional Iterator Comparator Queue Deque ArrayDeque"
            " PriorityQueue Stack Vector Random Scanner UUID Date Calendar Locale StringJoiner EnumMap"
        ),
        "java.util.function": "Function Supplier Consumer Predicate BiFunction UnaryOperator",
        "java.util.stream": "Stream IntStream LongStream DoubleStream Collectors StreamSupport",
        "java.util.concurrent": "TimeUnit ExecutorService Executors CompletableFuture CountDownLatch",
        "java.time": "LocalDate LocalDateTime LocalTime Instant Duration Period Clock ZoneId",
        "java.math": "BigDecimal BigInteger RoundingMode MathContext",
        "java.io": "File IOException InputStream OutputStream PrintStream",
        "java.nio.file": "Path Paths Files",
    }.items()
}


class TypeLookup:
    """The packages of one project, and the names in its protected sources."""

    def __init__(self, project: Pristine) -> None:
        self._project = project
        texts = project.texts
        self._packages = frozenset(
            java_names(text[:_HEAD]).package for path, text in texts.items() if split(path)[2] in SOURCES
        )
        self._sources = {
            path: java_names(texts[path]) for path in project.protected if split(path)[2] in SOURCES
        }

    def refusal(self, path: str, text: str, held: Collection[str] | None) -> str | None:
        """See `Lookup.refusal`; only the declared types matter, not the path."""
        types = None if held is None else _types(frozenset(held))
        if path not in self._project.texts and (found := self._service(path, types)):
            return found
        if split(path)[2] not in SOURCES or not text:
            return None
        declared = java_names(text)
        pristine = java_names(self._project.texts.get(path, ""))
        if declared.package not in self._packages and _has_package(declared.package, types):
            return INSTALLED
        new = declared.types - (pristine.types if pristine.package == declared.package else frozenset())
        beside = (
            test for each, test in self._sources.items() if each != path and test.package == declared.package
        )
        return next(filter(None, (self._taken(new, test, types) for test in beside)), None)

    def _service(self, path: str, types: Mapping[str, Collection[str]] | None) -> str | None:
        """Return a refusal for a service file of a library's interface, because it registers a plugin."""
        found = _SERVICE.search(path)
        package = found[1].rpartition(".")[0] if found else ""
        is_foreign = found and package not in self._packages and _has_package(package, types)
        return "plugin_registration" if is_foreign else None

    def _taken(
        self, new: frozenset[str], test: JavaNames, types: Mapping[str, Collection[str]] | None
    ) -> str | None:
        """Return a refusal if a new type changes the meaning of a name in a protected source."""
        if new & test.types:
            return PROTECTED
        for name in new & (test.names - test.imported - test.types):
            offered = any(_has_type(each, name, types) for each in (*test.wholly, "java.lang"))
            is_wanted = name in self._project.statement and not _ASSERTING.search(name)
            if name.islower() or (offered and not is_wanted):
                return INSTALLED
        return None


@lru_cache(maxsize=16)
def _types(held: frozenset[str]) -> Mapping[str, Collection[str]]:
    """Parse lines of a package and its types into a mapping of types by package."""
    return {words[0]: frozenset(words[1:]) for words in map(str.split, held) if words}


def _has_package(package: str, types: Mapping[str, Collection[str]] | None) -> bool:
    """Return True if a library or the platform has types in this package."""
    if types is not None and package in types:
        return True
    roots = _PLATFORM_PACKAGES if types else (*_PLATFORM_PACKAGES, *_USUAL_PACKAGES)
    return package.startswith(tuple(f"{root}." for root in roots)) or package in roots


def _has_type(package: str, name: str, types: Mapping[str, Collection[str]] | None) -> bool:
    """Return True if `import package.*` offers a type of this simple name."""
    if types is not None and package in types:
        return name in types[package]
    return name in (_LANG if package == "java.lang" else _USUAL_TYPES.get(package, ()))
