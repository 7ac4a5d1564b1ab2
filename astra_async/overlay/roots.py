"""Folders of a project in which bare names are looked up before the installed ones, as its own files say."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.overlay.paths import above
from astra_async.overlay.tools import package_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from astra_async.overlay.tools import Tools

_STRING = re.compile(r"[\"'`]([^\"'`\n]{0,200})[\"'`]")
_WORD = re.compile(r"[\w./-]+")
_PYTHON_PLACE = re.compile(
    r"(?:\bcd|(?<!\w)-s|(?<!\w)-t|--start-directory|--top-level-directory|PYTHONPATH|\bpython[\d.]*)[\s=]+[\"']?([\w./:-]+)"
)
_FROM_SRC = re.compile(r"^\s*(?:from|import) src\b", re.MULTILINE)
_BASE_URL = re.compile(r'"baseUrl"\s*:\s*"([^"]*)"')
_MODULE_FOLDERS = re.compile(
    r"\b(moduleDirectories|modulePaths|modules|roots|root)\b[\"']?\s*:\s*(\[[^\]]*\]|[\"'][^\"']*[\"'])"
)
_SETTINGS_NAME = re.compile(r"[\w.-]*(?:config|conf)[\w.-]*\.(?:[cm]?[jt]s|json)|\.babelrc.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Roots:
    """Folders from the project's root, for each language."""

    python: frozenset[str]
    node: frozenset[str]
    ruby: frozenset[str]
    rails: bool


def roots_of(texts: Mapping[str, str], tools: Tools) -> Roots:
    """Those that the commands, settings and sources of a project make roots."""
    folders = {folder for path in texts for folder in above(path)} | {""}
    return Roots(
        python=frozenset(_python_roots(texts, tools, folders)),
        node=frozenset(_node_roots(texts, tools, folders)),
        ruby=frozenset(_ruby_roots(texts, tools, folders)),
        rails=any(
            re.search(r"\brails\b|\brailties\b", texts.get(name, ""))
            for name in ("Gemfile", "config/application.rb")
        ),
    )


def _python_roots(texts: Mapping[str, str], tools: Tools, folders: set[str]) -> Iterator[str]:
    """The root, a src that is no package, folders of manage.py and loose tests, and what is named as one."""
    yield ""
    is_package = "src/__init__.py" in texts or any(_FROM_SRC.search(text) for text in texts.values())
    if "src" in folders and not is_package:
        yield "src"
    for path in _PYTHON_PLACE.findall(tools.commands):
        for each in path.split(":"):
            place = _folder(posixpath.dirname(each) if each.endswith(".py") else each)
            if place in folders:
                yield place
    for path, text in texts.items():
        folder, _, name = path.rpartition("/")
        is_loose = path in tools.tests and name.endswith(".py") and f"{folder}/__init__.py" not in texts
        if is_loose or name in {"manage.py", "setup.py", "conftest.py", "pytest.ini"}:
            yield folder
        if name.endswith(".py") and "sys.path" in text:
            yield from {_folder(each) for each in _STRING.findall(text)} & folders
        elif name.endswith((".ini", ".cfg", ".toml")) and "pythonpath" in text:
            lines = [line for line in text.splitlines() if "pythonpath" in line]
            yield from {_folder(word) for line in lines for word in _WORD.findall(line)} & folders


def _node_roots(texts: Mapping[str, str], tools: Tools, folders: set[str]) -> Iterator[str]:
    """Folders that NODE_PATH, jest, TypeScript or a bundler look into for bare names."""
    for found in re.findall(r"NODE_PATH=[\"']?([\w./:-]+)", tools.commands):
        yield from map(_folder, found.split(":"))
    for path, text in texts.items():
        folder, _, name = path.rpartition("/")
        if re.fullmatch(r"[tj]sconfig.*\.json", name):
            yield from (_folder(posixpath.join(folder, base)) for base in _BASE_URL.findall(text))
        elif name == "package.json" or _SETTINGS_NAME.fullmatch(name):
            settings = _settings(name, text)
            for setting, value in _MODULE_FOLDERS.findall(settings):
                # `roots` says where jest looks for tests; that of babel's module-resolver is another.
                if setting.startswith("module") or "module-resolver" in settings:
                    named = (each.replace("<rootDir>", ".").lstrip("/") for each in _STRING.findall(value))
                    yield from {_folder(posixpath.join(folder, each)) for each in named} & folders


def _settings(name: str, text: str) -> str:
    if name != "package.json":
        return text
    package = package_of(text)
    return repr({key: package[key] for key in ("jest", "babel", "vitest") if key in package})


def _ruby_roots(texts: Mapping[str, str], tools: Tools, folders: set[str]) -> Iterator[str]:
    """Folders on Ruby's load path from its start or that of the test runner on."""
    yield from ("spec", "test")
    if "rspec" in tools or "rake" in tools:
        yield "lib"
    for found in re.findall(r"(?<![\w-])-I\s*[\"']?([\w./:,-]+)", tools.commands):
        yield from map(_folder, re.split("[:,]", found))
    for path, text in texts.items():
        if path.endswith((".rb", "Rakefile", ".rspec")):
            for line in text.splitlines():
                if re.search(r"LOAD_PATH|\$:|-I|\.libs\b", line):
                    yield from {_folder(word.lstrip("./")) for word in _WORD.findall(line)} & folders


def _folder(text: str) -> str:
    """A folder as the project names it: `./src/` is `src`, and `.` the root."""
    place = posixpath.normpath(text.strip()).lstrip("/") if text.strip() else ""
    return "" if place == "." else place
