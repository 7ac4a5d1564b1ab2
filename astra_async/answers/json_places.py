"""Files of a JSON answer found by the places of their paths, where strings are not escaped.

Read are objects of paths and lists of path and content, with strings in double quotes whose inner quotes
are bare, in backticks, or in triple quotes. A string ends at the last quotation mark before the next path.
"""

from __future__ import annotations

import re

from astra_async.answers.json_shapes import is_path
from astra_async.answers.reading import GUESSED, Reading

# A comment ends with its line, so that no repetition of BLANKS, between two files, can be split twice.
COMMENT = r"//[^\n]{0,300}\n|/\*[^*]{0,300}+\*/"
BLANKS = rf"(?:\s{{0,200}}(?:{COMMENT})){{0,5}}\s{{0,200}}"
_STRING = r"\"[^\"\\]*+(?:\\.[^\"\\]*+)*+\"?"
_STRINGS = re.compile(_STRING, re.DOTALL)
_SINGLE_QUOTED = r"'[^'\\]*+(?:\\.[^'\\]*+)*+'"
_TOKEN = re.compile(
    rf"{_STRING}(?:\s{{0,200}}\+\s{{0,200}}{_STRING})*+|{_SINGLE_QUOTED}|(?:{COMMENT})|,(?={BLANKS}[}}\]])",
    re.DOTALL,
)
_IN_SINGLE_QUOTES = re.compile(r"\\x([0-9a-fA-F]{2})|\\'|\\.|\"", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[^u]|(?=u)|\Z)", re.DOTALL)
_VALID_ESCAPES = frozenset('"\\/bfnrt')


def repaired_json(region: str) -> tuple[str, dict[str, None], list[tuple[int, int]]]:
    """The text, its repairs, and by how much it has grown at which of its positions."""
    repairs: dict[str, None] = {}
    shifts = [(0, 0)]

    def repair(token: re.Match[str]) -> str:
        written = token.group()
        replaced = _repaired_token(written, repairs)
        if replaced != written:
            growth = shifts[-1][1] + len(replaced) - len(written)
            shifts.append((token.end() + growth, growth))
        return replaced

    return _TOKEN.sub(repair, region), repairs, shifts


def _repaired_token(written: str, repairs: dict[str, None]) -> str:
    if written[0] not in "\"'":
        repairs["trailing_comma" if written == "," else "comments"] = None
        return ""
    string = written
    if written[0] == "'":
        repairs["single_quotes"] = None
        string = f'"{_IN_SINGLE_QUOTES.sub(_in_double_quotes, written[1:-1])}"'
    elif len(pieces := _STRINGS.findall(written)) > 1:
        repairs["joined_strings"] = None
        string = '"' + "".join(piece[1:-1] for piece in pieces) + '"'
    return _with_valid_escapes(string, repairs)


def _in_double_quotes(piece: re.Match[str]) -> str:
    if piece.group(1):
        return f"\\u00{piece.group(1)}"
    return {'"': '\\"', "\\'": "'"}.get(piece.group(), piece.group())


def _with_valid_escapes(string: str, repairs: dict[str, None]) -> str:
    """A JSON string in which a backslash that escapes nothing is doubled."""
    if "\\" not in string:
        return string

    def repair(escape: re.Match[str]) -> str:
        text = escape.group()
        if len(text) > 2 or text[1:] in _VALID_ESCAPES:  # noqa: PLR2004 - longer than two: \uXXXX
            return text
        repairs["invalid_escape"] = None
        return text[1:] if text[1:] == "'" else "\\" + text

    return _ESCAPE.sub(repair, string)


_KEY = r"\"(?P<key>[^\"\\\n]{1,300})\"\s{0,50}:\s{0,50}"
_DESCRIBED = (
    r"\"(?:path|file_?path|file_?name|name)\"\s{0,50}:\s{0,50}\"(?P<path>[^\"\\\n]{1,300})\"\s{0,50},"
    r"\s{0,50}\"(?:content|contents|code|source)\"\s{0,50}:\s{0,50}"
)
_QUOTE = r"(?P<quote>\"{3}(?!\")|[\"`])"
_PLACE = re.compile(rf"(?P<opening>[{{,])(?P<blanks>{BLANKS})(?:{_DESCRIBED}|{_KEY}){_QUOTE}")
_COMMENTS = re.compile(COMMENT)
_JSON_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[\"\\/bfnrt])")
_ESCAPE_IN_BACKTICKS = re.compile(r"\\([`$])")
_BACKTICKS_END = re.compile(r"[^`\\]*+(?:\\.[^`\\]*+)*+`[\s\]]{0,200}\}[\s}\]]{0,200}", re.DOTALL)
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_BETWEEN = " \t\r\n,{}[]"
_REPAIRS = {'"': "unescaped_quotes", "`": "backticks", '"""': "triple_quotes"}


def read_by_places(text: str) -> tuple[Reading, int] | None:
    """The files of the object that begins here, and where it ends; None if a string's end cannot be told."""
    places = _places(text)
    if not places:
        return None
    end = _end_of_object(text, places[-1])
    found = Reading(closed=end >= 0, certainty=GUESSED)
    for place, following in zip(places, [*places[1:], None], strict=True):
        stop = following.start() if following else end if found.closed else len(text)
        content = _string_before(text[place.end() : stop], place.group("quote"))
        if content is None:
            return None
        found.add(place.group("path") or place.group("key"), content, _REPAIRS[place.group("quote")])
    if not found.closed:
        found.note("unclosed_root")
    return found, end if found.closed else len(text)


def _places(text: str) -> list[re.Match[str]]:
    """The paths that open a file: after the first, only those laid out alike.

    Bare code can hold `"socket.io": "^4"` itself (a package.json): a path must stand after the end of a
    string and after the same blanks as the first one; where that stands beside its brace, as the
    outermost of the others do.
    """
    found = _PLACE.finditer(text)
    matches = (match for match in found if match.group("key") is None or is_path(match.group("key")))
    first = next((match for match in matches if match.group("opening") == "{"), None)
    if first is None:
        return []
    others = [match for match in matches if _follows_a_string(text, match, first)]
    layout = _layout(first) or min(map(_layout, others), key=len, default="")
    return [first, *(match for match in others if _layout(match) == layout)]


def _layout(match: re.Match[str]) -> str:
    """The blanks before a path, without the comments there."""
    blanks = _COMMENTS.sub("\n", match.group("blanks"))
    return blanks[blanks.rfind("\n") :] if "\n" in blanks else ""


def _follows_a_string(text: str, match: re.Match[str], first: re.Match[str]) -> bool:
    before = text[max(0, match.start() - 200) : match.start()]
    bare = before.rstrip() if match.group("key") else before.rstrip(_BETWEEN)
    return bare.endswith(first.group("quote")[-1])


def _end_of_object(text: str, last: re.Match[str]) -> int:
    """Where the object ends, or -1: its last brace follows a string's end, and no string comes after it."""
    if last.group("quote") == "`" and (closed := _BACKTICKS_END.match(text, last.end())):
        return closed.end()  # all other backticks are escaped, or stand in the prose behind
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
    content = bare.removesuffix(quote)
    if quote == "`":
        return _ESCAPE_IN_BACKTICKS.sub(r"\1", content)
    return _JSON_ESCAPE.sub(_unescape, content)


def _unescape(escape: re.Match[str]) -> str:
    letter = escape.group(1)
    if len(letter) > 1:
        return chr(int(letter[1:], 16))
    return _LETTERS.get(letter, letter)
