r"""Parse `{"relative/path": "full content"}`, well-formed or not, in linear time.

First, orjson parses the whole text. If that fails, every object in the text is tried that holds files or
begins like an answer. The json module parses it with `strict=False` (raw line breaks in strings). Then
unambiguous errors are repaired (invalid escapes such as `\d`, commas before a closing bracket, comments),
then missing closing brackets are added, and last the file contents are split at their paths (`json_places`).
json-repair is not linear and is only used by `slow_repair`.

An object that cannot be parsed does not prevent later objects from being parsed, because a sentence may show
an example of the format. Objects within a sentence count only if all objects are within sentences. The last
object outside of sentences must be parsed.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Any

import orjson

from astra_async.answers.json_places import BLANKS, read_by_places, repaired_json
from astra_async.answers.json_shapes import begins_an_answer, collect_files, is_path
from astra_async.answers.reading import EXACT, GUESSED, IN_SENTENCE, Reading, surrounding_repairs

# The start of a possible answer: an object, or a list of objects.
OBJECT_START = re.compile(rf"\{{{BLANKS}[\"']|\[\s{{0,200}}\{{\s{{0,200}}[\"']")
# The start of a possible answer for json-repair, which also accepts unquoted names.
_LOOSE_START = re.compile(r"[{\[]\s{0,200}(?://|/\*|['\"\w]|\{\s{0,200}['\"\w])")
_FIRST_KEY = re.compile(
    rf"(?:\[\s{{0,200}})?\{{{BLANKS}(?P<quote>[\"'])(?P<key>[^\"'\\\n]{{1,300}})(?P=quote)\s{{0,50}}:\s{{0,50}}"
    r"(?:[\"'](?P<value>[^\"'\n]{0,300})|[\[{`])"
)
# A fence or an empty line, followed by a bracket that may open an object.
_NEW_BLOCK = re.compile(r"^[ \t]{0,40}(?:(?:```|~~~)[^\n`]{0,40})?\n[ \t]{0,40}(?=[{\[])", re.MULTILINE)
_FENCE_BEFORE = re.compile(r"(?:```|~~~)[^\n`]{0,40}\n\s*\Z")
_FENCE_END = re.compile(r"[}\]](?=\s{0,200}\n[ \t]{0,40}(?:```|~~~)[ \t]{0,40}(?:\n|\Z))")
_WORD = re.compile(r"\w")
_LINE_OPENING = re.compile(r"(?:\A|\n)[ \t]*(?:```\w*[ \t]*)?\Z")
_LINE_END = re.compile(r"[ \t]*(?:```[ \t]*)?(?:\n|\Z)")
_DECODER = json.JSONDecoder(strict=False)
_MAX_PASSES = 6  # failed attempts may read this multiple of the text's length


def read_json(text: str) -> Reading | None:
    """Parse the files of a JSON answer; return None if no object begins like an answer.

    A result without files means that only a slow repair may help.
    """
    try:
        whole = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _merged(text, _parts(text)) or _read_last_block(text)
    found = Reading(certainty=EXACT, spans=[(0, len(text))])
    _collect_with_duplicates(whole, text, found)
    found.strict.update(found.files)
    return found if found.files else None


def may_hold_json(text: str) -> bool:
    """Return True if a JSON object may begin in the text and the text as a whole is invalid JSON."""
    if _LOOSE_START.search(text) is None:
        return False
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return True
    return False  # valid JSON without files: no repair can find any


def first_object(text: str, start: int) -> int:
    """Return the start of the first object that begins a line and looks like an answer, or `len(text)`."""
    for opening in OBJECT_START.finditer(text, start):
        at = opening.start()
        begins = _begins_line(text, at) or not text[start:at].strip()
        if begins and _begins_like_an_answer(text, at):
            return at
        start = at
    return len(text)


def slow_repair(text: str) -> Reading | None:
    """Parse the answer's files with json-repair, after all other parsers have failed.

    The time is quadratic on hostile input, so callers need a size limit and a deadline.
    """
    parts = _outside_sentences(_parts(text))
    if parts and parts[-1].found is None:
        broken = parts.pop()
        found = _parsed_with_json_repair(text[broken.start :])
        return _merged(text, [*parts, replace(broken, found=found)] if found else parts)
    blocks = [block.end() for block in _NEW_BLOCK.finditer(text) if _LOOSE_START.match(text, block.end())]
    first = _LOOSE_START.search(text)
    starts = [*reversed(blocks[-2:]), *([first.start()] if first else [])]
    return next(filter(None, (_parsed_with_json_repair(text[start:]) for start in starts)), None)


def _parsed_with_json_repair(text: str) -> Reading | None:
    """Parse the object at the start of the text with json-repair.

    json-repair guesses, and a wrong guess silently loses code. A result whose files hold less than nine
    tenths of the text's letters and digits is rejected.
    """
    import json_repair

    end = max(text.rfind("}"), text.rfind("]")) + 1
    region = text[: end if '"' not in text[end:] else len(text)]
    try:
        # With stream_stable, strings keep a line break at their end.
        value = json_repair.loads(region, skip_json_loads=True, stream_stable=True)
    except (ValueError, RecursionError):
        return None
    found = Reading()
    collect_files(value, found)
    found.note("json_repair")
    kept = len(_WORD.findall(json.dumps(found.files, ensure_ascii=False)))
    return found if found.files and kept >= 0.9 * len(_WORD.findall(region)) else None


def _collect_with_duplicates(value: Any, source: str, found: Reading) -> None:
    collect_files(value, found)
    if "duplicate_path" not in found.repairs and _has_duplicate_keys(source, found):
        found.note("duplicate_path")


def _has_duplicate_keys(source: str, found: Reading) -> bool:
    """Return True if an object names a file twice; parsers silently keep only the last value."""
    few = list(found.files)[:200]
    suspects = any(source.count(json.dumps(path, ensure_ascii=False)) > 1 for path in few)
    if not suspects and len(found.files) == len(few):
        return False
    duplicates: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        keys = [key for key, _ in pairs if is_path(key)]
        duplicates.extend(keys if len(set(keys)) < len(keys) else ())

    try:
        json.loads(source, strict=False, object_pairs_hook=note)
    except (ValueError, RecursionError):
        return False  # too deeply nested, or numbers too long for this parser; orjson has parsed the text
    return bool(duplicates)


# --- objects among prose and fences -----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """An object in the text that holds files, or that begins like an answer and cannot be parsed."""

    start: int
    end: int
    begins_line: bool
    ends_line: bool
    found: Reading | None

    @property
    def is_separate(self) -> bool:
        """True if the object begins or ends its line, so it is not part of a sentence."""
        return self.begins_line or self.ends_line

    @property
    def certainty(self) -> int:
        """Confidence that this object is the answer or a part of the answer."""
        read = self.found.certainty if self.found is not None else IN_SENTENCE
        return read if self.begins_line and self.ends_line else GUESSED if self.is_separate else IN_SENTENCE


def _outside_sentences(parts: list[_Part]) -> list[_Part]:
    return [part for part in parts if part.is_separate] or parts


def _merged(text: str, parts: list[_Part]) -> Reading | None:
    """Merge the files of all JSON objects that are not part of a sentence; otherwise of all objects.

    If a path occurs twice, the last content is kept, but an object at the start of a line takes precedence
    over one after text (`Example: {...}`).
    """
    parts = _outside_sentences(parts)
    if not parts:
        return None
    if parts[-1].found is None:
        return Reading(closed=False)
    merged = Reading(closed=parts[-1].found.closed, certainty=max(part.certainty for part in parts))
    parts = [part for part in parts if part.found is not None]
    merged.spans += [(part.start, part.end) for part in parts]
    merged.note(*surrounding_repairs(text[: parts[0].start], text[parts[-1].end :]))
    for found in (part.found for part in sorted(parts, key=lambda part: part.begins_line)):
        for path, content in found.files.items() if found else ():
            merged.add(path, content)
            if found and path in found.strict:
                merged.strict.add(path)
        merged.note(*(found.repairs if found else ()))
    if len(parts) > 1:
        merged.note("several_blocks")
    return merged


def _parts(text: str) -> list[_Part]:
    """Return every object that holds files or begins like an answer, without objects nested in those."""
    parts = []
    position, budget = 0, _MAX_PASSES * len(text)
    while budget > 0 and (start := OBJECT_START.search(text, position)) is not None:
        begin, position = start.start(), start.end()
        found: Reading | None
        try:
            found, end = _decoded(text, begin)
        except (ValueError, RecursionError) as failure:
            budget -= _cost(failure, text, begin)
            if not _begins_like_an_answer(text, begin):
                continue
            found, end = _read_broken(text, begin)
        position = end
        if found is None or found.files:
            parts.append(_part(text, begin, end, found))
    return parts


def _part(text: str, start: int, end: int, found: Reading | None) -> _Part:
    begins_line = _begins_line(text, start)
    ends_line = _LINE_END.match(text, end) is not None
    return _Part(start=start, end=end, begins_line=begins_line, ends_line=ends_line, found=found)


def _begins_line(text: str, start: int) -> bool:
    return _LINE_OPENING.search(text[max(0, start - 200) : start]) is not None


def _cost(failure: Exception, text: str, begin: int) -> int:
    """Return the characters that a failed attempt has read, plus a charge for each attempt."""
    end = len(text)
    if isinstance(failure, json.JSONDecodeError) and not failure.msg.startswith("Unterminated"):
        end = failure.pos
    return end - begin + len(text) // 100 + 1


def _decoded(text: str, begin: int) -> tuple[Reading, int]:
    """Decode the JSON value at `begin`; return its files and its end."""
    value, end = _DECODER.raw_decode(text, begin)
    source = text[begin:end]
    found = Reading(certainty=EXACT)
    _collect_with_duplicates(value, source, found)
    try:
        orjson.loads(source)
    except orjson.JSONDecodeError:
        found.note("control_characters")
    else:
        found.strict.update(found.files)
    return found, end


def _begins_like_an_answer(text: str, begin: int) -> bool:
    """Return True if the first key is a path or a wrapper; objects nested inside are then not answers."""
    first = _FIRST_KEY.match(text, begin)
    return first is not None and begins_an_answer(first.group("key"), first.group("value"))


# --- an object that is no JSON ----------------------------------------------------------------------


def _read_last_block(text: str) -> Reading | None:
    """Parse an object whose first key is something else, such as an explanation."""
    blocks = [match.end() for match in _NEW_BLOCK.finditer(text) if OBJECT_START.match(text, match.end())]
    first = OBJECT_START.search(text)
    if first is None:
        return None
    begin = blocks[-1] if blocks else first.start()
    found, end = _read_broken(text, begin)
    return _merged(text, [_part(text, begin, end, found)]) if found else None


def _read_broken(text: str, begin: int) -> tuple[Reading | None, int]:
    """Try every parser for broken objects; return the files, or None, and the end of the object."""
    end = _extent(text, begin)
    region = text[begin:end]
    for read in (_read_repaired, _read_unclosed, read_by_places):
        found = read(region)
        if found is not None and found[0].files:
            return found[0], begin + found[1]
    return None, end


def _extent(text: str, begin: int) -> int:
    """Return the end of an object that cannot be parsed.

    The object ends with its line if all brackets are closed there, else with its fence, else before the next
    block that begins like an answer.
    """
    line_end = text.find("\n", begin)
    line = text[begin : line_end if line_end >= 0 else len(text)]
    last = max(line.rfind("}"), line.rfind("]")) + 1
    if last and line.count("{") == line.count("}") and '"' not in line[last:]:
        return begin + last
    blocks = (block.end() for block in _NEW_BLOCK.finditer(text, begin))
    end = next((block for block in blocks if _begins_like_an_answer(text, block)), len(text))
    fence = (
        _FENCE_END.search(text, begin, end)
        if _FENCE_BEFORE.search(text[max(0, begin - 200) : begin])
        else None
    )
    return fence.end() if fence else end


def _read_repaired(region: str) -> tuple[Reading, int] | None:
    """Parse the object after unambiguous repairs."""
    repaired, repairs, shifts = repaired_json(region)
    if not repairs:
        return None
    try:
        found, end = _decoded(repaired, 0)
    except (ValueError, RecursionError):
        return None
    found.repairs = dict.fromkeys((*repairs, *found.repairs))
    found.strict.clear()
    return found, end - shifts[bisect_right(shifts, (end, len(repaired))) - 1][1]


def _read_unclosed(region: str) -> tuple[Reading, int] | None:
    """Parse an object that lacks only its closing brackets."""
    bare = region.rstrip()
    fence = bare.rfind("\n```")
    if fence > 0 and '"' not in bare[fence:]:
        bare = bare[:fence]
    repaired, repairs, _ = repaired_json(bare.rstrip().rstrip(","))
    for closing in ("}", "]}", "}]}", "}}", "}]", "]"):
        try:
            value = json.loads(repaired + closing, strict=False)
        except (ValueError, RecursionError):
            continue
        found = Reading(closed=False)
        found.note(*repairs)
        _collect_with_duplicates(value, repaired + closing, found)
        found.note("unclosed_root")
        return found, len(bare)
    return None
