"""Reads `<solution><file path="..."><![CDATA[...]]></file></solution>`, well-formed or not.

First strict XML, then plain searching for the file elements (`xml_search`). lxml's recover mode is never
used: it silently alters code. Every step is linear.

What counts as content: all CDATA sections of an element, or its text where it has none. One newline
after the opening mark is dropped, the rest is kept; indentation before `</file>` is dropped. Line ends
are LF as in XML 1.0, section 2.11. Content without CDATA is unescaped only if it holds no `<` and
every `&` begins one of XML's own entities; otherwise it is code as it stands.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.answers.reading import EXACT, Reading
from astra_async.answers.xml_search import (
    CDATA,
    CONTENT_NAMES,
    DELETION,
    FILE_HEAD,
    HEAD_IN_CDATA,
    PATH_NAMES,
    Root,
    around,
    holds_files,
    search_files,
    trimmed,
    without_entities,
)

if TYPE_CHECKING:
    from lxml.etree import _Element

_OPEN_TAG = re.compile(r"<([A-Za-z_][\w.-]{0,60})(?:\s[^<>]{0,500})?>\s*\Z")
_KNOWN_ROOT = re.compile(
    r"<(solution|answer|response|files|output|result|project)(?:\s[^<>]{0,500})?>", re.IGNORECASE
)
# An element at the beginning of a line is the answer; one in a sentence only talks about it.
_LINE_START = re.compile(r"^[ \t]{0,40}<(solution|file)(?:\s[^<>]{0,500})?>", re.MULTILINE)


def read_xml(text: str) -> Reading | None:
    """The files of an XML answer, or None when no file element with a path is found."""
    # From a root at the beginning of a line on, if no file stands so before it.
    line = _LINE_START.search(text)
    start = line.start() if line and line.group(1) == "solution" else 0
    first = FILE_HEAD.search(text, start)
    if first is None:
        return None
    root = _root(text, start, first.start())
    if root is not None and root.end >= 0 and not holds_files(text, root.end):
        reading = _read_well_formed(text, root)
        if reading is not None:
            return reading
    return search_files(text, root, first.start())


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


# --- well-formed, by lxml ----------------------------------------------------------------------------


def _read_well_formed(text: str, root: Root) -> Reading | None:
    """The files below the root by lxml, or None when it is not well-formed or holds more than text.

    No DTD, no entities, no network, size limits on.
    """
    from lxml import etree

    # The slice begins at the root's tag: no prolog, hence no DTD and no entity of the answer's own.
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        strip_cdata=False,
        recover=False,
    )
    try:
        tree = etree.fromstring(text[root.start : root.end].encode(), parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    found = Reading(certainty=EXACT, spans=[(root.start, root.end)])
    found.note(*around(text, root, root.start))
    return found if _collect(tree, found) and found.files else None


def _collect(element: _Element, found: Reading) -> bool:
    """Gathers the file elements below; False when one holds markup, which only the search can read."""
    for child in element.iterchildren(tag="*"):
        path = next((str(child.attrib[name]) for name in PATH_NAMES if name in child.attrib), None)
        inner = _children(child).keys()
        is_described = inner & set(PATH_NAMES) and inner & set(CONTENT_NAMES)
        if path is None and not is_described:
            if str(child.tag).lower() == "file" or not _collect(child, found):
                return False
        elif path is not None and _is_deletion(child):
            found.note("deletion_ignored")
        elif not _add_element(child, path, found):
            return False
    return True


def _add_element(element: _Element, path: str | None, found: Reading) -> bool:
    repairs = []
    children = _children(element)
    holder = next((children[name] for name in CONTENT_NAMES if name in children), None)
    if path is None:
        repairs.append("child_path")
        path = next((_text_of(children[name]) for name in PATH_NAMES if name in children), "")
    elif holder is not None:
        repairs.append("child_content")
    source = element if holder is None and not repairs else holder
    if source is None or len(source) or (children and source is element) or not path.strip():
        return False
    content, has_cdata = _content_of(source)
    if has_cdata and "]]>" not in content and HEAD_IN_CDATA.search(content):
        return False  # an unclosed section has swallowed the next file: well-formed, but not meant
    if not has_cdata and content:
        repairs.append("no_cdata")
    found.add(path.strip(), content, *repairs)
    if has_cdata:
        found.strict.add(path.strip())
    return True


def _children(element: _Element) -> dict[str, _Element]:
    return {str(child.tag).lower(): child for child in element.iterchildren(tag="*")}


def _is_deletion(element: _Element) -> bool:
    values = (str(value) for name, value in element.attrib.items() if name not in PATH_NAMES)
    return not _text_of(element).strip() and any(DELETION.match(f"={value}") for value in values)


def _text_of(element: _Element) -> str:
    return "".join(str(piece) for piece in element.itertext())


def _content_of(element: _Element) -> tuple[str, bool]:
    """An element's content, and whether it stood in CDATA (lxml's `text` cannot tell them apart)."""
    from lxml import etree

    source = etree.tostring(element, encoding="unicode", with_tail=False)
    if source.endswith("/>"):
        return "", False
    inner = source[source.index(">") + 1 : source.rindex("</")]
    if CDATA not in inner:
        return trimmed(without_entities(inner)), False
    return _sections(inner), True


def _sections(inner: str) -> str:
    """Text of mixed CDATA sections and character data; blanks before the first and after the last go."""
    pieces: list[str] = []
    position = 0
    while (opening := inner.find(CDATA, position)) >= 0:
        outside = inner[position:opening]
        pieces.append(without_entities(outside) if pieces or outside.strip() else "")
        closing = inner.index("]]>", opening)
        pieces.append(inner[opening + len(CDATA) : closing])
        position = closing + 3
    rest = inner[position:]
    pieces.append(without_entities(rest) if rest.strip() else "")
    return "".join(pieces).removeprefix("\n")
