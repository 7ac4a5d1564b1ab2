"""Report files of any reporter to one TestReport: the format is told by content, never by a suffix.

Everything read here came out of a container in which a model's code ran: sizes, names, counts and
nesting are capped, entities are refused, and no regular expression can backtrack over the input.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from astra_async.redaction import one_line
from astra_async.report_text import OtherDocument, UnreadableReport, decoded
from astra_async.testing.reports.cargo_format import CARGO_SIGN, read_cargo
from astra_async.testing.reports.go_format import GO_SIGN, read_go
from astra_async.testing.reports.identity import one_case_for_each_test
from astra_async.testing.reports.suspects import hides_tests
from astra_async.testing.reports.tap_format import TAP_SIGN, read_tap
from astra_async.testing.reports.xml_format import read_xml, xml_start
from astra_async.types import TestCase, TestReport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MAX_REPORT_BYTES = 64 * 1024**2  # a second fence; the sandbox hands out far less
MAX_PROBLEMS = 50
_STDOUT = "standard output"
# What reads a format's cases and troubles, and its first sign in a text; that of XML is `xml_start`'s.
_SIGNS = {read_tap: TAP_SIGN, read_go: GO_SIGN, read_cargo: CARGO_SIGN}


def read_reports(reports: Mapping[str, bytes], stdout: str, *, result_files: Sequence[str]) -> TestReport:
    """All cases of all result files, in the order of their paths.

    Args:
        reports: path -> content of every result file that was found.
        stdout: the command's standard output, scored (TAP, JUnit or xUnit XML) when no files are named.
        result_files: paths or globs that the problem names; empty when standard output is scored.

    Returns:
        The cases, and as its problems a line for whatever says that tests are missing from them: a file that
        is not there or cannot be read, an unkept plan, a suite that did not run. Where there is no case at
        all, also what else may explain that. It never raises for what a report holds.
    """
    cases: list[TestCase] = []
    missing = [f"{pattern}: not written" for pattern in result_files if not _written(pattern, reports)]
    remarks: list[str] = []
    named = {_inside(pattern) for pattern in result_files} or {_STDOUT}
    sources = sorted(reports.items()) if reports or result_files else [(_STDOUT, stdout.encode())]
    for name, data in sources:
        read = _read(data)
        cases += read.cases
        # Of a glob's files some may be other documents, or of a class whose tests stand in another file.
        lines = missing if read.cases or read.is_damaged or name in named else remarks
        lines += [f"{name}: {what}" for what in read.problems]
    problems = missing if cases else [*missing, *remarks]
    if len(problems) > MAX_PROBLEMS:
        problems = [*problems[:MAX_PROBLEMS], f"and {len(problems) - MAX_PROBLEMS} more"]
    return TestReport(
        cases=tuple(cases), problems=tuple(one_line(problem, length=300) for problem in problems)
    )


def _inside(pattern: str) -> str:
    """A result file's path or glob, relative to the project."""
    return str(PurePosixPath(pattern.removeprefix("/projects/challenge/")))


def _written(pattern: str, reports: Mapping[str, bytes]) -> bool:
    glob = _inside(pattern).replace("**/", "*")  # which also stands for no folder at all
    return any(path == _inside(pattern) or fnmatchcase(path, glob) for path in reports)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """One file's cases, and what says that there are more.

    `is_damaged`: a report, or what was meant to be one, and not another kind of document.
    """

    cases: Sequence[TestCase] = ()
    problems: Sequence[str]
    is_damaged: bool = False


def _read(data: bytes) -> _Read:
    if len(data) > MAX_REPORT_BYTES:
        return _Read(problems=[f"not read: {len(data):,} bytes"], is_damaged=True)
    text, trouble = decoded(data)
    if not text.strip():
        return _Read(problems=["empty"], is_damaged=True)
    read = _reader(text)
    if read is None:
        begins = " ".join(text[:200].split())[:60]
        known = "neither JUnit XML, xUnit XML, TAP nor what go or cargo tests write"
        return _Read(problems=[*trouble, f"{known}: it begins {begins!r}"])
    try:
        cases, problems = read(text)
        cases = one_case_for_each_test(cases, text)
    except UnreadableReport as error:
        return _Read(problems=[*trouble, str(error)], is_damaged=not isinstance(error, OtherDocument))
    problems += [
        f"a suite or hook failed, so that its tests do not count: {case.name or case.classname}"
        for case in cases
        if hides_tests(case)
    ]
    if cases:  # what had to be replaced in the text has cost none
        return _Read(cases=cases, problems=problems)
    return _Read(problems=[*trouble, *problems, "no test cases"], is_damaged=bool(problems))


def _reader(text: str) -> Callable[[str], tuple[list[TestCase], list[str]]] | None:
    """What reads the text: of two formats the one that begins first, since tests may print the other."""
    starts = {read: found.start() for read, sign in _SIGNS.items() if (found := sign.search(text))}
    if (at := xml_start(text)) >= 0:
        starts[read_xml] = at
    if starts:
        return min(starts, key=starts.__getitem__)
    return read_xml if text.lstrip().startswith("<") else None
