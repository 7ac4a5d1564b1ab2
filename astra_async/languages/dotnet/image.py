"""C# projects on Microsoft's SDK image: a template that this project's own tests do not try."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

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
