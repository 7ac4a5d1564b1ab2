"""Files that a test runner, interpreter, build tool or package manager of this problem reads by name.

A tool reads its configuration at the root, next to a manifest, and in a folder that a command enters. Some
tools (pytest, TypeScript, Babel) also read it in every folder above the files they load. The same name
elsewhere is an ordinary file: `config/jest.js`, `locales/global.json`, `game/setup.py`. Each language defines
its own names.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from astra_async.languages import LANGUAGES
from astra_async.languages.language import BUILD, RUNNER
from astra_async.overlay.tools import WORD, named_paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from astra_async.languages.language import Lookup, Rule
    from astra_async.languages.project_files import ProblemTools


_COMPILED = re.compile(
    "|".join([r"\.(?:so|dylib|dll)(?:\.\d+)*$", *(each.compiled for each in LANGUAGES if each.compiled)])
)


def is_compiled(path: str) -> bool:
    """Return True if a file's name says that it is compiled or packed code."""
    return _COMPILED.search(path.lower()) is not None


# Names of the modules, packages, features and types that an image holds in addition to the project, by
# language (from the language's `installed.sh`). For a missing language, usual names are assumed.
Installed = Mapping[str, Collection[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookups:
    """Module and class lookups of one project, by language."""

    of: Mapping[str, Lookup] = field(default_factory=dict)
    installed: Installed = field(default_factory=dict)

    def new(self, path: str, text: str) -> str | None:
        """Return the key of REFUSALS if a new file would be loaded in place of another, or None."""
        if is_compiled(path):
            return "compiled"
        if any(each.plugins.search(path) for each in LANGUAGES if each.plugins):
            return "plugin_registration"
        return self.changed(path, text)

    def changed(self, path: str, text: str) -> str | None:
        """Return the key of REFUSALS if the new text makes this file load in place of another, or None."""
        found = (each.refusal(path, text, self.installed.get(name)) for name, each in self.of.items())
        return next(filter(None, found), None)


_TOOLS = [language.tools for language in LANGUAGES]


def _any_of(patterns: Iterator[str]) -> str:
    return "|".join(f"(?:{each})" for each in patterns if each) or r"(?!)"


_READS = tuple(
    (reads, frozenset(reads.by.split()), re.compile(reads.names)) for tools in _TOOLS for reads in tools.reads
)
_ORDINARY_NAME = re.compile(_any_of(tools.everyday for tools in _TOOLS))
# `svgo.config.js` is read by the tool `svgo` if that is a development dependency of the project.
_NAMED_CONFIG = re.compile(r"([\w-]+)(?:\.config|rc)\.\w+")

# Dotfiles and dot folders that editors, linters and version control read, but no test run does.
_INERT_DOTFILE = re.compile(
    r"\.(?:git(?:keep|ignore|attributes)|keep|dockerignore|editorconfig|tool-versions|markdownlint.*"
    r"|pre-commit-config\.ya?ml|travis\.ya?ml|gitlab-ci\.ya?ml|nojekyll|htaccess"
    rf"|{_any_of(tools.inert for tools in _TOOLS)})"
)
_INERT_DOTFOLDERS = frozenset(
    {".github", ".vscode", ".idea", ".circleci", ".husky", ".storybook", ".well-known"}
)


def reads(tools: ProblemTools, path: str, *, is_new: bool) -> Rule | None:
    """Return `runner_configuration` or `build_configuration` if a tool reads this file by its name.

    An existing file with such a name counts as configuration in any folder, because a command or another
    configuration may name it.
    """
    folder, _, name = path.rpartition("/")
    name = name.lower()
    for each, readers, names in _READS:
        is_used = not (readers and tools.names) or readers & tools.names
        if not is_used or not names.fullmatch(path.lower() if each.reach == "path" else name):
            continue
        if each.when and not re.search(each.when, tools.command):
            continue
        is_there = (
            each.reach in ("any", "path")
            or folder in tools.places
            or (each.reach == "above" and folder in tools.above_tests)
        )
        if is_there or (not is_new and not _is_ordinary_name(name)):
            return each.rule
    named = _NAMED_CONFIG.fullmatch(name)
    return BUILD if named and folder in tools.places and named[1] in tools.development else None


def is_dotfile(path: str) -> bool:
    """Return True if a part of the path begins with a dot and some tool may load it by that name."""
    *folders, name = path.split("/")
    if any(folder.startswith(".") for folder in folders):
        return folders[0] not in _INERT_DOTFOLDERS
    return name.startswith(".") and not _INERT_DOTFILE.fullmatch(name)


def _is_ordinary_name(name: str) -> bool:
    """Return True if ordinary sources also use this name, so only the folder makes it configuration."""
    is_telling = re.search(r"config|conf\.|setup\.[jt]s|preset|transform", name)
    return _ORDINARY_NAME.fullmatch(name) is not None and not is_telling


# --- files that the project's own commands and settings name -------------------------------------------

# Scripts, and programs whose name suggests that they run or prepare tests. A command may also start the
# application itself (`node server.js & sleep 2; curl ...`); answers may change the application.
_SCRIPT = re.compile(r"(?:.*/)?(?:[\w-]+|[\w.-]+\.(?:sh|bash|ps1|bat)|manage\.py)")
_HARNESS = re.compile(r"test|spec|check|grade|score|report|jest|mocha|karma|setup|register", re.IGNORECASE)
_SETTINGS_SUFFIX = r"\.(?:json|ya?ml|xml|ini|toml|cfg|conf|opts|properties)"
_SETTINGS_FILE = re.compile(
    rf"(?:config|report|option|setting)[^/]*(?:{_SETTINGS_SUFFIX}|\.[cm]?js)$", re.IGNORECASE
)
# Settings files passed to a tool: `--reporter-options configFile=reporters.json`, `-c tests.ini`.
_OF_SETTINGS = re.compile(
    rf"(?:\w*(?:config|settings|options?|opts|rcfile)\w*|(?<!\S)-c)[\s=:\"']{{1,4}}([\w@./-]{{1,200}}{_SETTINGS_SUFFIX})\b",
    re.IGNORECASE,
)
# Settings by which a runner loads a file, in JSON, YAML, XML or code.
_SETTING = re.compile(
    rf"\b(?:{_any_of(tools.settings for tools in _TOOLS)}|environment)\b[\"']?\s{{0,5}}[:=,]"
)
_ALSO_RUNNER = re.compile(_any_of(tools.settings_files for tools in _TOOLS))
_STRING = re.compile(r"[\"']([^\"'\n]{1,300})[\"']|(?:(?<=[-:=]\s)|(?<==))([\w./-]{3,200})")
# An option in an options file, such as `--require ./src/prepare.js`.
_OPTION = re.compile(r"(?:^|\s)--?[\w-]+[ =]+[\"']?([\w@=-]{0,100}[./][\w@./=-]{1,200})", re.MULTILINE)
_CLOSES = re.compile(r"[\]})]")
_SETTING_LENGTH = 400
_ENDS = ("", *(end for tools in _TOOLS for end in tools.ends))


def runner_files(tools: ProblemTools, texts: Mapping[str, str]) -> frozenset[str]:
    """Return existing files that the test commands or settings name, without a conventional name."""
    named = named_paths(WORD.findall(tools.commands.replace("=", " ")), tools.commands)
    runs_tests = (_SCRIPT.fullmatch, _HARNESS.search, _SETTINGS_FILE.search)
    files = {path for path in named if path in texts and any(tells(path) for tells in runs_tests)}
    files |= {path for path in named_paths(_OF_SETTINGS.findall(tools.commands), "") if path in texts}
    for path, text in texts.items():
        for settings in _settings_in(tools, path, text):
            files |= _named_by_settings(path, settings, texts)
    return frozenset(files)


def _settings_in(tools: ProblemTools, path: str, text: str) -> Iterator[str]:
    """Yield the texts in this file that configure a test runner; most files have no such text."""
    if reads(tools, path, is_new=False) == RUNNER or _ALSO_RUNNER.search(path):
        yield text
    for each in _TOOLS:
        if each.sections:
            yield from each.sections(path, text)


def _named_by_settings(path: str, text: str, texts: Mapping[str, str]) -> set[str]:
    """Return the existing files that the runner loads because a setting names them, and settings files."""
    names = [*_OF_SETTINGS.findall(text), *_OPTION.findall(text)]
    for setting in _SETTING.finditer(text):
        ends = setting.end() + _SETTING_LENGTH
        closed = _CLOSES.search(text, setting.end(), ends)
        found = _STRING.findall(text, setting.end(), closed.start() if closed else ends)
        names += (word for each in found for word in _words(*each))
    folder = posixpath.dirname(path)
    bare = {name.rpartition("=")[2].replace("<rootDir>/", "").removeprefix("./") for name in names}
    targets = {posixpath.normpath(posixpath.join(base, name)) for name in bare for base in (folder, "")}
    return {f"{target}{end}" for target in targets for end in _ENDS} & texts.keys()


def _words(quoted: str, plain: str) -> list[str]:
    """Split a shell line into words; return it whole if its quotes are unbalanced."""
    try:
        return shlex.split(quoted or plain)
    except ValueError:
        return [quoted or plain]
