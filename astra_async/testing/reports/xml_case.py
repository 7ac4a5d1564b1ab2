"""The element of one test case in JUnit XML, xUnit.net, NUnit and TRX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from astra_async.report_text import MAX_READ, clean_name, message_of
from astra_async.types import Outcome, TestCase

if TYPE_CHECKING:
    from collections.abc import Mapping

# Child elements of a case and what they make of it, the gravest deciding. `warning` is PHPUnit's (a
# test without assertions or with a broken provider); surefire's `flakyFailure` and `rerunFailure` are
# left out on purpose: the former ended well, the latter stands beside a `failure`.
_CHILDREN: Mapping[str, Outcome] = {
    "failure": "failed",
    "error": "error",
    "warning": "error",
    "skipped": "skipped",
    "disabled": "skipped",
}
_GRAVITY: Mapping[Outcome, int] = {"passed": 0, "skipped": 1, "failed": 2, "error": 3}
# `status` and `result` attributes that say that a case did not run (GoogleTest, CTest, Catch2).
_NOT_RUN = {"notrun", "disabled", "skipped", "suppressed", "ignored", "pending"}
_DotNet = Literal["xunit", "nunit", "trx"]
Kind = Literal["junit"] | _DotNet
# The attributes that name a .NET test's outcome, and their values that are neither a failure nor an error.
_RESULTS: Mapping[_DotNet, str] = {"xunit": "result", "nunit": "result", "trx": "outcome"}
_OUTCOMES: Mapping[str, Outcome] = {
    "pass": "passed",
    "passed": "passed",
    "success": "passed",
    "warning": "passed",  # NUnit's Assert.Warn
    "fail": "failed",
    "failed": "failed",
    "failure": "failed",
    "skip": "skipped",
    "skipped": "skipped",
    "ignored": "skipped",
    "inconclusive": "skipped",
    "notrun": "skipped",
    "notexecuted": "skipped",
    "pending": "skipped",
}
_MESSAGES = ("message", "stack-trace", "Message", "StackTrace")  # of .NET's failures


class OpenCase:
    """One case whose element has begun."""

    def __init__(self, attributes: Mapping[str, str], depth: int, kind: Kind, suite: str) -> None:
        self.depth = depth
        self._suite = suite
        self._is_annotated = False
        self.failures = 0  # elements
        self._attributes = dict(attributes)
        self._kind = kind
        self._outcome = _attribute_outcome(attributes, kind)
        self._message = self._details = ""
        self._texts: list[str] | None = None  # of the child that decides, while it is open
        self._left = MAX_READ  # characters of them that are kept

    def child(self, name: str, attributes: Mapping[str, str], depth: int) -> None:
        """An element within the case begins."""
        if self._kind != "junit":
            self._settle()
            self._texts = [] if name in _MESSAGES else None
        elif name == "property":
            self._is_annotated |= attributes.get("name") in {"skip", "fixme"}
        elif depth == self.depth + 1:
            self._settle()
            outcome = _CHILDREN.get(name)
            self.failures += outcome in {"failed", "error"}
            if outcome is not None and _GRAVITY[outcome] > _GRAVITY[self._outcome]:
                self._outcome = outcome
                self._message, self._details, self._left = attributes.get("message", ""), "", MAX_READ
                self._texts = []

    @property
    def is_idle(self) -> bool:
        """Whether it passed, and is said to have taken no time."""
        return self._outcome == "passed" and self._attributes.get("time") == "0"

    @property
    def is_unannotated(self) -> bool:
        """Whether it is skipped, took no time and has no annotation that skips it, in Playwright's words."""
        return self._outcome == "skipped" and "time" not in self._attributes and not self._is_annotated

    def text(self, text: str) -> None:
        """Text of the element within the case that decides: kept for the message."""
        if self._texts is not None and self._left > 0:
            self._texts.append(text[: self._left])
            self._left -= len(text)

    def _settle(self) -> None:
        if self._texts is not None:
            self._details += "".join(self._texts) + "\n"
            self._texts = None

    def finished(self) -> TestCase:
        """The case, once its element has ended."""
        self._settle()
        attribute = "testName" if self._kind == "trx" else "name"
        name, classname = (
            clean_name(self._attributes.get(attribute, "")),
            self._attributes.get("classname", ""),
        )
        if self._kind == "xunit":
            # xUnit.net's name is `Namespace.Class.Method(arguments)`, its type `Namespace.Class`.
            classname = self._attributes.get("type", "")
            name = name.removeprefix(classname + ".") if classname else name
        return TestCase(
            name=name or clean_name(classname),
            outcome=self._outcome,
            classname=clean_name(classname) if name else "",
            file=clean_name(self._attributes.get("file", self._attributes.get("filepath", ""))),
            message=message_of(self._message, self._details) if self._outcome != "passed" else "",
            # surefire: a failed @BeforeAll or @AfterAll. Vitest: a file that does not load.
            is_suite=self._outcome in {"failed", "error"}
            and (not name or name == clean_name(classname) == clean_name(self._suite)),
        )


def _attribute_outcome(attributes: Mapping[str, str], kind: Kind) -> Outcome:
    if kind != "junit":
        found = attributes.get(_RESULTS[kind]) or attributes.get("success", "")  # before NUnit 2.5
        return _OUTCOMES.get({"true": "passed", "false": "failed"}.get(found.lower(), found.lower()), "error")
    states = {attributes.get("status", "").lower(), attributes.get("result", "").lower()}
    return "skipped" if states & _NOT_RUN else "passed"
