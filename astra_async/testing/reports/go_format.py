"""Parse the output of `go test -json`: one JSON event on each line (`go doc test2json`).

If a test has subtests, only its subtests are cases, unless the test failed although all subtests passed. A
test that began and never ended did not pass. Before Go 1.20, output without a line end merges with the line
that begins the next test or reports the test's own result. Then there is no event, and that line is part of
the output.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import Any

import orjson

from astra_async.redaction import one_line
from astra_async.report_text import (
    MAX_CASES,
    MAX_KEPT_LINES,
    UnreadableReport,
    clean_name,
    message_of,
)
from astra_async.types import Outcome, TestCase

_ACTIONS = "start|run|pause|cont|pass|bench|fail|output|skip|build-output|build-fail"
GO_SIGN = re.compile(rf'^\{{(?:"Time":"[^"\n]{{1,50}}",)?"Action":"(?:{_ACTIONS})"', re.MULTILINE)
_OUTCOMES: dict[str, Outcome] = {"pass": "passed", "fail": "failed", "skip": "skipped"}
_FRAME = re.compile(r"\s*(?:===|---) ")
_BEGIN_BEHIND_OUTPUT = re.compile(r"=== RUN   (\S{1,1000})\n?\Z")
_END_BEHIND_OUTPUT = re.compile(r"--- (PASS|FAIL|SKIP): (\S{1,1000}) \([0-9.]{1,20}s\)\n?\Z")

# Printed as plain text, because no test of the package began.
_NOT_BUILT = re.compile(r"FAIL\s{1,9}(\S{1,1000}) \[(?:build|setup) failed\]")

_Key = tuple[str, str]


def read_go(text: str) -> tuple[list[TestCase], list[str]]:
    """Return the cases, and a problem for each package that failed independently of its tests.

    Raises:
        UnreadableReport: there are more than MAX_CASES cases.
    """
    stream = _Stream()
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                event = orjson.loads(line)
            except ValueError:  # other output
                continue
            if isinstance(event, dict):
                stream.take(event)
        elif found := _NOT_BUILT.fullmatch(line):
            stream.not_built(found[1])
    return stream.finished()


class _Stream:
    """Parser of the event stream."""

    def __init__(self) -> None:
        self._ended: list[tuple[_Key, Outcome]] = []
        self._open: dict[_Key, None] = {}
        self._output: defaultdict[_Key, list[str]] = defaultdict(list)
        self._failed: list[str] = []

    def take(self, event: dict[str, Any]) -> None:
        key = str(event.get("Package", "")), clean_name(str(event.get("Test", "")))
        action = event.get("Action")
        if action == "output":
            self._print(key, str(event.get("Output", "")))
        elif action == "run" and key[1]:
            self._open[key] = None
        elif action in _OUTCOMES and key[1]:
            self._end(key, _OUTCOMES[action])
        elif action == "fail":
            self._failed.append(key[0])
        if len(self._ended) + len(self._open) > MAX_CASES:
            raise UnreadableReport(f"more than {MAX_CASES:,} test cases")

    def not_built(self, package: str) -> None:
        """Record a package whose tests do not compile."""
        self._failed.append(package)
        self._output[package, ""].append("its tests do not build")

    def _print(self, key: _Key, line: str) -> None:
        if len(self._output[key]) < MAX_KEPT_LINES:
            self._output[key].append(line)
        if _FRAME.match(line):
            return
        if found := _BEGIN_BEHIND_OUTPUT.search(line):
            self._open[key[0], clean_name(found[1])] = None
        elif found := _END_BEHIND_OUTPUT.search(line):
            ended = key[0], clean_name(found[2])
            if ended in self._open:
                self._end(ended, _OUTCOMES[found[1].lower()])

    def _end(self, key: _Key, outcome: Outcome) -> None:
        self._open.pop(key, None)
        self._ended.append((key, outcome))

    def finished(self) -> tuple[list[TestCase], list[str]]:
        """Return the cases in the order in which they ended, and the problems."""
        inner: defaultdict[_Key, set[Outcome]] = defaultdict(set)
        everything = [*self._ended, *((key, "error") for key in self._open)]
        for (package, name), outcome in everything:
            if "/" in name:
                inner[package, name.rpartition("/")[0]].add(outcome)
        cases = [
            self._case(key, outcome)
            for key, outcome in everything
            if key not in inner or (outcome != "passed" and inner[key] <= {"passed", "skipped"})
        ]
        failing = {case.classname for case in cases if case.outcome in ("failed", "error")}
        beside = {clean_name(name): name for name in self._failed if clean_name(name) not in failing}
        for at, case in enumerate(cases):  # TestMain failed, or another error outside of tests
            if case.classname in beside and case.outcome == "passed":
                message = message_of(self._message((beside[case.classname], "")))
                cases[at] = replace(case, outcome="failed", message=message)
        return cases, [
            f"package {one_line(name, length=100)} failed: {one_line(self._message((name, '')), length=150)}"
            for name in beside.values()
        ]

    def _case(self, key: _Key, outcome: Outcome) -> TestCase:
        package, name = key
        message = "" if outcome == "passed" else message_of(self._message(key))
        if outcome == "error":
            message = message or "the test began and did not end"
        return TestCase(name=name, classname=clean_name(package), outcome=outcome, message=message)

    def _message(self, key: _Key) -> str:
        return "".join(line for line in self._output[key] if not _FRAME.match(line))
