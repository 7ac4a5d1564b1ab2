"""C#, F# and Visual Basic, on .NET."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.languages.dotnet.lookup import NamespaceLookup
from astra_async.languages.language import (
    BUILD,
    RUNNER,
    Images,
    Language,
    ProjectTool,
    Reads,
    TestFiles,
    Tools,
)
from astra_async.languages.needs import Part, Toolchain, script

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from astra_async.languages.needs import Commands


_RESTORED = re.compile(
    r"(?:.*/)?(?:[^/]*\.(?:csproj|fsproj|vbproj|sln|slnx)|nuget\.config|global\.json|packages\.lock\.json"
    r"|directory\.(?:build\.(?:props|targets)|packages\.props))",
    re.IGNORECASE,
)
_FRAMEWORKS = re.compile(rb"<TargetFrameworks?>([^<]*)")
_FRAMEWORK = re.compile(rb"\bnet(?:coreapp)?(\d+)\.\d")  # neither netstandard2.0 nor net472
_NPM, _OLDEST, _NEWEST = 3, 6, 10  # major versions: the SDK that npm has, and Microsoft's images
_ENVIRONMENT = {
    "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
    "DOTNET_NOLOGO": "1",
    "DOTNET_ROLL_FORWARD": "Major",
    "NUGET_PACKAGES": "/opt/nuget",
}


def find_dotnet(files: Mapping[str, bytes], folder: str, commands: Commands) -> Part | None:  # noqa: ARG001 - all finders are called alike
    """The part of a project with C# project files, all of them together; None where there is none."""
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
    """The last SDK of .NET Core. Microsoft's image of it stands on a Debian whose packages are gone."""
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
    # Such a name is also that of a component in other languages: `src/pages/SpeedTest/`.
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
            # MSBuild imports props, targets and `.user` files by their names, the compiler reads `.rsp`.
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
            # `[Fact]`, `[Trait("a", "b"), Fact]`, in F# `[<Fact>]`, in Visual Basic `<Fact>`
            re.compile(rf"(?m)^\s*(?:\[<?(?:[^\]\n]{{1,100}},\s*)?(?:\w+\.)*|<){_ATTRIBUTE}"),
        ),
        alone=re.compile(_TEST_PROJECT),
    ),
    lookup=NamespaceLookup,
    loaded="word",
    unbuilt=r"error (?:CS|FS|BC|MSB|NETSDK)\d|Build FAILED",
    compiled=r"\.(?:nupkg|dll|exe)$",
)  # fmt: skip
