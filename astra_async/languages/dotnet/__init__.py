"""C#, F# and Visual Basic, on .NET."""

from __future__ import annotations

import re

from astra_async.languages.dotnet.image import find_dotnet
from astra_async.languages.language import BUILD, RUNNER, Images, Language, Reads, TestFiles, Tool, Tools

_TEST_PROJECT = r"(?:^|/)[^/]*[.](?:Unit|Integration|Api)?Tests?/"

DOTNET = Language(
    name="dotnet",
    suffixes=frozenset({"cs", "fs", "vb"}),
    images=Images(find=find_dotnet, calls=re.compile(r"(?<![\w.-])dotnet(?![\w-])"), signs=("*.csproj",)),
    tools=Tools(
        programs=(Tool("dotnet", r"\bdotnet\b|\bxunit\b|\bnunit\b", runs_tests=True),),
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
