from __future__ import annotations

from typing import Any

import pytest

from astra_async.testing.verdict import Tested, tail, verdict_on
from astra_async.types import Execution, ExpectedTest, Outcome, TestCase, TestReport

EXPECTED = tuple(ExpectedTest(name=name) for name in ("a", "b"))


def ran(*outcomes: Outcome, **execution: Any) -> Tested:
    cases = tuple(TestCase(name=name, outcome=outcome) for name, outcome in zip("abc", outcomes))  # noqa: B905
    return Tested(
        execution=Execution(**{"exit_code": 0, "duration_s": 2.0, **execution}),
        report=TestReport(cases=cases, problems=() if cases else ("junit.xml is not there",)),
    )


def test_all_passed_is_no_failure_whatever_the_exit_code_says() -> None:
    verdict, failure, note = verdict_on(ran("passed", "passed", exit_code=7), EXPECTED)
    assert (verdict.passed, verdict.total, failure, note) == (2, 2, None, "")


def test_a_failing_test_is_tests_failed_although_the_exit_code_is_zero() -> None:
    verdict, failure, _ = verdict_on(ran("passed", "failed"), EXPECTED)
    assert (verdict.passed, failure) == (1, "tests_failed")


NOT_LOADED = "E   SyntaxError: invalid syntax\n=== 1 error in 0.05s ===\n"


@pytest.mark.parametrize(
    ("output", "outcome", "failure"),
    [
        (NOT_LOADED, "error", "build_failure"),  # as pytest tells of a file that it cannot import
        (NOT_LOADED, "failed", "build_failure"),  # as jest does
        (NOT_LOADED, "passed", "tests_failed"),  # something ran
        ("1 failed", "error", "tests_failed"),  # nothing says that it did not load
    ],
)
def test_errors_in_place_of_tests_are_code_that_does_not_load(
    output: str, outcome: Outcome, failure: str
) -> None:
    execution = Execution(exit_code=2, duration_s=1.0, output=output)
    report = TestReport(cases=(TestCase(name="test_prices", outcome=outcome),), problems=())
    verdict, found, note = verdict_on(Tested(execution=execution, report=report), EXPECTED)
    assert (verdict.passed, verdict.total, found) == (0, 2, failure)
    assert bool(note) == (failure == "build_failure")


def test_extra_tests_are_recorded_and_ignored() -> None:
    verdict, failure, _ = verdict_on(ran("passed", "passed", "failed"), EXPECTED)
    assert failure is None
    assert [test.name for test in verdict.extra_tests] == ["c"]


@pytest.mark.parametrize(
    ("execution", "failure", "said"),
    [
        ({"timed_out": True}, "timeout", "stopped after 2 s"),
        ({"out_of_memory": True}, "out_of_memory", "memory limit"),
        ({"failed_limit": "disk"}, "no_report", "disk limit"),
    ],
)
def test_a_run_that_was_stopped_scores_nothing_whatever_its_report_says(
    execution: dict[str, Any], failure: str, said: str
) -> None:
    verdict, found, note = verdict_on(ran("passed", "passed", **execution), EXPECTED)
    assert (verdict.passed, verdict.total, found) == (0, 2, failure)
    assert said in note
    assert {test.outcome for test in verdict.tests} == {"missing"}


@pytest.mark.parametrize(
    "output",
    [
        "/projects/challenge/app.js:3\nSyntaxError: Unexpected token '}'",
        "src/App.java:[12,9] error: ';' expected",
        "[ERROR] COMPILATION ERROR :",
        "Program.cs(3,5): error CS1002: ; expected",
        "src/app.ts:1:1 - error TS2304: Cannot find name 'x'.",
        "  File 'views.py', line 3\nIndentationError: unexpected indent",
        "app/models/job.rb:3: syntax error, unexpected end-of-input",
        "A.java:1: error: class, interface, enum, or record expected",
        "javac A.java\n10 errors\n",
        "# rental [rental.test]\n./fleet.go:106:9: declared but not used\n",
        "error[E0382]: borrow of moved value: `code`\n",
        "PHP Parse error:  syntax error, unexpected token in Fraction.php on line 20",
    ],
)
def test_code_that_does_not_build_is_a_build_failure(output: str) -> None:
    assert verdict_on(ran(output=output, exit_code=1), EXPECTED)[1] == "build_failure"


def test_silence_is_no_report_and_says_which_file_is_missing() -> None:
    verdict, failure, note = verdict_on(ran(output="linted: 0 errors\nall is well"), EXPECTED)
    assert (verdict.passed, verdict.total, failure, note) == (0, 2, "no_report", "junit.xml is not there")


def test_the_tail_is_cut_by_bytes_and_never_within_a_character() -> None:
    assert tail("é" * 3000) == "é" * 1000
    assert len(tail("a" + "é" * 3000).encode()) <= 2000
    assert tail("short") == "short"
