"""Decoding of test reports, and cleaning of their names and messages for records."""

from __future__ import annotations

import codecs
import re
from textwrap import dedent

MAX_CASES = 100_000
MAX_KEPT_LINES = 200  # maximum lines of a test's output
MAX_NAME = 1_000  # maximum characters of a test's or class's name
MAX_MESSAGE = 500  # maximum characters of a test's message
MAX_READ = 16_000  # characters of a report's text that are searched for the message


class UnreadableReport(ValueError):  # noqa: N818 - names what was seen
    """The report as a whole is unusable; the message has the reason."""


class OtherDocument(UnreadableReport):
    """The text is not a test report."""


# Encodings allowed in a report's declaration; some other Python codecs take quadratic time.
_HARMLESS = re.compile(
    r"utf-?(?:8|16)(?:[-_]?[lb]e)?|(?:us-)?ascii|iso[-_]?8859[-_]\d\d?|latin-?1|(?:windows-|cp)125\d"
)
_DECLARED = re.compile(rb"""<\?xml[^>]{0,100}?encoding\s?=\s?["']([A-Za-z0-9._-]{1,40})["']""")
# Control sequences (ECMA-48), operating system commands (a terminal title), character sets, two-byte codes.
# A truncated code does not match the markup after it, so that the report stays readable.
_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-;=>?]*[ !$]?[@-~]"
    r"|(?:\x1b[]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f\n]{0,4000}(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[()*+][0-9A-Z]|\x1b[=>78cDEHMNOZ]"
)
# Color codes whose escape character a reporter has removed or replaced, because XML forbids it. They are
# removed only if _COLOUR_END also matches, so that text such as `rate(x[5m])` is kept.
_COLOUR_LEFT = re.compile(r"\ufffd?\[[0-9]{1,3}(?:;[0-9]{1,3}){0,8}m")
_COLOUR_END = re.compile(r"\[(?:0|22|39)m")
# Stack trace lines of the test runner or of the language's library.
_INNER_FRAME = re.compile(
    r"\s*at (?:(?:java|jdk|sun|javax|org\.junit|junit|org\.opentest4j|org\.assertj|org\.hamcrest|org\.gradle"
    r"|org\.apache\.maven)\.|.{0,300}(?:node_modules/|node:|internal/))"
)
_MESSAGE_ENDS = re.compile(r"\n| {2}")  # XML replaces line breaks in attributes by spaces
_ENOUGH = 60  # leading characters of a message that are searched for in the details
_ILLEGAL = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def decoded(data: bytes) -> tuple[str, list[str]]:
    """Decode a report by its byte-order mark, its declaration, as UTF-8, or as Latin-1.

    Return the text and a list of problems, which is empty if the text was decoded without loss.
    """
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
    # The declaration was found in ASCII bytes, so the text is not UTF-16 even if it is declared as UTF-16.
    return name if _HARMLESS.fullmatch(name) and "16" not in name else "utf-8"


def without_controls(text: str) -> str:
    """Return the text without terminal codes and without characters that XML 1.0 forbids."""
    return _ILLEGAL.sub("", _ANSI.sub("", text))


def message_of(headline: str, details: str = "") -> str:
    """Return the message of a failed test: at most MAX_MESSAGE characters, without terminal codes.

    Reporters give the error's message, its details (source code, a stack trace), or both. If the details
    repeat the message, the result is the details from that line on.
    """
    head, more = _readable(headline), _readable(details)
    first = _MESSAGE_ENDS.split(head, maxsplit=1)[0][:_ENOUGH].rstrip()
    at = more.find(first)
    is_repeated = bool(first) and at >= 0
    text = more[more.rfind("\n", 0, at) + 1 :] if is_repeated else f"{head}\n{more}"
    lines = (line.rstrip() for line in text.strip().splitlines() if not _INNER_FRAME.match(line))
    text = "\n".join(line for line in lines if line)
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "\u2026"


def clean_name(text: str) -> str:
    """Normalize a test's name: no terminal codes, single spaces, at most MAX_NAME characters."""
    if not text.isprintable():
        text = without_controls(text)
    return " ".join(text[: 4 * MAX_NAME].split())[:MAX_NAME]


def _readable(text: str) -> str:
    plain = without_controls(text[:MAX_READ])
    if _COLOUR_END.search(plain):
        plain = _COLOUR_LEFT.sub("", plain)
    return dedent(plain.strip("\r\n")).strip()
