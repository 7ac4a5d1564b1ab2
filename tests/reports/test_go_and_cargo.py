"""Reports of Go's and Rust's own test runners, as they write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from astra_async.testing.reports.report_files import read_reports

if TYPE_CHECKING:
    from astra_async.types import TestReport

SAMPLES = Path(__file__).parent / "samples"


def read(text: str) -> TestReport:
    return read_reports({"report": text.encode()}, "", result_files=["report"])


def outcomes(report: TestReport) -> dict[str, str]:
    return {f"{case.classname}.{case.name}": case.outcome for case in report.cases}


def test_events_of_go_are_cases_by_package_and_subtests_stand_for_their_test() -> None:
    report = read((SAMPLES / "go_test.json").read_text())
    assert outcomes(report) == {
        "shop.TestAdd": "passed",
        "shop.TestFails": "failed",
        "shop.TestTable/one_is": "passed",
        "shop.TestTable/two": "failed",
        "shop.TestSkipped": "skipped",
        "shop.TestPanics": "failed",
    }
    said = {case.name: case.message for case in report.cases}
    assert "no: 4" in said["TestFails"]
    assert "not 1" in said["TestTable/two"]
    assert said["TestAdd"] == ""


def test_a_go_test_that_began_and_never_ended_did_not_pass() -> None:
    lines = [
        {"Action": "run", "Test": "TestA"},
        {"Action": "pass", "Test": "TestA"},
        {"Action": "run", "Test": "TestB"},
        {"Action": "output", "Output": "exit status 3\n"},
        {"Action": "fail"},
    ]
    common = {"Time": "t", "Action": "", "Package": "shop"}
    text = "".join(json.dumps(common | each, separators=(",", ":")) + "\n" for each in lines)
    assert outcomes(read(text)) == {"shop.TestA": "passed", "shop.TestB": "error"}


def test_a_go_package_that_does_not_compile_is_a_trouble_of_the_report() -> None:
    text = (
        '{"Time":"t","Action":"output","Package":"shop","Output":"FAIL\\tshop [build failed]\\n"}\n'
        '{"Time":"t","Action":"fail","Package":"shop","Elapsed":0}\n'
    )
    report = read("# shop [shop.test]\n./shop.go:3:1: syntax error\n" + text)
    assert report.cases == ()
    assert "package shop failed: FAIL" in report.problems[0]


def test_a_passed_event_beside_a_failed_one_gains_nothing() -> None:
    text = "".join(
        f'{{"Time":"t","Action":"{action}","Package":"shop","Test":"TestA"}}\n' for action in ("fail", "pass")
    )
    assert [case.outcome for case in read(text).cases] == ["failed", "passed"]


def test_the_text_of_cargo_is_cases_by_target() -> None:
    report = read((SAMPLES / "cargo_test.txt").read_text())
    assert outcomes(report) == {
        "src/lib.rs.tests::adds": "passed",
        "src/lib.rs.tests::fails": "failed",
        "src/lib.rs.tests::slow": "skipped",
        "src/lib.rs.tests::panics": "passed",
        "tests/cart.rs.adds": "passed",
        "Doc-tests shop.src/lib.rs - add (line 2)": "passed",
    }
    said = {case.name: case.message for case in report.cases}
    assert "left: `2`" in said["tests::fails"]
    assert said["tests::slow"] == "later"
    assert report.problems == ("report: tests/cart.rs: 2 tests were planned, 1 reported",)


def test_output_between_a_name_and_its_result_costs_no_case() -> None:
    text = (
        "running 2 tests\ntest a ... some output\nmore of it\nok\ntest b ... FAILED\n\ntest result: FAILED.\n"
    )
    assert outcomes(read(text)) == {".a": "passed", ".b": "failed"}


@pytest.mark.parametrize("text", ["the tests were running 3 tests today\n", '{"Action":"dance"}\n'])
def test_what_only_resembles_them_is_no_report(text: str) -> None:
    assert read(text).cases == ()
    assert "unknown format" in read(text).problems[0]


@pytest.mark.parametrize(
    "text",
    [
        "running 1 test\n" + "test a ... ok\n" * 100_001,
        '{"Time":"t","Action":"pass","Package":"p","Test":"T"}\n' * 100_001,
    ],
)
def test_too_many_cases_are_refused_as_a_whole(text: str) -> None:
    report = read(text)
    assert report.cases == ()
    assert "more than 100,000" in report.problems[0]


def test_long_names_are_cut_and_deep_ones_read_in_time() -> None:
    deep = "/".join("a" * 500)
    text = "".join(f'{{"Time":"t","Action":"pass","Package":"p","Test":"{deep}{n}"}}\n' for n in range(200))
    assert len(read(text).cases) <= 200
    [case] = read("running 1 test\ntest " + "x" * 990 + " ... ok\n").cases
    assert len(case.name) == 990


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["deposit test a ... ok", "test b - should panic ... ok"], {".a": "passed", ".b": "passed"}),
        (["test a ... deposit ok", "test b ... one ... FAILED"], {".a": "passed", ".b": "failed"}),
        (["test a ... status ok", "FAILED", "test b ... ok"], {".a": "failed", ".b": "passed"}),
        (["a test b ... c test a ... FAILED", "test b ... ok"], {".a": "failed", ".b": "passed"}),
        (["test a ... stuck", "test b ... ok"], {".b": "passed"}),
        (["test a ... said", "ok", "test b ... ok"], {".a": "passed", ".b": "passed"}),
    ],
)
def test_what_a_test_of_rust_writes_without_a_line_end_costs_no_case(
    lines: list[str], expected: dict[str, str]
) -> None:
    text = "\n".join(["running 2 tests", *lines, "", "test result: FAILED. 1 passed"])
    assert outcomes(read(text)) == expected


def test_what_other_tests_of_rust_write_around_a_result_costs_no_case() -> None:
    """Lines of Rust's harness among what tests wrote past its capture, at four threads."""
    lines = [
        "running 6 tests",
        *["xtest a ... qok", "test b ... okw", "", "qtest c ... hello", "zok", "xtest d ... qFAILED"],
        *["test e ... ignoredw", "", "test f ... ok", "q", "failures:", ""],
        *["---- d stdout ----", "the test of x ... is said", "", "failures:", "    d", ""],
        "test result: FAILED. 4 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out",
    ]
    report = read("\n".join(lines))
    passed = dict.fromkeys((".a", ".b", ".c", ".f"), "passed")
    assert outcomes(report) == {**passed, ".d": "failed", ".e": "skipped"}
    assert report.problems == ()
    # Cut off before the summary, or with one that counts otherwise, what is unclear is not passed.
    for end in ([], ["test result: FAILED. 3 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out"]):
        cut = read("\n".join([*lines[:11], *end]))
        assert outcomes(cut) == {".a": "passed", ".d": "failed", ".f": "passed"}


@pytest.mark.parametrize(("section", "outcome"), [("failures", "failed"), ("successes", "passed")])
def test_a_test_of_rust_with_details_of_its_failure_has_failed(section: str, outcome: str) -> None:
    text = f"running 1 test\ntest a ... said\nok\nFAILED\n\n{section}:\n\n---- a stdout ----\nsaid\n"
    assert outcomes(read(text)) == {".a": outcome}


@pytest.mark.parametrize(
    ("end", "outcome"), [("PASS", "passed"), ("FAIL", "failed"), ("SKIP", "skipped"), ("MAYBE", "error")]
)
def test_what_a_test_of_go_prints_without_a_line_end_costs_no_case(end: str, outcome: str) -> None:
    printed = f"renting     --- {end}: TestA/one (0.00s)\n"
    lines = [
        {"Action": "run", "Test": "TestA/one"},
        {"Action": "output", "Test": "TestA/one", "Output": printed},
        {"Action": "run", "Test": "TestB"},
        {"Action": "pass", "Test": "TestB"},
    ]
    assert outcomes(read(_events(lines))) == {"shop.TestB": "passed", "shop.TestA/one": outcome}


def test_what_is_printed_before_a_test_of_go_without_a_line_end_costs_no_case() -> None:
    lines = [
        {"Action": "output", "Output": "prices are known=== RUN   TestA\n"},
        {"Action": "output", "Output": "renting--- PASS: TestA (0.00s)\n"},
        {"Action": "run", "Test": "TestB"},
        {"Action": "output", "Test": "TestB", "Output": "renting--- PASS: TestB (0.00s)\n"},
    ]
    assert outcomes(read(_events(lines))) == {"shop.TestA": "passed", "shop.TestB": "passed"}


def _events(lines: list[dict[str, str]]) -> str:
    common = {"Time": "t", "Action": "", "Package": "shop"}
    return "".join(json.dumps(common | each, separators=(",", ":")) + "\n" for each in lines)
