"""C#, F# and Visual Basic on .NET."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from astra_async.languages.dotnet.mutate import read_tests
from astra_async.languages.language import (
    BUILD,
    INSTALLED,
    RUNNER,
    Images,
    Language,
    ProjectTool,
    Reads,
    TestFiles,
    Tools,
)
from astra_async.languages.mutations import masked
from astra_async.languages.needs import Part, Toolchain, script

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from astra_async.languages.needs import Commands
    from astra_async.languages.project_files import Pristine


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
# Namespaces of test frameworks and assertion libraries; application code never declares types in them.
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
    """The namespaces that a project's tests search, and the library names that the tests use."""

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
        """See `Lookup.refusal`."""
        if not path.lower().endswith(".cs"):
            return None
        return INSTALLED if any(map(self._is_taken, _declared(_code(text)) - self._own)) else None

    def _is_taken(self, declared: tuple[str, str]) -> bool:
        space, name = declared
        is_used = bool({name, name.removesuffix("Attribute")} & self._used)
        is_looked_in = space in self._around or _LIBRARIES.match(space) is not None
        return bool(self._around) and (_TESTING.match(space) is not None or (is_used and is_looked_in))


def _code(text: str) -> str:
    """Return the code without comments and strings, with identifiers normalized as by the compiler."""
    code = _ESCAPE.sub(_character, masked(text, _SKIPPED))
    return code if code.isascii() else "".join(each for each in code if unicodedata.category(each) != "Cf")


def _character(escape: re.Match[str]) -> str:
    code = int(escape[1] or escape[2], 16)
    return chr(code) if code <= 0x10FFFF else "_"  # noqa: PLR2004 - the last code point


def _plain(name: str) -> str:
    return re.sub(r"[@\s]", "", name)


def _prefixes(space: str) -> Iterable[str]:
    """Return a namespace and its parents, without the global one: `A` and `A.B`."""
    parts = space.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _spaces(code: str) -> set[str]:
    return {space for space, _ in _scan(code)}


def _declared(code: str) -> set[tuple[str, str]]:
    """Return (namespace, name) of types, aliases and extension methods; nested types count as siblings."""
    return {(space, name) for space, name in _scan(code) if name}


def _scan(code: str) -> Iterable[tuple[str, str]]:
    """Yield (namespace, name) of all declarations, and (namespace, '') at the start of each namespace."""
    spaces = [""]  # the namespace of each open brace, innermost last
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


_RESTORED = re.compile(
    r"(?:.*/)?(?:[^/]*\.(?:csproj|fsproj|vbproj|sln|slnx)|nuget\.config|global\.json|packages\.lock\.json"
    r"|directory\.(?:build\.(?:props|targets)|packages\.props))",
    re.IGNORECASE,
)
_FRAMEWORKS = re.compile(rb"<TargetFrameworks?>([^<]*)")
_FRAMEWORK = re.compile(rb"\bnet(?:coreapp)?(\d+)\.\d")  # not netstandard2.0 or net472
_NPM, _OLDEST, _NEWEST = 3, 6, 10  # major versions: the SDK on npm; oldest and newest Microsoft images
_ENVIRONMENT = {
    "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
    "DOTNET_NOLOGO": "1",
    "DOTNET_ROLL_FORWARD": "Major",
    "NUGET_PACKAGES": "/opt/nuget",
}


def find_dotnet(files: Mapping[str, bytes], folder: str, commands: Commands) -> Part | None:  # noqa: ARG001 - same signature for all
    """Return one part for all .NET project files of a project, or None."""
    kept = {path: content for path, content in files.items() if _RESTORED.fullmatch(path)}
    if folder or not any(path.endswith("proj") for path in kept):
        return None
    named = b" ".join(found[1] for content in kept.values() for found in _FRAMEWORKS.finditer(content))
    versions = [int(found[1]) for found in _FRAMEWORK.finditer(named)]
    toolchain, note = _microsoft(versions) if not versions or max(versions) > _NPM else _npm()
    return Part(
        language="dotnet",
        label="dotnet",
        toolchain=toolchain,
        files=kept,
        install=script("dotnet/dotnet.sh"),
        notes=(f"C# project files: {note}",),
    )


def _npm() -> tuple[Toolchain, str]:
    """Return the .NET Core 3.1 SDK from npm, because the Debian of Microsoft's image is no longer served."""
    environment = {
        **_ENVIRONMENT,
        "DOTNET_SKIP_FIRST_TIME_EXPERIENCE": "1",
        "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1",  # without Debian's ICU
    }
    setup = script("dotnet/sdk.sh")
    return Toolchain(label="dotnet3", environment=environment, setup=setup), "npm's .NET Core SDK 3.1"


def _microsoft(versions: Sequence[int]) -> tuple[Toolchain, str]:
    version = min(max([_OLDEST, *versions]), _NEWEST)
    image = f"mcr.microsoft.com/dotnet/sdk:{version}.0"
    toolchain = Toolchain(label=f"dotnet{version}", image=image, environment=_ENVIRONMENT)
    return toolchain, f"{image} (untested template)"


_SOURCES_ONLY = r"(?=[^\n]*\.(?:cs|fs|vb)(?:proj)?$)"
_TEST_PROJECT = (
    r"(?:^|/)[^/]*[.](?:Unit|Integration|Api)?Tests?/"
    # Components in other languages have such names too: `src/pages/SpeedTest/`.
    rf"|{_SOURCES_ONLY}(?:^|/)[^/]*(?:[.][A-Z]\w*|[a-z0-9])Tests?/"
)
_TEST = r"Test(?:Case(?:Source)?|Fixture|Class)?|(?:Data)?TestMethod"
_ATTRIBUTE = rf"(?:(?:Skippable)?(?:Fact|Theory)|{_TEST})(?:Attribute)?\b"

DOTNET = Language(
    name="dotnet",
    suffixes=frozenset({"cs", "fs", "vb"}),
    images=Images(find=find_dotnet, calls=re.compile(r"(?<![\w.-])dotnet(?![\w-])"), signs=("*.csproj",)),
    tools=Tools(
        programs=(
            ProjectTool("dotnet", r"\bdotnet\b|\bxunit\b|\bnunit\b|\b[mv]stest\b", runs_tests=True),
        ),
        reads=(
            Reads(RUNNER, "dotnet", "any", r"(?:.*\.)?xunit\.runner\.json|.*\.runsettings|testconfig\.json"),
            # MSBuild imports props, targets and `.user` files by name; the compiler reads `.rsp` files.
            Reads(BUILD, "dotnet", "any", (
                r".*\.(?:csproj|fsproj|vbproj|sln|slnx|slnf|props|targets|rsp)|.*proj\.user|nuget\.config"
                r"|packages\.lock\.json|project\.assets\.json|runtimeconfig\.template\.json"
                r"|.*\.(?:deps|runtimeconfig)\.json"
            )),
            Reads(BUILD, "dotnet", "above", r"global\.json"),
        ),
        manifests=r"[^/]*\.(?:csproj|fsproj|vbproj)",
        everyday=r".*\.(?:props|targets|sln)|global\.json",
        variables=r"(?:DOTNET|NUGET|VSTEST|CORECLR|COMPlus)_\w{0,80}|MSBUILD\w{0,80}",
        dependency_folders=frozenset({".nuget"}),
    ),
    tests=TestFiles(
        paths=re.compile(_TEST_PROJECT + r"|[a-z0-9]Tests?\.(?:cs|fs|vb)$"),
        content=(
            # In C#, `[Fact]`, `[Trait("a", "b"), Fact]`; F#: `[<Fact>]`; Visual Basic: `<Fact>`
            re.compile(rf"(?m)^\s*(?:\[<?(?:[^\]\n]{{1,100}},\s*)?(?:\w+\.)*|<){_ATTRIBUTE}"),
        ),
        alone=re.compile(_TEST_PROJECT),
    ),
    lookup=NamespaceLookup,
    loaded="word",
    unbuilt=r"error (?:CS|FS|BC|MSB|NETSDK)\d|Build FAILED",
    compiled=r"\.(?:nupkg|dll|exe)$",
    mutate=read_tests,
)  # fmt: skip
