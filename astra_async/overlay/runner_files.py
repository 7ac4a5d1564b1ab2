"""Pristine files that the test command or the runner's own configuration names."""

from __future__ import annotations

import json
import posixpath
import re
from typing import TYPE_CHECKING

from astra_async.overlay.tool_files import configuration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_WORD = re.compile(r"[\w@./-]{2,300}")
# Scripts, and programs whose name says that they run or prepare tests. A command may also start the
# application itself (`node server.js & sleep 2; curl ...`): that stays the answer's to change.
_SCRIPT = re.compile(r"(?:.*/)?(?:[\w-]+|[\w.-]+\.(?:sh|bash|ps1|bat)|manage\.py)")
_HARNESS = re.compile(r"test|spec|check|grade|score|report|jest|mocha|karma|setup|register", re.IGNORECASE)
_SETTING = re.compile(
    r"\b(?:setupFiles\w*|setupFile|globalSetup|globalTeardown|testEnvironment|reporters?|require|import|file|resolver"
    r"|snapshotSerializers|transform|runner|testRunner|testSequencer|presets?|plugins?|loader|spec|supportFile)\b[\"']?\s{0,5}[:=,]"
)
_ALSO_RUNNER = re.compile(
    r"(?:^|/)(?:\.mocharc|\.babelrc|babel\.config|vite\.config|vue\.config|craco\.config)"
)
# A file of settings that a command is given (`--reporter-options configFile=config.json`).
_SETTINGS_FILE = re.compile(
    r"(?:config|report|option|setting)[^/]*\.(?:json|ya?ml|xml|ini|toml|cfg|opts)$", re.IGNORECASE
)
_STRING = re.compile(r"[\"']([^\"'\n]{1,300})[\"']|(?<=[-:]\s)([\w./-]{3,200})")
_SETTING_LENGTH = 400


def runner_files(command: str, texts: Mapping[str, str]) -> frozenset[str]:
    """Existing files that are part of how the tests are run, though no convention names them."""
    named = {
        path for path in _named_in(command, texts) if _SCRIPT.fullmatch(path) or _SETTINGS_FILE.search(path)
    }
    for path, text in texts.items():
        if path.rpartition("/")[2] == "package.json":
            named |= _named_by_package(path, text, texts)
        elif configuration(path) == "runner_configuration" or _ALSO_RUNNER.search(path):
            named |= _named_by_settings(path, text, texts)
    return frozenset(named)


def _named_in(command: str, texts: Mapping[str, str], folder: str = "") -> Iterable[str]:
    for word in _WORD.findall(command):
        path = posixpath.normpath(posixpath.join(folder, word))
        if path in texts:
            yield path


def _named_by_package(path: str, text: str, texts: Mapping[str, str]) -> set[str]:
    """Scripts behind `npm test`, and the modules that a `jest` or `mocha` section loads."""
    try:
        package = json.loads(text)
    except (ValueError, RecursionError):
        return set()
    scripts = package.get("scripts") if isinstance(package, dict) else None
    if not isinstance(package, dict) or not isinstance(scripts, dict):
        return set()
    folder = posixpath.dirname(path)
    commands = " ".join(str(scripts.get(name, "")) for name in ("pretest", "test", "posttest"))
    named = {each for each in _named_in(commands, texts, folder) if _runs_tests(each)}
    for section in ("jest", "mocha", "nyc", "ava", "vitest"):
        settings = package.get(section)
        if isinstance(settings, dict):
            named |= _named_by_settings(path, json.dumps(settings), texts)
    return named


def _runs_tests(path: str) -> bool:
    return any((_SCRIPT.fullmatch(path), _HARNESS.search(path), _SETTINGS_FILE.search(path)))


def _named_by_settings(path: str, text: str, texts: Mapping[str, str]) -> set[str]:
    """Existing files named right after a setting that makes the runner load them."""
    named = set()
    folder = posixpath.dirname(path)
    for setting in _SETTING.finditer(text):
        region = re.split(r"[\]})]", text[setting.end() : setting.end() + _SETTING_LENGTH], maxsplit=1)[0]
        for pair in _STRING.findall(region):
            name = (pair[0] or pair[1]).replace("<rootDir>/", "").removeprefix("./")
            target = posixpath.normpath(posixpath.join(folder, name))
            named |= {
                each
                for each in (target, *(f"{target}.{suffix}" for suffix in ("js", "ts", "jsx", "tsx")))
                if each in texts
            }
    return named
