from __future__ import annotations

import pytest

from astra_async.testing.counting import among_skipped, grade, learn, mismatch
from astra_async.types import ExpectedTest, Outcome, TestCase, TestReport


def case(name: str, outcome: Outcome = "passed", classname: str = "", message: str = "") -> TestCase:
    return TestCase(name=name, outcome=outcome, classname=classname, message=message)


def report(*cases: TestCase) -> TestReport:
    return TestReport(cases=cases)


def named(*names: str) -> list[ExpectedTest]:
    return [ExpectedTest(name=name) for name in names]


def graded(cases: TestReport, *names: str) -> list[str]:
    return [test.outcome for test in grade(cases, named(*names)).tests]


def test_passed_counts_expected_tests_and_extras_are_recorded() -> None:
    verdict = grade(report(case("a"), case("b", "failed"), case("new")), named("b", "a", "gone"))
    assert (verdict.passed, verdict.total) == (1, 3)
    assert [(test.name, test.outcome) for test in verdict.tests] == [
        ("b", "failed"),
        ("a", "passed"),
        ("gone", "missing"),
    ]
    assert [(test.name, test.outcome) for test in verdict.extra_tests] == [("new", "passed")]


@pytest.mark.parametrize(
    "name", ["works", "com.acme.A works", "com.acme.A.works", "  works ", "com.acme.A  works"]
)
def test_names_match_as_name_and_with_their_class(name: str) -> None:
    assert graded(report(case("works", classname="com.acme.A")), name) == ["passed"]


def test_a_class_name_that_holds_the_full_or_short_title_matches() -> None:
    assert graded(report(case("should add", classname="cart should add")), "cart should add") == ["passed"]
    assert graded(report(case("cart should add", classname="should add")), "should add") == ["passed"]


def test_a_class_name_alone_is_not_a_test() -> None:
    assert graded(report(case("works", classname="com.acme.A")), "com.acme.A") == ["missing"]


@pytest.mark.parametrize("outcome", ["failed", "error", "skipped"])
def test_only_passed_is_passed(outcome: Outcome) -> None:
    verdict = grade(report(case("a", outcome)), named("a"))
    assert (verdict.passed, verdict.tests[0].outcome) == (0, outcome)


def test_duplicates_count_as_often_as_they_are_expected() -> None:
    assert graded(report(case("a"), case("a")), "a", "a") == ["passed", "passed"]
    assert sorted(graded(report(case("a"), case("a", "failed")), "a", "a")) == ["failed", "passed"]
    assert sorted(graded(report(case("a")), "a", "a")) == ["missing", "passed"]


def test_of_more_occurrences_than_expected_the_failing_ones_count() -> None:
    verdict = grade(report(case("a"), case("a", "failed"), case("a")), named("a"))
    assert (verdict.passed, verdict.total) == (0, 1)
    assert [test.outcome for test in verdict.extra_tests] == ["passed", "passed"]
    assert graded(report(case("a"), case("a", "skipped")), "a") == ["skipped"]


def test_a_case_counts_once_and_for_its_most_qualified_name() -> None:
    cases = report(case("b", "failed", "A"), case("b", "passed", "B"))
    assert graded(cases, "A.b", "b") == ["failed", "passed"]
    assert graded(report(case("b", "passed", "A")), "A.b", "b") == ["passed", "missing"]


def test_a_case_too_many_for_one_name_serves_another_that_fits_it() -> None:
    assert graded(report(case("b", "failed", "A"), case("A.b")), "A.b", "b") == ["passed", "failed"]
    assert graded(report(case("b", classname="A"), case("b", classname="A")), "A.b", "b") == [
        "passed",
        "passed",
    ]


def test_extra_tests_are_capped() -> None:
    assert len(grade(report(*[case(str(n)) for n in range(5_000)]), named("a")).extra_tests) == 1_000


def test_the_verdict_does_not_depend_on_the_order_of_the_report() -> None:
    cases = [case("a"), case("a", "failed"), case("b", "error"), case("b"), case("c", "skipped")]
    expected = named("a", "a", "b", "c")
    verdict = grade(report(*cases), expected)
    assert grade(report(*reversed(cases)), expected).tests == verdict.tests
    assert verdict.passed == 1


def test_nothing_reported_is_nothing_passed() -> None:
    assert grade(report(), named("a", "b")).passed == 0
    assert graded(report(), "a") == ["missing"]


def test_a_run_is_learned_as_a_multiset_in_its_order() -> None:
    learned = learn(report(case("b"), case("a", "failed"), case("b", "error")))
    assert [test.name for test in learned] == ["b", "a", "b"]


def test_names_shared_by_classes_are_learned_with_their_class() -> None:
    cases = report(
        case("b", classname="A"), case("b", classname="B"), case("b", classname="B"), case("c", classname="B")
    )
    learned = learn(cases)
    assert [test.name for test in learned] == ["A.b", "B.b", "B.b", "c"]
    assert grade(cases, learned).passed == 4


def test_full_titles_in_both_attributes_are_learned_once() -> None:
    cases = report(case("cart adds", classname="cart adds"), case("cart pays", classname="cart pays"))
    assert [test.name for test in learn(cases)] == ["cart adds", "cart pays"]


def test_time_stamped_class_names_are_never_learned() -> None:
    cases = report(case("b", classname="T-20240301101112"), case("b", classname="U-20240301101112"))
    assert [test.name for test in learn(cases)] == ["b", "b"]


def test_skipped_tests_and_failed_hooks_and_suites_are_not_learned() -> None:
    learned = learn(
        report(
            case("real", "failed"),
            case("later", "skipped"),
            case('s "before each" hook for "x"', "failed"),
            case("/p/App.test.js", "error", "Test suite failed to run"),
            case("tests.test_api", "error", message="collection failure"),
            case("setUpClass (library.tests.BookTests)", "error", "unittest.suite._ErrorHolder"),
            case("library.tests", "error", "unittest.loader._FailedTest"),
            case('describes "before each" hook syntax', "passed"),
        )
    )
    assert [test.name for test in learned] == ["real", 'describes "before each" hook syntax']


def test_whatever_is_learned_is_found_again_in_the_same_run() -> None:
    cases = report(
        case("x", classname="A"),
        case("x", classname="B"),
        case("x"),
        case("A.x"),
        case("y", classname="A y"),
        case("n" * 2_000, classname="C" * 2_000),
        case("n" * 2_000, classname="D" * 2_000),
        *(case(name, "skipped", classname) for name in "xyz" for classname in ("", "A", "E")),
    )
    learned = learn(cases)
    assert grade(cases, learned).total == 7
    assert grade(cases, learned).passed == 7


@pytest.mark.parametrize(
    "skipped",
    [
        [case("x", "skipped", "B")],
        [case("x", "skipped", "A")],
        [case("x", "skipped", "A"), case("x", "skipped", "A"), case("x", "skipped")],
        [case("x", "skipped", "B-20240301101112")],
        [case("y", "skipped")],
    ],
)
def test_skipped_tests_take_nobodys_point(skipped: list[TestCase]) -> None:
    ran = [case("x", classname="A"), case("x", classname="A"), case("y", classname="A")]
    cases = report(*skipped, *ran)
    learned = learn(cases)
    assert len(learned) == 3
    assert grade(cases, learned).passed == grade(report(*ran, *skipped), learned).passed == 3
    # Whoever skips one test more than the run that was learned from does not pass it.
    spoilt = report(*skipped, case("x", "skipped", "A"), *ran[1:])
    assert grade(spoilt, learned).passed == 2
    # A second report of a failed or skipped test gains nothing.
    assert grade(report(*skipped, case("x", "failed", "A"), *ran), learned).passed == 2
    assert grade(report(*skipped, case("x", "skipped", "A"), *ran), learned).passed == 2


def test_names_of_the_csv_stand_beside_skipped_tests_too() -> None:
    cases = report(case("a", classname="A"), case("a", "skipped", "B"), case("c", "skipped"))
    tests = among_skipped(cases, named("a", "c"))
    assert [test.outcome for test in grade(cases, tests).tests] == ["passed", "skipped"]
    assert among_skipped(report(case("a")), named("a")) == tuple(named("a"))


def test_expected_names_of_which_one_is_reported_are_no_mismatch() -> None:
    assert mismatch(report(case("a")), named("a", "gone")) is None


def test_a_mismatch_names_both_lists() -> None:
    text = mismatch(report(case("works"), case("fails", "failed")), named("x", "y"))
    assert text == "none of the 2 expected tests was reported; expected: x | y; reported: works | fails"


def test_a_mismatch_without_any_report_says_why() -> None:
    empty = TestReport(problems=("unit.xml: not written",))
    assert mismatch(empty, named("x")) == "no test was reported (unit.xml: not written); expected: x"


def test_long_lists_are_cut_in_a_mismatch() -> None:
    text = mismatch(report(*[case(str(n)) for n in range(500)]), named("x"))
    assert text is not None
    assert text.endswith("and 480 more")
    assert len(text) < 400
