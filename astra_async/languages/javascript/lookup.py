"""Find the modules that a new file would shadow in Node.js, jest, vite, webpack and TypeScript.

`./x` is the file `x`, else `x` with a suffix (the order depends on the tool), else the folder `x/`. A bare
name is a package, unless the configuration puts folders of the project first. jest replaces the package `x`
by `__mocks__/x`; vitest does so only if a test asks for it.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from astra_async.languages.language import BUILD, INSTALLED, PROTECTED
from astra_async.languages.project_files import below, folder_named, read_table, split

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from astra_async.languages.project_files import Pristine

SOURCES = frozenset({"js", "mjs", "cjs", "jsx", "ts", "tsx", "mts", "cts"})
_AFTER_JSON = frozenset({"mjs", "cjs", "jsx", "vue", "node", "svelte"})  # some tools try .json first
_PLATFORMS = frozenset({"web", "native", "ios", "android"})
_STRING = re.compile(r"[\"'`]([^\"'`\n]{0,200})[\"'`]")
_BASE_URL = re.compile(r'"baseUrl"\s*:\s*"([^"]*)"')
_MODULE_FOLDERS = re.compile(
    r"\b(moduleDirectories|modulePaths|modules|roots|root)\b[\"']?\s*:\s*(\[[^\]]*\]|[\"'][^\"']*[\"'])"
)
_SETTINGS_NAME = re.compile(r"[\w.-]*(?:config|conf)[\w.-]*\.(?:[cm]?[jt]s|json)|\.babelrc.*")
_USUAL = frozenset({
    "jest", "expect", "chai", "mocha", "vitest", "vite", "vite-node", "jasmine", "jasmine-core", "karma",
    "sinon", "supertest", "superagent", "enzyme", "nock", "jsdom", "power-assert", "should", "ava", "tape",
    "babel-jest", "ts-jest", "jest-junit", "jest-circus", "jest-environment-jsdom", "mocha-junit-reporter",
    "mocha-multi-reporters", "react-test-renderer", "chai-http", "react", "react-dom", "react-redux", "redux",
    "react-router", "react-router-dom", "vue", "vue-router", "vuex", "pinia", "zone.js", "rxjs", "axios",
    "angular", "angular-mocks", "typescript", "tslib", "core-js", "webpack", "express", "lodash", "moment",
    "mongoose", "mongodb", "sequelize", "body-parser", "prop-types", "jquery",
})  # fmt: skip
_USUAL_SCOPES = frozenset({"@testing-library", "@jest", "@vitest", "@babel", "@angular", "@vue", "@types"})
_CORE = frozenset({
    "assert", "async_hooks", "buffer", "child_process", "cluster", "console", "constants", "crypto", "dgram",
    "dns", "domain", "events", "fs", "http", "http2", "https", "inspector", "module", "net", "os", "path",
    "perf_hooks", "process", "punycode", "querystring", "readline", "repl", "stream", "string_decoder", "sys",
    "timers", "tls", "trace_events", "tty", "url", "util", "v8", "vm", "wasi", "worker_threads", "zlib",
})  # fmt: skip


class NodeLookup:
    """Module resolution of one project; folders in `_roots` take precedence over packages."""

    def __init__(self, project: Pristine) -> None:
        self._project = project
        self._roots = frozenset(_roots(project))
        self._uses_mocks = "jest" in project.tools or "vitest" in project.tools

    def refusal(self, path: str, _: str, held: Collection[str] | None) -> str | None:
        """See `Lookup.refusal`; the result does not depend on the text."""
        if path in self._project.texts:
            return None
        folder, stem, suffix = split(path)
        if f"{stem}.{suffix}".lower() == "package.json":
            return BUILD if not folder or folder in self._project.protected_folders else None
        return self._beside(folder, stem, suffix) or self._bare(path, held) or self._mock(path, held)

    def _beside(self, folder: str, stem: str, suffix: str) -> str | None:
        """Return a refusal if an import `./x` of a protected file would resolve to the new file."""
        known = self._project.suffixes
        rivals = known.get((folder, stem), frozenset())
        if suffix == "json":
            return PROTECTED if rivals & _AFTER_JSON else None
        if suffix and suffix not in SOURCES:
            return None
        rivals &= SOURCES | _AFTER_JSON | {"json"}
        base, _, platform = stem.rpartition(".")
        if platform in _PLATFORMS:
            rivals |= known.get((folder, base), frozenset()) & (SOURCES | {"json"})
        inner = posixpath.join(folder, stem)
        indexes = (f"{inner}/index.{each}" for each in (*SOURCES, "json", "node"))
        whole = self._project.protected.intersection((f"{inner}/package.json", *indexes))
        return PROTECTED if rivals or whole else None

    def _bare(self, path: str, held: Collection[str] | None) -> str | None:
        """Return a refusal if a bare name would resolve to the new file because of a configured root."""
        stem, _, suffix = path.rpartition(".") if "." in path.rpartition("/")[2] else (path, "", "")
        if suffix and suffix not in SOURCES | {"json", "node"}:
            return None
        for root in self._roots:
            rest = below(stem, root)
            if rest is None:
                continue
            if self._is_package(rest.removesuffix("/index"), held):
                return INSTALLED
            others = (posixpath.join(other, rest) for other in self._roots if other != root)
            if any(split(f"{each}.js")[:2] in self._project.suffixes for each in others):
                return PROTECTED
        return None

    def _is_package(self, name: str, held: Collection[str] | None) -> bool:
        """Return True if a bare name is a package, or a submodule that a protected file imports."""
        if _is_core(name) or not _is_held(name, held):
            return False
        is_part = name.count("/") > name.startswith("@")
        return not is_part or any(
            f"{name}{end}" in self._project.texts[each] for each in self._project.protected for end in "'\"`"
        )

    def _mock(self, path: str, held: Collection[str] | None) -> str | None:
        before, marker, name = f"/{path}".partition("/__mocks__/")
        if not marker or not self._uses_mocks:
            return None
        name = name.rpartition(".")[0].removesuffix("/index")
        if _is_held(name, held) and not _is_core(name):
            return INSTALLED
        texts = self._project.texts
        folder, stem, _ = split(f"{before[1:]}/{name}.js".lstrip("/"))
        beside = _is_core(name) or any(split(each)[:2] == (folder, stem) for each in texts)
        asked = any("mock(" in texts[each] or "automock" in texts[each] for each in self._project.protected)
        return PROTECTED if beside and asked else None


def _is_core(name: str) -> bool:
    """Return True for a core module of Node.js, which takes precedence over any file."""
    return name.removeprefix("node:").partition("/")[0] in _CORE


def _is_held(name: str, held: Collection[str] | None) -> bool:
    """Return True if a bare specifier (`chai`, `@scope/name/sub`) is a package or a core module."""
    first, _, rest = name.partition("/")
    package = f"{first}/{rest.partition('/')[0]}" if first.startswith("@") else first
    known = package in _USUAL or first in _USUAL_SCOPES if held is None else package in held
    return known or package in _CORE


def _roots(project: Pristine) -> Iterator[str]:
    """Yield the folders that NODE_PATH, jest, TypeScript or a bundler search for bare names."""
    for found in re.findall(r"NODE_PATH=[\"']?([\w./:-]+)", project.tools.commands):
        yield from map(folder_named, found.split(":"))
    for path, text in project.texts.items():
        folder, _, name = path.rpartition("/")
        if re.fullmatch(r"[tj]sconfig.*\.json", name):
            yield from (folder_named(posixpath.join(folder, base)) for base in _BASE_URL.findall(text))
        elif name == "package.json" or _SETTINGS_NAME.fullmatch(name):
            yield from _named_roots(folder, _settings(name, text)) & {*project.folders, ""}


def _named_roots(folder: str, settings: str) -> set[str]:
    """Return module folders in settings; `roots` counts only for babel's module-resolver, not for jest."""
    return {
        folder_named(posixpath.join(folder, each.replace("<rootDir>", ".").lstrip("/")))
        for setting, value in _MODULE_FOLDERS.findall(settings)
        if setting.startswith("module") or "module-resolver" in settings
        for each in _STRING.findall(value)
    }


def _settings(name: str, text: str) -> str:
    if name != "package.json":
        return text
    package: Mapping[str, object] = read_table(text) or {}
    return repr({key: package[key] for key in ("jest", "babel", "vitest") if key in package})
