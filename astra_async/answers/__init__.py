"""An answer's text -> the files of its solution, every repair named; or why there is none.

`parse_strictly` has linear stages only; `parse_leniently` adds json-repair and belongs into a helper
process with a deadline. Both are pure, and what goes in and comes out can be pickled.
A content that was parsed strictly (CDATA of well-formed XML, a string of valid JSON) is taken to the byte:
repairs of contents are for all others only.
The asked format counts wherever it gives a whole answer, whatever examples of the other one stand beside
it. An answer wholly in the other format counts, too (repair `other_format`): what is measured is the code,
and the repair in the record lets a user judge the format on its own.

    xml_answer, xml_search      XML: strictly, then by plain searching
    json_answer, json_places    JSON: step by step; by the places of its paths
    json_shapes                 JSON's files, whatever shape they have
    reasoning                   what stands in front of an answer and is no part of it
    reading, contents           what a reader found; a single file's content repaired
    lenient                     the slow repair in a process of its own
    agents_files                what an agent left in its project
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from astra_async.answers.contents import repaired
from astra_async.answers.json_answer import OBJECT_START, may_hold_json, read_json, slow_repair
from astra_async.answers.reading import EXACT, read_agents_files
from astra_async.answers.reasoning import ends_of_reasoning, is_on_its_own, without_reasoning
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
    "invalid_utf8": "bytes of the stream that are no text became U+FFFD",
    "no_finish_reason": "the stream ended in order, and the server did not say why the answer ended",
    "key_masked": "the server had put a key of ours into the answer; it is `***` there",
    "stray_data": "data between the stream's events that is none (such as ping) was passed over",
    "thinking": "reasoning before the answer, such as a <think> block, was dropped",
    "prose": "text around the answer was ignored",
    "fence": "a markdown fence round the answer or round a file's content was dropped",
    "other_format": "JSON was asked for and XML given, or the other way round",
    "several_blocks": "the files came in more than one root element or object; they were merged",
    "duplicate_path": "a path was given more than once; the last content was taken",
    "unescaped": "a file's line ends were written as the two characters \\n",
    "backspace": "a backspace character was meant as the two characters \\b",
    # XML
    "not_well_formed": "no well-formed XML; the file elements were found by searching",
    "no_root": "file elements without a root element",
    "other_root": "the root element is not called solution",
    "unclosed_root": "the root element or object has no end",
    "unclosed_file": "a file element has no end; it was taken to end where the next begins",
    "unclosed_cdata": "a CDATA section has no end",
    "cdata_end": "a CDATA section holds an unsplit ]]>",
    "no_cdata": "content without CDATA",
    "child_path": "the path stood in a child element",
    "child_content": "the path stood in an attribute, the content in a child element",
    "deletion_ignored": "the answer asked to delete a file, which the format does not allow",
    # JSON
    "control_characters": "raw line breaks or control characters inside of JSON strings",
    "invalid_escape": "backslashes that escape nothing were doubled",
    "trailing_comma": "a comma before a closing bracket was dropped",
    "unescaped_quotes": "quotation marks in contents were not escaped; files were found by their paths",
    "backticks": "contents were given in backticks, as JavaScript's template literals",
    "triple_quotes": "contents were given in triple quotes, as in Python",
    "joined_strings": "contents were given as several strings joined by +",
    "comments": "comments between the files were dropped",
    "single_quotes": "strings were written in single quotes, as Python does",
    "json_repair": "the JSON was repaired by guessing (json-repair)",
    "wrapped": "not one object of paths: a wrapper, a list, or objects with path and content",
    "nested_folders": "folders were given as nested objects",
    "lines": "content was given as a list of lines",
    "json_content": "the content of a .json file was given as a JSON value",
    "encoded_twice": "the object of files was itself a JSON string",
    "ignored_key": "a key that is no path, or a value that is no content, was ignored",
}

ON_LOOP_CHARACTERS = 1_000_000
MAX_CHARACTERS = 16_000_000
MAX_SLOW_CHARACTERS = 256_000

_MOST_ENDS = 3  # reasoning may name its own end


def parse_strictly(text: str, fmt: Format, finish_reason: FinishReason) -> Solution | Unusable | None:
    """Read an answer in linear time; None: only `parse_leniently` may help.

    Measured: 1 ms for an honest answer of 16 KB, at most 1.5 s for a hostile one of 1 MB.

    A refusal, a content filter and an exceeded context are unusable whatever the text says; an answer cut
    by its length limit is `truncated` unless its root element or object is closed; a text without any file
    outside of its reasoning is a `format_error`. Texts over 1,000,000 characters are left to
    `parse_leniently`.
    """
    verdict = _by_finish_reason(finish_reason)
    if verdict is not None or len(text) > ON_LOOP_CHARACTERS:
        return verdict
    return _parse(text, fmt, finish_reason)


def parse_leniently(text: str, fmt: Format, finish_reason: FinishReason) -> Solution | Unusable:
    """Read an answer, at last with json-repair, whose time is quadratic on hostile text."""
    verdict = _by_finish_reason(finish_reason)
    if verdict is not None:
        return verdict
    if len(text) > MAX_CHARACTERS:
        reason = f"the answer has {len(text)} characters, more than {MAX_CHARACTERS}"
        return Unusable(failure="format_error", reason=reason)
    strict = _parse(text, fmt, finish_reason)
    if strict is not None:
        return strict
    answer = _understood(text, fmt, finish_reason)
    found = slow_repair(answer.text) if len(answer.text) <= MAX_SLOW_CHARACTERS else None
    if found is not None:
        other = ("other_format",) if fmt == "xml" else ()
        return _solution(found, (*answer.repairs, *other))
    return Unusable(failure="format_error", reason="the answer's JSON cannot be read", repairs=answer.repairs)


def parse_solution(text: str, fmt: Format, finish_reason: FinishReason = "stop") -> Solution | Unusable:
    """All stages in order, for tools that may wait; the pipeline runs the last in a helper process.

    What an agent left is no text of a model's: it is read as it was recorded, or raises ValueError.
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
    """The answer's own text, what a reader found in it, and the repairs of both.

    `is_open` if the text ends within reasoning: then the answer has not begun.
    """

    text: str
    reading: Reading | None
    repairs: tuple[str, ...] = ()
    is_open: bool = False


def _parse(text: str, fmt: Format, finish_reason: FinishReason) -> Solution | Unusable | None:
    answer = _understood(text, fmt, finish_reason)
    reading, repairs = answer.reading, answer.repairs
    if finish_reason == "length" and (reading is None or not reading.closed):
        reason = "the answer was cut by its length limit before its end"
        return Unusable(failure="truncated", reason=reason, repairs=repairs)
    if answer.is_open:
        reason = "the answer ends within its reasoning, and files of that are drafts"
        return Unusable(failure="format_error", reason=reason, repairs=repairs)
    if reading is not None and reading.files:
        return _solution(reading, repairs)
    if answer.text and may_hold_json(answer.text):
        return None
    reason = "the answer gives no file" if answer.text else "the answer is empty"
    return Unusable(failure="format_error", reason=reason, repairs=repairs)


def _understood(text: str, fmt: Format, finish_reason: FinishReason) -> _Answer:
    """The answer without marks of transport and reasoning.

    A server may cut off how reasoning begins. What stands before the end of it is dropped if the rest is
    an answer by itself, or was cut before it became one, and the answer as a whole does not hold that end
    (in a file about reasoning).
    """
    text, repairs = _prepared(text)
    answer, was_removed = _answer(text, fmt)
    for _ in range(_MOST_ENDS):
        covers = answer.reading.covers if answer.reading else lambda _: False
        ends = (end for end in ends_of_reasoning(answer.text) if not covers(end.start()))
        if answer.is_open or (end := next(ends, None)) is None:
            break
        rest, _ = _answer(answer.text[end.end() :], fmt)
        was_cut = finish_reason == "length" and is_on_its_own(end)
        if rest.reading is None and not rest.is_open and not was_cut:
            break
        answer, was_removed = rest, True
    if was_removed:
        repairs["thinking"] = None
    return replace(answer, repairs=(*repairs, *answer.repairs))


def _prepared(text: str) -> tuple[str, dict[str, None]]:
    """The text without byte-order mark and lone surrogates; its line ends are LF."""
    repairs: dict[str, None] = {}
    if text.lstrip().startswith("\ufeff"):
        text = text.lstrip().lstrip("\ufeff")
        repairs["bom"] = None
    scrubbed = without_surrogates(text)
    if scrubbed != text:
        repairs["surrogate"] = None
    return scrubbed.replace("\r\n", "\n").replace("\r", "\n"), repairs


def _answer(text: str, fmt: Format) -> tuple[_Answer, bool]:
    """The answer behind reasoning that is marked as such, and whether there was any."""
    rest, was_removed, is_open = without_reasoning(text)
    answer = _read(rest.strip(), fmt)
    return replace(answer, is_open=is_open, reading=None if is_open else answer.reading), was_removed


def _read(text: str, fmt: Format) -> _Answer:
    """What the asked format gives, or the other one where only that gives an answer."""
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
    """Whether the other format, which gives files, is what the model has answered in."""
    if asked is None:
        return True
    if not asked.files:  # broken, and perhaps to be repaired: files found within are none
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
