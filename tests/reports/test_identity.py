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


# T, passed cases, and whether the report says that it is complete: recorded runs of two or three tests.
RUNS = {
    "unittest/after.xml": (2, 0, True),
    "unittest/fail.xml": (2, 1, True),
    "unittest/hook.xml": (0, 0, False),
    "unittest/load.xml": (0, 0, False),
    "unittest/pass.xml": (2, 2, True),
    "unittest/skip.xml": (1, 1, True),
    "unittest/subtests.xml": (2, 1, True),
    "unittest/subtests_pass.xml": (2, 2, True),
    "vitest/after.xml": (2, 2, False),
    "vitest/fail.xml": (2, 1, True),
    "vitest/hook.xml": (1, 1, False),
    "vitest/load.xml": (0, 0, False),
    "vitest/pass.xml": (2, 2, True),
    "vitest/retry.xml": (2, 1, True),
    "vitest/skip.xml": (1, 1, True),
    "vitest/stop.xml": (2, 1, True),
    "vitest/todo.xml": (1, 1, True),
    "node/fail.txt": (2, 1, True),
    "node/hook.txt": (3, 1, True),
    "node/load.txt": (0, 0, False),
    "node/pass.txt": (2, 2, True),
    "node/skip.txt": (1, 1, True),
    "node/todo.txt": (2, 2, True),
    "node_junit/after.txt": (2, 2, True),
    "node_junit/fail.txt": (2, 1, True),
    "node_junit/hook.txt": (3, 1, True),
    "node_junit/load.txt": (0, 0, False),
    "node_junit/pass.txt": (2, 2, True),
    "node_junit/skip.txt": (1, 1, True),
    "node_junit/todo.txt": (1, 1, True),
    "bun/after.xml": (2, 2, False),
    "bun/fail.xml": (2, 1, True),
    "bun/hook.xml": (1, 1, False),
    "bun/load.txt": (0, 0, False),
    "bun/pass.xml": (2, 2, True),
    "bun/skip.xml": (1, 1, True),
    "bun/stop.xml": (1, 0, True),
    "bun/todo.xml": (1, 1, True),
    "playwright/fail.xml": (2, 1, True),
    "playwright/hook.xml": (2, 1, True),
    "playwright/load.xml": (0, 0, False),
    "playwright/pass.xml": (2, 2, True),
    "playwright/retry.xml": (2, 1, True),
    "playwright/serial.xml": (1, 0, True),
    "playwright/skip.xml": (1, 1, True),
    "playwright/stop.xml": (1, 0, True),
    "playwright/todo.xml": (1, 1, True),
    "jasmine/after.xml": (2, 2, True),
    "jasmine/fail.xml": (2, 1, True),
    "jasmine/hook.xml": (3, 1, True),
    "jasmine/load.txt": (0, 0, False),
    "jasmine/pass.xml": (2, 2, True),
    "jasmine/skip.xml": (1, 1, True),
    "jasmine/todo.xml": (1, 1, True),
    "rspec/after.xml": (2, 2, True),
    "rspec/fail.xml": (2, 1, True),
    "rspec/hook.xml": (2, 0, True),
    "rspec/load.xml": (0, 0, False),
    "rspec/pass.xml": (2, 2, True),
    "rspec/skip.xml": (1, 1, True),
    "rspec/stop.xml": (1, 0, True),
    "rspec/todo.xml": (1, 1, True),
    "phpunit/fail.xml": (2, 1, True),
    "phpunit/hook.xml": (1, 0, True),
    "phpunit/load.txt": (0, 0, False),
    "phpunit/pass.xml": (2, 2, True),
    "phpunit/provider.xml": (1, 1, False),
    "phpunit/skip.xml": (1, 1, True),
    "phpunit/stop.xml": (1, 0, True),
    "phpunit/todo.xml": (1, 1, True),
    "go/fail.txt": (3, 2, True),
    "go/hook.txt": (1, 1, False),
    "go/load.txt": (1, 1, False),
    "go/panic.txt": (2, 1, True),
    "go/pass.txt": (3, 3, True),
    "go/skip.txt": (2, 2, True),
    "go/stop.txt": (2, 1, True),
    "cargo/abort.txt": (0, 0, False),
    "cargo/fail.txt": (3, 2, True),
    "cargo/load.txt": (0, 0, False),
    "cargo/pass.txt": (3, 3, True),
    "cargo/skip.txt": (2, 2, True),
    "cargo/stop.txt": (2, 1, True),
    "tap/fail.txt": (2, 1, True),
    "tap/inside.txt": (2, 1, True),
    "tap/pass.txt": (2, 2, True),
    "tap/skip.txt": (1, 1, True),
    "tap/throw.txt": (2, 1, True),
    "tap/todo.txt": (2, 2, True),
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
