"""JavaScript and TypeScript, on Node.js and in the browser."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from astra_async.languages.javascript.image import MANAGERS, find_node, installs
from astra_async.languages.javascript.lookup import SOURCES, NodeLookup
from astra_async.languages.javascript.mutate import read_tests
from astra_async.languages.javascript.tools import TOOLS
from astra_async.languages.language import RUNNER, Images, Language, Merge, Offline, TestFiles
from astra_async.languages.project_files import read_table, table
from astra_async.types import Dropped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from astra_async.types import Project


_INSTALLS = re.compile(r"\b(?:npm|pnpm|yarn)\s+(?:install|i|ci)\b|\byarn\s*(?:$|&&|;)", re.MULTILINE)
_BASH = (b"#!/bin/bash", b"#!/usr/bin/env bash")
_HOOKS = ("preinstall", "pretest", "posttest")
_WRAPPER = """\
{tool}() {{ case "${{1-{default}}}" in install|i|ci) echo "{tool} ${{1-}}: skipped, the image holds the \
dependencies"; return 0;; esac; command {tool} "$@"; }}; export -f {tool}
"""
_TOOLS = (("npm", ""), ("pnpm", ""), ("yarn", "install"))  # yarn without a word installs


def offline_environment(project: Project) -> dict[str, str]:
    """The environment that keeps hooks of package.json from installing."""
    package = next((file.content for file in project.files if file.path == "package.json"), None)
    scripts = table((read_table(package) or {}).get("scripts"))
    installs = any(_INSTALLS.search(str(scripts.get(hook, ""))) for hook in _HOOKS)
    return {"npm_config_ignore_scripts": "true"} if installs else {}


def offline_command(command: str, project: Project) -> str:
    """The test command, with installs skipped if it, or a shell script of the project, asks for one."""
    texts = [command, *_shell_scripts(project)]
    if not any(_INSTALLS.search(text) for text in texts):
        return command
    return "".join(_WRAPPER.format(tool=tool, default=default) for tool, default in _TOOLS) + command


def _shell_scripts(project: Project) -> Iterator[str]:
    for file in project.files:
        folder, _, name = file.path.rpartition("/")
        in_bin = folder == "bin" and "." not in name
        if name.endswith(".sh") or in_bin or file.content.startswith(_BASH):
            yield file.content.decode(errors="replace")


OFFLINE = Offline(command=offline_command, environment=offline_environment)


_MERGED = ("dependencies", "devDependencies")
_NAME = re.compile(r"(?:@[a-z0-9._~-]{1,100}/)?[a-zA-Z0-9._~-]{1,200}")
_VERSION = re.compile(r"[\w.+~^<>=|* -]{1,100}")


def _merged(path: str, pristine: str, answer: str) -> tuple[str | None, list[Dropped]]:
    old, new = read_table(pristine, strict=False), read_table(answer, strict=False)
    if old is None or new is None:
        return None, [Dropped(path=path, reason="invalid_json")]
    dropped = [
        Dropped(path=f"{path}#{key}", reason=RUNNER)
        for key in dict.fromkeys([*new, *old])
        if key not in _MERGED and old.get(key) != new.get(key, old.get(key))
    ]
    result = dict(old)
    for section in _MERGED:
        _merge_section(path, section, new.get(section), result, dropped)
    if result == old:
        return None, dropped
    return json.dumps(result, indent=2, ensure_ascii=False) + "\n", dropped


def _merge_section(
    path: str, section: str, wanted: Any, result: dict[str, Any], dropped: list[Dropped]
) -> None:
    existing = result.get(section, {})
    if wanted is None or not isinstance(existing, dict):
        return
    entries = wanted.items() if isinstance(wanted, dict) else [("", wanted)]
    taken = dict(existing)
    for name, version in entries:
        if taken.get(name) == version:
            continue
        if isinstance(version, str) and _NAME.fullmatch(name) and _VERSION.fullmatch(version):
            taken[name] = version
        else:
            dropped.append(Dropped(path=f"{path}#{section}.{name[:200]}", reason="not_a_version"))
    if taken != existing:
        result[section] = taken


PACKAGE_JSON = Merge(
    takes=lambda path, _: path.rpartition("/")[2] == "package.json",
    merged=_merged,
)


_EXT = r"\.(?:[cm]?[jt]sx?|vue|coffee)"
JAVASCRIPT = Language(
    name="javascript",
    suffixes=SOURCES,
    images=Images(
        find=find_node,
        calls=re.compile(
            r"(?<![\w./-])(?:npm|npx|yarn|pnpm|node|ng|jest|mocha|vitest|karma|react-scripts|vue-cli-service"
            r"|tape|cypress)(?![\w./-])|node_modules/\.bin"
        ),
        signs=("package.json",),
        installs=installs,
        managers=MANAGERS,
        leavings=("package-lock.json", "yarn.lock", "pnpm-lock.yaml"),
        holds="javascript/installed.sh",
    ),
    tools=TOOLS,
    tests=TestFiles(
        paths=re.compile(
            rf"[.](?:tests?|specs?|cy|e2e|e2e-spec){_EXT}$|\.snap$"
            r"|(?:^|/)(?:__tests__|__mocks__|__snapshots__|__fixtures__)/|^(?:e2e|cypress|playwright)/"
            r"|(?:^|/)src/test\.[jt]s$"  # Angular's, which loads every spec file for karma
        ),
        likely=re.compile(rf"(?:^|[-_./])(?:[Tt]ests?|[Ss]pecs?)(?:[-_.][^/]*)?{_EXT}$|[a-z]Tests?{_EXT}$"),
        content=(
            re.compile(r"(?<![.\w$])(?:it|test|specify)(?:\.(?:only|skip|each|concurrent))?\(\s{0,50}[\"'`]"),
            re.compile(r"\bexpect\s?\(|\bassert\b|\bshould\b|\.expect\(|\bt\.(?:is|equal|ok|same)\("),
        ),
        alone=re.compile(r"\.snap$|(?:^|/)__snapshots__/"),
        folders=frozenset(
            {*("__tests__", "__mocks__", "__snapshots__", "__fixtures__"), *("e2e", "cypress", "playwright")}
        ),
    ),
    lookup=NodeLookup,
    merge=PACKAGE_JSON,
    offline=OFFLINE,
    compiled=r"\.node$",
    unbuilt=(
        r"SyntaxError|Syntax Error|ParseError|Module parse failed|Failed to compile|error (?:TS|NG)\d"
        r"|Test suite failed to run|Cannot find module"
    ),
    mutate=read_tests,
)
