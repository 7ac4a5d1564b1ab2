r"""Repairs what is certain in text that is nearly JSON: `\d`, comments, commas before a bracket, quotes."""

from __future__ import annotations

import re

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
