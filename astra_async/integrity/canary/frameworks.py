"""Which test framework a problem's command ends in, through npm scripts and shell scripts."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from astra_async.types import Problem, Project

Framework = Literal["vitest", "jest", "mocha", "django", "pytest", "unittest", "rspec", "minitest", "junit"]
FRAMEWORKS: tuple[Framework, ...] = get_args(Framework)

# A name followed by a dash is a plugin's (`mocha-junit-reporter`).
_SIGNS: tuple[tuple[Framework, re.Pattern[str]], ...] = (
    ("vitest", re.compile(r"\bvitest\b(?!-)")),
    ("jest", re.compile(r"\bjest\b(?![-.])|\b(?:react-scripts|craco|react-app-rewired)\s+test\b")),
    ("mocha", re.compile(r"\b_?mocha\b(?![-.])|\bmochapack\b")),
    ("django", re.compile(r"\bmanage\.py\s+test\b|\bdjango-admin\s+test\b")),
    ("pytest", re.compile(r"\bpytest\b(?!-)|\bpy\.test\b")),
    ("unittest", re.compile(r"-m\s+(?:unittest|xmlrunner)\b")),
    ("rspec", re.compile(r"\brspec\b(?!-)|\brake\s+spec\b")),
    (
        "minitest",
        re.compile(r"\brails\s+test\b|\brake\s+test\b|\bruby\b[^;&|\n]{0,200}\btest/|\bminitest\b(?!-)"),
    ),
    (
        "junit",
        re.compile(
            r"\bConsoleLauncher\b|\bjunit-platform-console|\bJUnitCore\b"
            r"|\bmvnw?\b[^;&|\n]{0,200}\b(?:test|package|verify|install)\b"
            r"|\bgradlew?\b[^;&|\n]{0,200}\b(?:test|check|build)\b"
        ),
    ),
)
_VUE_CLI = re.compile(r"\bvue-cli-service\s+test:unit\b")
_PACKAGE_SCRIPT = re.compile(r"\b(?:npm|yarn|pnpm)\s+(?:run(?:-script)?\s+)?(?:-\S+\s+)*([\w:.-]{1,60})")
_WORD = re.compile(r"[\w@./-]{2,200}")
_SCRIPT = re.compile(r"(?:.*/)?[\w-]+(?:\.(?:sh|bash))?")
_MAX_SCRIPT = 20_000
_MAX_STEPS = 20


def framework_of(problem: Problem, project: Project) -> Framework | None:
    """The framework for which a canary can be written, or None."""
    for text in _commands(problem.test_command, project):
        for framework, sign in _SIGNS:
            if sign.search(text):
                return framework
        if _VUE_CLI.search(text):
            return "jest" if b"unit-jest" in _content("package.json", project) else "mocha"
    return None


def _commands(command: str, project: Project) -> Iterator[str]:
    """The command, and then what it leads to: scripts of package.json, shell scripts of the project."""
    scripts = _package_scripts(project)
    paths = {file.path for file in project.files}
    waiting, done = [command], set[str]()
    while waiting and len(done) < _MAX_STEPS:
        text = waiting.pop(0)
        if text in done:
            continue
        done.add(text)
        yield text
        names = ("test" if name in {"t", "tst"} else name for name in _PACKAGE_SCRIPT.findall(text))
        waiting += [scripts[name] for name in names if name in scripts]
        files = (word.removeprefix("./") for word in _WORD.findall(text))
        waiting += [_text(path, project) for path in files if path in paths and _SCRIPT.fullmatch(path)]


def _package_scripts(project: Project) -> Mapping[str, str]:
    try:
        scripts = json.loads(_content("package.json", project)).get("scripts", {})
        return {name: str(value) for name, value in scripts.items()}
    except (ValueError, AttributeError, RecursionError):
        return {}


def _text(path: str, project: Project) -> str:
    return _content(path, project)[:_MAX_SCRIPT].decode(errors="replace")


def _content(path: str, project: Project) -> bytes:
    return next((file.content for file in project.files if file.path == path), b"")
