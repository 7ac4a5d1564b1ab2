"""What real runners write for retries, sub-tests and failed hooks (tests/reports/recorded)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import orjson
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
    assert any("a suite or hook failed" in problem for problem in found.problems)


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


# T, passed cases, and whether the report says that it is complete: recorded runs of two or three tests.
RUNS = {
    "ava/after.txt": (2, 0, False),
    "ava/each.txt": (1, 0, False),
    "ava/exit.txt": (1, 1, False),
    "ava/fail.txt": (2, 1, True),
    "ava/failing.txt": (2, 2, True),
    "ava/hook.txt": (0, 0, False),
    "ava/load.txt": (0, 0, False),
    "ava/pass.txt": (2, 2, True),
    "ava/reject.txt": (1, 1, False),
    "ava/skip.txt": (1, 1, True),
    "ava/stop.txt": (1, 0, False),
    "ava/throw.txt": (1, 1, False),
    "ava/todo.txt": (1, 1, True),
    "ava/two.txt": (1, 1, False),
    "bun/after.xml": (2, 0, False),
    "bun/after_each.xml": (4, 3, True),
    "bun/each.xml": (4, 2, True),
    "bun/fail.xml": (2, 1, True),
    "bun/hook.xml": (1, 1, False),
    "bun/load.txt": (0, 0, False),
    "bun/pass.xml": (2, 2, True),
    "bun/skip.xml": (1, 1, True),
    "bun/stop.xml": (1, 0, True),
    "bun/suite.xml": (1, 1, True),
    "bun/todo.xml": (1, 1, True),
    "cargo/abort.txt": (0, 0, False),
    "cargo/fail.txt": (3, 2, True),
    "cargo/load.txt": (0, 0, False),
    "cargo/pass.txt": (3, 3, True),
    "cargo/skip.txt": (2, 2, True),
    "cargo/stop.txt": (2, 1, True),
    "console/after.xml": (2, 0, True),
    "console/after_each.xml": (2, 0, True),
    "console/each.xml": (2, 0, True),
    "console/fail.xml": (2, 1, True),
    "console/hook.xml": (2, 0, True),
    "console/load.xml": (2, 0, True),
    "console/pass.xml": (2, 2, True),
    "console/skip.xml": (1, 1, True),
    "go/fail.txt": (3, 2, True),
    "go/hook.txt": (1, 1, False),
    "go/load.txt": (1, 1, False),
    "go/panic.txt": (2, 1, True),
    "go/pass.txt": (3, 3, True),
    "go/skip.txt": (2, 2, True),
    "go/stop.txt": (2, 1, True),
    "gradle/after.xml": (2, 0, False),
    "gradle/after_each.xml": (2, 0, True),
    "gradle/each.xml": (2, 0, True),
    "gradle/fail.xml": (2, 1, True),
    "gradle/hook.xml": (0, 0, False),
    "gradle/load.xml": (2, 0, True),
    "gradle/pass.xml": (2, 2, True),
    "gradle/skip.xml": (1, 1, True),
    "jasmine/after.xml": (2, 2, True),
    "jasmine/fail.xml": (2, 1, True),
    "jasmine/hook.xml": (3, 1, True),
    "jasmine/load.txt": (0, 0, False),
    "jasmine/pass.xml": (2, 2, True),
    "jasmine/skip.xml": (1, 1, True),
    "jasmine/todo.xml": (1, 1, True),
    "jest/after.xml": (3, 0, False),
    "jest/after_each.xml": (4, 3, True),
    "jest/each.xml": (4, 2, True),
    "jest/fail.xml": (2, 1, True),
    "jest/hook.xml": (3, 1, True),
    "jest/load.xml": (0, 0, False),
    "jest/pass.xml": (2, 2, True),
    "jest/retry.xml": (2, 1, True),
    "jest/skip.xml": (1, 1, True),
    "jest/stop.xml": (2, 1, True),
    "jest/suite.xml": (0, 0, False),
    "jest/todo.xml": (2, 2, True),
    "karma/after.xml": (2, 2, False),
    "karma/after_each.xml": (4, 3, True),
    "karma/each.xml": (4, 2, True),
    "karma/fail.xml": (2, 1, True),
    "karma/hook.xml": (2, 0, True),
    "karma/load.xml": (0, 0, False),
    "karma/pass.xml": (2, 2, True),
    "karma/skip.xml": (1, 1, True),
    "karma/stop.xml": (2, 1, True),
    "karma/suite.xml": (1, 1, False),
    "minitest/after.xml": (2, 0, True),
    "minitest/fail.xml": (2, 1, True),
    "minitest/hook.xml": (2, 0, True),
    "minitest/load.txt": (0, 0, False),
    "minitest/pass.xml": (2, 2, True),
    "minitest/skip.xml": (1, 1, True),
    "mocha/after.xml": (3, 1, False),
    "mocha/after_each.xml": (3, 1, False),
    "mocha/each.xml": (2, 1, False),
    "mocha/fail.xml": (2, 1, True),
    "mocha/hook.xml": (1, 1, False),
    "mocha/load.txt": (0, 0, False),
    "mocha/pass.xml": (2, 2, True),
    "mocha/retry.xml": (2, 1, True),
    "mocha/skip.xml": (1, 1, True),
    "mocha/stop.xml": (1, 0, True),
    "mocha/suite.txt": (0, 0, False),
    "mocha/todo.xml": (1, 1, True),
    "mocha_tap/after.txt": (3, 1, False),
    "mocha_tap/after_each.txt": (3, 1, False),
    "mocha_tap/each.txt": (2, 1, False),
    "mocha_tap/fail.txt": (2, 1, True),
    "mocha_tap/hook.txt": (1, 1, False),
    "mocha_tap/load.txt": (0, 0, False),
    "mocha_tap/pass.txt": (2, 2, True),
    "mocha_tap/retry.txt": (2, 1, True),
    "mocha_tap/skip.txt": (1, 1, True),
    "mocha_tap/stop.txt": (1, 0, True),
    "mocha_tap/suite.txt": (0, 0, False),
    "mocha_tap/todo.txt": (1, 1, True),
    "node/after.txt": (3, 1, False),
    "node/each.txt": (4, 2, True),
    "node/fail.txt": (2, 1, True),
    "node/hook.txt": (3, 1, False),
    "node/load.txt": (0, 0, False),
    "node/pass.txt": (2, 2, True),
    "node/skip.txt": (1, 1, True),
    "node/todo.txt": (2, 2, True),
    "node18/after.txt": (3, 1, False),
    "node18/each.txt": (4, 2, True),
    "node18/fail.txt": (2, 1, True),
    "node18/hook.txt": (3, 1, False),
    "node18/load.txt": (0, 0, False),
    "node18/pass.txt": (2, 2, True),
    "node18/skip.txt": (1, 1, True),
    "node18/todo.txt": (2, 2, True),
    "node_junit/after.txt": (2, 2, True),
    "node_junit/each.txt": (4, 2, True),
    "node_junit/fail.txt": (2, 1, True),
    "node_junit/hook.txt": (3, 1, True),
    "node_junit/load.txt": (0, 0, False),
    "node_junit/pass.txt": (2, 2, True),
    "node_junit/skip.txt": (1, 1, True),
    "node_junit/todo.txt": (1, 1, True),
    "phpunit/fail.xml": (2, 1, True),
    "phpunit/hook.xml": (1, 0, True),
    "phpunit/load.txt": (0, 0, False),
    "phpunit/pass.xml": (2, 2, True),
    "phpunit/provider.xml": (1, 1, False),
    "phpunit/skip.xml": (1, 1, True),
    "phpunit/stop.xml": (1, 0, True),
    "phpunit/todo.xml": (1, 1, True),
    "playwright/after.xml": (3, 2, True),
    "playwright/after_each.xml": (4, 3, True),
    "playwright/each.xml": (4, 3, True),
    "playwright/fail.xml": (2, 1, True),
    "playwright/hook.xml": (3, 1, True),
    "playwright/load.xml": (0, 0, False),
    "playwright/pass.xml": (2, 2, True),
    "playwright/retry.xml": (2, 1, True),
    "playwright/serial.xml": (3, 0, True),
    "playwright/skip.xml": (1, 1, True),
    "playwright/stop.xml": (2, 0, True),
    "playwright/suite.xml": (0, 0, False),
    "playwright/todo.xml": (1, 1, True),
    "pytest/after.xml": (2, 1, True),
    "pytest/class_hook.xml": (3, 1, True),
    "pytest/exit.xml": (1, 1, False),
    "pytest/fail.xml": (2, 1, True),
    "pytest/hook.xml": (2, 0, True),
    "pytest/load.xml": (0, 0, False),
    "pytest/pass.xml": (2, 2, True),
    "pytest/retry.xml": (4, 1, True),
    "pytest/skip.xml": (1, 1, True),
    "pytest/stop.xml": (1, 0, True),
    "pytest/subtests.xml": (2, 1, True),
    "pytest/todo.xml": (1, 1, True),
    "pytest/todo_passes.xml": (2, 1, True),
    "rspec/after.xml": (2, 2, True),
    "rspec/fail.xml": (2, 1, True),
    "rspec/hook.xml": (2, 0, True),
    "rspec/load.xml": (0, 0, False),
    "rspec/pass.xml": (2, 2, True),
    "rspec/skip.xml": (1, 1, True),
    "rspec/stop.xml": (1, 0, True),
    "rspec/todo.xml": (1, 1, True),
    "surefire/after.xml": (2, 0, False),
    "surefire/after_each.xml": (2, 0, True),
    "surefire/each.xml": (2, 0, True),
    "surefire/fail.xml": (2, 1, True),
    "surefire/hook.xml": (0, 0, False),
    "surefire/load.xml": (2, 0, True),
    "surefire/pass.xml": (2, 2, True),
    "surefire/skip.xml": (1, 1, True),
    "surefire4/after.xml": (2, 0, False),
    "surefire4/after_each.xml": (2, 0, True),
    "surefire4/each.xml": (2, 0, True),
    "surefire4/fail.xml": (2, 1, True),
    "surefire4/hook.xml": (0, 0, False),
    "surefire4/load.xml": (2, 0, True),
    "surefire4/pass.xml": (2, 2, True),
    "surefire4/retry.xml": (2, 1, True),
    "surefire4/skip.xml": (1, 1, True),
    "tap/after.txt": (1, 0, False),
    "tap/fail.txt": (2, 1, True),
    "tap/hook.txt": (0, 0, False),
    "tap/inside.txt": (2, 1, True),
    "tap/load.txt": (0, 0, False),
    "tap/pass.txt": (2, 2, True),
    "tap/skip.txt": (1, 1, True),
    "tap/stop.txt": (1, 0, False),
    "tap/throw.txt": (1, 0, False),
    "tap/todo.txt": (2, 2, True),
    "unittest/after.xml": (2, 0, True),
    "unittest/after_class.xml": (3, 1, False),
    "unittest/fail.xml": (2, 1, True),
    "unittest/hook.xml": (0, 0, False),
    "unittest/load.xml": (0, 0, False),
    "unittest/pass.xml": (2, 2, True),
    "unittest/skip.xml": (1, 1, True),
    "unittest/subtests.xml": (2, 1, True),
    "unittest/subtests_pass.xml": (2, 2, True),
    "vitest/after.xml": (2, 0, False),
    "vitest/after_each.xml": (4, 3, True),
    "vitest/each.xml": (4, 2, True),
    "vitest/fail.xml": (2, 1, True),
    "vitest/hook.xml": (1, 1, False),
    "vitest/load.xml": (0, 0, False),
    "vitest/pass.xml": (2, 2, True),
    "vitest/retry.xml": (2, 1, True),
    "vitest/skip.xml": (1, 1, True),
    "vitest/stop.xml": (2, 0, True),
    "vitest/suite.xml": (0, 0, False),
    "vitest/todo.xml": (1, 1, True),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_recorded_report_is_counted(name: str) -> None:
    content = (RECORDED / name).read_bytes()
    found = (
        read_reports({"unit.xml": content}, "", result_files=("unit.xml",))
        if name.endswith(".xml")
        else read_reports({}, content.decode(errors="replace"), result_files=())
    )
    passed = sum(case.outcome == "passed" for case in found.cases)
    assert (len(learn(found)), passed, not found.problems) == RUNS[name]


def test_every_recorded_report_has_its_command() -> None:
    commands = orjson.loads((RECORDED / "index.json").read_bytes())
    assert set(commands) == set(RUNS)
    assert all(commands.values())
