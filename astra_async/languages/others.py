"""Languages of which only the tests and tools are known, and build tools of no language."""

from __future__ import annotations

import re

from astra_async.languages.language import BUILD, Language, Reads, TestFiles, Tool, Tools

ELIXIR = Language(
    name="elixir",
    suffixes=frozenset({"ex", "exs"}),
    tools=Tools(
        programs=(Tool(name="mix", sign=r"\bmix test\b", runs_tests=True),),
        reads=(Reads(rule=BUILD, by="mix", reach="place", names=(r"mix\.(?:exs|lock)",)),),
    ),
    tests=TestFiles(paths=re.compile(r"_(?:test|spec)\.exs?$")),
    compiled=r"\.beam$",
)
DART = Language(
    name="dart",
    suffixes=frozenset({"dart"}),
    tests=TestFiles(paths=re.compile(r"_(?:test|spec)\.dart$")),
)
COFFEESCRIPT = Language(name="coffeescript", suffixes=frozenset({"coffee"}))
GHERKIN = Language(
    name="gherkin",
    suffixes=frozenset({"feature"}),
    tests=TestFiles(
        paths=re.compile(r"\.feature$|(?:^|/)step_definitions/"),
        folders=frozenset({"step_definitions"}),
        whole=re.compile(r"\.feature$"),
    ),
)
BUILD_TOOLS = Language(
    name="build tools",
    tools=Tools(
        programs=(
            Tool(name="make", sign=r"\bmake\b", scripts=("GNUmakefile", "makefile", "Makefile")),
            Tool(name="cmake", sign=r"\bcmake\b|\bctest\b"),
            Tool(name="just", sign=r"\bjust\b"),
            Tool(name="task", sign=r"\btask\b"),
        ),
        reads=(
            Reads(rule=BUILD, by="make cmake", reach="place", names=(
                r"(?:gnu)?makefile(?:\..*)?|.*\.mk|cmakelists\.txt|cmakepresets\.json",
            )),
            Reads(rule=BUILD, by="just task", reach="place", names=(r"\.?justfile|taskfile\.ya?ml",)),
        ),
        manifests=r"makefile",
    ),
)  # fmt: skip
