"""Languages with test and tool detection only, and language-independent build tools."""

from __future__ import annotations

import re

from astra_async.languages.language import BUILD, Language, ProjectTool, Reads, TestFiles, Tools

ELIXIR = Language(
    name="elixir",
    suffixes=frozenset({"ex", "exs"}),
    tools=Tools(
        programs=(ProjectTool("mix", r"\bmix test\b", runs_tests=True),),
        reads=(Reads(BUILD, "mix", "place", r"mix\.(?:exs|lock)"),),
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
            ProjectTool("make", r"\bmake\b", scripts=("GNUmakefile", "makefile", "Makefile")),
            ProjectTool("cmake", r"\bcmake\b|\bctest\b"),
            ProjectTool("just", r"\bjust\b"),
            ProjectTool("task", r"\btask\b"),
        ),
        reads=(
            Reads(BUILD, "make cmake", "place", (
                r"(?:gnu)?makefile(?:\..*)?|.*\.mk|cmakelists\.txt|cmakepresets\.json"
            )),
            Reads(BUILD, "just task", "place", r"\.?justfile|taskfile\.ya?ml"),
        ),
        manifests=r"makefile",
    ),
)  # fmt: skip
