r"""Finds the files of a JSON answer by the paths that open them, where strings are not escaped.

Read are objects of paths and lists of path and content, with strings in double quotes whose inner quotes
are bare, or in backticks. A string ends at the last quotation mark before the next path. Every step is
linear.
"""

from __future__ import annotations

import re

from astra_async.answers.json_shapes import is_path
from astra_async.answers.reading import Reading, surroundings

_KEY = r"\"(?P<key>[\w@.\-/\[\]()+$~]{1,300})\"\s{0,50}:\s{0,50}"
_DESCRIBED = (
    r"\"(?:path|file_?path|file_?name|name)\"\s{0,50}:\s{0,50}\"(?P<path>[^\"\\\n]{1,300})\"\s{0,50},"
    r"\s{0,50}\"(?:content|contents|code|source)\"\s{0,50}:\s{0,50}"
)
_PLACE = re.compile(rf"(?P<before>[{{,]\s{{0,200}})(?:{_DESCRIBED}|{_KEY})(?P<quote>[\"`])")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[\"\\/bfnrt])")
_ESCAPE_IN_BACKTICKS = re.compile(r"\\([`$])")
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_BETWEEN = " \t\r\n,{}[]"


def read_by_places(text: str) -> Reading | None:
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
    return _ESCAPE.sub(_unescape, bare[:-1])


def _unescape(escape: re.Match[str]) -> str:
    letter = escape.group(1)
    if len(letter) > 1:
        return chr(int(letter[1:], 16))
    return _LETTERS.get(letter, letter)
