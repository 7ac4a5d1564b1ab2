"""Split a JSON answer with unescaped strings into files at the positions of its paths.

Supported are objects that map paths to contents, and lists of objects with path and content. Strings may be
in double quotes with unescaped quotes inside, in backticks, or in triple quotes. A string ends at the last
quotation mark before the next path.
"""

from __future__ import annotations

import re

from astra_async.answers.json_shapes import is_path
from astra_async.answers.reading import GUESSED, Reading

# A comment ends with its line. Therefore BLANKS can match a text in one way only, without backtracking.
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
    """Repair the unambiguous errors of a JSON text.

    Returns:
        The repaired text; the names of the repairs; and pairs of (position in the repaired text, number of
        characters added before that position).
    """
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
    """Double every backslash of a JSON string that begins no valid escape sequence."""
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
    """Return the files of the object at the text's start, and its end; None if a string's end is unclear."""
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
    """Return the paths that open a file; later paths must be laid out like the first.

    Unescaped code can itself hold `"socket.io": "^4"` (a package.json). A later path therefore counts only
    after the end of a string, and after the same line break and indentation as the first path. If the first
    path is on the line of its brace, the layout of the least indented later path is required instead.
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
    """Return the line break and indentation before a path, without comments."""
    blanks = _COMMENTS.sub("\n", match.group("blanks"))
    return blanks[blanks.rfind("\n") :] if "\n" in blanks else ""


def _follows_a_string(text: str, match: re.Match[str], first: re.Match[str]) -> bool:
    before = text[max(0, match.start() - 200) : match.start()]
    bare = before.rstrip() if match.group("key") else before.rstrip(_BETWEEN)
    return bare.endswith(first.group("quote")[-1])


def _end_of_object(text: str, last: re.Match[str]) -> int:
    """Return the object's end, or -1 if its last brace does not follow a string or a string comes later."""
    if last.group("quote") == "`" and (closed := _BACKTICKS_END.match(text, last.end())):
        return closed.end()  # all other backticks are escaped or belong to prose after the object
    end = text.rfind("}") + 1
    quote = last.group("quote")
    if end <= last.end() or quote in text[end:].strip().strip("`"):
        return -1
    bare = text[last.end() : end].rstrip(_BETWEEN)
    return end if bare.endswith(quote) and not bare.endswith(f"\\{quote}") else -1


def _string_before(source: str, quote: str) -> str | None:
    """Return the content of the string that fills `source`, up to its last quotation mark, or None."""
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
