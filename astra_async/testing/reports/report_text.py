"""Report bytes to text, and text to what a record may hold."""

from __future__ import annotations

import codecs
import re

MAX_NAME = 1_000  # characters of a test's or class's name that are kept and compared
MAX_MESSAGE = 500


class UnreadableReport(ValueError):  # noqa: N818 - names what was seen
    """A report that cannot be trusted as a whole; the message says why."""


# Codecs are looked up by a name out of the report: only these, since some others are quadratic.
_HARMLESS = re.compile(
    r"utf-?(?:8|16)(?:[-_]?[lb]e)?|(?:us-)?ascii|iso[-_]?8859[-_]\d\d?|latin-?1|(?:windows-|cp)125\d"
)
_DECLARED = re.compile(rb"""<\?xml[^>]{0,100}?encoding\s?=\s?["']([A-Za-z0-9._-]{1,40})["']""")
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()][0-9A-B]|\x1b[=>]")
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def decoded(data: bytes) -> tuple[str, list[str]]:
    """The text, by byte-order mark, declaration, UTF-8 or (with a problem line) Latin-1."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if data.startswith(mark):
            text = data.decode(encoding, "replace").removeprefix("\ufeff")
            return text, ["bytes that are not text were replaced"] if "\ufffd" in text else []
    for encoding in dict.fromkeys([_declaration(data), "utf-8"]):
        try:
            return data.decode(encoding), []
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode("latin-1"), ["not UTF-8: read as Latin-1"]


def _declaration(data: bytes) -> str:
    found = _DECLARED.search(data[:1_000])
    name = found[1].decode().lower() if found else "utf-8"
    # A text that could be searched for its declaration is not UTF-16, whatever the declaration says.
    return name if _HARMLESS.fullmatch(name) and "16" not in name else "utf-8"


def without_controls(text: str) -> str:
    """The text without terminal escapes and without characters that XML 1.0 forbids."""
    return _ILLEGAL.sub("", _ANSI.sub("", text))


def clean_name(text: str) -> str:
    """A name as it is compared: no escapes, white space collapsed, at most MAX_NAME characters."""
    if not text.isprintable():
        text = without_controls(text)
    return " ".join(text[: 4 * MAX_NAME].split())[:MAX_NAME]


def one_line(text: str, length: int) -> str:
    """The text on one printable line of at most `length` characters."""
    line = " ".join(without_controls(text[: 4 * length]).split())
    return line if len(line) <= length else line[: length - 3] + "..."
