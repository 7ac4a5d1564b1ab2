"""One case for each test: attempts, sub-tests and failed suites as reporters write them.

- pytest writes a case for each attempt of pytest-rerunfailures, and a second case for a failed tear-down. The
  last case of a name decides.
- unittest reports each failed sub-test by itself, a test whose sub-tests pass as one case, and a failed
  tear-down as a second case. All of these belong to one test, which fails if one of them does.
- vitest reports a failed hook as a failed case with the name of its suite.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.types import TestCase

_PYTEST = '<testsuite name="pytest"'
_HEAD_CHARACTERS = 2_000  # of a report, where its first suite is named
_SUB_TEST = re.compile(r"(test\w*) (?:\(|\[).*[)\]]", re.DOTALL)
_BROKEN = ("failed", "error")
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
    return [
        replace(case, is_suite=True)
        if case.outcome in _BROKEN and (case.file, case.classname, case.name) in suites
        else case
        for case in found
    ]


def _suite_of(case: TestCase) -> tuple[str, str, str]:
    return case.file, case.classname, case.name.rpartition(_WITHIN)[0]
