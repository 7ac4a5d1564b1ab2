"""What real runners write for retries, sub-tests and failed hooks (tests/reports/recorded)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from astra_async.testing.counting import grade, learn
from astra_async.testing.reports import read_reports

if TYPE_CHECKING:
    from astra_async.types import TestReport

RECORDED = Path(__file__).parent / "recorded"


def report(name: str) -> TestReport:
    return read_reports({"unit.xml": (RECORDED / name).read_bytes()}, "", result_files=("unit.xml",))


def test_the_last_attempt_of_a_test_decides() -> None:
    found = report("pytest/retry.xml")
    assert {case.name: case.outcome for case in found.cases} == {
        "test_flaky": "passed",  # pytest-rerunfailures 16.7 wrote two cases
        "test_wrong": "failed",
        "test_down": "error",  # failed, and failed again in its tear-down
        "test_down_ok": "error",
    }
    assert len(learn(found)) == 4
    assert grade(found, learn(found)).passed == 1


def test_sub_tests_belong_to_their_test() -> None:
    passing, failing = report("unittest/subtests_pass.xml"), report("unittest/subtests.xml")
    expected = learn(failing)
    assert sorted(test.name for test in expected) == sorted(test.name for test in learn(passing))
    assert (grade(passing, expected).passed, grade(failing, expected).passed) == (2, 1)
    [failed] = [case for case in failing.cases if case.outcome == "failed"]
    assert failed.message.startswith("AssertionError: 2 not less than 2")


@pytest.mark.parametrize(
    ("name", "tests"),
    [("vitest/hook.xml", ["c"]), ("bun/hook.xml", ["c"]), ("phpunit/provider.xml", ["testB"])],
)
def test_a_failed_hook_or_provider_is_no_test_and_its_run_is_not_complete(
    name: str, tests: list[str]
) -> None:
    found = report(name)
    assert [test.name for test in learn(found)] == tests
    assert any("were not run" in problem for problem in found.problems)


def test_a_class_that_fails_before_its_tests_is_no_test() -> None:
    text = b"""<testsuite name="p.T" tests="2">
    <testcase name="" classname="p.T"><error message="no set-up"/></testcase>
    <testcase name="ok" classname="p.U"/></testsuite>"""
    found = read_reports({"unit.xml": text}, "", result_files=("unit.xml",))
    assert [test.name for test in learn(found)] == ["ok"]
    assert any("p.T" in problem for problem in found.problems)


def test_a_go_package_that_does_not_build_is_named() -> None:
    found = read_reports({}, (RECORDED / "go/load.txt").read_text(), result_files=())
    assert [case.name for case in found.cases] == ["TestQ"]
    assert found.problems == ("standard output: package p failed: its tests do not build",)
