"""Parse the Test Anything Protocol (testanything.org, versions 12 to 14) as tape, minitest and node print it.

tap.py is not used: it cuts names at any `#` (`GET /#top works`), drops subtests, and prints to standard
output for version 13 unless further packages are installed.

If a test point has subtests, only the subtests are cases, with the titles above them as class name. The point
itself is a case only if it failed although all subtests passed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from astra_async.redaction import one_line
from astra_async.report_text import (
    MAX_CASES,
    MAX_KEPT_LINES,
    UnreadableReport,
    clean_name,
    message_of,
    without_controls,
)
from astra_async.testing.reports.suite_failures import AVA_HOOK, SCRIPTS, failed_with_suite
from astra_async.types import Outcome, TestCase

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

MAX_INDENT = 64  # 16 levels of subtests

_POINT = re.compile(r"(not ok|ok)(?=[ \t]|$)[ \t]*([0-9]{1,9})(?=[ \t]|$)[ \t]*(?:-[ \t]+)?(.*)")
_UNNUMBERED = re.compile(r"(not ok|ok)()[ \t]+-[ \t]+(.*)")  # a looser pattern would match prose
_PLAN = re.compile(r"1\.\.([0-9]{1,9})(?=[ \t]|$)[ \t]*(#.*)?")
_VERSION = re.compile(r"TAP version [0-9]{1,3}[ \t]*")
# The `#` needs blanks on both sides, as TAP 14 defines: `#skip-link` is part of a title.
_DIRECTIVE = re.compile(r"(?:^|(?<=[ \t]))#[ \t]+(skip|todo)(?:ped)?(?=[ \t:]|$)(.*)", re.IGNORECASE)
_TIME = re.compile(r"[ \t]#[ \t]?(?:time|duration(?:_ms)?)[= ][0-9.]{1,20} ?m?s?", re.IGNORECASE)
_NO_CAUSE = re.compile(r"(?:duration_ms|type|failureType|location|code|name):|\s*(?:error|message): \|-?$")
_SUBTEST = re.compile(r"# Subtest: (.*)")
# Details of points that are not tests: exceptions outside of node-tap's tests, and failed hooks of node.
_UNCAUGHT = {"tapCaught: uncaughtException", "tapCaught: unhandledRejection"}
_HOOK_FAILED, _SUITE, _EXIT_CODE = "failureType: 'hookFailed'", "type: 'suite'", "exitCode:"
# ava's titles for a file whose process failed, and for an exception outside of tests (`name` has its class).
_EXITED = re.compile(r"\S.{0,999} exited (?:with a non-zero exit code: [0-9]{1,5}|due to \w{1,20})")
_EXCEPTION = re.compile(r"(\w{1,100})(?::| \[)")
TAP_SIGN = re.compile(
    r"^[ \t]*(?:TAP version [0-9]|1\.\.[0-9]+(?:[ \t]|$)|(?:not )?ok [0-9]+(?:[ \t\r]|$))", re.MULTILINE
)


def read_tap(text: str) -> tuple[list[TestCase], list[str]]:
    """Return the cases of a TAP stream, and problems for an incomplete plan or a bail-out.

    Raises:
        UnreadableReport: there are more than MAX_CASES cases.
    """
    stream = _Stream()
    for line, details in _with_diagnostics(without_controls(text)):
        stream.take(line, details)
    return stream.finished()


def _with_diagnostics(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield lines outside YAML blocks, each with the comments or the block after it.

    A block may quote whole TAP streams. An unclosed block ends at the first line with less indentation. A
    comment after a block is the title of the next test.
    """
    line, details = "", list[str]()
    block: int | None = None
    had_block = False
    for each in text.splitlines():
        inner = each.strip()
        indent = len(each) - len(each.lstrip())
        if block is not None and (not inner or indent >= block):
            if inner == "..." and indent == block:
                block = None
            elif len(details) < MAX_KEPT_LINES:
                details.append(each[block:])
            continue
        block = indent if inner == "---" and indent else None
        if block is not None:
            had_block = True
        elif not inner.startswith("#") or _SUBTEST.fullmatch(inner):
            yield line, details
            line, details, had_block = each, [], False
        elif not had_block and len(details) < MAX_KEPT_LINES:
            details.append(inner[1:])
    yield line, details


@dataclass(slots=True)
class _Level:
    """Cases of one indentation level, its number of points, and the error that fails all its cases."""

    indent: int
    cases: list[TestCase] = field(default_factory=list)
    points: int = 0
    failure: TestCase | None = None

    def ended(self) -> list[TestCase]:
        return failed_with_suite(self.cases, self.failure) if self.failure else self.cases


class _Stream:
    """Line-by-line parser of a TAP stream."""

    def __init__(self) -> None:
        self._levels = [_Level(0)]
        self._titles: dict[int, str] = {}  # indentation -> the running `# Subtest:`
        self._problems: list[str] = []
        self._planned: int | None = None
        self._has_version = False
        self._count = 0

    def take(self, line: str, details: Sequence[str]) -> None:
        """Parse one line with its diagnostics; ignore lines that are not TAP."""
        inner = line.strip()
        indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        if indent > MAX_INDENT:
            return
        if inner.startswith(("ok", "not ok")):
            found = _POINT.fullmatch(inner) or _UNNUMBERED.fullmatch(inner)
            if found:
                self._point(indent, found, details)
        elif inner.startswith("1..") and indent == 0 and (found := _PLAN.fullmatch(inner)):
            self._planned = int(found[1])
        elif indent == 0 and _VERSION.fullmatch(inner):
            self._has_version = True
        elif inner.startswith("Bail out!"):
            self._problems.append(one_line(inner, length=200))
        elif found := _SUBTEST.fullmatch(inner):
            self._titles = {at: title for at, title in self._titles.items() if at < indent}
            self._titles[indent] = clean_name(found[1])

    def finished(self) -> tuple[list[TestCase], list[str]]:
        """Return all cases, and the problems; subtests without a final point keep their announced titles."""
        top = self._levels[0]
        if self._planned is not None and top.points < self._planned:
            self._problems.append(f"{self._planned} tests were planned and {top.points} reported")
        if self._planned is None and self._has_version:
            self._problems.append("the plan is missing, so the run did not finish")
        orphans = []
        for level in self._levels[1:]:
            above = [title for at, title in sorted(self._titles.items()) if at < level.indent]
            orphans += [_under(" ".join(above), case) for case in level.ended()]
        return top.ended() + orphans, self._problems

    def _point(self, indent: int, found: re.Match[str], details: Sequence[str]) -> None:
        self._count += 1
        if self._count > MAX_CASES:
            raise UnreadableReport(f"more than {MAX_CASES:,} test points")
        inner: list[TestCase] = []
        while self._levels[-1].indent > indent:
            inner = self._levels.pop().ended() + inner
        if self._levels[-1].indent < indent:
            self._levels.append(_Level(indent))
        level = self._levels[-1]
        level.points += 1
        case = _case(found, level.points, details)
        lines = {line.strip() for line in details}
        if case.outcome == "failed" and _is_suite(case.name, lines, inner):
            case = replace(case, is_suite=True)
            inner = failed_with_suite(inner, case)
            level.failure = case if lines & _UNCAUGHT else level.failure
        stands_alone = not inner or (
            case.outcome == "failed" and all(each.outcome == "passed" for each in inner)
        )
        level.cases += [_under(case.name, each) for each in inner]
        level.cases += [case] if case.is_suite or stands_alone else []


def _is_suite(title: str, details: AbstractSet[str], inner: Sequence[TestCase]) -> bool:
    """Return True if a failed point is an exception outside of tests, or a failed file, hook or suite."""
    exception = _EXCEPTION.match(title)
    return (
        bool(details & _UNCAUGHT)
        or (_HOOK_FAILED in details and (bool(inner) or _SUITE in details))
        or (
            title.endswith(SCRIPTS)
            and any(line.startswith(_EXIT_CODE) for line in details)
            and all(each.outcome != "failed" for each in inner)
        )
        or (AVA_HOOK.search(title) or _EXITED.fullmatch(title)) is not None
        or (exception is not None and f"name: {exception[1]}" in details)
    )


def _under(title: str, case: TestCase) -> TestCase:
    return replace(case, classname=clean_name(f"{title} {case.classname}")) if title else case


def _case(found: re.Match[str], place: int, details: Sequence[str]) -> TestCase:
    text = found[3]
    directive = _DIRECTIVE.search(text)
    if directive:
        text = text[: directive.start()]
    timing = _TIME.search(text)
    if timing and timing.end() == len(text.rstrip()):
        text = text[: timing.start()]
    name = clean_name(text.replace("\\#", "#").replace("\\\\", "\\"))
    outcome = _outcome(found[1], directive[1].lower() if directive else "")
    cause = (line for line in details if not _NO_CAUSE.match(line))
    return TestCase(
        name=name or f"test {found[2] or place}",
        outcome=outcome,
        message=""
        if outcome == "passed"
        else message_of(directive[2] if directive else "", "\n".join(cause)),
    )


def _outcome(verdict: str, directive: str) -> Outcome:
    """Return the outcome of a point; a TODO point that fails counts as skipped, not as passed."""
    if directive == "skip" or (directive == "todo" and verdict != "ok"):
        return "skipped"
    return "passed" if verdict == "ok" else "failed"
