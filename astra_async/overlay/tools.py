"""Detect the build tools and test runners of a problem, and the folders in which they look for files.

The evidence is the test command with the scripts it calls, and the manifests. If no test runner is
recognized, any runner is assumed.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from astra_async.languages import LANGUAGES
from astra_async.languages.project_files import ProblemTools, above

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

_PROGRAMS = {tool.name: tool for language in LANGUAGES for tool in language.tools.programs}
_MANIFESTS = re.compile(
    rf"(?:.*/)?(?:{'|'.join(each.tools.manifests for each in LANGUAGES if each.tools.manifests)})",
    re.IGNORECASE,
)
_SCRIPTS = [language.tools.scripts for language in LANGUAGES if language.tools.scripts]
_DEVELOPMENT = [language.tools.development for language in LANGUAGES if language.tools.development]
ENTERED = re.compile(r"(?:\bcd|(?<!\w)-C|--prefix[= ]|--cwd[= ])\s*[\"']?(?:\./)?([\w.-]+(?:/[\w.-]+)*)")
WORD = re.compile(r"[\w@./-]{2,300}")
_DEPTH, _MOST_TEXT = 4, 200_000


def detect_tools(command: str, texts: Mapping[str, str], tests: Collection[str]) -> ProblemTools:
    """Detect the tools from the test command and the text of the pristine files."""
    commands = "\n".join(_commands(command, texts))
    manifests = {path: text for path, text in texts.items() if _MANIFESTS.fullmatch(path)}
    places = {"", *(posixpath.dirname(path) for path in manifests), *ENTERED.findall(commands)}
    return ProblemTools(
        names=_detected_tools("\n".join([commands, *manifests.values(), *_own_settings(texts)])),
        places=frozenset(places),
        tests=frozenset(tests),
        above_tests=frozenset({"", *(folder for path in tests for folder in above(path))}),
        command=command,
        commands=commands,
        development=frozenset(
            name for path, text in manifests.items() for read in _DEVELOPMENT for name in read(path, text)
        ),
    )


def named_paths(words: Iterable[str], commands: str) -> Iterator[str]:
    """Yield the paths that words of commands may name, from the root or a folder that a command enters."""
    folders = ("", *ENTERED.findall(commands))
    return (posixpath.normpath(posixpath.join(folder, word)) for word in words for folder in folders)


def _detected_tools(evidence: str) -> frozenset[str]:
    found = {
        tool.name
        for tool in _PROGRAMS.values()
        if re.search(tool.sign, evidence, re.IGNORECASE if tool.runs_tests else re.NOFLAG)
    }
    runners = {name for name in found if _PROGRAMS[name].runs_tests}
    return frozenset(found | {each for name in runners for each in _PROGRAMS[name].brings} if runners else ())


def _own_settings(texts: Mapping[str, str]) -> Iterator[str]:
    """Yield tool names taken from configuration file names (`vitest` from `vitest.config.js`)."""
    for path in texts:
        name = path.rpartition("/")[2]
        if re.fullmatch(r"\.?[\w-]+(?:\.config\.\w+|\.conf\.\w+|rc(?:\.\w+)?|\.ini)", name):
            yield re.sub(r"\.(?:config|conf)\.\w+$|\.ini$|rc(?:\.\w+)?$", "", name.removeprefix("."))


def _commands(command: str, texts: Mapping[str, str]) -> Iterator[str]:
    """Yield the test command and the scripts it calls directly or indirectly, in files and manifests."""
    found: dict[str, str] = {}
    fresh = {"": command}
    for _ in range(_DEPTH):
        found |= fresh
        called: dict[str, str] = {}
        for text in fresh.values():
            called |= {path: texts[path] for path in _scripts_in(text, texts)}
            called |= _manifest_scripts(text, texts)
        fresh = {name: text for name, text in called.items() if name not in found}
    yield from (text[:_MOST_TEXT] for text in found.values())


def _scripts_in(text: str, texts: Mapping[str, str]) -> Iterator[str]:
    of_tools = {each for tool in _PROGRAMS.values() if tool.name in text for each in tool.scripts}
    for path in named_paths(dict.fromkeys((*WORD.findall(text), *of_tools)), text):
        own = path.rpartition("/")[2] in of_tools or path.endswith((".sh", ".bash"))
        if path in texts and (own or texts[path].startswith("#!")):
            yield path


def _manifest_scripts(text: str, texts: Mapping[str, str]) -> dict[str, str]:
    folders = dict.fromkeys(named_paths(["."], text))
    return {
        name: script
        for path in texts
        if (posixpath.dirname(path) or ".") in folders
        for read in _SCRIPTS
        for name, script in read(path, texts[path], text).items()
    }
