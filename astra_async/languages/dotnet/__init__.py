"""C#, F# and Visual Basic, on .NET."""

from __future__ import annotations

import re

from astra_async.languages.dotnet.image import find_dotnet
from astra_async.languages.language import Images, Language

DOTNET = Language(
    name="dotnet",
    suffixes=frozenset({"cs", "fs", "vb"}),
    images=Images(find=find_dotnet, calls=re.compile(r"(?<![\w.-])dotnet(?![\w-])"), signs=("*.csproj",)),
)
