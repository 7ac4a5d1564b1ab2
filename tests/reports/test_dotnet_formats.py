"""TRX and NUnit XML as Visual Studio's test runner and NUnit's console wrote them (tests/reports/dotnet)."""

from __future__ import annotations

from pathlib import Path

import pytest

from astra_async.testing.counting import grade, learn
from astra_async.testing.reports import read_reports

# From the tests of dorny/test-reporter (MIT) and EnricoMi/publish-unit-test-result-action (Apache 2.0).
WRITTEN = Path(__file__).parent / "dotnet"
XUNIT = "SampleProject.xUnit.TestServiceTests"


@pytest.mark.parametrize(
    ("name", "outcomes"),
    [
        ("xunit.trx", "failed failed skipped passed passed failed"),
        ("nunit.trx", "failed skipped failed failed passed passed"),
        ("nunit3.xml", "failed failed failed passed failed passed passed skipped failed"),
        ("nunit3-parameters.xml", "passed failed passed passed failed failed"),
        ("nunit2.xml", "passed passed failed"),
    ],
)
def test_each_test_is_one_case(name: str, outcomes: str) -> None:
    report = read_reports({name: (WRITTEN / name).read_bytes()}, "", result_files=(name,))
    assert [case.outcome for case in report.cases] == outcomes.split()
    assert report.problems == ()
    expected = learn(report)
    assert len(expected) == len(report.cases) - outcomes.count("skipped")
    assert grade(report, expected).passed == outcomes.count("passed")


def test_a_case_of_trx_gets_its_class_from_the_definitions_behind_it() -> None:
    report = read_reports({"a.trx": (WRITTEN / "xunit.trx").read_bytes()}, "", result_files=("a.trx",))
    first, second, *_ = report.cases
    assert (first.classname, first.name) == (XUNIT, "FailTest")
    assert (second.classname, second.name) == (XUNIT, "TestTheory(expected: False)")
    assert first.message.startswith("Assert.True() Failure\nExpected: True")


def test_a_failed_clean_up_of_a_class_is_no_test() -> None:
    name = "xunit3-cleanup.trx"
    report = read_reports({name: (WRITTEN / name).read_bytes()}, "", result_files=(name,))
    assert [test.name for test in learn(report)] == ["Failing_Test", "Passing_Test"]


def test_a_run_that_was_broken_off_is_not_complete() -> None:
    text = (
        (WRITTEN / "xunit.trx")
        .read_text("utf-8-sig")
        .replace('<ResultSummary outcome="Failed"', '<ResultSummary outcome="Aborted"')
    )
    report = read_reports({"a.trx": text.encode()}, "", result_files=("a.trx",))
    assert report.problems == ("a.trx: the run ended as Aborted",)
    assert len(report.cases) == 6


def test_an_outcome_that_is_not_known_is_no_pass() -> None:
    text = '<TestRun><Results><UnitTestResult testName="a" outcome="Timeout"/></Results></TestRun>'
    report = read_reports({"a.trx": text.encode()}, "", result_files=("a.trx",))
    assert [(case.name, case.outcome) for case in report.cases] == [("a", "error")]
