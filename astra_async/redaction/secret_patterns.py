"""Recognize registered secrets in any spelling, and by an unmistakable beginning."""

from __future__ import annotations

import base64
import html
import json
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

MASK = "***"

# A beginning that does not occur by chance: it ends with twelve letters and digits, at least one a digit.
_SURE_BEGINNING = re.compile(r"(?=[A-Za-z]{0,11}[0-9])[A-Za-z0-9]{12}")

# Parts of a secret that are spelled differently: characters never escaped, blanks, backslashes, one other.
_PART = re.compile(
    r"(?P<plain>[-A-Za-z0-9_.~]+)|(?P<blank>[\s\x00-\x1f\x7f-\x9f]+)|(?P<backslashes>\\+)|.", re.DOTALL
)
_MOST_BACKSLASHES = 64  # one backslash, encoded six times
_BLANK_CODE = r"(?:[0189][0-9A-Fa-f]|20|7[fF]|[aA]0)"
_BLANKS = rf"(?:[\s\x00-\x1f\x7f-\x9f]|\\++(?:[bfnrtv]|x{_BLANK_CODE}|u00{_BLANK_CODE}|u202[89]))+"

# A printable ASCII character written by its number: in JSON, Python, HTML or a URL.
_NUMBERED = re.compile(
    r"(?<!\\)\\++(?:u00|x)([2-7][0-9A-Fa-f])|&#x0*([2-7][0-9A-Fa-f]);|%([2-7][0-9A-Fa-f])|&#0*([1-9][0-9]{1,2});"
)


class SecretRegistry:
    """Registered secrets and the patterns that recognize them."""

    def __init__(self) -> None:
        self._values: set[str] = set()  # never shrinks: a secret stays secret for the whole process
        self._encoded: list[str] = []
        self._shape: re.Pattern[str] | None = None

    def register(self, value: str) -> None:
        """Register one secret."""
        if value not in self._values:
            self._values.add(value)
            self._encoded += _encodings(value)
            self._shape = None

    def mask(self, text: str) -> str:
        """Replace every registered secret in the text, in any spelling."""
        if not self._values:
            return text
        if self._shape is None:
            self._shape = shape_of(self._values)
        text = self._shape.sub(MASK, text)
        for form in self._encoded:
            if form in text:
                text = text.replace(form, MASK)
        plain = _NUMBERED.sub(_character, text) if "\\" in text or "%" in text or "&#" in text else text
        return self._shape.sub(MASK, plain) if plain != text and self._shape.search(plain) else text


def shape_of(secrets: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for each secret with the rest of its word, and for each unmistakable beginning.

    The rest of the word is included because another secret may begin with the same value.
    """
    longest_first = sorted(secrets, key=len, reverse=True)
    begun = [secret[: found.end()] for secret in longest_first if (found := _SURE_BEGINNING.search(secret))]
    shapes = [rf"(?:{'|'.join(map(_spelled, longest_first))})\w*"]
    if begun:
        shapes.append(rf"(?:{'|'.join(map(_spelled, dict.fromkeys(begun)))})[-\w.~+/=%*\\]*")
    return re.compile("|".join(shapes))


def _encodings(secret: str) -> list[str]:
    """Return the secret in hex, and the invariant part of its base64 form at each of the three offsets."""
    raw = secret.encode("utf-8", "surrogatepass")
    forms = [raw.hex(), raw.hex().upper()]
    for before in range(3):
        known = base64.b64encode(bytes(before) + raw).decode()
        known = known[-(-4 * before // 3) : (before + len(raw)) * 4 // 3]
        forms += [known, known.replace("+", "-").replace("/", "_")]
    return list(dict.fromkeys(forms))


def _character(found: re.Match[str]) -> str:
    code = int(found[4]) if found[4] else int(found[1] or found[2] or found[3], 16)
    return chr(code) if 0x20 <= code < 0x7F else found[0]  # noqa: PLR2004 - printable ASCII


def _spelled(secret: str) -> str:
    """Return a pattern for the spellings of a secret in JSON (encoded repeatedly), Python, URLs and HTML.

    Runs of backslashes match from their start only and almost without backtracking, which keeps the time
    linear.
    """
    parts = list(_PART.finditer(secret))
    start = "" if parts[0]["plain"] else r"(?<!\\)"
    return start + "".join(map(_spelled_part, parts))


def _spelled_part(part: re.Match[str]) -> str:
    text = part[0]
    if part.lastgroup == "plain":
        return re.escape(text)
    if part.lastgroup == "blank":
        return rf"(?:{_BLANKS}|(?:\+|%[0-9A-Fa-f]{{2}}){{{len(text)}}})"
    if part.lastgroup == "backslashes":
        return rf"(?:\\{{{len(text)},{max(len(text), _MOST_BACKSLASHES)}}}|(?i:%5C){{{len(text)}}})"
    code, in_url = ord(text), quote(text, safe="", errors="surrogatepass")
    escapes = (f"u{code:04x}", json.dumps(text)[1:-1].lstrip("\\"), ascii(text)[1:-1].lstrip("\\"))
    ways = {text, in_url, html.escape(text), f"&#{code};", f"&#x{code:x};", *escapes}
    longest_first = sorted(ways, key=len, reverse=True)
    escaped = "|".join(re.escape(way).replace(r"\\", r"\\++") for way in longest_first)
    return rf"\\*+(?i:{escaped})"
