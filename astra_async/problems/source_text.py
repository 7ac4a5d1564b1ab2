"""The text of a project's file, whatever it was saved in."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Line ends, tabs and form feeds stand in sources, and the end mark of DOS; other controls in binary files.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0e-\x19\x1b-\x1f\x7f]")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_MOST_NOT_ASCII = 0.3  # of the characters; western languages have some 5 %


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file's text, and what it was saved in where that is not UTF-8."""

    text: str
    encoding: str = ""


def source_text(content: bytes) -> SourceText | None:
    """The text of a file; None where it is binary.

    It is UTF-8, UTF-16 with a byte-order mark, or else windows-1252: that of western Windows, which holds
    Latin-1's letters. Other encodings read like the last one where little of the text is not ASCII, so that
    whoever shows it has to say what it was taken for.
    """
    if b"\0" not in content:
        try:
            return SourceText(content.decode())
        except UnicodeDecodeError:
            pass
    is_marked = content.startswith(_UTF_16)
    encoding = "UTF-16" if is_marked else "windows-1252"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        return None
    is_guessed_wrong = not is_marked and len(_NOT_ASCII.findall(text)) > _MOST_NOT_ASCII * len(text)
    return None if is_guessed_wrong or _CONTROLS.search(text) else SourceText(text, encoding)


def as_utf8(content: bytes) -> bytes:
    """A file's bytes with its text in UTF-8; those of a binary one as they are."""
    found = source_text(content)
    return found.text.encode() if found and found.encoding else content
