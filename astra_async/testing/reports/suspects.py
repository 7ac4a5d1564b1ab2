"""Reported "cases" that are no tests: hooks and suites that failed before or after their tests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.languages.runners import is_hook_name

if TYPE_CHECKING:
    from astra_async.types import TestCase

JEST_SUITE = "Test suite failed to run"
JEST_NO_TESTS = "test suite must contain at least one test"
_VITEST_NO_TESTS = "No test suite found in file"
JEST_AFTER = "Test execution failure: could be caused by test hooks like 'afterAll'"  # as jest-junit has it
_UNITTEST_FIXTURE = re.compile(r"(?:setUp|tearDown)(?:Class|Module) \(")
_WHEN_ALL_HAD_RUN = re.compile(r"""["{]after(?: all|All)?["}] hook\b|tearDown(?:Class|Module) \(""")
_JUNIT_CLASS = {"initializationError", "executionError"}
_XUNIT_CLEANUP = re.compile(r"\[Test (?:Class|Collection|Assembly|Method|Case) Cleanup Failure \(")
_BUN_HOOK = "(unnamed)"
_PHPUNIT_PROVIDER = "The data provider specified for"
_SCRIPTS = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx")


def is_suite_failure(case: TestCase) -> bool:
    """True for a case that stands for a suite or a hook that failed, as the common reporters name it."""
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
    """True for a failed suite or hook whose tests, or the rest of them, were not run and not reported."""
    return is_suite_failure(case) and not (
        _WHEN_ALL_HAD_RUN.search(case.name)
        or _XUNIT_CLEANUP.match(case.name)
        or JEST_AFTER in case.name
        or JEST_NO_TESTS in case.message
        or _VITEST_NO_TESTS in case.message
    )


def _is_script(case: TestCase) -> bool:
    """A test file that did not load, which vitest and node's own runner report under its path."""
    if " " in case.name or not case.name.endswith(_SCRIPTS):
        return False
    is_vitests = case.name == case.classname and (".test." in case.name or ".spec." in case.name)
    return is_vitests or ("exitCode: " in case.message and "test failed" in case.message)
