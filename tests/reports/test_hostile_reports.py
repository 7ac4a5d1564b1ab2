"""Reports are written by code that a model wrote: none may cost much, leak anything, or raise."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astra_async.testing.reports import read_reports
from astra_async.testing.verdict import Tested, verdict_on
from astra_async.types import Execution, TestReport
from waiting import cpu_within

if TYPE_CHECKING:
    from collections.abc import Callable

MEGA = 1_000_000


def read(data: bytes) -> TestReport:
    return read_reports({"unit.xml": data}, "", result_files=["unit.xml"])


@pytest.mark.parametrize(
    "document_type",
    [
        b'<!DOCTYPE t [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>',
        b'<!DOCTYPE t SYSTEM "file:///etc/passwd">',
        b'<!-- x --> <?y z?>\n<!DOCTYPE t [<!ENTITY b SYSTEM "file:///etc/passwd">]>',
        b'<!DOCTYPE t [<!ENTITY % x SYSTEM "file:///etc/passwd"> %x; <!ENTITY b "c">]>',
        b'<!DOCTYPE t [<!ENTITY b "c"><!ATTLIST testcase name CDATA "&b;">]>',
        b'<!DOCTYPE t [<!ENTITY b0 "'
        + b"a" * 1_000
        + b'">'
        + b"".join(b'<!ENTITY b%d "%s">' % (n, b"&b%d;" % (n - 1) * 20) for n in range(1, 12))
        + b'<!ENTITY b "&b11;">]>',
    ],
)
def test_entities_are_refused_and_never_expanded(document_type: bytes) -> None:
    with cpu_within(1):
        report = read(document_type + b'<testsuite><testcase name="&b;">&b;</testcase></testsuite>')
        assert report.cases == ()
        assert "document type" in report.problems[0]


def test_an_html_page_is_no_report() -> None:
    assert "document type" in read(b"<!DOCTYPE html><html><body>404</body></html>").problems[0]
    assert "root element <html>" in read(b"<html><body>404</body></html>").problems[0]


def test_a_document_type_in_what_a_test_printed_is_harmless() -> None:
    printed = b"<system-out><![CDATA[<!DOCTYPE html>]]></system-out>"
    report = read(b'<testsuite><testcase name="a">' + printed + b"</testcase></testsuite>")
    assert [case.name for case in report.cases] == ["a"]
    assert report.problems == ()


@pytest.mark.long
@pytest.mark.first(said=lambda said, **_: said)
@pytest.mark.parametrize(
    ("data", "said"),  # made when they are read: together they are 240 MB
    [
        (lambda: b"<testsuite>" * 100_000, "nested deeper"),
        (lambda: b"<testsuite>" * 100_000 + b"</testsuite>" * 100_000, "nested deeper"),
        (lambda: b"<testsuites>" + b"<a/>" * 4 * MEGA + b"</testsuites>", "elements"),
        (lambda: b"<testsuites>" + b'<testcase name="a"/>' * 200_000 + b"</testsuites>", "test cases"),
        (lambda: b"1..2\n" + b"ok 1 - a\n" * 200_000, "test points"),
        (lambda: b"<testsuites>" + b"<" * 16 * MEGA, "not well-formed"),
        (lambda: b"<testsuites " * MEGA, "not well-formed"),
        (lambda: b'<testsuite><testcase name="a"/>', "not well-formed"),
        (lambda: b" " * 16 * MEGA, "empty"),
        (lambda: b"x" * 16 * MEGA, "unknown format"),
        (lambda: b"\x00" * MEGA, "unknown format"),
        (lambda: b"1..1\nok 1 - " + b"# " * 8 * MEGA, ""),
        (lambda: b"1..1\nok 1 -" + b" " * 16 * MEGA + b"x", ""),
        (lambda: b"1.." + b"1" * 16 * MEGA, ""),
        (lambda: b'<testsuite><testcase name="' + b"&" * 4 * MEGA + b'"/></testsuite>', ""),
        (lambda: b'<testsuite><testcase name="' + b"\x1b[31m" * 3 * MEGA + b'"/></testsuite>', ""),
        (lambda: b"x" * (65 * 1024**2), "not read"),
    ],
)
def test_hostile_reports_are_refused_or_read_in_moderate_time(data: Callable[[], bytes], said: str) -> None:
    hostile = data()
    with cpu_within(4):
        report = read(hostile)
    assert said in " ".join(report.problems)


@pytest.mark.long
@pytest.mark.first
@pytest.mark.parametrize(
    "part",
    [
        *(
            "3",
            "3 ",
            "1 error",
            "9 errors ",
            "error: ",
            "error: expecte",
            "error TS",
            "error C",
            " ",
            "\n",
            "\r",
        ),
        *(
            "SyntaxErro",
            "Compilation failur",
            "Test suite failed to ru",
            "must contain at least one tes",
            "é",
            "<",
        ),
        *(
            "not ok ",
            "ok 1",
            "1.",
            "# ",
            "    ---\n",
            "\x1b[",
            "\x1b]",
            "\x9b0;",
            "<testsuite",
            "<?xml ",
            "<!",
            "&",
        ),
    ],
)
def test_hostile_output_is_judged_in_no_time_for_the_loop_stands_still_meanwhile(part: str) -> None:
    output = part * (MEGA // len(part))
    report = read_reports({}, output, result_files=["unit.xml"])
    tested = Tested(execution=Execution(exit_code=1, duration_s=1.0, output=output), report=report)
    with cpu_within(1):
        verdict_on(tested, ())
    with cpu_within(4):
        read_reports({}, output, result_files=[])


def test_a_large_honest_report_is_read_in_a_second_and_in_little_memory() -> None:
    case = b'<testcase name="test number %d of a large project" classname="com.acme.Large" time="0.1">'
    body = b"".join(
        (case + b"<failure message='expected'>at x</failure></testcase>") % n for n in range(99_000)
    )
    data = b"<testsuites><testsuite>" + body + b"</testsuite></testsuites>"
    with cpu_within(4):
        assert len(read(data).cases) == 99_000


def test_a_huge_output_costs_no_more_than_its_own_size_a_few_times() -> None:
    data = (
        b'<testsuite><testcase name="x"><system-out>'
        + b"y" * 15 * MEGA
        + b"</system-out></testcase></testsuite>"
    )
    tracemalloc.start()
    assert len(read(data).cases) == 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * MEGA


def test_names_and_messages_are_capped() -> None:
    case = read(
        b'<testsuite><testcase name="%s"><failure message="%s"/></testcase></testsuite>'
        % ((b"x" * MEGA,) * 2)
    ).cases[0]
    assert len(case.name) == 1_000
    assert len(case.message) == 500


def test_problems_are_single_printable_lines_and_not_too_many() -> None:
    reports = {f"a\n\x1b[2J{n}.xml": b"<html/>" for n in range(200)}
    problems = read_reports(reports, "", result_files=[]).problems
    assert len(problems) == 51
    assert all(problem.isprintable() and len(problem) <= 300 for problem in problems)


@pytest.mark.parametrize(
    "escape", [b"\x1b[31mred\x1b[39m", b"&#27;[31mred&#x1B;[39m", b"\x08\x0c\xef\xbf\xbf", b"a & b"]
)
def test_illegal_characters_are_stripped_and_the_cases_counted(escape: bytes) -> None:
    report = read(
        b'<?xml version="1.0"?><testsuite><testcase name="a"><failure message="' + escape + b'"/></testcase>'
        b'<testcase name="b"/></testsuite>'
    )
    assert [(case.name, case.outcome) for case in report.cases] == [("a", "failed"), ("b", "passed")]
    assert report.problems == ()  # nothing is missing from it


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"])
def test_declared_encodings_and_byte_order_marks_are_followed(encoding: str) -> None:
    declared = encoding.removesuffix("-sig")
    text = f'<?xml version="1.0" encoding="{declared}"?><testsuite><testcase name="Größe"/></testsuite>'
    report = read(text.encode(encoding))
    assert [case.name for case in report.cases] == ["Größe"]
    assert report.problems == ()


@pytest.mark.parametrize("declared", ["utf-8", "punycode", "rot13", "zlib", "utf-16", "nonsense"])
def test_a_wrong_or_odd_declaration_is_survived(declared: str) -> None:
    text = f'<?xml version="1.0" encoding="{declared}"?><testsuite><testcase name="caf\xe9"/></testsuite>'
    report = read(text.encode("latin-1"))
    assert [case.name for case in report.cases] == ["café"]
    assert report.problems == ()


@given(st.binary(max_size=300))
@settings(deadline=None)
def test_no_bytes_raise(data: bytes) -> None:
    assert isinstance(read(data), TestReport)
    assert isinstance(read(b"<testsuite>" + data), TestReport)
    assert isinstance(read(b"1..3\n" + data), TestReport)


@given(st.text(alphabet="<>/=\"' tescau&;!-[]CDATA#x1bok\n0123.?", max_size=200))
@settings(deadline=None)
def test_no_markup_raises(text: str) -> None:
    report = read_reports({}, "<testsuite><testcase name='" + text, result_files=[])
    assert all("\n" not in problem for problem in report.problems)
