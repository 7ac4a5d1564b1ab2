"""Reads `<solution><file path="..."><![CDATA[...]]></file></solution>`, well-formed or not.

First strict XML (`xml_strict`), then plain searching for the file elements (`xml_search`). lxml's recover
mode is never used: it silently alters code. Every step is linear.

What counts as content: all CDATA sections of an element, or its text where it has none. One newline
after the opening mark is dropped, the rest is kept; indentation before `</file>` is dropped. Line ends
are LF as in XML 1.0, section 2.11. Content without CDATA is unescaped only if it holds no `<` and
every `&` begins one of XML's own entities; otherwise it is code as it stands.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.answers.xml_grammar import FILE_HEAD, Root
from astra_async.answers.xml_search import search_files
from astra_async.answers.xml_strict import read_well_formed

if TYPE_CHECKING:
    from astra_async.answers.reading import Reading

_OPEN_TAG = re.compile(r"<([A-Za-z_][\w.-]{0,60})(?:\s[^<>]{0,500})?>\s*\Z")
_KNOWN_ROOT = re.compile(
    r"<(solution|answer|response|files|output|result|project)(?:\s[^<>]{0,500})?>", re.IGNORECASE
)
# An element at the beginning of a line is the answer; one in a sentence only talks about it.
_LINE_START = re.compile(r"^[ \t]{0,40}<(solution|file)(?:\s[^<>]{0,500})?>", re.MULTILINE)


def xml_start(text: str) -> int:
    """Where the first element that can be a file begins, or -1."""
    first = FILE_HEAD.search(text)
    return first.start() if first else -1


def read_xml(text: str) -> Reading | None:
    """The files of an XML answer, or None when no file element with a path is found."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    start = _start(text)
    first = FILE_HEAD.search(text, start)
    if first is None:
        return None
    root = _root(text, start, first.start())
    if root is not None and root.end >= 0 and FILE_HEAD.search(text, root.end) is None:
        reading = read_well_formed(text, root)
        if reading is not None:
            return reading
    return search_files(text, root, first.start())


def _start(text: str) -> int:
    """Where a root at the beginning of a line stands, if no file does so before it; else 0."""
    line = _LINE_START.search(text)
    return line.start() if line and line.group(1) == "solution" else 0


def _root(text: str, start: int, first_file: int) -> Root | None:
    """The element that encloses the files: the tag right before the first one, else a known name."""
    last_tag = text.rfind("<", start, first_file)
    tag = _OPEN_TAG.match(text, last_tag, first_file) if last_tag >= 0 else None
    tag = tag or _KNOWN_ROOT.search(text, start, first_file)
    if tag is None:
        return None
    closing = text.rfind(f"</{tag.group(1)}")
    bracket = text.find(">", closing)
    end = bracket + 1 if first_file < closing < bracket else -1
    return Root(tag.group(1), tag.start(), end)
