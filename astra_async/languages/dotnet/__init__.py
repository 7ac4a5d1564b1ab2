"""C#, F# and Visual Basic, on .NET."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

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
    from collections.abc import Mapping

    from astra_async.languages.needs import Commands


_RESTORED = (".csproj", ".fsproj", ".vbproj", ".sln", ".slnx", "nuget.config", "directory.build.props")
_FRAMEWORK = re.compile(rb"<TargetFrameworks?>\s*(?:net|netcoreapp)(\d+)\.(\d+)")
_OLDEST, _NEWEST = 6, 10


def find_dotnet(files: Mapping[str, bytes], folder: str, commands: Commands) -> Part | None:  # noqa: ARG001 - all finders are called alike
    """The part of a project with C# project files, all of them together; None where there is none."""
    kept = {path: content for path, content in files.items() if path.lower().endswith(_RESTORED)}
    if folder or not any(path.endswith("proj") for path in kept):
        return None
    versions = [int(found[1]) for content in kept.values() for found in _FRAMEWORK.finditer(content)]
    version = min(max([_OLDEST, *versions]), _NEWEST)
    return Part(
        language="dotnet",
        label="dotnet",
        toolchain=Toolchain(
            label=f"dotnet{version}",
            image=f"mcr.microsoft.com/dotnet/sdk:{version}.0",
            environment={
                "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
                "DOTNET_NOLOGO": "1",
                "DOTNET_ROLL_FORWARD": "Major",
                "NUGET_PACKAGES": "/opt/nuget",
            },
        ),
        files=kept,
        install=script("dotnet/dotnet.sh"),
        notes=(f"C# project files: mcr.microsoft.com/dotnet/sdk:{version}.0 (untested template)",),
    )


_TEST_PROJECT = r"(?:^|/)[^/]*[.](?:Unit|Integration|Api)?Tests?/"

DOTNET = Language(
    name="dotnet",
    suffixes=frozenset({"cs", "fs", "vb"}),
    images=Images(find=find_dotnet, calls=re.compile(r"(?<![\w.-])dotnet(?![\w-])"), signs=("*.csproj",)),
    tools=Tools(
        programs=(ProjectTool("dotnet", r"\bdotnet\b|\bxunit\b|\bnunit\b", runs_tests=True),),
        reads=(
            Reads(RUNNER, "dotnet", "any", r"xunit\.runner\.json|.*\.runsettings|testconfig\.json"),
            Reads(BUILD, "dotnet", "any", (
                r".*\.(?:csproj|fsproj|vbproj|sln|slnx|props|targets|rsp)|nuget\.config|packages\.lock\.json"
            )),
            Reads(BUILD, "dotnet", "place", r"global\.json"),
        ),
        manifests=r"[^/]*\.csproj",
        everyday=r".*\.(?:props|targets|sln)",
        variables=r"DOTNET_\w{0,80}",
        dependency_folders=frozenset({".nuget"}),
    ),
    tests=TestFiles(
        paths=re.compile(_TEST_PROJECT + r"|[a-z0-9]Tests?\.cs$"),
        content=(re.compile(r"\[(?:Fact|Theory|Test|TestMethod|TestFixture)\b"),),
        alone=re.compile(_TEST_PROJECT),
    ),
    loaded="word",
    unbuilt=r"error CS\d|Build FAILED",
    compiled=r"\.nupkg$",
)  # fmt: skip
