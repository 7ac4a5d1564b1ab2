r"""Reads `{"relative/path": "full content"}`, well-formed or not, without a slow step.

In this order: the whole text by orjson; every object in the text by json with `strict=False` (raw line
breaks in strings, fences, prose); the same after mending what can be mended for certain (invalid escapes
such as `\d`, commas before a closing bracket); at last the places where one file's string must end and
the next path must begin, which survives unescaped quotation marks. Every step is linear; json-repair,
which is not, stands apart in `slow_repair`.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from astra_async.answers.json_shapes import begins_an_answer, is_path, shape
from astra_async.answers.reading import Reading, surroundings

# Where an answer may begin: an object, or a list of objects.
_START = re.compile(r"\{\s{0,200}\"|\[\s{0,200}\{\s{0,200}\"")
_FIRST_KEY = re.compile(r"[\[{\s]{1,400}\"([^\"\\\n]{1,300})\"\s{0,50}:")
_TOKEN = re.compile(r"\"[^\"\\]*+(?:\\.[^\"\\]*+)*+\"?|,(?=\s{0,200}[}\]])", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[^u]|(?=u)|\Z)", re.DOTALL)
_VALID_ESCAPES = frozenset('"\\/bfnrt')
_WORD = re.compile(r"\w")
_MAX_STARTS = 8  # failed attempts, each linear


def read_json(text: str) -> Reading | None:
    """The files of a JSON answer, or None when only a slow repair may help."""
    try:
        whole = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _read_objects(text, ()) or _read_mended(text) or _read_unclosed(text) or _read_by_places(text)
    found = Reading()
    _shape(whole, text, found)
    return found if found.files else None


def json_start(text: str) -> int:
    """Where the first object that can be an answer of files begins, or -1."""
    starts = (match.start() for match in _START.finditer(text))
    return next((start for start in starts if _begins_an_answer(text, start)), -1)


def may_hold_json(text: str) -> bool:
    """Whether the text has a place where a JSON object could begin."""
    return _START.search(text) is not None


def slow_repair(text: str) -> Reading | None:
    """What json-repair makes of it; quadratic on hostile input, so only under a cap and a deadline.

    json-repair guesses, and a wrong guess loses code silently: a result that keeps less than nine tenths
    of the text's letters and digits is refused.
    """
    import json_repair

    start = _START.search(text)
    if start is None:
        return None
    end = max(text.rfind("}"), text.rfind("]")) + 1
    region = text[start.start() : end if '"' not in text[end:] else len(text)]
    try:
        value = json_repair.loads(region, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    found = Reading()
    shape(value, found)
    found.note("json_repair")
    kept = len(_WORD.findall(json.dumps(found.files, ensure_ascii=False)))
    if not found.files or kept < 0.9 * len(_WORD.findall(region)):
        return None
    return found


def _shape(value: Any, source: str, found: Reading) -> None:
    shape(value, found)
    if "duplicate_path" not in found.repairs and _has_duplicate_keys(source, found):
        found.note("duplicate_path")


def _has_duplicate_keys(source: str, found: Reading) -> bool:
    """Whether an object names a file twice; parsers silently keep the last one."""
    few = list(found.files)[:200]
    suspects = any(source.count(json.dumps(path, ensure_ascii=False)) > 1 for path in few)
    if not suspects and len(found.files) == len(few):
        return False
    duplicates: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        keys = [key for key, _ in pairs if is_path(key)]
        duplicates.extend(keys if len(set(keys)) < len(keys) else ())

    json.loads(source, strict=False, object_pairs_hook=note)
    return bool(duplicates)


# --- objects among prose and fences -----------------------------------------------------------------


def _read_objects(text: str, repairs: tuple[str, ...]) -> Reading | None:
    """Every object of the text that holds files, merged; the last content of a path wins."""
    decoder = json.JSONDecoder(strict=False)
    found = Reading()
    first, last, blocks, failures, open_tail = -1, 0, 0, 0, False
    position = 0
    while failures < _MAX_STARTS and (start := _START.search(text, position)) is not None:
        try:
            value, end = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            if _begins_an_answer(text, start.start()) and not blocks:
                return None
            failures, open_tail, position = failures + 1, True, start.end()
            continue
        position = end
        inner = Reading()
        _shape(value, text[start.start() : end], inner)
        if not inner.files:
            continue
        first, last, blocks, open_tail = (start.start() if first < 0 else first), end, blocks + 1, False
        _merge(inner, found, text[start.start() : end])
    if not found.files:
        return None
    extra = ("several_blocks",) if blocks > 1 else ()
    around = surroundings(text[:first], text[last:])
    names = dict.fromkeys((*around, *repairs, *extra, *found.repairs))
    return Reading(files=found.files, repairs=names, closed=not open_tail)


def _begins_an_answer(text: str, start: int) -> bool:
    """Whether the object here starts with a path or a wrapper; nothing inside it is then an answer."""
    key = _FIRST_KEY.match(text, start)
    return key is not None and begins_an_answer(key.group(1))


def _merge(inner: Reading, found: Reading, source: str) -> None:
    for path, content in inner.files.items():
        found.add(path, content)
    found.repairs.update(inner.repairs)
    try:
        orjson.loads(source)
    except orjson.JSONDecodeError:
        found.note("control_characters")


# --- mending what is certain ------------------------------------------------------------------------


def _read_mended(text: str) -> Reading | None:
    start = _START.search(text)
    if start is None:
        return None
    repairs: dict[str, None] = {}

    def mend(token: re.Match[str]) -> str:
        if token.group() == ",":
            repairs["trailing_comma"] = None
            return ""
        return _with_valid_escapes(token.group(), repairs)

    mended = text[: start.start()] + _TOKEN.sub(mend, text[start.start() :])
    return _read_objects(mended, tuple(repairs)) if repairs else None


def _with_valid_escapes(string: str, repairs: dict[str, None]) -> str:
    """A JSON string in which a backslash that escapes nothing is doubled."""
    if "\\" not in string:
        return string

    def mend(escape: re.Match[str]) -> str:
        text = escape.group()
        if len(text) > 2 or text[1:] in _VALID_ESCAPES:  # noqa: PLR2004 - longer than two: \uXXXX
            return text
        repairs["invalid_escape"] = None
        return text[1:] if text[1:] == "'" else "\\" + text

    return _ESCAPE.sub(mend, string)


def _read_unclosed(text: str) -> Reading | None:
    """An object that lacks nothing but its closing brackets."""
    start = _START.search(text)
    if start is None:
        return None
    region = text[start.start() :].rstrip().removesuffix("```").rstrip().rstrip(",")
    for closing in ("}", "]}", "}]}", "}}", "}]", "]"):
        try:
            value = json.loads(region + closing, strict=False)
        except (ValueError, RecursionError):
            continue
        found = Reading(closed=False)
        found.note(*surroundings(text[: start.start()], ""))
        _shape(value, region + closing, found)
        found.note("unclosed_root")
        return found if found.files else None
    return None


# --- the places of paths, where strings are not escaped ----------------------------------------------
# Read are objects of paths and lists of path and content, with strings in double quotes whose inner quotes
# are bare, or in backticks. A string ends at the last quotation mark before the next path.

_KEY = r"\"(?P<key>[\w@.\-/\[\]()+$~]{1,300})\"\s{0,50}:\s{0,50}"
_DESCRIBED = (
    r"\"(?:path|file_?path|file_?name|name)\"\s{0,50}:\s{0,50}\"(?P<path>[^\"\\\n]{1,300})\"\s{0,50},"
    r"\s{0,50}\"(?:content|contents|code|source)\"\s{0,50}:\s{0,50}"
)
_PLACE = re.compile(rf"(?P<before>[{{,]\s{{0,200}})(?:{_DESCRIBED}|{_KEY})(?P<quote>[\"`])")
_JSON_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[\"\\/bfnrt])")
_ESCAPE_IN_BACKTICKS = re.compile(r"\\([`$])")
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_BETWEEN = " \t\r\n,{}[]"


def _read_by_places(text: str) -> Reading | None:
    """The files found by their paths, or None when a string's end cannot be told."""
    places = _places(text)
    if not places:
        return None
    end = _end_of_object(text, places[-1])
    found = Reading(closed=end >= 0)
    found.note(*surroundings(text[: places[0].start()], text[end:] if found.closed else ""))
    for place, following in zip(places, [*places[1:], None], strict=True):
        stop = following.start() if following else end if found.closed else len(text)
        content = _string_before(text[place.end() : stop], place.group("quote"))
        if content is None:
            return None
        found.add(place.group("path") or place.group("key"), content)
        found.note("unescaped_quotes" if place.group("quote") == '"' else "backticks")
    if not found.closed:
        found.note("unclosed_root")
    return found


def _places(text: str) -> list[re.Match[str]]:
    """The paths that open a file: after the first, only those laid out like it.

    Bare code can hold `"socket.io": "^4"` itself (a package.json): a path must stand after the same blanks
    as the first one, and after the end of a string.
    """
    places: list[re.Match[str]] = []
    for match in _PLACE.finditer(text):
        key = match.group("key")
        if places:
            if key is None or (is_path(key) and _follows(text, match, places[0])):
                places.append(match)
        elif match.group("before")[0] == "{" and (key is None or is_path(key)):
            places.append(match)
    return places


def _follows(text: str, match: re.Match[str], first: re.Match[str]) -> bool:
    blanks, layout = match.group("before")[1:], first.group("before")[1:]
    same = blanks == layout or ("\n" not in layout and "\n" not in blanks)
    before = text[max(0, match.start() - 200) : match.start()].rstrip()
    return same and before.endswith(first.group("quote"))


def _end_of_object(text: str, last: re.Match[str]) -> int:
    """Where the object ends, or -1: its last brace follows a string's end, and no string comes after it."""
    end = text.rfind("}") + 1
    quote = last.group("quote")
    if end <= last.end() or quote in text[end:].strip().strip("`"):
        return -1
    bare = text[last.end() : end].rstrip(_BETWEEN)
    return end if bare.endswith(quote) and not bare.endswith(f"\\{quote}") else -1


def _string_before(source: str, quote: str) -> str | None:
    """The string that begins at the start of `source` and ends at its last quotation mark."""
    bare = source.rstrip(_BETWEEN)
    if not bare.endswith(quote):
        return None
    if quote == "`":
        return _ESCAPE_IN_BACKTICKS.sub(r"\1", bare[:-1])
    return _JSON_ESCAPE.sub(_unescape, bare[:-1])


def _unescape(escape: re.Match[str]) -> str:
    letter = escape.group(1)
    if len(letter) > 1:
        return chr(int(letter[1:], 16))
    return _LETTERS.get(letter, letter)
