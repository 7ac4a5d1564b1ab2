"""Feedback to a model about its test results, for a follow-up turn.

The mode `count` gives the number of passed tests, `names` also the failed tests, `full` also their messages
and the output. No mode reveals hidden files, hidden tests or suspected cheating. Equal failures give equal
text, byte for byte (see `stable`).

Lines and line numbers of test files are removed from the output. The prompt already contains visible tests.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from astra_async.asking.stable import shortened, stable
from astra_async.report_text import clean_name, without_controls

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from astra_async.options import FeedbackMode
    from astra_async.overlay import PathPolicy
    from astra_async.types import ExpectedTest

FEEDBACK_VERSION = "feedback-1"
MAX_CHARACTERS = 6000
NO_ANSWER = "(no answer)"  # replaces an empty answer in a conversation, because providers refuse empty text

_MAX_MESSAGE = 400
_SURE_LINES, _SURE_CHARACTERS = 8, 250
_SHARE_OF_TESTS = 0.5  # maximum share of the text for the list of tests if output follows
_MAX_DROPPED = 10
_NOTED_PATH = 200

_TESTED = "Your answer was applied to the project and its tests were run: {passed} of {total} tests passed.\n"
_STOPPED = {
    "timeout": "The tests took too long and were stopped.\n",
    "out_of_memory": "The tests used too much memory and were stopped.\n",
    "build_failure": "The project could not be built or loaded, so that no test was run.\n",
    "no_report": "The tests ended without a report of their results.\n",
}
_UNUSABLE = {
    "refusal": "Your answer gives no files.\n",
    "truncated": "Your answer was cut off before its end, and nothing of it was used.\n",
    "context_exceeded": "Your answer gives no files.\n",
    "format_error": "No files could be read from your answer: it is not in the format that was asked for.\n",
    "path_violation": "None of the files that your answer gives may be changed.\n",
}
_STANDING = (
    "The files of your earlier answers stay as they are; with them {passed} of {total} tests passed.\n"
)
_NOT_APPLIED = "\nNot applied, because these files may not be changed: {paths}.\n"
_FAILED = "\n## Tests that did not pass\n\n"
_OUTPUT = "\n## Output of the tests\n\n"
_REQUEST = """
Change the project so that all tests pass. Answer in the same format as before. Give every file that you \
change or add whole, from its first to its last line; files that you leave out stay as your earlier answers \
made them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """Feedback text after an answer. Equal failures give equal text, byte for byte."""

    text: str
    sha256: str
    version: str = FEEDBACK_VERSION


def feedback_fingerprint() -> str:
    """Return the version and a hash of all fixed texts of the feedback."""
    wording = (_TESTED, *_STOPPED.values(), *_UNUSABLE.values(), _STANDING, _NOT_APPLIED)
    wording += (_FAILED, _OUTPUT, _REQUEST)
    return f"{FEEDBACK_VERSION}:{_sha256(chr(0).join(wording))[:16]}"


def mode_for(hidden_paths: Iterable[str], chosen: FeedbackMode | None) -> FeedbackMode:
    """Return the chosen mode, else `count` for problems with hidden paths and `full` for other problems."""
    return chosen or ("count" if any(hidden_paths) else "full")


def build_feedback(
    result: Mapping[str, Any],
    output: str,
    secrets: Secrets,
    *,
    mode: FeedbackMode,
    standing: Mapping[str, Any] | None = None,
) -> Feedback:
    """Build the feedback after an answer.

    Args:
        result: final record of the answer.
        output: output of its tests.
        secrets: hidden tests and texts, which the feedback must not reveal.
        mode: amount of detail.
        standing: final record of the latest usable answer, whose files remain if this answer is unusable.
    """
    if result["status"] == "no_solution":
        text = _UNUSABLE.get(str(result["failure"]), _UNUSABLE["format_error"])
        if standing is not None:
            text += _STANDING.format(passed=standing["passed"], total=standing["total"])
    else:
        text = _TESTED.format(passed=result["passed"], total=result["total"])
        text += _STOPPED.get(str(result["failure"]), "")
    text += _not_applied(result)
    if mode != "count" and result["status"] == "scored":
        most = MAX_CHARACTERS - len(text) - len(_REQUEST)
        text += _details(result, output, secrets, mode, most)
    text += _REQUEST
    return Feedback(text=text, sha256=_sha256(text))


def answer_text(answer: str) -> str:
    """Return the answer, or NO_ANSWER if it is blank, for use in a conversation."""
    return answer if answer.strip() else NO_ANSWER


def conversation_sha256(before: str, answer: str, feedback: str) -> str:
    """Return the hash of a conversation after one more turn.

    Args:
        before: hash of the conversation before the answer; at first the prompt's hash.
        answer: the answer.
        feedback: the feedback after the answer.
    """
    return _sha256("\0".join((before, _sha256(answer), _sha256(feedback))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """Texts of a problem that feedback must not reveal, and the lines of its test files.

    Attributes:
        has_hidden: the problem has hidden files.
        tests: names of expected tests in hidden files, or in files that cannot be determined.
        names: paths, test titles and string literals from hidden files; a line must not contain any of them.
        texts: lines of hidden files; a line must not contain any of them.
        lines: lines of all test files.
        files: names of all test files.
    """

    has_hidden: bool = False
    tests: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    lines: frozenset[str] = frozenset()
    files: tuple[str, ...] = ()

    @classmethod
    def of(cls, policy: PathPolicy, expected: Iterable[ExpectedTest]) -> Secrets:
        """Collect the secrets of a problem."""
        texts = {path: _text(file.content) for path, file in policy.files.items() if file.link is None}
        hidden = {path: text for path, text in texts.items() if policy.hidden.matches(path)}
        tests = {path: texts[path] for path in {*policy.tests, *hidden} if path in texts}
        seen = "\n".join(text for path, text in texts.items() if path not in hidden)
        kept: set[str] = set()
        if hidden:  # names of tests in hidden files, or in files that cannot be determined
            unseen = "\n".join(hidden.values())
            kept = {clean_name(test.name) for test in expected if not _is_visible(test, seen, unseen, policy)}
        return cls(
            has_hidden=bool(hidden),
            tests=frozenset(kept),
            names=tuple(sorted({*_titles(kept), *_paths(hidden), *_quotes(hidden.values(), seen)})),
            texts=tuple(sorted(line for line in _lines(*hidden.values()) if line not in seen)),
            lines=frozenset(_lines(*tests.values(), least=1)),
            files=tuple(sorted({path.rpartition("/")[2] for path in tests})),
        )

    def redact(self, text: str) -> str:
        """Return printed text without secrets, without test code, and without what differs between runs."""
        printed = without_controls(text.replace("\r\n", "\n"))
        lines = (
            line for line in printed.split("\n") if not self._is_test_code(line) and not self.is_secret(line)
        )
        plain = stable("\n".join(map(self._without_line_numbers, lines)))
        return "\n".join(line for line in plain.split("\n") if not self.is_secret(line))

    def is_secret(self, line: str) -> bool:
        """Return True if a line contains a name or text from hidden files."""
        if not self.has_hidden:
            return False
        core = line.strip()
        quoted = len(core) >= _LEAST_QUOTE and any(core in text for text in self.texts)
        return quoted or any(each in line for each in (*self.names, *self.texts))

    def _is_test_code(self, line: str) -> bool:
        """Return True if a line shows test code, as in tracebacks and code frames."""
        core = _GUTTER.sub("", line).strip()
        if not core or _MARKS.fullmatch(core):
            return bool(line.strip())
        return core in self.lines

    def _without_line_numbers(self, line: str) -> str:
        """Remove line numbers in test files, because the files that ran may differ from the visible ones."""
        for name in self.files:
            if name in line:
                line = re.sub(
                    rf"({re.escape(name)}\"?)(?:, line \d{{1,9}}|(?::\d{{1,9}}){{1,2}})", r"\1", line
                )
        return line


_GUTTER = re.compile(r"^[ \t]*>?[ \t]*(?:\d{1,6}[ \t]*)?\|?(?=[ \t]|$)")
_MARKS = re.compile(r"[\s|^~>-]{1,500}")
_LEAST_QUOTE, _LEAST_LINE = 4, 6
_LITERAL = re.compile(r"\"([^\"\n]{4,200})\"|'([^'\n]{4,200})'|`([^`\n]{4,200})`")
_PARAMETERS = re.compile(r"\[[^\]]{0,500}\]$")
_BREAKS = re.compile(r"[\s.:>›/#]+")  # noqa: RUF001 - separators in test names


def _details(result: Mapping[str, Any], output: str, secrets: Secrets, mode: FeedbackMode, most: int) -> str:
    failed = _failed_tests(result["tests"], secrets, with_messages=mode == "full")
    # With hidden tests the output may come from them, so it is shown only if the tests did not complete.
    is_shown = mode == "full" and (not secrets.has_hidden or result["failure"] in _STOPPED)
    printed = secrets.redact(output) if is_shown and output else ""
    if not printed:
        return f"{_FAILED}{shortened(failed, most - len(_FAILED) - 1)}\n" if failed else ""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", printed) or [""]))
    frame = f"{_OUTPUT}{fence}\n{{}}\n{fence}\n"
    if failed:
        failed = f"{_FAILED}{shortened(failed, int(most * _SHARE_OF_TESTS))}\n"
    return failed + frame.format(shortened(printed, most - len(failed) - len(frame)))


def _failed_tests(tests: Iterable[Mapping[str, Any]], secrets: Secrets, *, with_messages: bool) -> str:
    lines, kept = [], 0
    for test in tests:
        if test["outcome"] == "passed":
            continue
        name = clean_name(test["name"])
        if name in secrets.tests or secrets.is_secret(name):
            kept += 1
            continue
        lines.append(f"- {name} ({test['outcome']})")
        if with_messages and (message := _message(test.get("message", ""), secrets)):
            lines += [f"  {line}" for line in message.split("\n")]
    if kept and lines:
        lines.append(f"- and {kept} more")
    return "\n".join(lines)


def _message(recorded: str, secrets: Secrets) -> str:
    """Return a test's message. If the record was cut, return only the lines before any possible cut."""
    message = secrets.redact(recorded)
    if not recorded.endswith("…"):
        return shortened(message, _MAX_MESSAGE)
    lines = message.split("\n")[:_SURE_LINES]
    while lines and sum(map(len, lines)) > _SURE_CHARACTERS:
        lines.pop()
    return "\n".join([*lines, "..."])


def _not_applied(result: Mapping[str, Any]) -> str:
    """Return a note about files that were not applied. Hidden files are not mentioned."""
    dropped = [each["path"] for each in result.get("dropped", ()) if each.get("reason") != "hidden"]
    paths = [clean_name(path)[:_NOTED_PATH] for path in dict.fromkeys(dropped)][:_MAX_DROPPED]
    return _NOT_APPLIED.format(paths=", ".join(paths)) if paths else ""


def _is_visible(test: ExpectedTest, seen: str, hidden: str, policy: PathPolicy) -> bool:
    if test.file:
        return not policy.hidden.matches(test.file) and test.file in policy.files
    return _longest_part(test.name, seen) > _longest_part(test.name, hidden)


def _longest_part(name: str, text: str) -> int:
    """Return the length of the longest suffix of a test's name (title, or groups and title) in a text."""
    name = _PARAMETERS.sub("", name)
    starts = [0, *(found.end() for found in _BREAKS.finditer(name))]
    return next((len(name) - start for start in starts if _contains_title(name[start:], text)), 0)


def _contains_title(title: str, text: str) -> bool:
    """Return True if a text contains a title as separate words."""
    if not title or title not in text:
        return False
    return re.search(rf"(?<!\w){re.escape(title)}(?!\w)", text) is not None


def _titles(names: Iterable[str]) -> set[str]:
    """Return the names of hidden tests, and the last part of each name."""
    last = {_BREAKS.split(_PARAMETERS.sub("", name))[-1] for name in names if " " not in name}
    return {*names, *(title for title in last if len(title) >= _LEAST_LINE)}


def _paths(hidden: Iterable[str]) -> set[str]:
    names = {path.rpartition("/")[2] for path in hidden}
    return {*hidden, *(name for name in names if len(name) >= _LEAST_QUOTE)}


def _quotes(texts: Iterable[str], seen: str) -> set[str]:
    """Return string literals that occur in hidden files and in no visible file."""
    found = {next(filter(None, each)) for text in texts for each in _LITERAL.findall(text)}
    return {quote for quote in found if quote.strip() and quote not in seen}


def _lines(*texts: str, least: int = _LEAST_LINE) -> set[str]:
    return {core for text in texts for line in text.splitlines() if len(core := line.strip()) >= least}


def _text(content: bytes) -> str:
    return "" if b"\0" in content else content.decode(errors="replace")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()
