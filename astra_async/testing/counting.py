"""Match reported cases with the multiset of expected tests; the only rule that turns a report into a score.

An expected name matches `name`, `classname name` or `classname.name` of a case (docs/formats.md). If one of
name and class name ends with the other, because they are the full and the short title of one test
(mocha-junit-reporter, in either order), the expected name also matches the class name.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from astra_async.listing import some
from astra_async.report_text import MAX_NAME, clean_name
from astra_async.testing.reports.suite_failures import is_suite_failure
from astra_async.types import ExpectedTest, NamedOutcome, Outcome, TestCase, TestReport, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MAX_EXTRA_TESTS = 1_000  # limit of recorded extra tests; code under test can report any number

_WORST_FIRST: Mapping[Outcome, int] = {"failed": 0, "error": 1, "missing": 2, "skipped": 3, "passed": 4}
_TIME_STAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{2}:[0-9]{2}:[0-9]{2}|[0-9]{12,}")


def grade(report: TestReport, expected: Sequence[ExpectedTest]) -> Verdict:
    """Count the expected tests that passed.

    A name that is expected n times counts its n worst cases, so that reporting a failed test again as passed
    has no effect. Skipped cases that also occurred in the run from which the tests were learned are not
    counted. Missing cases are `missing`. Cases that match no expected name are extra.
    """
    wanted = _wanted(expected)
    beside = {clean_name(test.name): test.skipped for test in expected}
    claimed = _claims(report.cases, wanted)
    counted = {
        name: _worst(claimed[name], report.cases, count, beside[name]) for name, count in wanted.items()
    }
    places = {name: iter(found) for name, found in counted.items()}
    tests = tuple(
        NamedOutcome(name=test.name, outcome="missing")
        if (at := next(places[clean_name(test.name)], None)) is None
        else NamedOutcome(name=test.name, outcome=report.cases[at].outcome, message=report.cases[at].message)
        for test in expected
    )
    used = {at for found in counted.values() for at in found}
    extra = (case for at, case in enumerate(report.cases) if at not in used)
    return Verdict(
        passed=sum(test.outcome == "passed" for test in tests),
        total=len(tests),
        tests=tests,
        extra_tests=tuple(
            NamedOutcome(name=case.name, outcome=case.outcome) for case in islice(extra, MAX_EXTRA_TESTS)
        ),
    )


def unknown_tests(report: TestReport, verdict: Verdict) -> list[str]:
    """Return the names of unexpected tests that ran in a class or file with an expected test.

    A solution cannot add such tests, because its changes to test files are dropped.
    """
    claimed = {at for places in _claims(report.cases, _wanted(verdict.tests)).values() for at in places}
    known = {_place(report.cases[at]) for at in claimed} - {""}
    return [
        case.name
        for at, case in enumerate(report.cases)
        if at not in claimed
        and _place(case) in known
        and case.outcome in ("passed", "failed")
        and not is_suite_failure(case)
    ]


def learn(report: TestReport) -> tuple[ExpectedTest, ...]:
    """Return the tests that a run of the reference or of the untouched project reported, as a multiset.

    Skipped tests are left out because no solution can pass them, failed hooks and suites because they are not
    tests. A name that occurs in several classes becomes `classname.name`, unless a class name contains a
    timestamp and would differ in the next run. Duplicates within one class remain duplicates.
    """
    cases = [case for case in report.cases if not is_suite_failure(case)]
    classes = defaultdict(set)
    for case in cases:
        classes[case.name].add(case.classname)
    ran = (case for case in cases if case.outcome != "skipped")
    return among_skipped(report, [ExpectedTest(name=_learned_name(case, classes[case.name])) for case in ran])


def among_skipped(report: TestReport, expected: Sequence[ExpectedTest]) -> tuple[ExpectedTest, ...]:
    """Return the tests, each with the number of skipped cases of the same name in the run."""
    wanted = _wanted(expected)
    skipped = {
        name: sum(report.cases[at].outcome == "skipped" for at in places)
        for name, places in _claims(report.cases, wanted).items()
    }
    return tuple(replace(test, skipped=skipped[clean_name(test.name)]) for test in expected)


def mismatch(report: TestReport, expected: Sequence[ExpectedTest]) -> str | None:
    """Return why the report matches no expected name, or None if any name matches.

    The text lists both expected and reported names, for the ExpectationError.
    """
    if not report.cases:
        why = f" ({'; '.join(report.problems[:3])})" if report.problems else ""
        return f"no test was reported{why}; expected: {_listed([test.name for test in expected])}"
    wanted = _wanted(expected)
    if any(_claims(report.cases, wanted).values()):
        return None
    reported = [case.name for case in report.cases]
    return (
        f"none of the {len(expected)} expected tests was reported; "
        f"expected: {_listed([test.name for test in expected])}; reported: {_listed(reported)}"
    )


def _wanted(expected: Sequence[ExpectedTest | NamedOutcome]) -> Counter[str]:
    return Counter(clean_name(test.name) for test in expected)


def _place(case: TestCase) -> str:
    return case.file or case.classname


def _claims(cases: Sequence[TestCase], wanted: Mapping[str, int]) -> Mapping[str, list[int]]:
    """Assign cases to expected names; each case is assigned to one name, the most qualified that matches.

    If a name has more cases than expected, surplus cases move to another matching name that lacks cases, in
    the order in which they ran.
    """
    claimed: dict[str, list[int]] = {name: [] for name in wanted}
    others: dict[int, list[str]] = {}  # case -> further expected names that match it
    for at, case in sorted(enumerate(cases), key=lambda each: each[1].outcome == "skipped"):
        fitting = [form for form in dict.fromkeys(_forms(case)) if form in claimed]
        if fitting:
            claimed[fitting[0]].append(at)
            others[at] = fitting[1:]
    for name, places in claimed.items():
        for at in list(places):
            lacking = [other for other in others[at] if len(claimed[other]) < wanted[other]]
            if lacking and len(places) > wanted[name]:
                places.remove(at)
                claimed[lacking[0]].append(at)
    return claimed


def _forms(case: TestCase) -> Iterator[str]:
    name, classname = case.name, case.classname
    if classname:
        yield f"{classname}.{name}"[:MAX_NAME]
        yield f"{classname} {name}"[:MAX_NAME]
        if classname.endswith(name):
            yield classname
    yield name
    if classname and name.endswith(classname):
        yield classname


def _worst(places: Sequence[int], cases: Sequence[TestCase], count: int, beside: int) -> list[int]:
    """Return the `count` worst of the cases, without up to `beside` skipped ones."""
    skipped = [at for at in places if cases[at].outcome == "skipped"]
    left_out = set(skipped[: min(beside, max(0, len(places) - count))])
    counting = (at for at in places if at not in left_out)
    return sorted(counting, key=lambda at: (_WORST_FIRST[cases[at].outcome], at))[:count]


def _learned_name(case: TestCase, classes: set[str]) -> str:
    if len(classes) < 2 or not case.classname or any(_TIME_STAMP.search(name) for name in classes):  # noqa: PLR2004 - at least two classes
        return case.name
    return clean_name(f"{case.classname}.{case.name}")


def _listed(names: Sequence[str]) -> str:
    return some([name[:120] for name in names], 20, " | ") or "nothing"
