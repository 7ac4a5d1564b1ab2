"""Which runner takes tests that are written for none in particular: everybody has `it` and `expect`.

Told by the program that the test command comes to through npm scripts and shell scripts, also where that is
a framework's own tool (`ng test`, `react-scripts test`); else by a runner's configuration file.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from astra_async.images.stacks.commands import manifest_of, read_commands, segments
from astra_async.images.stacks.package_files import dependencies_of, read_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types import Problem, Project

_PROGRAMS = {
    **{name: name for name in ("jest", "vitest", "mocha", "jasmine", "karma", "playwright", "cypress")},
    "_mocha": "mocha",
    "mochapack": "mocha",
    "ts-mocha": "mocha",
    "jest-cli": "jest",
}
# Programs that only start another one, whose name stands behind them.
_STARTERS = frozenset(
    ["npx", "cross-env", "cross-env-shell", "c8", "nyc", "dotenv", "xvfb-run", "yarn", "pnpm"]
)
_TOOLS = frozenset(["react-scripts", "craco", "react-app-rewired"])  # which are set up with jest
_CONFIGURATIONS = (
    ("vitest.config.", "vitest"),
    ("jest.config.", "jest"),
    (".mocharc", "mocha"),
    ("karma.conf.", "karma"),
)


def javascript_runner(problem: Problem, project: Project) -> str:
    """The runner's name; empty where nothing tells."""
    files = {file.path: file.content for file in project.files}
    for words in segments(read_commands(problem, files, manifest_of(files)).text):
        runner = _program(words, files)
        if runner:
            return runner
    names = {posixpath.basename(path) for path in files}
    return next(
        (runner for start, runner in _CONFIGURATIONS if any(name.startswith(start) for name in names)), ""
    )


def _program(words: list[str], files: Mapping[str, bytes]) -> str:
    """The runner that a simple command starts."""
    if words[0] in _STARTERS:
        return next(filter(None, (_program(words[at:], files) for at in range(1, len(words)))), "")
    name, rest = posixpath.basename(words[0]), words[1:]
    if name == "node":
        scripts = [posixpath.basename(each).partition(".")[0] for each in rest if not each.startswith("-")]
        return "node:test" if "--test" in rest else _PROGRAMS.get(next(iter(scripts), ""), "")
    if name == "ng" and rest[:1] == ["test"]:
        return "jest" if b"jest" in files.get("angular.json", b"") else "karma"
    if name == "vue-cli-service" and rest[:1] == ["test:unit"]:
        package = read_table(files.get("package.json")) or {}
        return "jest" if "@vue/cli-plugin-unit-jest" in dependencies_of(package) else "mocha"
    return "jest" if name in _TOOLS and rest[:1] == ["test"] else _PROGRAMS.get(name, "")
