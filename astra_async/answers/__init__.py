"""An answer's text -> the files of its solution, every repair named; or why there is none.

`parse_strictly` has linear stages only; `parse_leniently` adds json-repair and belongs into a helper
process with a deadline. Both are pure, and what goes in and comes out can be pickled.
The asked format is read first. An answer wholly in the other format counts (repair `other_format`):
what is measured is the code, and the repair in the record lets a user judge the format on its own.

    xml_answer, xml_search      XML: strictly, then by plain searching
    json_answer, json_shapes    JSON: step by step; whatever shape it has
    reading, contents           what a reader found; a single file's content mended
    lenient                     the slow repair in a process of its own
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.answers.contents import mended
from astra_async.answers.json_answer import json_start, may_hold_json, read_json, slow_repair
from astra_async.answers.xml_answer import read_xml, xml_start
from astra_async.surrogates import without_surrogates
from astra_async.types import Solution, Unusable

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
    "thinking": "a <think> block before the answer was dropped",
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

_THOUGHT = re.compile(r"\s{0,200}<(think|thinking|thought|reasoning)>", re.IGNORECASE)


def parse_strictly(text: str, fmt: Format, finish_reason: FinishReason) -> Solution | Unusable | None:
    """Read an answer in linear time; None: only `parse_leniently` may help.

    Measured: 1 ms for an honest answer of 16 KB, at most 0.5 s for a hostile one of 1 MB.

    A refusal, a content filter and an exceeded context are unusable whatever the text says; an answer cut
    by its length limit is `truncated` unless its root element or object is closed; a text without any file
    is a `format_error`. Texts over 1,000,000 characters are left to `parse_leniently`.
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
        return Unusable(
            failure="format_error",
            reason=f"the answer has {len(text)} characters, more than {MAX_CHARACTERS}",
        )
    strict = _parse(text, fmt, finish_reason)
    if strict is not None:
        return strict
    prepared, repairs = _prepared(text)
    reading = slow_repair(prepared) if len(prepared) <= MAX_SLOW_CHARACTERS else None
    if reading is None:
        return Unusable(failure="format_error", reason="the answer's JSON cannot be read", repairs=repairs)
    other = ("other_format",) if fmt == "xml" else ()
    return _solution(reading, (*repairs, *other))


def parse_solution(text: str, fmt: Format, finish_reason: FinishReason = "stop") -> Solution | Unusable:
    """Both stages in order, for tools that may wait; the pipeline runs the second in a helper process."""
    return parse_strictly(text, fmt, finish_reason) or parse_leniently(text, fmt, finish_reason)


def _by_finish_reason(finish_reason: FinishReason) -> Unusable | None:
    if finish_reason in {"refusal", "content_filter"}:
        return Unusable(failure="refusal", reason=f"the model gave no answer ({finish_reason})")
    if finish_reason == "context_exceeded":
        return Unusable(failure="context_exceeded", reason="prompt and answer exceed the model's context")
    return None


def _parse(text: str, fmt: Format, finish_reason: FinishReason) -> Solution | Unusable | None:
    prepared, repairs = _prepared(text)
    reading, other = _read(prepared, fmt)
    if finish_reason == "length" and (reading is None or not reading.closed):
        return Unusable(
            failure="truncated",
            reason="the answer was cut by its length limit before its end",
            repairs=repairs,
        )
    if reading is not None:
        return _solution(reading, (*repairs, *other))
    if not prepared.strip():
        return Unusable(failure="format_error", reason="the answer is empty", repairs=repairs)
    if may_hold_json(prepared) and not _has_no_files(prepared):
        return None
    return Unusable(failure="format_error", reason="the answer gives no file", repairs=repairs)


def _prepared(text: str) -> tuple[str, tuple[str, ...]]:
    """The text without byte-order mark, lone surrogates and a leading thought."""
    repairs = []
    if text.lstrip().startswith("\ufeff"):
        text = text.lstrip().lstrip("\ufeff")
        repairs.append("bom")
    scrubbed = without_surrogates(text)
    if scrubbed != text:
        repairs.append("surrogate")
    thought = _end_of_thought(scrubbed)
    if thought:
        repairs.append("thinking")
    return scrubbed[thought:].strip(), tuple(repairs)


def _end_of_thought(text: str) -> int:
    """Where the answer begins after a `<think>` block that some servers leave in the text; 0 without one."""
    opening = _THOUGHT.match(text)
    tag = f"</{opening.group(1)}>" if opening else "</think>"
    end = text.find(tag)
    if end < 0:
        return 0
    if opening is None and any(text.find(mark, 0, end) >= 0 for mark in ("<file", '{"', "{\n")):
        return 0
    return end + len(tag)


def _read(text: str, fmt: Format) -> tuple[Reading | None, tuple[str, ...]]:
    """Read first what begins first in the text, so that code which holds the other format is not taken."""
    starts = {"xml": xml_start(text), "json": json_start(text)}
    order: list[Format] = ["xml", "json"] if fmt == "xml" else ["json", "xml"]
    order.sort(key=lambda each: starts[each] if starts[each] >= 0 else len(text))
    for each in order:
        reading = read_xml(text) if each == "xml" else read_json(text)
        if reading is not None:
            return reading, () if each == fmt else ("other_format",)
    return None, ()


def _has_no_files(text: str) -> bool:
    """Whether the whole text is valid JSON, so that no repair can find what it does not hold."""
    import orjson

    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _solution(reading: Reading, repairs: Iterable[str]) -> Solution:
    names = dict.fromkeys([*repairs, *reading.repairs])
    files = {}
    for path, content in reading.files.items():
        clean_path, clean = without_surrogates(path), without_surrogates(content)
        if (clean_path, clean) != (path, content):
            names["surrogate"] = None
        files[clean_path], more = mended(clean_path, clean)
        names.update(dict.fromkeys(more))
    return Solution(files=files, repairs=tuple(names))
