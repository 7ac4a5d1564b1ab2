"""Element of one test case in JUnit XML, xUnit.net, NUnit and TRX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from astra_async.report_text import MAX_READ, clean_name, message_of
from astra_async.types import Outcome, TestCase

if TYPE_CHECKING:
    from collections.abc import Mapping

# Child elements of a case and their outcomes; the most severe one decides. `warning` is from PHPUnit (a test
# without assertions or with a broken provider). surefire's `flakyFailure` is excluded because the test passed
# in the end, and `rerunFailure` because a `failure` accompanies it.
_CHILDREN: Mapping[str, Outcome] = {
    "failure": "failed",
    "error": "error",
    "warning": "error",
    "skipped": "skipped",
    "disabled": "skipped",
}
_GRAVITY: Mapping[Outcome, int] = {"passed": 0, "skipped": 1, "failed": 2, "error": 3}
# Values of the attributes `status` and `result` for cases that did not run (GoogleTest, CTest, Catch2).
_NOT_RUN = {"notrun", "disabled", "skipped", "suppressed", "ignored", "pending"}
_DotNet = Literal["xunit", "nunit", "trx"]
Kind = Literal["junit"] | _DotNet
# Attributes with a .NET test's outcome, and their known values; any other value is an error.
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
_MESSAGES = ("message", "stack-trace", "Message", "StackTrace")  # elements of .NET failures


class OpenCase:
    """Test case whose element has begun and not ended."""

    def __init__(self, attributes: Mapping[str, str], depth: int, kind: Kind, suite: str) -> None:
        self.depth = depth
        self._suite = suite
        self._is_annotated = False
        self.failures = 0  # elements
        self._attributes = dict(attributes)
        self._kind = kind
        self._outcome = _attribute_outcome(attributes, kind)
        self._message = self._details = ""
        self._texts: list[str] | None = None  # text of the deciding child while it is open
        self._left = MAX_READ  # characters that may still be kept

    def child(self, name: str, attributes: Mapping[str, str], depth: int) -> None:
        """Handle the start of an element inside the case."""
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
        """True if the case passed with a reported time of 0."""
        return self._outcome == "passed" and self._attributes.get("time") == "0"

    @property
    def is_unannotated(self) -> bool:
        """True if Playwright reports the case as skipped, without a time and without a skip annotation."""
        return self._outcome == "skipped" and "time" not in self._attributes and not self._is_annotated

    def text(self, text: str) -> None:
        """Collect text of the deciding child element, for the message."""
        if self._texts is not None and self._left > 0:
            self._texts.append(text[: self._left])
            self._left -= len(text)

    def _settle(self) -> None:
        if self._texts is not None:
            self._details += "".join(self._texts) + "\n"
            self._texts = None

    def finished(self) -> TestCase:
        """Return the case after its element has ended."""
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
