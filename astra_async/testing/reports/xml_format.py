"""Parse JUnit XML from many reporters, and the XML of xUnit.net, NUnit (2.5, 3) and Visual Studio (TRX).

junitparser is not used: it drops cases outside of a suite, supports only JUnit XML, and keeps the whole tree
in memory. lxml parses the report as a stream of events without a tree. Document types (and therefore all
entities except XML's five), external files and network access are disabled. A report of 16 MB needs little
more memory than its cases.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from astra_async.redaction import one_line
from astra_async.report_text import (
    MAX_CASES,
    OtherDocument,
    UnreadableReport,
    clean_name,
    without_controls,
)
from astra_async.testing.reports.suite_failures import failed_with_suite, fails_its_suite
from astra_async.testing.reports.xml_case import Kind, OpenCase
from astra_async.types import TestCase

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_ELEMENTS = 2_000_000
MAX_DEPTH = 200

_VITEST = "vitest tests"
_MANY = 10  # digits
_NOT_REACHED = "the run ended before this test"
_ROOTS: Mapping[str, Kind] = {
    "testsuites": "junit",
    "testsuite": "junit",
    "testcase": "junit",
    "assemblies": "xunit",
    "assembly": "xunit",
    "test-run": "nunit",
    "test-results": "nunit",
    "TestRun": "trx",
}
_CASE_TAGS: Mapping[Kind, str] = {
    "junit": "testcase",
    "xunit": "test",
    "nunit": "test-case",
    "trx": "UnitTestResult",
}
_TRX_ENDED = {"completed", "passed", "failed", "warning", "inconclusive"}
_ROOT = re.compile(
    r"<((?:[\w.-]{1,40}:)?(?:testsuites?|assembl(?:ies|y)|test-run|test-results|TestRun))[\s/>]"
)
_ELEMENT = re.compile(r"<[A-Za-z]")
_DECLARATION = re.compile(r"\s*<\?xml\s[^>]{0,200}\?>")


def xml_start(text: str) -> int:
    """Return the start of the report in a text that may hold other output; -1 if there is no report.

    The text before the root is part of the report only if it consists of declarations and comments, because
    other output may also begin with `<` (`<ref *1> {`, an HTML page).
    """
    root = _ROOT.search(text)
    if root is None:
        return -1
    before = text[: root.start()].strip()
    is_prologue = before.startswith(("<?", "<!")) and before.endswith(">") and not _ELEMENT.search(before)
    return 0 if is_prologue else root.start()


def read_xml(text: str) -> tuple[list[TestCase], list[str]]:
    """Return the cases of a report, and a problem for each suite that reports an error outside of its tests.

    If no known root is found, the whole text is parsed, to report what it is. If the text is not well-formed,
    illegal characters are removed and it is parsed again.

    Raises:
        OtherDocument: a document type (an HTML page, entities), or an unknown root element.
        UnreadableReport: not well-formed, nested too deeply, or too many elements.
    """
    text = _report_in(text)
    try:
        reader = _parse(text)
    except _NotWellFormed:
        try:
            reader = _parse(_repaired(text))
        except _NotWellFormed as still:
            raise UnreadableReport(f"not well-formed XML: {still}") from still
    return reader.cases, reader.problems


def _report_in(text: str) -> str:
    root = _ROOT.search(text)
    if root is None:
        return text
    closing = text.rfind(f"</{root[1]}")
    end = text.find(">", closing) + 1 if closing > root.start() else text.rfind(">") + 1
    return text[xml_start(text) : end]


class _NotWellFormed(Exception):  # noqa: N818 - names what was seen
    """The parser's error message in one line."""


def _parse(text: str) -> _CaseReader:
    from lxml import etree

    reader = _CaseReader()
    parser = etree.XMLParser(
        target=reader,  # type: ignore[arg-type]  # the stubs require every optional method
        encoding="utf-8",
        # With False, libxml2 2.14 returns `&amp;` in an attribute as `&#38;`.
        resolve_entities="internal",  # type: ignore[arg-type]  # the stubs only allow bool
        load_dtd=False,
        no_network=True,
        huge_tree=True,  # only for long texts: system-out may pass libxml2's 10 MB; depth is capped above
    )
    declaration = _DECLARATION.match(text)  # it may declare a different encoding
    body = text[declaration.end() :] if declaration else text
    try:
        etree.fromstring(body.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError as error:
        raise _NotWellFormed(one_line(error.msg or "no element found", length=160)) from error
    return reader


_BAD_REFERENCE = re.compile(r"&#(?:[xX]([0-9a-fA-F]{1,8})|([0-9]{1,8}));")
_BARE_AMPERSAND = re.compile(r"&(?!(?:lt|gt|amp|apos|quot|#[0-9]{1,8}|#x[0-9a-fA-F]{1,8});)")


def _repaired(text: str) -> str:
    """Remove control characters, also written as references, and escape bare `&`."""

    def legal(found: re.Match[str]) -> str:
        number = int(found[1], 16) if found[1] else int(found[2])
        is_text = number <= 0x10FFFF and bool(without_controls(chr(number)))  # noqa: PLR2004 - last code point
        return found[0] if is_text else ""

    return _BARE_AMPERSAND.sub("&amp;", _BAD_REFERENCE.sub(legal, without_controls(text)))


class _CaseReader:
    """Parser target that collects cases from the stream of events."""

    def __init__(self) -> None:
        self.cases: list[TestCase] = []
        self.problems: list[str] = []
        self._kind: Kind | None = None
        self._depth = 0
        self._elements = 0
        self._case: OpenCase | None = None
        self._ids: list[str] = []  # ids of TRX cases, whose classes are named later
        self._classes: dict[str, str] = {}
        self._definition = ""
        self._root: Mapping[str, str] = {}
        self._suites = [_OpenSuite("", 0, 0, 0, [])]
        self._failures = 0  # failure elements of cases
        self._unannotated: list[int] = []  # cases that Playwright skipped without an annotation

    def doctype(self, *_: str | None) -> None:
        """Refuse a document type before any of its entities is used."""
        raise OtherDocument("document types are not allowed (an HTML page, or entities)")

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Handle the start of an element; limits are checked before anything is stored."""
        self._depth += 1
        self._elements += 1
        if self._depth > MAX_DEPTH:
            raise UnreadableReport(f"elements are nested deeper than {MAX_DEPTH} levels")
        if self._elements > MAX_ELEMENTS:
            raise UnreadableReport(f"more than {MAX_ELEMENTS:,} elements")
        name = tag.rpartition("}")[2]
        if self._kind is None:
            self._kind, self._root = _ROOTS.get(name), attributes
        if self._kind is None:
            raise OtherDocument(
                f"root element <{one_line(name, length=60)}> is not of JUnit, xUnit.net, NUnit or TRX"
            )
        if self._case is not None:
            self._case.child(name, attributes, self._depth)
        elif name == _CASE_TAGS[self._kind]:
            self._case = OpenCase(attributes, self._depth, self._kind, self._suites[-1].name)
            self._ids.append(attributes.get("testId", ""))
        elif self._kind == "trx":
            self._other_of_trx(name, attributes)
        elif name == "testsuite":
            errors = attributes.get("errors", "")
            count = int(errors) if errors.isascii() and errors.isdigit() and len(errors) < _MANY else 0
            suite = _OpenSuite(attributes.get("name", ""), count, len(self.cases), self._failures, [])
            self._suites.append(suite)
        elif name == "error" and self._kind == "junit":
            message = attributes.get("message", "error")
            self._add_problem(self._suites[-1], message)
            self._suites[-1].broken_by.append(TestCase(name=name, outcome="error", message=message))

    def _other_of_trx(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "UnitTest":
            self._definition = attributes.get("id", "")
        elif name == "TestMethod":
            self._classes[self._definition] = clean_name(attributes.get("className", "").partition(",")[0])
        elif name == "ResultSummary" and attributes.get("outcome", "").lower() not in _TRX_ENDED:
            self.problems.append(one_line(f"the run ended as {attributes.get('outcome')}", length=200))

    def data(self, text: str) -> None:
        """Handle text, which is only used for messages."""
        if self._case is not None:
            self._case.text(text)

    def end(self, tag: str) -> None:
        """Handle the end of an element; a case is added at its end."""
        if self._case is not None and self._case.depth == self._depth:
            self._add(self._case)
            self._case = None
        elif tag.rpartition("}")[2] == "testsuite" and len(self._suites) > 1:
            suite = self._suites.pop()
            if suite.broken_by:
                inner = self.cases[suite.cases_before :]
                self.cases[suite.cases_before :] = failed_with_suite(inner, suite.broken_by[0])
            if suite.errors > self._failures - suite.failures_before:  # karma and jest: failed hooks or files
                self._add_problem(suite, "errors outside its tests")
        self._depth -= 1

    def _add(self, ended: OpenCase) -> None:
        if len(self.cases) >= MAX_CASES:
            raise UnreadableReport(f"more than {MAX_CASES:,} test cases")
        case = ended.finished()
        self._failures += ended.failures
        if not case.name:
            self._add_problem(
                self._suites[-1], "a test without a name"
            )  # from pytest, after which the run ends
            return
        if ended.is_idle and self._root.get("name") == _VITEST:
            case = replace(case, outcome="missing", message=_NOT_REACHED)
        if self._kind == "junit" and ended.is_unannotated and "id" in self._root:
            self._unannotated.append(len(self.cases))
        if fails_its_suite(case):
            self._suites[-1].broken_by.append(case)
        self.cases.append(case)

    def _add_problem(self, suite: _OpenSuite, what: str) -> None:
        self.problems.append(one_line(f"suite {suite.name}: {what}", length=200))

    def close(self) -> None:
        """Handle the end of the document.

        TRX names the classes after the cases. Playwright's unreached tests are only known now.
        """
        for at, test_id in enumerate(self._ids if self._classes else ()):
            classname = self._classes.get(test_id, "")
            name = self.cases[at].name.removeprefix(f"{classname}.")
            self.cases[at] = replace(self.cases[at], name=name, classname=classname)
        if any(case.outcome in {"failed", "error"} for case in self.cases):
            for at in self._unannotated:
                self.cases[at] = replace(self.cases[at], outcome="missing", message=_NOT_REACHED)


class _OpenSuite(NamedTuple):
    """Suite whose element is open: its error count, the counts before it, and its failed hooks."""

    name: str
    errors: int
    cases_before: int
    failures_before: int
    broken_by: list[TestCase]
