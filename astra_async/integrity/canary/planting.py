"""Where a canary's cases go, and what a report says about them."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.integrity.canary import java, javascript, python, ruby
from astra_async.integrity.canary.frameworks import Framework, framework_of
from astra_async.integrity.canary.words import Words
from astra_async.overlay.test_names import is_test_by_content

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping
    from types import ModuleType

    from astra_async.overlay import PathPolicy
    from astra_async.types import Problem, Project, TestReport

_LANGUAGES: Mapping[Framework, ModuleType] = {
    "vitest": javascript,
    "jest": javascript,
    "mocha": javascript,
    "django": python,
    "pytest": python,
    "unittest": python,
    "rspec": ruby,
    "minitest": ruby,
    "junit": java,
}
_MAX_TEST_BYTES = 400_000
# `App.test.jsx`, `user_spec.rb`, `loginTest.js`: what a runner's pattern looks at stays, the rest is random.
_MARKED = re.compile(r"(?P<stem>.+?)(?P<marker>(?:[._-]?(?:[tT]ests?|[sS]pecs?))?(?:\.[a-z0-9-]+)+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """Files to lay over a solution's project for one run; `token` is in the name of each of its cases."""

    files: Mapping[str, bytes]
    token: str


def plant(problem: Problem, project: Project, policy: PathPolicy, rng: random.Random) -> Canary | None:
    """A canary beside and within the project's tests; None where no canary can be written.

    Names, values and order come from `rng`.
    """
    framework, tests = _tests(problem, project, policy)
    if framework is None or not tests:
        return None
    language, words = _LANGUAGES[framework], Words(rng)
    files = {path: language.appended(text, framework, words) for path, text in tests.items()}
    model = min(tests)
    beside = _sibling(model, words)
    if beside not in policy.files:
        files[beside] = language.standalone(tests[model], framework, words)
    return Canary(files={path: text.encode() for path, text in files.items()}, token=words.token)


def emptied(problem: Problem, project: Project, policy: PathPolicy, rng: random.Random) -> Canary | None:
    """The project's test files without any test under its own name."""
    framework, tests = _tests(problem, project, policy)
    if framework is None or not tests:
        return None
    language, words = _LANGUAGES[framework], Words(rng)
    files = {path: language.emptied(text, framework, words).encode() for path, text in tests.items()}
    return Canary(files=files, token=words.token)


def was_seen(canary: Canary, report: TestReport) -> bool:
    """Whether the report tells of any case of the canary."""
    return any(canary.token in f"{case.classname} {case.name}".lower() for case in report.cases)


def passed(canary: Canary, report: TestReport) -> tuple[str, ...]:
    """Names of the canary's cases that are reported as passed, which cannot be."""
    return tuple(
        case.name
        for case in report.cases
        if case.outcome == "passed" and canary.token in f"{case.classname} {case.name}".lower()
    )


def _tests(problem: Problem, project: Project, policy: PathPolicy) -> tuple[Framework | None, dict[str, str]]:
    """The framework, and the pristine files that hold tests in its language, by path."""
    framework = framework_of(problem, project)
    if framework is None:
        return None, {}
    suffixes = _LANGUAGES[framework].SUFFIXES
    found = {}
    for path in policy.tests:
        content = policy.files[path].content
        if path.rpartition(".")[2] not in suffixes or len(content) > _MAX_TEST_BYTES:
            continue
        text = content.decode(errors="replace")
        if is_test_by_content(path, text) and (framework != "junit" or java.is_known(text)):
            found[path] = text
    return framework, found


def _sibling(path: str, words: Words) -> str:
    folder, name = posixpath.split(path)
    token = words.token
    if name.endswith(".java"):
        return posixpath.join(folder, f"{java.class_name(words)}.java")
    if name.endswith(".py"):
        return posixpath.join(folder, f"{token}_test.py" if name.endswith("_test.py") else f"test_{token}.py")
    if name.startswith("test_"):
        return posixpath.join(folder, f"test_{token}.{name.partition('.')[2]}")
    match = _MARKED.fullmatch(name)
    return posixpath.join(folder, token + (match["marker"] if match else name))
