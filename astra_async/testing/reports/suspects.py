"""Reported "cases" that are no tests: hooks and suites that failed before their tests could run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from astra_async.types import TestCase

_HOOK = re.compile(r"""["{](?:before|after)(?: each| all|Each|All)?["}] hook\b""")  # mocha, jasmine
_UNITTEST_FIXTURE = re.compile(r"(?:setUp|tearDown)(?:Class|Module) \(")
_JEST_SUITE = "Test suite failed to run"
_JUNIT_CLASS = {"initializationError", "executionError"}


def is_hook_name(name: str) -> bool:
    """True for the name under which mocha reports a failed hook, `suite "before each" hook for "test"`."""
    return _HOOK.search(name) is not None


def is_suite_failure(case: TestCase) -> bool:
    """True for a case that stands for a suite or a hook that failed, as the common reporters name it."""
    if case.outcome not in ("failed", "error"):
        return False
    return (
        is_hook_name(case.name)
        or _JEST_SUITE in (case.name, case.classname)
        or case.message.partition("\n")[0] == "collection failure"  # pytest: the module could not be imported
        or case.classname.endswith(("unittest.loader._FailedTest", "unittest.suite._ErrorHolder"))
        or _UNITTEST_FIXTURE.match(case.name) is not None
        or case.name in _JUNIT_CLASS
    )
