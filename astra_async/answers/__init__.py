"""Parse a model's answer into solution files, and name every repair that was needed.

`parse_strictly` runs in linear time. `parse_leniently` also tries json-repair, which can be slow, and
therefore runs in a helper process with a deadline. Both functions are pure; their arguments and results can
be pickled.

Content that was parsed strictly (CDATA of well-formed XML, a string of valid JSON) is used byte for byte.
Only other content is repaired.

If the requested format gives a complete answer, that answer is used, even if the text also holds examples in
the other format. An answer entirely in the other format is accepted with the repair `other_format`: the
benchmark measures the code, and the recorded repair lets users judge the format separately.

    xml_answer, xml_search      XML: strict parser, then text search
    json_answer, json_places    JSON: step by step; by the positions of its paths
    json_shapes                 files of a JSON value in any of its usual shapes
    reasoning                   removal of reasoning before an answer
    reading, contents           parse result; repair of one file's content
    lenient                     slow repair in a helper process
    agents_files                files changed by an agent
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from astra_async.answers.contents import repaired
from astra_async.answers.json_answer import OBJECT_START, may_hold_json, read_json, slow_repair
from astra_async.answers.reading import EXACT, read_agents_files
from astra_async.answers.reasoning import ends_of_reasoning, fills_its_line, without_reasoning
from astra_async.answers.xml_answer import read_xml
from astra_async.answers.xml_search import FILE_HEAD
from astra_async.surrogates import without_surrogates
from astra_async.types import Solution, Unusable, is_agent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from astra_async.answers.reading import Reading
    from astra_async.types import FinishReason, Format

__all__ = ["REPAIRS", "parse_leniently", "parse_solution", "parse_strictly"]

REPAIRS = {
    # the text as a whole
    "bom": "a byte-order mark before the answer was dropped",
    "surrogate": "lone surrogates became U+FFFD",
    "invalid_utf8": "bytes that are invalid UTF-8 became U+FFFD",
    "no_finish_reason": "the stream ended normally, but the server sent no finish reason",
    "key_masked": "the answer contained one of the user's API keys; it was replaced by `***`",
    "stray_data": "data that is not a stream event (such as ping) was ignored",
    "thinking": "reasoning before the answer, such as a <think> block, was dropped",
    "prose": "text around the answer was ignored",
    "fence": "a markdown fence around the answer or a file's content was dropped",
    "other_format": "the answer is XML although JSON was requested, or vice versa",
    "several_blocks": "the files came in more than one root element or object; they were merged",
    "duplicate_path": "a path was given more than once; the last content was taken",
    "unescaped": "a file's line ends were written as the two characters \\n; they became line ends",
    "backspace": "a backspace character became the two characters \\b",
    # XML
    "not_well_formed": "the XML is not well-formed; its file elements were found by text search",
    "no_root": "file elements without a root element",
    "other_root": "the root element is not called solution",
    "unclosed_root": "the root element or object has no end",
    "unclosed_file": "a file element has no end; it was taken to end where the next begins",
    "unclosed_cdata": "a CDATA section has no end",
    "cdata_end": "a CDATA section contains an unescaped ]]>",
    "no_cdata": "content without CDATA",
    "child_path": "the path was given in a child element",
    "child_content": "the path was given in an attribute, the content in a child element",
    "deletion_ignored": "the answer asked to delete a file, which the format does not allow",
    # JSON
    "control_characters": "JSON strings contain raw line breaks or control characters",
    "invalid_escape": "backslashes in invalid escape sequences were doubled",
    "trailing_comma": "a comma before a closing bracket was dropped",
    "unescaped_quotes": "quotation marks in contents were not escaped; contents were split at the paths",
    "backticks": "contents were given in backticks, as JavaScript's template literals",
    "triple_quotes": "contents were given in triple quotes, as in Python",
    "joined_strings": "contents were given as several strings joined by +",
    "comments": "comments between the files were dropped",
    "single_quotes": "strings were written in single quotes, as Python does",
    "json_repair": "the JSON was repaired by guessing (json-repair)",
    "wrapped": "the files were in a wrapper object, a list, or objects with path and content",
    "nested_folders": "folders were given as nested objects",
    "lines": "content was given as a list of lines",
    "json_content": "the content of a .json file was given as a JSON value",
    "encoded_twice": "the object of files was itself a JSON string",
    "ignored_key": "a key that is not a path, or a value that is not file content, was ignored",
}

ON_LOOP_CHARACTERS = 1_000_000
MAX_CHARACTERS = 16_000_000
MAX_SLOW_CHARACTERS = 256_000

_MOST_ENDS = 3  # reasoning may mention its own closing mark


def parse_strictly(text: str, fmt: Format, finish_reason: FinishReason) -> Solution | Unusable | None:
    """Parse an answer in linear time; return None if only `parse_leniently` may succeed.

    Measured: 1 ms for a typical answer of 16 KB, at most 1.5 s for a hostile answer of 1 MB.

    A refusal, a content filter and an exceeded context are unusable regardless of the text. An answer cut by
    its length limit is `truncated` unless its root element or object is closed. A text without any file
    outside its reasoning is a `format_error`. Texts over 1,000,000 characters are left to `parse_leniently`.
    """
    verdict = _by_finish_reason(finish_reason)
    if verdict is not None or len(text) > ON_LOOP_CHARACTERS:
        return verdict
    return _parse(text, fmt, finish_reason)


def parse_leniently(text: str, fmt: Format, finish_reason: FinishReason) -> Solution | Unusable:
    """Parse an answer, with json-repair as the last step; its time is quadratic on hostile text."""
    verdict = _by_finish_reason(finish_reason)
    if verdict is not None:
        return verdict
    if len(text) > MAX_CHARACTERS:
        reason = f"the answer has {len(text)} characters, more than {MAX_CHARACTERS}"
        return Unusable(failure="format_error", reason=reason)
    strict = _parse(text, fmt, finish_reason)
    if strict is not None:
        return strict
    answer = _parsed_answer(text, fmt, finish_reason)
    found = slow_repair(answer.text) if len(answer.text) <= MAX_SLOW_CHARACTERS else None
    if found is not None:
        other = ("other_format",) if fmt == "xml" else ()
        return _solution(found, (*answer.repairs, *other))
    return Unusable(
        failure="format_error", reason="the answer's JSON cannot be parsed", repairs=answer.repairs
    )


def parse_solution(text: str, fmt: Format, finish_reason: FinishReason = "stop") -> Solution | Unusable:
    """Run all parsing stages in order, for callers that may block.

    The pipeline runs the last stage in a helper process instead. The record of an agent's files is decoded as
    it was written; a damaged record raises ValueError.
    """
    if is_agent(fmt):
        return read_agents_files(text)
    return parse_strictly(text, fmt, finish_reason) or parse_leniently(text, fmt, finish_reason)


def _by_finish_reason(finish_reason: FinishReason) -> Unusable | None:
    if finish_reason in {"refusal", "content_filter"}:
        return Unusable(failure="refusal", reason=f"the model gave no answer ({finish_reason})")
    if finish_reason == "context_exceeded":
        return Unusable(failure="context_exceeded", reason="prompt and answer exceed the model's context")
    return None


@dataclass(frozen=True, slots=True)
class _Answer:
    """Text of an answer without reasoning, its parse result, and the repairs so far.

    `is_open` is True if the text ends within reasoning, before the answer begins.
    """

    text: str
    reading: Reading | None
    repairs: tuple[str, ...] = ()
    is_open: bool = False


def _parse(text: str, fmt: Format, finish_reason: FinishReason) -> Solution | Unusable | None:
    answer = _parsed_answer(text, fmt, finish_reason)
    reading, repairs = answer.reading, answer.repairs
    if finish_reason == "length" and (reading is None or not reading.closed):
        reason = "the answer was cut by its length limit before its end"
        return Unusable(failure="truncated", reason=reason, repairs=repairs)
    if answer.is_open:
        reason = "the answer ends within its reasoning, whose files are only drafts"
        return Unusable(failure="format_error", reason=reason, repairs=repairs)
    if reading is not None and reading.files:
        return _solution(reading, repairs)
    if answer.text and may_hold_json(answer.text):
        return None
    reason = "the answer contains no file" if answer.text else "the answer is empty"
    return Unusable(failure="format_error", reason=reason, repairs=repairs)


def _parsed_answer(text: str, fmt: Format, finish_reason: FinishReason) -> _Answer:
    """Remove transport marks and reasoning, then parse the answer.

    A server may cut off the mark that opens reasoning, so that only the closing mark is left. The text before
    a closing mark is dropped if the text after that mark parses as an answer, or was cut by the length limit
    before it became one. A closing mark inside a file of the answer is ignored.
    """
    text, repairs = _prepared(text)
    answer, was_removed = _answer(text, fmt)
    for _ in range(_MOST_ENDS):
        covers = answer.reading.covers if answer.reading else lambda _: False
        ends = (end for end in ends_of_reasoning(answer.text) if not covers(end.start()))
        if answer.is_open or (end := next(ends, None)) is None:
            break
        rest, _ = _answer(answer.text[end.end() :], fmt)
        was_cut = finish_reason == "length" and fills_its_line(end)
        if rest.reading is None and not rest.is_open and not was_cut:
            break
        answer, was_removed = rest, True
    if was_removed:
        repairs["thinking"] = None
    return replace(answer, repairs=(*repairs, *answer.repairs))


def _prepared(text: str) -> tuple[str, dict[str, None]]:
    """Remove the byte-order mark and lone surrogates, and convert line ends to LF."""
    repairs: dict[str, None] = {}
    if text.lstrip().startswith("\ufeff"):
        text = text.lstrip().lstrip("\ufeff")
        repairs["bom"] = None
    scrubbed = without_surrogates(text)
    if scrubbed != text:
        repairs["surrogate"] = None
    return scrubbed.replace("\r\n", "\n").replace("\r", "\n"), repairs


def _answer(text: str, fmt: Format) -> tuple[_Answer, bool]:
    """Parse the text after marked reasoning, and return whether any reasoning was removed."""
    rest, was_removed, is_open = without_reasoning(text)
    answer = _read(rest.strip(), fmt)
    return replace(answer, is_open=is_open, reading=None if is_open else answer.reading), was_removed


def _read(text: str, fmt: Format) -> _Answer:
    """Parse in the requested format, or in the other format if only that one gives an answer."""
    asked = _READERS[fmt](text)
    other: Format = "json" if fmt == "xml" else "xml"
    is_exact = asked is not None and asked.certainty == EXACT
    if asked and is_exact and not _STARTS[other].search(text, 0, asked.spans[-1][0]):
        return _Answer(text, asked)
    another = _READERS[other](text)
    if another is not None and another.files and _is_better(another, asked):
        return _Answer(text, another, ("other_format",))
    return _Answer(text, asked or another)


def _is_better(other: Reading, asked: Reading | None) -> bool:
    """Return True if the answer is in another format than the requested one, with usable files."""
    if asked is None:
        return True
    if not asked.files:  # a broken answer in the asked format: the other format's files may be part of it
        return other.certainty == EXACT
    if other.encloses(asked):
        return other.certainty >= asked.certainty
    return other.certainty > asked.certainty and not asked.encloses(other)


_READERS = {"xml": read_xml, "json": read_json}
_STARTS = {"xml": FILE_HEAD, "json": OBJECT_START}


def _solution(reading: Reading, repairs: Iterable[str]) -> Solution:
    names = dict.fromkeys([*repairs, *reading.repairs])
    files = {}
    for path, content in reading.files.items():
        clean_path, clean = without_surrogates(path), without_surrogates(content)
        if (clean_path, clean) != (path, content):
            names["surrogate"] = None
        files[clean_path], more = (clean, ()) if path in reading.strict else repaired(clean_path, clean)
        names.update(dict.fromkeys(more))
    return Solution(files=files, repairs=tuple(names))
