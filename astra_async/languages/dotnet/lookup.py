"""Types and extension methods of a C# source that the tests would use in place of a library's.

The compiler looks for a name in the namespace around the tests, then in the ones around that, up to the
global namespace, and only then in what `using` names above them. `Assert` in `Shop` is therefore the `Assert`
of tests in `Shop.Tests`, whatever they import (C# specification, section 7.8).
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from astra_async.languages.language import INSTALLED
from astra_async.languages.masking import masked

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from astra_async.languages.pristine import Pristine

_SKIPPED = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)"
    r'|\${0,9}"""+.*?(?:"""+|\Z)|(?:@\$?|\$@)"(?:[^"]|"")*(?:"|\Z)|\$?"(?:[^"\\\n]|\\.)*(?:"|$|\\)'
    r"|'(?:[^'\\\n]|\\.[0-9a-fA-F]{0,8})'",
    re.DOTALL | re.MULTILINE,
)
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})")
_NAME = r"@?[^\W\d]\w*"
_PIECE = re.compile(
    rf"\bnamespace\s+(?P<namespace>{_NAME}(?:\s*\.\s*{_NAME})*)\s*(?P<form>[{{;])"
    rf"|\b(?:class|struct|interface|enum|record(?:\s+(?:class|struct))?)\s+(?P<type>{_NAME})"
    rf"|\bdelegate\s[^;{{}}()=]{{1,200}}?(?<!\w)(?P<delegate>{_NAME})\s*(?:<[^<>;]{{0,200}}>\s*)?\("
    rf"|\busing\s+(?P<alias>{_NAME})\s*="
    rf"|(?<!\w)(?P<method>{_NAME})\s*(?:<[^<>;]{{0,200}}>\s*)?\(\s*this\b"
    r"|[{}]"
)
_USING = re.compile(rf"\busing\s+(?:static\s+)?({_NAME}(?:\s*\.\s*{_NAME})*)\s*;")
_WORD = re.compile(r"\w+")
# Libraries that run tests or state what they expect; nothing of an application is in their namespaces.
_TESTING = re.compile(
    r"(?:Xunit|NUnit|FluentAssertions|AwesomeAssertions|Shouldly|Moq|NSubstitute|FakeItEasy"
    r"|Microsoft\.VisualStudio\.TestTools)(?:\.|$)"
)
_LIBRARIES = re.compile(r"(?:System|Microsoft)(?:\.|$)")
_TYPES = frozenset({
    "Assert", "Assume", "Is", "Has", "Does", "Throws", "Warn", "CollectionAssert", "StringAssert",
    "FileAssert", "TestContext", "Record", "Fact", "Theory", "InlineData", "MemberData", "ClassData",
    "Trait", "Test", "TestCase", "TestCaseSource", "TestFixture", "SetUp", "TearDown", "TestClass",
    "TestMethod", "DataTestMethod", "DataRow", "TestInitialize", "TestCleanup", "Mock", "It", "Times",
    "Substitute", "Arg", "AssertionScope", "WebApplicationFactory", "TestServer", "HttpClient",
    "HttpRequestMessage", "HttpResponseMessage", "HttpMethod", "HttpStatusCode", "StringContent",
    "JsonContent", "JsonSerializer", "JsonDocument", "JsonElement", "JsonConvert", "JObject", "Task",
    "ValueTask", "DateTime", "DateTimeOffset", "TimeSpan", "Math", "Convert", "Enumerable", "String",
    "Int32", "Object", "Boolean", "Exception", "List", "Dictionary", "Array", "Guid", "Uri", "Console",
    "Activator", "Assembly", "XElement", "XAttribute", "File", "Directory", "Path",
})  # fmt: skip
_EXTENSIONS = re.compile(
    r"Should\w*|SequenceEqual|Single(?:OrDefault)?|First(?:OrDefault)?|Last|Count|Any|All|Select|Where|ToList|ToArray"
)


class NamespaceLookup:
    """The namespaces in which the tests of one project look for names, and the libraries' names they use."""

    def __init__(self, project: Pristine) -> None:
        sources = {path: _code(text) for path, text in project.texts.items() if path.endswith(".cs")}
        tests = [sources[path] for path in project.protected & sources.keys()]
        self._own = {
            each
            for path, code in sources.items()
            if path not in project.protected
            for each in _declared(code)
        }
        around = {space for code in tests for space in (*_spaces(code), *_USING.findall(code))}
        self._around = (
            {"", *(prefix for space in around for prefix in _prefixes(_plain(space)))} if tests else set()
        )
        words = {word for code in tests for word in _WORD.findall(code)} - project.statement
        self._used = {word for word in words if word in _TYPES or _EXTENSIONS.fullmatch(word)}

    def refusal(self, path: str, text: str, held: Collection[str] | None) -> str | None:  # noqa: ARG002 - as `Lookup`
        """As `Lookup.refusal`."""
        if not path.lower().endswith(".cs"):
            return None
        return INSTALLED if any(map(self._is_taken, _declared(_code(text)) - self._own)) else None

    def _is_taken(self, declared: tuple[str, str]) -> bool:
        space, name = declared
        is_used = bool({name, name.removesuffix("Attribute")} & self._used)
        is_looked_in = space in self._around or _LIBRARIES.match(space) is not None
        return bool(self._around) and (_TESTING.match(space) is not None or (is_used and is_looked_in))


def _code(text: str) -> str:
    """The text without comments and strings, its names in the form in which the compiler compares them."""
    code = _ESCAPE.sub(_character, masked(text, _SKIPPED))
    return code if code.isascii() else "".join(each for each in code if unicodedata.category(each) != "Cf")


def _character(escape: re.Match[str]) -> str:
    code = int(escape[1] or escape[2], 16)
    return chr(code) if code <= 0x10FFFF else "_"  # noqa: PLR2004 - the last code point


def _plain(name: str) -> str:
    return re.sub(r"[@\s]", "", name)


def _prefixes(space: str) -> Iterable[str]:
    """A namespace and all around it but the global one: `A.B` and `A`."""
    parts = space.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _spaces(code: str) -> set[str]:
    return {space for space, _ in _scan(code)}


def _declared(code: str) -> set[tuple[str, str]]:
    """Namespaces and names of types, aliases and extension methods; a type in a type counts as beside it."""
    return {(space, name) for space, name in _scan(code) if name}


def _scan(code: str) -> Iterable[tuple[str, str]]:
    """Namespace and name of all that is declared; without a name where a namespace begins."""
    spaces = [""]  # that of each open brace, the last one being that at hand
    for found in _PIECE.finditer(code):
        if found["namespace"]:
            space = f"{spaces[-1]}.{_plain(found['namespace'])}".lstrip(".")
            spaces[len(spaces) - (found["form"] == ";") :] = [space]
            yield space, ""
        elif name := found["type"] or found["delegate"] or found["alias"] or found["method"]:
            yield spaces[-1], _plain(name)
        elif found[0] == "{":
            spaces.append(spaces[-1])
        elif len(spaces) > 1:
            spaces.pop()
