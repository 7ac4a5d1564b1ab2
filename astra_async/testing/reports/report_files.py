"""Report files of any reporter to one TestReport: the format is told by content, never by a suffix.

Everything read here came out of a container in which a model's code ran: sizes, names, counts and
nesting are capped, entities are refused, and no regular expression can backtrack over the input.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from astra_async.redaction import one_line
from astra_async.testing.reports.report_text import UnreadableReport, decoded
from astra_async.testing.reports.suspects import is_suite_failure
from astra_async.testing.reports.tap_format import read_tap, tap_start
from astra_async.testing.reports.xml_format import read_xml, xml_start
from astra_async.types import TestCase, TestReport

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_REPORT_BYTES = 64 * 1024**2  # a second fence; the sandbox hands out far less
MAX_PROBLEMS = 50
# Where a format's first sign stands in a text (-1: nowhere), and what reads its cases and troubles.
_FORMATS = ((xml_start, read_xml), (tap_start, read_tap))


def read_reports(reports: Mapping[str, bytes], stdout: str, *, result_files: Sequence[str]) -> TestReport:
    """All cases of all result files, in the order of their paths.

    Args:
        reports: path -> content of every result file that was found.
        stdout: the command's standard output, scored (TAP, JUnit or xUnit XML) when no files are named.
        result_files: paths or globs that the problem names; empty when standard output is scored.

    Returns:
        The cases, and a line for each file that is missing, unreadable, mended, or tells of a suite
        that did not run. It never raises for what a report holds.
    """
    cases: list[TestCase] = []
    problems = [f"{pattern}: not written" for pattern in result_files if not _written(pattern, reports)]
    sources = sorted(reports.items()) if reports or result_files else [("standard output", stdout.encode())]
    for name, data in sources:
        found, trouble = _read(data)
        cases += found
        problems += [f"{name}: {what}" for what in trouble]
        problems += [f"{name}: {what}" for what in _suite_failures(found)]
    if len(problems) > MAX_PROBLEMS:
        problems = [*problems[:MAX_PROBLEMS], f"and {len(problems) - MAX_PROBLEMS} more"]
    return TestReport(
        cases=tuple(cases), problems=tuple(one_line(problem, length=300) for problem in problems)
    )


def _written(pattern: str, reports: Mapping[str, bytes]) -> bool:
    plain = pattern.removeprefix("./")
    return any(path == plain or fnmatchcase(path, plain) for path in reports)


def _read(data: bytes) -> tuple[list[TestCase], list[str]]:
    """One file's cases and its problems; unreadable is a problem without cases."""
    if len(data) > MAX_REPORT_BYTES:
        return [], [f"not read: {len(data):,} bytes"]
    text, trouble = decoded(data)
    if not text.strip():
        return [], ["empty"]
    starts = {read: at for start, read in _FORMATS if (at := start(text)) >= 0}
    if not starts:
        return [], [*trouble, f"neither JUnit XML, xUnit XML nor TAP: {_beginning(text)}"]
    # Each may quote another in what the tests print: the one that begins first is the report.
    read = min(starts, key=starts.__getitem__)
    try:
        cases, more = read(text)
    except UnreadableReport as error:
        return [], [*trouble, str(error)]
    return cases, [*trouble, *more, *([] if cases else ["no test cases"])]


def _suite_failures(cases: list[TestCase]) -> list[str]:
    return [
        f"tests behind a failed suite or hook were not run: {case.name or case.classname}"
        for case in cases
        if is_suite_failure(case)
    ]


def _beginning(text: str) -> str:
    words = re.sub(r"\s+", " ", text[:200]).strip()
    return f"it begins {words[:60]!r}"
