"""Parse report files of any test reporter into one TestReport; the format is detected by content.

The files come from a container in which a model's code ran. Therefore sizes, names, counts and nesting are
limited, XML entities are refused, and no regular expression can backtrack over the input.

Each test becomes one case: the last attempt of pytest-rerunfailures, and a unittest together with its
sub-tests and tear-down. vitest reports a failed hook under the name of its suite. A failed hook fails the
tests of its suite, because their set-up or clean-up is broken.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from astra_async.redaction import one_line
from astra_async.report_text import OtherDocument, UnreadableReport, decoded
from astra_async.testing.reports.cargo_format import CARGO_SIGN, read_cargo
from astra_async.testing.reports.go_format import GO_SIGN, read_go
from astra_async.testing.reports.suite_failures import (
    failed_with_suite,
    hides_tests,
    is_suite_failure,
    named_suite,
)
from astra_async.testing.reports.tap_format import TAP_SIGN, read_tap
from astra_async.testing.reports.xml_format import read_xml, xml_start
from astra_async.types import TestCase, TestReport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


_PYTEST = '<testsuite name="pytest"'
_HEAD_CHARACTERS = 2_000  # searched for the name of a report's first suite
_SUB_TEST = re.compile(r"(test\w*) (?:\(|\[).*[)\]]", re.DOTALL)
_BROKEN = ("failed", "error")
MAX_HOOKS = 100
_SEPARATOR = " > "  # between the titles of suites and tests in vitest's names


def merge_cases(cases: Sequence[TestCase], text: str) -> list[TestCase]:
    """Merge the reported cases of each test, and mark cases that represent a whole suite.

    `text` is the whole report.
    """
    if _PYTEST in text[:_HEAD_CHARACTERS]:
        return list({(case.file, case.classname, case.name): case for case in cases}.values())
    merged: dict[tuple[str, str, str], TestCase] = {}
    for at, case in enumerate(cases):
        is_python = case.file.endswith(".py")
        sub_test = _SUB_TEST.fullmatch(case.name) if is_python and case.outcome in _BROKEN else None
        name = sub_test[1] if sub_test else case.name
        key = case.file, case.classname, name if is_python else f"{at} {name}"
        before = merged.get(key)
        if before is None or (before.outcome not in _BROKEN and case.outcome in _BROKEN):
            merged[key] = replace(case, name=name)  # keep the message of the first failure
    found = list(merged.values())
    suites = {_suite_of(case) for case in found}
    return _failed_by_hooks(
        [
            replace(case, is_suite=True)
            if case.outcome in _BROKEN and (case.file, case.classname, case.name) in suites
            else case
            for case in found
        ]
    )


def _failed_by_hooks(cases: Sequence[TestCase]) -> list[TestCase]:
    """Fail the tests of failed hooks that name their suite, for at most MAX_HOOKS hooks."""
    hooks = ((_name_prefix(case), case) for case in cases if is_suite_failure(case))
    failures = dict(islice(((begin, case) for begin, case in hooks if begin is not None), MAX_HOOKS))
    begins = tuple(failures)
    failed: list[TestCase] = []
    for case in cases:
        texts = case.name, f"{case.classname}.", f"{case.classname}\0{case.name}"
        if any(text.startswith(begins) for text in texts):
            begin = next(each for each in begins if any(text.startswith(each) for text in texts))
            failed += failed_with_suite([case], failures[begin])
        else:
            failed.append(case)
    return failed


def _name_prefix(case: TestCase) -> str | None:
    """Return the common prefix of a failed hook's tests, or None if the hook does not name its suite."""
    begin = named_suite(case)
    return f"{case.classname}\0{case.name}{_SEPARATOR}" if begin is None and case.is_suite else begin


def _suite_of(case: TestCase) -> tuple[str, str, str]:
    return case.file, case.classname, case.name.rpartition(_SEPARATOR)[0]


MAX_REPORT_BYTES = 64 * 1024**2  # a second check; the sandbox returns much less
MAX_PROBLEMS = 50
_STDOUT = "standard output"
# Parser of each format, and the pattern that detects it. XML is detected by `xml_start`.
_SIGNS = {read_tap: TAP_SIGN, read_go: GO_SIGN, read_cargo: CARGO_SIGN}


def read_reports(reports: Mapping[str, bytes], stdout: str, *, result_files: Sequence[str]) -> TestReport:
    """Return all cases of all result files, in the order of their paths. Never raises for invalid reports.

    Args:
        reports: path -> content of every result file that was found.
        stdout: the command's standard output (TAP, JUnit or xUnit XML), parsed if `result_files` is empty.
        result_files: paths or globs that the problem names; empty if standard output has the report.

    Returns:
        The cases, and a problem for each sign of missing tests: a missing or invalid file, an incomplete
        plan, a suite that did not run. Without any case, other possible causes are included.
    """
    cases: list[TestCase] = []
    missing = [f"{pattern}: not written" for pattern in result_files if not _written(pattern, reports)]
    remarks: list[str] = []
    named = {_inside(pattern) for pattern in result_files} or {_STDOUT}
    sources = sorted(reports.items()) if reports or result_files else [(_STDOUT, stdout.encode())]
    for name, data in sources:
        read = _read_file(data)
        cases += read.cases
        # A glob may match other documents, or report files without cases, so their problems are minor.
        lines = missing if read.cases or read.is_damaged or name in named else remarks
        lines += [f"{name}: {what}" for what in read.problems]
    problems = missing if cases else [*missing, *remarks]
    if len(problems) > MAX_PROBLEMS:
        problems = [*problems[:MAX_PROBLEMS], f"and {len(problems) - MAX_PROBLEMS} more"]
    return TestReport(
        cases=tuple(cases), problems=tuple(one_line(problem, length=300) for problem in problems)
    )


def _inside(pattern: str) -> str:
    """Return a result file's path or glob relative to the project."""
    return str(PurePosixPath(pattern.removeprefix("/projects/challenge/")))


def _written(pattern: str, reports: Mapping[str, bytes]) -> bool:
    glob = _inside(pattern).replace("**/", "*")  # `**/` also matches no folder
    return any(path == _inside(pattern) or fnmatchcase(path, glob) for path in reports)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ParsedFile:
    """Cases of one file, and signs of missing tests.

    `is_damaged` is True for an invalid report, False for another kind of document.
    """

    cases: Sequence[TestCase] = ()
    problems: Sequence[str]
    is_damaged: bool = False


def _read_file(data: bytes) -> _ParsedFile:
    if len(data) > MAX_REPORT_BYTES:
        return _ParsedFile(problems=[f"not read: {len(data):,} bytes"], is_damaged=True)
    text, trouble = decoded(data)
    if not text.strip():
        return _ParsedFile(problems=["empty"], is_damaged=True)
    read = _reader(text)
    if read is None:
        begins = " ".join(text[:200].split())[:60]
        known = "unknown format (known: JUnit XML, xUnit XML, TAP, `go test -json`, `cargo test`)"
        return _ParsedFile(problems=[*trouble, f"{known}; it begins {begins!r}"])
    try:
        cases, problems = read(text)
        cases = merge_cases(cases, text)
    except UnreadableReport as error:
        return _ParsedFile(problems=[*trouble, str(error)], is_damaged=not isinstance(error, OtherDocument))
    problems += [
        f"a suite or hook failed, so its tests may be missing: {case.name or case.classname}"
        for case in cases
        if hides_tests(case)
    ]
    if cases:  # undecodable bytes do not matter if there are cases
        return _ParsedFile(cases=cases, problems=problems)
    return _ParsedFile(problems=[*trouble, *problems, "no test cases"], is_damaged=bool(problems))


def _reader(text: str) -> Callable[[str], tuple[list[TestCase], list[str]]] | None:
    """Return the parser of the format that begins first, because tests may print other formats later."""
    starts = {read: found.start() for read, sign in _SIGNS.items() if (found := sign.search(text))}
    if (at := xml_start(text)) >= 0:
        starts[read_xml] = at
    if starts:
        return min(starts, key=starts.__getitem__)
    return read_xml if text.lstrip().startswith("<") else None
