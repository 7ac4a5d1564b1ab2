"""Detect reported cases that are not tests, but failed hooks and suites."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from astra_async.languages.runners import HOOK, is_hook_name
from astra_async.report_text import MAX_MESSAGE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from astra_async.types import TestCase


_SHOWN, _LAST = 14, 5
_LONGEST = 240
_NOISE = re.compile(
    r"Run with --trace|npm (?:ERR!|error) (?:A complete log|.*-debug-\d)|^\s*at [\w.<>$ ]+\("
    r"|node-pre-gyp (?:WARN|ERR!)|gyp (?:verb|info|http)|^\s*\^+\s*$|For more information|\bnotice\b"
    r"|^\[INFO\]|^\[ERROR\] (?:->|Re-run|To see|For more)"
)
_TELLING = re.compile(
    r"error|fail|fatal|exception|not found|no such|cannot|could not|can't|unable|missing|denied|undefined"
    r"|unsupported|incompatible|conflict|requires? |needs? |no matching|refused|timed? ?out|ENOENT|ERESOLVE"
    r"|E404",
    re.IGNORECASE,
)


def relevant_lines(output: str) -> str:
    """Return the most informative lines of an output, at most _SHOWN: failure lines, and the last ones.

    The first failure lines are preferred, because they name the cause more often than later lines ("Run with
    --trace for full trace"). Omitted lines are shown as `...`. If no line is about a failure, the end is
    returned.
    """
    lines = [line.rstrip()[:_LONGEST] for line in output.splitlines() if line.strip()]
    if len(lines) <= _SHOWN:
        return "\n".join(lines)
    worth = [at for at, line in enumerate(lines) if _TELLING.search(line) and not _NOISE.search(line)]
    last = [at for at in range(len(lines) - _LAST, len(lines)) if not _NOISE.search(lines[at])]
    first = list(dict.fromkeys(lines[at] for at in worth))[: _SHOWN - len(last)]
    chosen = sorted(
        {*(lines.index(line) for line in first), *last} or set(range(len(lines) - _SHOWN, len(lines)))
    )
    shown: list[str] = []
    for before, at in zip([None, *chosen], chosen, strict=False):
        if at and (before is None or at > before + 1):
            shown.append("...")
        shown.append(lines[at])
    return "\n".join(shown)


JEST_SUITE = "Test suite failed to run"
JEST_NO_TESTS = "test suite must contain at least one test"
_VITEST_NO_TESTS = "No test suite found in file"
JEST_AFTER = "Test execution failure: could be caused by test hooks like 'afterAll'"  # wording of jest-junit
AVA_HOOK = re.compile(r"(?:^|(?<= \u203a ))(?:before|after)(?:Each)?(?:\.always)? hook(?: for |$)")
_UNITTEST_FIXTURE = re.compile(r"(?:setUp|tearDown)(?:Class|Module) \(([\w.]{1,500})\)")
_JUNIT_CLASS = {"initializationError", "executionError", "classMethod"}
_XUNIT_CLEANUP = re.compile(r"\[Test (?:Class|Collection|Assembly|Method|Case) Cleanup Failure \(")
_BUN_HOOK = "(unnamed)"
_PHPUNIT_PROVIDER = "The data provider specified for"
SCRIPTS = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx")


def is_suite_failure(case: TestCase) -> bool:
    """Return True for a case that represents a failed suite or hook, as common reporters name it."""
    if case.outcome not in ("failed", "error"):
        return False
    return (
        case.is_suite
        or is_hook_name(case.name)
        or JEST_SUITE in (case.name, case.classname)
        or JEST_AFTER in case.name
        or case.message.partition("\n")[0] == "collection failure"  # pytest: the module could not be imported
        or case.classname.endswith(("unittest.loader._FailedTest", "unittest.suite._ErrorHolder"))
        or _UNITTEST_FIXTURE.match(case.name) is not None
        or _XUNIT_CLEANUP.match(case.name) is not None
        or case.name in _JUNIT_CLASS
        or case.name == _BUN_HOOK
        or (case.name in {"Error", "Warning"} and _PHPUNIT_PROVIDER in case.message)
        or _is_script(case)
    )


def hides_tests(case: TestCase) -> bool:
    """Return True for a failed suite or hook, except a file without tests."""
    return is_suite_failure(case) and not (JEST_NO_TESTS in case.message or _VITEST_NO_TESTS in case.message)


def fails_its_suite(case: TestCase) -> bool:
    """Return True for the reported failure of a class, file or block, which fails that suite's tests."""
    return is_suite_failure(case) and (
        case.is_suite or case.name in _JUNIT_CLASS or case.name == _BUN_HOOK or JEST_AFTER in case.name
    )


def failed_with_suite(cases: Iterable[TestCase], failure: TestCase) -> list[TestCase]:
    """Mark a suite's passed tests as failed, with the message of the failed hook."""
    message = f"{failure.name}: {failure.message}"[:MAX_MESSAGE]
    return [
        replace(case, outcome="failed", message=message) if case.outcome == "passed" else case
        for case in cases
    ]


def named_suite(case: TestCase) -> str | None:
    """Return the name prefix of a failed hook's tests: their suites' titles, or their class and a dot.

    mocha and ava put the suites' titles before the hook. unittest names the class or module.
    """
    if found := (AVA_HOOK if case.is_suite else HOOK).search(case.name):
        return case.name[: found.start()]
    found = _UNITTEST_FIXTURE.match(case.name)
    return f"{found[1]}." if found else None


def _is_script(case: TestCase) -> bool:
    """Return True for a test file that did not load; vitest and node's runner report it under its path."""
    if " " in case.name or not case.name.endswith(SCRIPTS):
        return False
    is_vitests = case.name == case.classname and (".test." in case.name or ".spec." in case.name)
    return is_vitests or ("exitCode: " in case.message and "test failed" in case.message)
