"""Parse the output of `cargo test`: the text of Rust's test harness, with the target of each test.

`Running tests/cart.rs (target/...)` is printed on standard error. If a report holds both streams, the target
becomes the class of the cases. Tests that bypass the harness's output capture may print before, within and
after its lines. A result on a line of its own belongs to the test before it. Results that are still unclear
are taken from the target's summary and list of failures, or else from the end of the test's line.
"""

from __future__ import annotations

import re

from astra_async.redaction import one_line
from astra_async.report_text import (
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
_RESULT = re.compile(r"(ok|FAILED|ignored)(?:, (.*))?")
_TEST, _DOTS, _LONGEST_NAME = "test ", " ... ", 1000
_LAST = re.compile(r"(?:ok|FAILED|ignored)\Z")
_IGNORED = re.compile(r"ignored.*|.*ignored")
_SUMMARY = re.compile(r"test result: \w{1,9}\. ([0-9]{1,9}) passed;.*")
_DETAILS = re.compile(r"---- (\S.{0,999}) stdout ----")
_OUTCOMES: dict[str, Outcome] = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}


def read_cargo(text: str) -> tuple[list[TestCase], list[str]]:
    """Return the cases, and a problem for each target that did not report all its tests.

    Raises:
        UnreadableReport: there are more than MAX_CASES cases.
    """
    harness = _Harness()
    for line in without_controls(text).splitlines():
        harness.take(line)
    return harness.finished()


class _Harness:
    """Line-by-line parser of the harness's output."""

    def __init__(self) -> None:
        self._target = ""
        self._found: list[tuple[str, str, Outcome, str]] = []  # target, name, outcome, note
        self._details: dict[tuple[str, str], list[str]] = {}
        self._current: list[str] | None = None  # details of the current failed test
        self._unclear: dict[str, str] = {}  # test name -> text in place of its result
        self._failures = False  # within the section of failed tests
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
        elif found := _SUMMARY.fullmatch(line):
            self._sum_up(passed=int(found[1]))
        elif (started := _started(line)) and (self._current is None or _RESULT.fullmatch(started[1])):
            self._case(*started)
        elif self._unclear and _RESULT.fullmatch(line):
            self._case(next(reversed(self._unclear)), line)
        elif found := _DETAILS.fullmatch(line):
            key = self._target, clean_name(found[1])
            self._current = self._details.setdefault(key, [])
            self._failed |= {key} if self._failures else set()
        elif line.startswith(("failures:", "successes:")):
            self._current, self._failures = None, line.startswith("failures:")
        elif self._current is None and self._failures and line.startswith("    "):
            self._failed.add((self._target, clean_name(line.strip())))
        elif self._current is not None and len(self._current) < MAX_KEPT_LINES:
            self._current.append(line)

    def finished(self) -> tuple[list[TestCase], list[str]]:
        """Return all cases in order, and the problems."""
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
        result = _RESULT.fullmatch(text)
        if result is None:
            self._unclear[name] = text
            return
        self._unclear.pop(name, None)
        self._reported += 1
        self._found.append((self._target, clean_name(name), _OUTCOMES[result[1]], result[2] or ""))
        if len(self._found) > MAX_CASES:
            raise UnreadableReport(f"more than {MAX_CASES:,} test cases")

    def _sum_up(self, passed: int) -> None:
        """Resolve unclear tests at a target's end.

        An unclear test failed if the target lists it as failed. The others passed or were ignored, if that
        agrees with the target's number of passed tests.
        """
        clear = self._found[len(self._found) - self._reported :]
        passed -= sum(outcome == "passed" and not self._has_failed(name) for _, name, outcome, _ in clear)
        told = {}
        for name, text in self._unclear.items():
            other = "ignored" if not passed or _IGNORED.fullmatch(text) else "ok"
            told[name] = "FAILED" if self._has_failed(name) else other
        if passed == sum(result == "ok" for result in told.values()):
            for name, result in told.items():
                self._case(name, result)
        self._current, self._failures = None, False

    def _has_failed(self, name: str) -> bool:
        return (self._target, clean_name(name)) in self._failed

    def _end_target(self) -> None:
        for name, text in list(self._unclear.items()):
            if last := _LAST.search(text):
                self._case(name, last[0])
        self._unclear.clear()
        if self._reported < self._planned:
            where = one_line(self._target, length=100) or "a target"
            self._problems.append(f"{where}: {self._planned} tests were planned, {self._reported} reported")
        self._planned = self._reported = 0
        self._current, self._failures = None, False


def _started(line: str) -> tuple[str, str] | None:
    """Return a test's name and the text after it, or None; other output may precede the name on its line."""
    rest = line.removeprefix(_TEST) if line.startswith(_TEST) else line.rpartition(_TEST)[2]
    name, dots, text = rest.partition(_DOTS)
    name = name.removesuffix(" - should panic").strip()
    is_named = dots and rest != line and 0 < len(name) < _LONGEST_NAME
    return (name, text) if is_named else None
