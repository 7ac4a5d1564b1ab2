"""Which tools a problem's tests are built and run with, and where those look for files.

It follows from the commands, with the scripts and npm scripts that they call, and from the manifests. Where
no test runner is recognised, it may be any.
"""

from __future__ import annotations

import json
import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from astra_async.overlay.paths import above

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

# What tells of a tool, in commands and manifests; what it brings along; whether it runs tests.
_SIGNS = {
    "jest": r"\bjest\b(?!-dom|-axe)|react-scripts|@vue/cli-plugin-unit-jest|ng test",
    "vitest": r"\bvitest\b",
    "mocha": r"\bmocha\b",
    "karma": r"\bkarma\b|\bng test\b|build-angular",
    "jasmine": r"\bjasmine\b",
    "cypress": r"\bcypress\b",
    "playwright": r"\bplaywright\b",
    "tape": r"\btape\b|\bnode --test\b|\btap\b",
    "pytest": r"\bpy\.?test\b",
    "unittest": r"\bunittest\b|\bxmlrunner\b|manage\.py|\bdjango\b",
    "rspec": r"\brspec\b",
    "minitest": r"\bminitest\b|\brails\s+test\b|\bruby\b[^\n]{0,200}\btest",
    "junit": r"(?<![-=])\bjunit\b(?!\.xml|-reporter)|jupiter|\bmvnw?\b|gradle|surefire",
    "testng": r"\btestng\b",
    "phpunit": r"\bphpunit\b|\bpest\b|\bcodecept",
    "dotnet": r"\bdotnet\b|\bxunit\b|\bnunit\b",
    "go": r"\bgo test\b",
    "cargo": r"\bcargo\b",
    "mix": r"\bmix test\b",
}
_CALLED_SO = (
    "protractor", "wdio", "nightwatch", "codecept", "testcafe", "ava", "web-test-runner", "wallaby",
    "stryker", "cucumber", "rollup", "esbuild", "gulp", "grunt", "nest", "eslint", "turbo", "lerna",
    "bun", "deno", "tox", "nox", "sbt", "make", "just", "task",
)  # fmt: skip
_FURTHER_SIGNS = {
    "nyc": r"\bnyc\b|\bc8\b",
    "rake": r"\brake\b|\brails\b",
    "bundler": r"\bbundle\b|\bgem ['\"]",
    "pip": r"\bpip3?\b|\bpoetry\b|\buv\b|\bpipenv\b",
    "nose": r"\bnose",
    "vite": r"\bvite\b",
    "webpack": r"\bwebpack\b|react-scripts|vue-cli-service|craco|\bnext\b|\bnuxt\b|build-angular",
    "angular": r"@angular/|\bng\b",
    "babel": r"\bbabel\b|@babel/",
    "typescript": r"\btypescript\b|\btsc\b|ts-node|ts-jest",
    "tailwind": r"\btailwindcss\b",
    "maven": r"\bmvnw?\b",
    "gradle": r"gradle",
    "cmake": r"\bcmake\b|\bctest\b",
    **{name: rf"\b{name}\b" for name in _CALLED_SO},
}
_BRINGS = {
    "jest": ("babel", "typescript", "node"),
    "vitest": ("vite", "typescript", "node"),
    "mocha": ("node",),
    "karma": ("webpack", "typescript", "angular", "jasmine", "node"),
    "pytest": ("python",),
    "unittest": ("python",),
    "junit": ("maven", "gradle"),
}
_MANIFESTS = re.compile(
    r"(?:.*/)?(?:package\.json|pom\.xml|build\.gradle(?:\.kts)?|gemfile|requirements[^/]*\.txt|pyproject\.toml|pipfile"
    r"|setup\.cfg|tox\.ini|makefile|composer\.json|[^/]*\.csproj)",
    re.IGNORECASE,
)
_ENTERED = re.compile(r"(?:\bcd|(?<!\w)-C|--prefix[= ]|--cwd[= ])\s*[\"']?(?:\./)?([\w.-]+(?:/[\w.-]+)*)")
_NPM_CALL = re.compile(r"\b(?:npm|yarn|pnpm)\s+(?:run(?:-script)?\s+)?([\w:.-]+)")
WORD = re.compile(r"[\w@./-]{2,300}")
_FILES_OF = {"make": ("GNUmakefile", "makefile", "Makefile"), "rake": ("rakefile", "Rakefile")}
_DEPTH, _MOST_TEXT = 4, 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The tools at hand, the folders where they look, and everything that is run, as one text.

    `above_tests` are the folders above the tests; `development` names packages for development alone.
    """

    names: frozenset[str]
    places: frozenset[str]
    tests: frozenset[str]
    above_tests: frozenset[str]
    commands: str
    development: frozenset[str]

    @classmethod
    def of(cls, command: str, texts: Mapping[str, str], tests: Collection[str]) -> Tools:
        """From the test command and the text of the pristine files."""
        commands = "\n".join(_commands(command, texts))
        manifests = {path: text for path, text in texts.items() if _MANIFESTS.fullmatch(path)}
        places = {"", *(posixpath.dirname(path) for path in manifests), *_ENTERED.findall(commands)}
        return cls(
            names=_at_hand("\n".join([commands, *manifests.values(), *_own_settings(texts)])),
            places=frozenset(places),
            tests=frozenset(tests),
            above_tests=frozenset({"", *(folder for path in tests for folder in above(path))}),
            commands=commands,
            development=frozenset(_development(manifests)),
        )

    def __contains__(self, tool: object) -> bool:
        return not self.names or tool in self.names


def package_of(text: str) -> dict[str, Any]:
    """What a package.json holds, nothing where it is none."""
    try:
        package = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return {}
    return package if isinstance(package, dict) else {}


def section(text: str, name: str) -> dict[str, Any]:
    """One section of a package.json, empty where there is none."""
    found = package_of(text).get(name)
    return found if isinstance(found, dict) else {}


def named_paths(words: Iterable[str], commands: str) -> Iterator[str]:
    """What words of commands may name: a path from the root, or from a folder that a command enters."""
    folders = ("", *_ENTERED.findall(commands))
    return (posixpath.normpath(posixpath.join(folder, word)) for word in words for folder in folders)


def _at_hand(evidence: str) -> frozenset[str]:
    runners = {tool for tool, sign in _SIGNS.items() if re.search(sign, evidence, re.IGNORECASE)}
    if not runners:
        return frozenset()
    further = {tool for tool, sign in _FURTHER_SIGNS.items() if re.search(sign, evidence)}
    return frozenset(runners | further | {brought for tool in runners for brought in _BRINGS.get(tool, ())})


def _own_settings(texts: Mapping[str, str]) -> Iterator[str]:
    """What the project's own configuration is called, which tells of its tools (`vitest.config.js`)."""
    for path in texts:
        name = path.rpartition("/")[2]
        if re.fullmatch(r"\.?[\w-]+(?:\.config\.\w+|\.conf\.\w+|rc(?:\.\w+)?|\.ini)", name):
            yield re.sub(r"\.(?:config|conf)\.\w+$|\.ini$|rc(?:\.\w+)?$", "", name.removeprefix("."))


def _commands(command: str, texts: Mapping[str, str]) -> Iterator[str]:
    """The command, and the scripts and npm scripts that it calls, and those that they call."""
    found: dict[str, str] = {}
    fresh = {"": command}
    for _ in range(_DEPTH):
        found |= fresh
        called: dict[str, str] = {}
        for text in fresh.values():
            called |= {path: texts[path] for path in _scripts_in(text, texts)}
            called |= _npm_scripts(text, texts)
        fresh = {name: text for name, text in called.items() if name not in found}
    yield from (text[:_MOST_TEXT] for text in found.values())


def _scripts_in(text: str, texts: Mapping[str, str]) -> Iterator[str]:
    by_tool = (each for tool, files in _FILES_OF.items() if tool in text for each in files)
    for path in named_paths(dict.fromkeys((*WORD.findall(text), *by_tool)), text):
        is_script = texts.get(path, "").startswith("#!") or path.endswith((".sh", ".bash", "akefile"))
        if path in texts and is_script:
            yield path


def _npm_scripts(text: str, texts: Mapping[str, str]) -> dict[str, str]:
    scripts: dict[str, str] = {}
    for path in named_paths(["package.json"], text):
        known = section(texts.get(path, ""), "scripts")
        for name in _NPM_CALL.findall(text):
            name = "test" if name == "t" else name  # noqa: PLW2901 - npm's own short form
            for each in (f"pre{name}", name, f"post{name}"):
                if each in known:
                    scripts[f"{path}:{each}"] = str(known[each])
    return scripts


def _development(manifests: Mapping[str, str]) -> Iterator[str]:
    for path, text in manifests.items():
        if path.endswith("package.json"):
            used = section(text, "dependencies")
            for name in section(text, "devDependencies"):
                if name not in used:
                    yield name.rpartition("/")[2]
