"""What `cargo test` prints: the text of Rust's own test harness, and which target it is of.

`Running tests/cart.rs (target/...)` stands on standard error: a report that holds both has the target as the
cases' class. Output of tests between the lines is passed over, and so is what a test writes without a line
end before its name or its result: the line's end is the result, unless a line of its own follows.
"""

from __future__ import annotations

import re

from astra_async.redaction import one_line
from astra_async.testing.reports.report_text import (
    MAX_CASES,
    MAX_KEPT_LINES,
    UnreadableReport,
    clean_name,
    message_of,
    without_controls,
)
from astra_async.types import Outcome, TestCase

CARGO_SIGN = re.compile(r"^running [0-9]{1,9} tests?\r?$", re.MULTILINE)
_TARGET = re.compile(r"\s{1,12}(?:Running (?:unittests )?(\S{1,300}).*|(Doc-tests \S{1,300}).*)")
_PLAN = re.compile(r"running ([0-9]{1,9}) tests?")
_CASE = re.compile(r"test (\S.{0,999}?)(?: - should panic)? \.\.\. (.{0,300})")
_RESULT = re.compile(r"(ok|FAILED|ignored)(?:, (.*))?")
_DOTS = " ... "
_LAST = re.compile(r"(?:ok|FAILED|ignored)\Z")
_DETAILS = re.compile(r"---- (\S.{0,999}) stdout ----")
_OUTCOMES: dict[str, Outcome] = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}


def read_cargo(text: str) -> tuple[list[TestCase], list[str]]:
    """The cases, and a line for each target of whose tests some were not reported.

    Raises:
        UnreadableReport: more cases than any project has.
    """
    harness = _Harness()
    for line in without_controls(text).splitlines():
        harness.take(line)
    return harness.finished()


class _Harness:
    """Lines in, cases out."""

    def __init__(self) -> None:
        self._target = ""
        self._found: list[tuple[str, str, Outcome, str]] = []  # target, name, outcome, remark
        self._details: dict[tuple[str, str], list[str]] = {}
        self._current: list[str] | None = None  # where lines of a failure go
        # A test whose output stands where its result should, and what may be that at the end of the line.
        self._unended, self._perhaps = "", ""
        self._failures = False  # among the details of failed tests, not of others
        self._failed: set[tuple[str, str]] = set()
        self._planned = self._reported = 0
        self._problems: list[str] = []

    def take(self, line: str) -> None:
        if found := _TARGET.fullmatch(line):
            self._end_target()
            self._target = found[1] or found[2]
        elif found := _PLAN.fullmatch(line):
            self._end_target()
            self._planned = int(found[1])
        elif found := _CASE.fullmatch(line):
            self._case(found[1], found[2])
        elif self._unended and _RESULT.fullmatch(line):
            self._case(self._unended, line)
        elif name := _behind_output(line):
            self._case(name, line.rpartition(_DOTS)[2])
        elif found := _DETAILS.fullmatch(line):
            key = self._target, clean_name(found[1])
            self._current = self._details.setdefault(key, [])
            self._failed |= {key} if self._failures else set()
        elif line.startswith(("failures:", "successes:", "test result:")):
            self._settle()
            self._current, self._failures = None, line.startswith("failures:")
        elif self._current is not None and len(self._current) < MAX_KEPT_LINES:
            self._current.append(line)

    def finished(self) -> tuple[list[TestCase], list[str]]:
        """All cases in their order."""
        self._end_target()
        cases = [
            TestCase(
                name=name,
                classname=target,
                outcome="failed" if outcome == "passed" and (target, name) in self._failed else outcome,
                message=message_of(note, "\n".join(self._details.get((target, name), ()))),
            )
            for target, name, outcome, note in self._found
        ]
        return cases, self._problems

    def _case(self, name: str, text: str) -> None:
        if name != self._unended:
            self._settle()
        result = _RESULT.fullmatch(text)
        if result is None:
            last = _LAST.search(text)
            self._unended, self._perhaps = name, last[0] if last else ""
            return
        self._unended, name = "", clean_name(name)
        self._reported += 1
        self._found.append((self._target, name, _OUTCOMES[result[1]], result[2] or ""))
        if len(self._found) > MAX_CASES:
            raise UnreadableReport(f"more than {MAX_CASES:,} test cases")

    def _settle(self) -> None:
        """No line of its own has come for a result: it is what the test's line ended with, if that is one."""
        if self._unended and self._perhaps:
            self._case(self._unended, self._perhaps)
        self._unended = ""

    def _end_target(self) -> None:
        self._settle()
        if self._reported < self._planned:
            where = one_line(self._target, length=100) or "a target"
            self._problems.append(f"{where}: {self._planned} tests were to run, {self._reported} reported")
        self._planned = self._reported = 0
        self._current, self._failures = None, False


def _behind_output(line: str) -> str:
    """The name in a line that begins with what a test has written, and ends with a test's result."""
    head, _, result = line.rpartition(_DOTS)
    found = _RESULT.fullmatch(result) and head.rpartition("test ")
    return found[2].removesuffix(" - should panic") if found and found[1] else ""
