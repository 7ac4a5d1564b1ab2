"""One small report of each reporter, as it really writes them (`samples/`)."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

from astra_async.testing.counting import grade, learn
from astra_async.testing.reports import read_reports
from astra_async.types import ExpectedTest, TestCase, TestReport

SAMPLES = Path(__file__).parent / "samples"


def sample(name: str) -> str:
    return (SAMPLES / name).read_text(encoding="utf-8")


JEST_JUNIT = sample("jest_junit.xml")
JEST_JUNIT_CRASHED = sample("jest_junit_crashed.xml")
JEST_JUNIT_SUITE_ERROR = sample("jest_junit_suite_error.xml")
VITEST_BROKEN_OFF = sample("vitest_broken_off.xml")
MOCHA_JUNIT = sample("mocha_junit.xml")
MOCHA_HOOK = sample("mocha_hook.xml")
MOCHA_XUNIT = sample("mocha_xunit.xml")
KARMA_JUNIT = sample("karma_junit.xml")
SUREFIRE = sample("surefire.xml")
SUREFIRE_RERUN = sample("surefire_rerun.xml")
PYTEST = sample("pytest.xml")
PYTEST_COLLECTION = sample("pytest_collection.xml")
XMLRUNNER = sample("xmlrunner.xml")
RSPEC = sample("rspec.xml")
DOTNET_XUNIT = sample("dotnet_xunit.xml")
BOOST = sample("boost.xml")
PHPUNIT = sample("phpunit.xml")
TAPE = sample("tape.tap")
MINITEST_TAP = sample("minitest.tap")
NODE_TEST_TAP = sample("node_test.tap")


def read(text: str) -> TestReport:
    return read_reports({"report": text.encode()}, "", result_files=["report"])


def outcomes(text: str) -> list[tuple[str, str, str]]:
    report = read(text)
    assert report.problems == ()
    return [(case.classname, case.name, case.outcome) for case in report.cases]


def test_jest_junit() -> None:
    title = "Cyclic Counter cycle length"
    assert outcomes(JEST_JUNIT) == [
        (f"{title} 1", f"{title} 1", "passed"),
        (f"{title} 2", f"{title} 2", "failed"),
        (f"{title} 3", f"{title} 3", "skipped"),
    ]


def test_a_crashed_jest_suite_has_no_cases_and_says_so() -> None:
    said = ("report: suite undefined: errors outside its tests", "report: no test cases")
    assert read(JEST_JUNIT_CRASHED) == TestReport(problems=said)


def test_a_failed_suite_is_a_case_and_a_problem() -> None:
    report = read(JEST_JUNIT_SUITE_ERROR)
    assert [case.outcome for case in report.cases] == ["error"]
    assert "a suite or hook failed" in report.problems[0]


@pytest.mark.parametrize("failing", ["Form", "src/__tests__/p.test.js"])
def test_of_a_vitest_file_that_broke_off_no_test_passed(failing: str) -> None:
    found = read(VITEST_BROKEN_OFF.replace('name="Form" time', f'name="{failing}" time'))
    assert [(case.name, case.outcome, case.is_suite) for case in found.cases] == [
        ("Form > adds", "failed", False),
        ("Form > tells its title", "missing", False),
        ("Form > never runs", "missing", False),
        (failing, "failed", True),
    ]
    assert f"a suite or hook failed, so its tests may be missing: {failing}" in found.problems[0]


def test_mocha_junit_reporter() -> None:
    assert outcomes(MOCHA_JUNIT) == [
        ("should return 200", "recipes_api should return 200", "passed"),
        ("should return 404", "recipes_api should return 404", "failed"),
        ("should be done later", "recipes_api should be done later", "skipped"),
    ]
    assert read(MOCHA_JUNIT).cases[1].message.startswith("AssertionError: expected 200 to equal 404\n    at ")


def test_a_failed_mocha_hook_is_a_problem() -> None:
    report = read(MOCHA_HOOK)
    assert [case.name for case in report.cases] == ['order_processor "before each" hook for "should place"']
    assert len(report.problems) == 1


def test_mocha_xunit_reporter() -> None:
    assert outcomes(MOCHA_XUNIT) == [
        ("math adds", "two and two", "passed"),
        ("math adds", "one and one", "failed"),
    ]


def test_karma_junit_counts_a_case_with_two_failures_once() -> None:
    browser = "Chrome_Headless_120_0_0_0_(Linux_x86_64).WeatherFinder"
    assert outcomes(KARMA_JUNIT) == [
        (browser, "WeatherFinder Should search", "passed"),
        (browser, "WeatherFinder Should render", "failed"),
        (browser, "WeatherFinder Later", "skipped"),
    ]
    assert read(KARMA_JUNIT).cases[1].message == "Expected null to be truthy."


def test_surefire() -> None:
    assert outcomes(SUREFIRE) == [
        ("com.acme.LibraryTest", "createsBook", "passed"),
        ("com.acme.LibraryTest", "findsBook", "failed"),
        ("com.acme.LibraryTest", "deletesBook", "error"),
        ("com.acme.LibraryTest", "listsBooks", "skipped"),
    ]


def test_a_flaky_surefire_case_passed_in_the_end_and_a_repeated_failure_did_not() -> None:
    assert [outcome for _, _, outcome in outcomes(SUREFIRE_RERUN)] == ["passed", "failed"]


def test_pytest() -> None:
    assert outcomes(PYTEST) == [
        ("tests.test_api.TestTasks", "test_create[json]", "passed"),
        ("tests.test_api", "test_list", "failed"),
        ("tests.test_api", "test_later", "skipped"),
        ("tests.test_api", "test_teardown", "error"),
    ]


def test_a_pytest_case_whose_teardown_failed_is_not_passed() -> None:
    verdict = grade(read(PYTEST), [ExpectedTest(name="test_teardown")])
    assert verdict.passed == 0


def test_a_pytest_collection_failure_is_a_problem() -> None:
    assert len(read(PYTEST_COLLECTION).problems) == 1


def test_django_xmlrunner() -> None:
    assert outcomes(XMLRUNNER) == [
        ("library.tests.BookTests", "test_create", "passed"),
        ("library.tests.BookTests", "test_filter", "failed"),
        ("library.tests.BookTests", "test_page", "error"),
    ]
    assert read(XMLRUNNER).cases[0].file == "library/tests.py"


def test_rspec_junit_formatter() -> None:
    assert [(name, outcome) for _, name, outcome in outcomes(RSPEC)] == [
        ("Students GET /students returns all", "passed"),
        ("Students POST /students creates", "failed"),
        ("Students later", "skipped"),
    ]


def test_dotnet_xunit() -> None:
    assert outcomes(DOTNET_XUNIT) == [
        ("Api.Tests.ItemsTests", "Creates", "passed"),
        ("Api.Tests.ItemsTests", "Adds(a: 1, b: 2)", "failed"),
        ("Api.Tests.ItemsTests", "Later", "skipped"),
    ]
    assert read(DOTNET_XUNIT).cases[1].message == "Assert.Equal() Failure\nat X"


def test_boost() -> None:
    assert outcomes(BOOST) == [("", "pushes", "passed"), ("inner", "pops", "error")]


def test_phpunit_with_nested_suites_and_warnings() -> None:
    assert outcomes(PHPUNIT) == [
        ("CartTest", "testAdd", "passed"),
        ("CartTest", "testSum with data set #0", "failed"),
        ("CartTest", "testNothing", "error"),
    ]


def test_tape_keeps_hash_signs_and_skips_yaml_blocks() -> None:
    assert outcomes(TAPE) == [
        ("", "GET /#top is served", "passed"),
        ("", "should be strictly equal", "failed"),
        ("", "should be strictly equal", "passed"),
        ("", "later", "skipped"),
    ]


def test_minitest_tap() -> None:
    assert outcomes(MINITEST_TAP) == [
        ("", "test_0001_creates a student", "passed"),
        ("", "test_0002_lists students", "failed"),
        ("", "test_0003_waits", "skipped"),
    ]


def test_tap_subtests_are_the_cases_and_their_parent_is_their_class() -> None:
    assert outcomes(NODE_TEST_TAP) == [
        ("queue", "pushes", "passed"),
        ("queue", "pops", "failed"),
        ("", "alone", "passed"),
    ]


def test_a_tap_parent_that_failed_by_itself_is_a_case() -> None:
    text = "    ok 1 - a\n    1..1\nnot ok 1 - parent\n1..1\n"
    assert outcomes(text) == [("parent", "a", "passed"), ("", "parent", "failed")]


def test_tap_subtests_cut_before_their_parent_keep_the_announced_title() -> None:
    report = read("TAP version 13\n# Subtest: queue\n    # Subtest: pushes\n    ok 1 - pushes\n1..2\n")
    assert [(case.classname, case.name) for case in report.cases] == [("queue", "pushes")]
    assert report.problems == ("report: 2 tests were planned and 0 reported",)


@pytest.mark.parametrize(
    ("line", "name", "outcome"),
    [
        ("ok 1 - a # TODO later", "a", "passed"),
        ("not ok 1 - a # TODO later", "a", "skipped"),
        ("not ok 1 - a # SKIP no", "a", "skipped"),
        ("ok 1 # skip", "test 1", "skipped"),
        ("ok 1 - a \\# b", "a # b", "passed"),
        ("not ok 1 - fixes #12 and #skipping", "fixes #12 and #skipping", "failed"),
        ("ok 1 - focuses #skip-to-content", "focuses #skip-to-content", "passed"),
        ("not ok 2 - adds to #todo-list", "adds to #todo-list", "failed"),
        ("ok 1 - jumps to /#skipped-rows", "jumps to /#skipped-rows", "passed"),
        ("ok 1 - renders the #skip link", "renders the #skip link", "passed"),
        ("ok 1 - a \\# skip b", "a # skip b", "passed"),
        ("ok 1 - a # skipper", "a # skipper", "passed"),
        ("ok 1 - a # Skipped: no db", "a", "skipped"),
        ("ok 1 -  # SKIP", "test 1", "skipped"),
        ("not ok 1 - a # TODO: later", "a", "skipped"),
        ("ok 7", "test 7", "passed"),
        ("ok 1 a  b\t c", "a b c", "passed"),
        ("ok 1 - - dash", "- dash", "passed"),
        ("ok 1 - \x1b[32mgreen\x1b[0m", "green", "passed"),
    ],
)
def test_tap_points(line: str, name: str, outcome: str) -> None:
    assert outcomes(line + "\n1..1\n") == [("", name, outcome)]


def test_prose_that_begins_like_a_tap_point_is_not_counted() -> None:
    assert outcomes("1..1\nok then\nokay 5 fish\nnot okay\nok 1 - real\nok - also real\n") == [
        ("", "real", "passed"),
        ("", "also real", "passed"),
    ]


def test_a_tap_bail_out_is_a_problem() -> None:
    assert read("1..3\nok 1 - a\nBail out! no database\n").problems == (
        "report: Bail out! no database",
        "report: 3 tests were planned and 1 reported",
    )


# --- where reports come from -------------------------------------------------------------------------


def test_several_files_are_read_in_the_order_of_their_paths() -> None:
    report = read_reports(
        {
            "output/task2.xml": MOCHA_XUNIT.encode(),
            "output/task1.xml": BOOST.encode(),
            "unit.tap": TAPE.encode(),
        },
        "ok 1 - not looked at\n",
        result_files=["output/*.xml", "./unit.tap"],
    )
    assert [case.name for case in report.cases][:3] == ["pushes", "pops", "two and two"]
    assert len(report.cases) == 8
    assert report.problems == ()


def test_a_named_file_that_was_not_written_is_a_problem() -> None:
    report = read_reports({}, JEST_JUNIT, result_files=["unit.xml", "output/*.xml"])
    assert report == TestReport(problems=("unit.xml: not written", "output/*.xml: not written"))
    written = [
        "/projects/challenge/out/unit.xml",
        "./out//unit.xml",
        "**/unit.xml",
        "out/**/unit.xml",
        "o*/*",
    ]
    for pattern in written:
        assert read_reports({"out/unit.xml": BOOST.encode()}, "", result_files=[pattern]).problems == ()


@pytest.mark.parametrize(
    ("other", "missing"),
    [
        ('<testsuite><testcase name="b"/>', True),
        ("", True),
        (JEST_JUNIT_CRASHED, True),
        ("1..2\nok 1 - b\n", True),
        ('<testsuite name="a class whose tests are nested ones" tests="0"/>', False),
        ("<coverage/>", False),
        ("<!DOCTYPE html><html/>", False),
        ("12 % covered", False),
    ],
)
def test_of_a_globs_files_a_damaged_report_lacks_tests_and_another_document_does_not(
    other: str, *, missing: bool
) -> None:
    files = {"out/a.xml": BOOST.encode(), "out/b.xml": other.encode()}
    assert bool(read_reports(files, "", result_files=["out/*.xml"]).problems) == missing
    assert read_reports(files, "", result_files=["out/a.xml", "out/b.xml"]).problems
    alone = read_reports({"out/b.xml": other.encode()}, "", result_files=["out/*.xml"])
    assert alone.problems


@pytest.mark.parametrize("text", [TAPE, MINITEST_TAP, JEST_JUNIT, DOTNET_XUNIT, MOCHA_XUNIT])
def test_standard_output_is_scored_when_no_files_are_named(text: str) -> None:
    printed = f"\n> challenge@1.0.0 test\n> node test.js > /dev/null\n\n{text}\nnpm ERR! <code> 1\n"
    report = read_reports({}, printed, result_files=[])
    assert report.cases == read(text).cases
    assert report.cases


@pytest.mark.parametrize(
    "before",
    [
        "<ref *1> {\n  app: [Circular *1]\n}\n",
        "<Buffer 68 69>\n",
        "<Server> up\n",
        "<!DOCTYPE html>\n<html><body>x</body></html>\n",
        '<?xml version="1.0"?><svg><path d="m 1"/></svg>\n',
        "<3\n",
    ],
)
@pytest.mark.parametrize("text", [TAPE, JEST_JUNIT])
def test_output_that_begins_like_markup_loses_no_report(before: str, text: str) -> None:
    for report in (
        read_reports({}, before + text, result_files=[]),
        read_reports({"report": (before + text).encode()}, "", result_files=["report"]),
    ):
        assert report == read(text)
        assert report.cases


def test_standard_output_without_a_report_is_a_problem() -> None:
    report = read_reports({}, "all 5 tests fine\n", result_files=[])
    assert report.cases == ()
    assert "it begins 'all 5 tests fine'" in report.problems[0]
    assert read_reports({}, "", result_files=[]).problems == ("standard output: empty",)


def test_the_format_is_told_by_content_and_not_by_suffix() -> None:
    report = read_reports({"a.xml": TAPE.encode(), "b.tap": BOOST.encode()}, "", result_files=[])
    assert [case.name for case in report.cases][-2:] == ["pushes", "pops"]
    assert len(report.cases) == 6


def test_tap_that_prints_xml_and_xml_that_prints_tap_keep_their_format() -> None:
    assert len(read("1..1\nok 1 - a\n# <testsuite name='x'><testcase name='y'/></testsuite>\n").cases) == 1
    printed = BOOST.replace("UNCAUGHT EXCEPTION", "\n1..2\nok 1 - x\nUNCAUGHT")
    assert [case.name for case in read(printed).cases] == ["pushes", "pops"]


def test_names_live_in_the_class_name_when_the_name_is_empty() -> None:
    report = read('<testsuite><testcase name="" classname="Suite works"/></testsuite>')
    assert report.cases == (TestCase(name="Suite works", outcome="passed"),)


def test_cases_outside_suites_and_in_namespaces_are_counted() -> None:
    report = read(
        '<t:testsuites xmlns:t="urn:x"><t:testcase name="a"/><t:testsuite><t:testsuite>'
        '<t:testcase name="b"><t:failure/></t:testcase></t:testsuite></t:testsuite></t:testsuites>'
    )
    assert [(case.name, case.outcome) for case in report.cases] == [("a", "passed"), ("b", "failed")]
    assert [case.name for case in read('<testcase name="alone"/>').cases] == ["alone"]


@pytest.mark.parametrize("attribute", ['status="notrun"', 'status="disabled"', 'result="suppressed"'])
def test_cases_that_say_that_they_did_not_run_are_skipped(attribute: str) -> None:
    assert read(f'<testsuite><testcase name="a" {attribute}/></testsuite>').cases[0].outcome == "skipped"


def test_names_and_messages_are_as_xml_means_them() -> None:
    (case,) = read(
        '<testsuite><testcase classname="Q&amp;A" name="a &amp; b &lt;c&gt; &quot;d&quot; &#38; &#8212;">'
        '<failure message="x &amp; y">x &amp; y &lt;z&gt;</failure></testcase></testsuite>'
    ).cases
    assert (case.classname, case.name) == ("Q&A", 'a & b <c> "d" & —')
    assert case.message == "x & y <z>"


JEST_SUITE = "classname='Test suite failed to run' name='a.js'"
VITEST_SUITE = "classname='a.test.ts' name='a.test.ts'"
JEST_AFTER = "Test execution failure: could be caused by test hooks like 'afterAll'."
UNITTEST = "classname='unittest.suite._ErrorHolder'"


@pytest.mark.parametrize(
    ("attributes", "message", "is_problem"),
    [
        (JEST_SUITE, "Cannot find module", True),
        (JEST_SUITE, "Your test suite must contain at least one test.", False),
        (f'name=" {JEST_AFTER}"', "TypeError", True),
        (VITEST_SUITE, "Failed to resolve import", True),
        (VITEST_SUITE, "No test suite found in file /p/a.ts", False),
        ("classname='test' name='/p/b.test.js'", "test failed { exitCode: 1 }", True),
        ("name='s &quot;before each&quot; hook for &quot;x&quot;'", "", True),
        ("name='s &quot;after each&quot; hook for &quot;x&quot;'", "", True),
        ("name='s &quot;after all&quot; hook in &quot;s&quot;'", "", True),
        (f"{UNITTEST} name='setUpClass (a.B)'", "", True),
        (f"{UNITTEST} name='tearDownClass (a.B)'", "", True),
        ("classname='unittest.loader._FailedTest' name='a.tests'", "ImportError", True),
    ],
)
def test_a_failed_suite_or_hook_is_no_test_but_a_problem(
    attributes: str, message: str, *, is_problem: bool
) -> None:
    failed = f"<testcase {attributes}><failure>{message}</failure></testcase>"
    report = read(f"<testsuite><testcase name='real'/>{failed}</testsuite>")
    assert [test.name for test in learn(report)] == ["real"]
    assert bool(report.problems) == is_problem


def test_a_file_that_node_could_not_load_is_no_test() -> None:
    details = "  ---\n  failureType: 'testCodeFailure'\n  exitCode: 1\n  error: 'test failed'\n  ...\n"
    report = read(f"TAP version 13\nok 1 - adds\nnot ok 2 - /p/test/b.test.mjs\n{details}1..2\n")
    assert [test.name for test in learn(report)] == ["adds"]
    assert "may be missing: /p/test/b.test.mjs" in report.problems[0]
    assert [test.name for test in learn(read("1..1\nnot ok 1 - b.test.mjs\n"))] == ["b.test.mjs"]


def test_an_error_of_a_suite_is_a_problem() -> None:
    report = read('<testsuite name="S"><error message="no setup"/><testcase name="a"/></testsuite>')
    assert report.problems == ("report: suite S: no setup",)


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (
            JEST_JUNIT,
            "Error: expect(received).toBe(expected)\n    at Object.<anonymous> (src/App.test.js:12:5)",
        ),
        (KARMA_JUNIT, "Expected null to be truthy."),
        (MOCHA_XUNIT, "expected 3 to equal 2\nAssertionError [ERR_ASSERTION]"),
        (PYTEST, "assert 404 == 200\n +  where 404 = <Response>.status_code\ndef test_list(client):\n>"),
        (RSPEC, "expected: 201\n     got: 404\nFailure/Error: expect(response.status).to eq 201"),
        (SUREFIRE, "Status expected:<200> but was:<404>\njava.lang.AssertionError: x"),
        (XMLRUNNER, "AssertionError: 2 != 1"),
        (TAPE, "operator: equal\nexpected: 2\nactual:   1\nstack: |-\n  Error: should be strictly equal"),
        (MINITEST_TAP, "Expected: 200\n  Actual: 404"),
        (NODE_TEST_TAP, "error: 'boom'"),
    ],
)
def test_the_message_of_the_first_failed_test_tells_its_cause(report: str, message: str) -> None:
    failed = next(case for case in read(report).cases if case.outcome in ("failed", "error"))
    assert failed.message.startswith(message)
    assert not [case for case in read(report).cases if case.outcome == "passed" and case.message]


def test_a_title_behind_a_points_details_is_not_its_message() -> None:
    report = (
        "TAP version 13\nnot ok 1 sums\n  ---\n  error: off by one\n  ...\n# products\nok 2 products\n1..2"
    )
    assert read(report).cases[0].message == "error: off by one"


def test_comments_behind_a_point_are_its_message() -> None:
    report = (
        "1..2\nnot ok 1 - sums\n#   Failed test 'sums'\n#          got: '1'\n#     expected: '2'\nok 2 - x\n"
    )
    assert read(report).cases[0].message == "Failed test 'sums'\n       got: '1'\n  expected: '2'"


def test_an_expected_test_keeps_its_message() -> None:
    (test,) = grade(read(XMLRUNNER), [ExpectedTest(name="test_filter")]).tests
    assert (test.outcome, test.message) == ("failed", "AssertionError: 2 != 1")


@pytest.mark.parametrize(
    "codes",
    [
        "&#xFFFD;[31m{}&#xFFFD;[39m",  # as reporters write what XML forbids
        "[2m[38;5;9m{}[39m[22m",
        "\x1b[1;38;5;9m{}\x1b[0m",
        "\x1b]0;owned\x07{}",
        "\x1b]8;;http://evil\x1b\\{}\x1b]8;;\x1b\\",
        "\x9b31m{}\x9d0;owned\x9c",
        "\x1b[2J\x1b[1;1H{}\x1b[?25l\x1bM",
        "{}\x1b",
    ],
)
def test_a_message_holds_no_terminal_code(codes: str) -> None:
    message = codes.format("expected 1")
    failure = f'<failure message="{message}"> at {message}</failure>'
    report = f'<testsuite><testcase name="a">{failure}</testcase></testsuite>'
    (case,) = read(report).cases
    assert case.message == "at expected 1"


def message_of(attribute: str, details: str) -> str:
    failure = f"<failure message={quoteattr(attribute)}><![CDATA[{details}]]></failure>"
    return read(f'<testsuite><testcase name="a">{failure}</testcase></testsuite>').cases[0].message


def test_a_message_that_an_attribute_has_on_one_line_is_told_once_and_in_its_lines() -> None:
    attribute = "Lists differ: [] != ['a', 'b']  Second list contains 2 additional elements."
    error = "AssertionError: Lists differ: [] != ['a', 'b']\n\nSecond list contains 2 additional elements."
    assert message_of(attribute, f"Traceback:\n  File 't.py', line 1\n{error}") == error.replace("\n\n", "\n")


def test_frames_of_the_runner_leave_room_for_those_of_the_test() -> None:
    inner = "".join(f"\tat org.junit.jupiter.api.Assert{n}.fail(Assert.java:{n})\n" for n in range(20))
    told = message_of(
        "expected: <1> but was: <2>",
        f"org.opentest4j.AssertionFailedError: expected: <1> but was: <2>\n{inner}"
        "\tat theatre.PriceTest.isLow(PriceTest.java:12)\n\tat java.base/java.lang.Thread.run(T.java:1)\n",
    )
    assert told.splitlines()[1:] == ["\tat theatre.PriceTest.isLow(PriceTest.java:12)"]


def test_text_in_brackets_is_no_colour() -> None:
    assert message_of("rate(x[5m]) is 3 in a[1m", "") == "rate(x[5m]) is 3 in a[1m"


def test_a_long_message_is_cut_and_shows_it() -> None:
    report = f'<testsuite><testcase name="a"><failure>{"x" * 10_000_000}</failure></testcase></testsuite>'
    assert read(report).cases[0].message == "x" * 499 + "\u2026"
