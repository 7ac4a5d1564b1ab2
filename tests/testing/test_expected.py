from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from astra_async.errors import ExpectationError
from astra_async.prepare import prepare
from astra_async.testing.counting import grade
from astra_async.testing.expected import Expectations, Expected
from astra_async.testing.verdict import Tested
from astra_async.types import (
    Execution,
    ExpectedTest,
    Job,
    Limits,
    Outcome,
    Solution,
    TestCase,
    TestReport,
    Verdict,
)
from fakes import CountingSandbox, MemorySource, _content, a_problem, a_project

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [f"test {n}" for n in range(4)]


SILENT = Execution(exit_code=1, duration_s=1.0)


@dataclass
class SilentSandbox(CountingSandbox):
    """Runs that end as told and report nothing."""

    outcome: Execution = SILENT

    async def run(self, job: Job) -> Execution:
        self.runs += 1
        return self.outcome


def learn(
    path: Path, sandbox: CountingSandbox, *, answer: str = "1", reference: str = "", **fields: Any
) -> Expected:
    async def ask() -> Expected:
        source = MemorySource(
            {"p1": a_project(answer)}, {"ref": Solution(files={"src/answer.txt": reference})}
        )
        problem = a_problem(reference="ref" if reference else "", **fields)
        prepared = await prepare(problem, source, ("xml",))
        expectations = Expectations(path / "expected.json", path / "cache", sandbox, Limits())
        await asyncio.gather(*(expectations.of(prepared, "any") for _ in range(3)))
        return await expectations.of(prepared, "any")

    return asyncio.run(ask())


def names(expected: Expected) -> list[str]:
    return [test.name for test in expected.tests]


def test_names_come_from_one_run_of_the_untouched_project(tmp_path: Path) -> None:
    sandbox = CountingSandbox()
    found = learn(tmp_path, sandbox)
    assert (names(found), found.source, found.untouched) == (NAMES, "project", 1)
    assert sandbox.runs == 1
    stored = orjson.loads((tmp_path / "expected.json").read_bytes())
    assert stored["p1"]["untouched_tests"] == list(found.untouched_tests) == NAMES[:1]


def test_what_is_known_already_is_not_written_again(tmp_path: Path) -> None:
    learn(tmp_path, CountingSandbox())
    written = (tmp_path / "expected.json").stat()
    learn(tmp_path, CountingSandbox())
    assert (tmp_path / "expected.json").stat().st_ino == written.st_ino


def test_a_reference_is_asked_before_the_untouched_project(tmp_path: Path) -> None:
    sandbox = CountingSandbox()
    found = learn(tmp_path, sandbox, answer="crash", reference="4")
    assert (names(found), found.source) == (NAMES, "reference")
    assert sandbox.runs == 1


def test_a_reference_that_crashes_gives_way_to_the_untouched_project(tmp_path: Path) -> None:
    found = learn(tmp_path, CountingSandbox(), answer="0", reference="crash")
    assert (names(found), found.source) == (NAMES, "project")


def test_the_csvs_names_count_and_are_checked_by_a_run(tmp_path: Path) -> None:
    tests = tuple(ExpectedTest(name=name, weight=0.5) for name in NAMES[:2])
    found = learn(tmp_path, CountingSandbox(), tests=tests)
    assert (found.tests, found.source) == (tests, "csv")


def test_names_that_match_nothing_are_an_error_with_both_lists(tmp_path: Path) -> None:
    with pytest.raises(ExpectationError, match=r"(?s)adds two.*test 0|test 0.*adds two"):
        learn(tmp_path, CountingSandbox(), tests=(ExpectedTest(name="adds two"),))


def test_a_run_that_reports_nothing_is_an_error_and_no_silent_zero(tmp_path: Path) -> None:
    with pytest.raises(ExpectationError, match=r"report no cases \(exit code 0; .*check test_command"):
        learn(tmp_path, CountingSandbox(), answer="crash")
    with pytest.raises(ExpectationError, match="report no cases"):
        learn(tmp_path, CountingSandbox(), answer="crash", tests=(ExpectedTest(name="test 0"),))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"timed_out": True}, "did not finish within 1 s"),
        ({"out_of_memory": True}, "hit the container's memory limit"),
        ({"failed_limit": "disk"}, "hit the container's disk limit"),
    ],
)
def test_a_run_that_was_cut_short_teaches_nothing(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    sandbox = SilentSandbox(outcome=replace(SILENT, **changes))
    with pytest.raises(ExpectationError, match=said):
        learn(tmp_path, sandbox, tests=(ExpectedTest(name="test 0"),))


CART = '<testsuite name="cart"><testcase name="adds"/><testcase name="pays"><failure/></testcase></testsuite>'
COUPON = '<testsuite name="coupon"><testcase name="applies"/></testsuite>'
COUPON_FAILED = (
    '<testsuite name="coupon"><testcase classname="Test suite failed to run" name="coupon.test.js">'
    "<error>Cannot find module '../src/coupon'</error></testcase></testsuite>"
)
EMPTY = "● Test suite failed to run\n\n    Your test suite must contain at least one test.\n"


@dataclass
class WritingSandbox(CountingSandbox):
    """Runs that write the reports named for what `src/answer.txt` says, and print a text."""

    written: dict[str, dict[str, str]] = field(default_factory=dict)
    output: str = ""

    async def run(self, job: Job) -> Execution:
        self.runs += 1
        said = _content(job.archive, "src/answer.txt").decode().strip()
        reports = {
            path: f"<testsuites>{text}</testsuites>".encode() for path, text in self.written[said].items()
        }
        return Execution(exit_code=1, duration_s=1.0, output=self.output, reports=reports)


@pytest.mark.parametrize(
    ("written", "said", "fields"),
    [
        ({"junit.xml": CART + COUPON_FAILED}, "may be missing: coupon.test.js", {}),
        ({"junit.xml": CART}, "coupon.xml: not written", {"result_files": ("junit.xml", "coupon.xml")}),
        ({"junit.xml": CART, "b.xml": "<testsuite>"}, "b.xml: not well-formed", {"result_files": ("*.xml",)}),
    ],
)
def test_nothing_is_learned_from_a_run_of_which_tests_are_missing(
    tmp_path: Path, written: dict[str, str], said: str, fields: dict[str, Any]
) -> None:
    sandbox = WritingSandbox(written={"0": written, "1": {"junit.xml": CART + COUPON, "coupon.xml": COUPON}})
    remedy = "list the tests in a column `tests`"
    with pytest.raises(ExpectationError, match=rf"(?s)are not all reported.*{said}.*{remedy}"):
        learn(tmp_path / "untouched", sandbox, answer="0", **fields)
    with pytest.raises(ExpectationError, match=rf"(?s){said}.*and with the reference are not all.*{said}"):
        learn(tmp_path / "unfit", sandbox, answer="0", reference="0", **fields)
    found = learn(tmp_path / "reference", sandbox, answer="0", reference="1", **fields)
    assert ("applies" in names(found), found.source) == (True, "reference")
    found = learn(tmp_path / "whole", sandbox, answer="1", reference="0", **fields)
    assert ("applies" in names(found), found.source) == (True, "project")
    found = learn(tmp_path / "named", sandbox, answer="0", tests=(ExpectedTest(name="adds"),), **fields)
    assert (names(found), found.untouched) == (["adds"], 1)


def test_a_suite_that_jest_junit_leaves_out_is_known_by_what_jest_prints(tmp_path: Path) -> None:
    failed = "FAIL coupon.test.js\n  ● Test suite failed to run\n\n    Cannot find module '../src/coupon'\n"
    written = {"1": {"junit.xml": CART}}
    with pytest.raises(ExpectationError, match=r"(?s)Test suite failed to run.*FAIL coupon\.test\.js"):
        learn(tmp_path / "failed", WritingSandbox(written=written, output=EMPTY + failed))
    found = learn(tmp_path / "empty", WritingSandbox(written=written, output=EMPTY))
    assert names(found) == ["adds", "pays"]
    title = "Test execution failure: could be caused by test hooks like 'afterAll'."
    after = f'<testcase name=" {title}"><failure/></testcase>'
    written = {"1": {"junit.xml": f"{CART}<testsuite>{after}</testsuite>"}}
    sandbox = WritingSandbox(written=written, output="● Test suite failed to run\n\n    TypeError\n")
    with pytest.raises(ExpectationError, match=f"a suite or hook failed.*{title}"):
        learn(tmp_path / "after", sandbox)


def test_names_whose_suites_do_not_load_untouched_are_taken_unchecked(tmp_path: Path) -> None:
    sandbox = WritingSandbox(written={"1": {"junit.xml": COUPON_FAILED}})
    tests = (ExpectedTest(name="applies"),)
    found = learn(tmp_path, sandbox, tests=tests)
    assert (found.tests, found.untouched) == (tests, 0)
    assert "loads none of the tests" in found.provisional
    with pytest.raises(ExpectationError, match="none of the 1 expected tests was reported"):
        learn(tmp_path / "mistyped", WritingSandbox(written={"1": {"junit.xml": CART}}), tests=tests)


def test_skipped_tests_beside_a_learned_one_are_kept_with_it(tmp_path: Path) -> None:
    twice = '<testcase name="a"/><testcase name="a"><skipped/></testcase>'
    sandbox = WritingSandbox(written={"1": {"junit.xml": f"<testsuite>{twice}</testsuite>"}})
    found = learn(tmp_path, sandbox)
    assert found.untouched == len(found.tests) == 1
    assert learn(tmp_path, sandbox) == found
    assert sandbox.runs == 1


def test_names_of_a_project_that_does_not_build_untouched_are_taken_unchecked(tmp_path: Path) -> None:
    output = "src/test/AppTest.java:9: error: cannot find symbol\n"
    sandbox = SilentSandbox(outcome=Execution(exit_code=1, duration_s=1.0, output=output))
    tests = (ExpectedTest(name="test 0"),)
    found = learn(tmp_path, sandbox, tests=tests)
    assert (found.tests, found.untouched) == (tests, 0)
    assert "loads none of the tests" in found.provisional
    with pytest.raises(ExpectationError, match="report no cases"):
        learn(tmp_path / "without", sandbox)


def test_what_was_learned_is_kept_for_the_run_and_for_other_runs(tmp_path: Path) -> None:
    first = learn(tmp_path, CountingSandbox())
    again = CountingSandbox()
    assert learn(tmp_path, again) == first
    (tmp_path / "expected.json").write_text("{torn")
    assert learn(tmp_path, again) == first
    assert again.runs == 0
    kept = orjson.loads((tmp_path / "expected.json").read_bytes())
    assert [test["name"] for test in kept["p1"]["tests"]] == NAMES


def test_a_changed_project_or_command_is_learned_anew(tmp_path: Path) -> None:
    sandbox = CountingSandbox()
    learn(tmp_path, sandbox)
    learn(tmp_path, sandbox, answer="2")
    learn(tmp_path, sandbox, test_command="other")
    assert sandbox.runs == 3


def test_a_failure_is_remembered_and_not_tried_for_every_sample(tmp_path: Path) -> None:
    sandbox = CountingSandbox()
    with pytest.raises(ExpectationError):
        learn(tmp_path, sandbox, answer="crash")
    assert sandbox.runs == 1


@dataclass
class ExitingSandbox(WritingSandbox):
    """The command exits with `exit_code`."""

    exit_code: int = 0

    async def run(self, job: Job) -> Execution:
        return replace(await super().run(job), exit_code=self.exit_code)


PASSING, FAILING = '<testsuite><testcase name="adds"/></testsuite>', CART


@pytest.mark.parametrize(
    ("reference", "report", "exit_code", "doubt"),
    [
        ("2", PASSING, 0, ""),
        ("2", PASSING, 2, "exits with 2 for the reference"),
        ("2", FAILING, 0, "passes 1 of 2 expected tests"),
        ("", PASSING, 0, "give a reference"),
    ],
)
def test_only_a_complete_run_of_a_reference_confirms_the_expected_tests(
    tmp_path: Path, reference: str, report: str, exit_code: int, doubt: str
) -> None:
    written = {said: {"junit.xml": report} for said in ("1", "2")}
    found = learn(tmp_path, ExitingSandbox(written=written, exit_code=exit_code), reference=reference)
    assert bool(found.provisional) == bool(doubt)
    assert doubt in found.provisional
    again = learn(tmp_path, ExitingSandbox(written={}), reference=reference)  # from expected.json
    assert again.provisional == found.provisional


def test_the_csvs_list_is_confirmed_if_the_reference_passes_it(tmp_path: Path) -> None:
    written = {said: {"junit.xml": PASSING} for said in ("1", "2")}
    tests = (ExpectedTest(name="adds"),)
    assert learn(tmp_path, ExitingSandbox(written=written), reference="2", tests=tests).provisional == ""


def test_a_sample_contradicts_the_expected_tests_once(tmp_path: Path) -> None:
    known = Expectations(tmp_path / "e.json", tmp_path / "cache", CountingSandbox(), Limits())
    verdict = Verdict(passed=2, total=2)
    failed, ended = (
        Tested(execution=Execution(exit_code=code, duration_s=1.0), report=TestReport()) for code in (2, 0)
    )
    assert known.contradiction("p", ended, verdict) == ""
    assert known.contradiction("p", failed, Verdict(passed=1, total=2)) == ""
    assert "exited with 2" in known.contradiction("p", failed, verdict)
    assert known.contradiction("p", failed, verdict) == ""


@pytest.mark.parametrize(
    ("classname", "outcome", "why"),
    [
        ("Cart", "passed", "1 tests ran that are not expected: pays"),
        ("Cart", "failed", "1 tests ran that are not expected: pays"),
        ("Cart", "skipped", ""),
        ("Other", "passed", ""),
        ("", "passed", ""),
    ],
)
def test_a_new_test_in_a_known_class_contradicts_the_expected_tests(
    tmp_path: Path, classname: str, outcome: Outcome, why: str
) -> None:
    known = Expectations(tmp_path / "e.json", tmp_path / "cache", CountingSandbox(), Limits())
    cases = (
        TestCase(name="adds", classname="Cart", outcome="failed"),
        TestCase(name="pays", classname=classname, outcome=outcome),
    )
    tested = Tested(execution=Execution(exit_code=1, duration_s=1.0), report=TestReport(cases=cases))
    verdict = grade(tested.report, (ExpectedTest(name="adds"),))
    assert known.contradiction("p", tested, verdict) == why


@dataclass
class ListingSandbox(CountingSandbox):
    """Its test runner is pytest, and lists the tests that it is told."""

    listed: str = ""

    async def run(self, job: Job) -> Execution:
        if "--collect-only" in job.command:
            return Execution(exit_code=0, duration_s=0.1, stdout=self.listed, output=self.listed)
        return await super().run(job)


def a_list(number: int) -> str:
    return "".join(f"test_answer.py::test {n}\n" for n in range(number)) + f"\n{number} tests collected\n"


@pytest.mark.parametrize(
    ("listed", "fields", "doubt"),
    [
        (4, {"reference": "4"}, ""),
        (
            6,
            {"reference": "4"},
            (
                "the test runner lists 2 tests that the run did not report:"
                " test_answer test 4, test_answer test 5"
            ),
        ),
        (0, {"reference": "4"}, ""),
        (4, {}, "the expected tests are not confirmed by a reference; give a reference"),
        (4, {"tests": tuple(ExpectedTest(name=name) for name in NAMES)}, ""),
        (
            4,
            {"tests": tuple(ExpectedTest(name=name) for name in NAMES[:3])},
            "the expected tests are not confirmed by a reference; give a reference",
        ),
    ],
)
def test_the_runner_is_asked_for_its_tests(
    tmp_path: Path, listed: int, fields: dict[str, Any], doubt: str
) -> None:
    sandbox = ListingSandbox(listed=a_list(listed))
    found = learn(tmp_path, sandbox, test_command="pytest --junitxml=junit.xml", **fields)
    assert found.provisional == doubt
    assert sandbox.runs == 1
