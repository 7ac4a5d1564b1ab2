"""One case for each test: attempts, sub-tests and failed suites as reporters write them.

- pytest writes a case for each attempt of pytest-rerunfailures, and a second case for a failed tear-down. The
  last case of a name decides.
- unittest reports each failed sub-test by itself, a test whose sub-tests pass as one case, and a failed
  tear-down as a second case. All of these belong to one test, which fails if one of them does.
- vitest reports a failed hook as a failed case with the name of its suite.

A failed hook fails the tests of its suite: what they left behind, or stand on, is broken.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from astra_async.testing.reports.suspects import failed_with_suite, is_suite_failure, named_suite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.types import TestCase

_PYTEST = '<testsuite name="pytest"'
_HEAD_CHARACTERS = 2_000  # of a report, where its first suite is named
_SUB_TEST = re.compile(r"(test\w*) (?:\(|\[).*[)\]]", re.DOTALL)
_BROKEN = ("failed", "error")
MAX_HOOKS = 100
_WITHIN = " > "  # between the titles of suites and tests in vitest's names


def one_case_for_each_test(cases: Sequence[TestCase], text: str) -> list[TestCase]:
    """Merge the cases of each test, and mark those that stand for a suite. `text` is the whole report."""
    if _PYTEST in text[:_HEAD_CHARACTERS]:
        return list({(case.file, case.classname, case.name): case for case in cases}.values())
    merged: dict[tuple[str, str, str], TestCase] = {}
    for at, case in enumerate(cases):
        is_python = case.file.endswith(".py")
        sub_test = _SUB_TEST.fullmatch(case.name) if is_python and case.outcome in _BROKEN else None
        name = sub_test[1] if sub_test else case.name
        key = case.file, case.classname, name if is_python else f"{at} {name}"
        before = merged.get(key)
        if before is None or (before.outcome not in _BROKEN and case.outcome in _BROKEN):
            merged[key] = replace(case, name=name)  # the first failure gives the message
    found = list(merged.values())
    suites = {_suite_of(case) for case in found}
    return _failed_by_hooks(
        [
            replace(case, is_suite=True)
            if case.outcome in _BROKEN and (case.file, case.classname, case.name) in suites
            else case
            for case in found
        ]
    )


def _failed_by_hooks(cases: Sequence[TestCase]) -> list[TestCase]:
    """Fail the tests of failed hooks that name their suite: of MAX_HOOKS hooks at most."""
    hooks = ((_beginning(case), case) for case in cases if is_suite_failure(case))
    failures = dict(islice(((begin, case) for begin, case in hooks if begin is not None), MAX_HOOKS))
    begins = tuple(failures)
    failed: list[TestCase] = []
    for case in cases:
        texts = case.name, f"{case.classname}.", f"{case.classname}\0{case.name}"
        if any(text.startswith(begins) for text in texts):
            begin = next(each for each in begins if any(text.startswith(each) for text in texts))
            failed += failed_with_suite([case], failures[begin])
        else:
            failed.append(case)
    return failed


def _beginning(case: TestCase) -> str | None:
    """Return what begins the texts of a failed hook's tests; None if the hook does not name its suite."""
    begin = named_suite(case)
    return f"{case.classname}\0{case.name}{_WITHIN}" if begin is None and case.is_suite else begin


def _suite_of(case: TestCase) -> tuple[str, str, str]:
    return case.file, case.classname, case.name.rpartition(_WITHIN)[0]
