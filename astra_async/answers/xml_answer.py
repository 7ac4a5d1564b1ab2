"""Parse `<solution><file path="..."><![CDATA[...]]></file></solution>`, well-formed or not.

A strict XML parser runs first, then a text search for the file elements (`xml_search`). lxml's recover mode
is never used because it silently alters code. Every step is linear.

An element's content is the text of all its CDATA sections, or its character data if it has no section. One
newline after the opening tag and the indentation before `</file>` are dropped. Line ends become LF (XML 1.0,
section 2.11). Content without CDATA is unescaped only if it holds no `<` and every `&` begins a predefined
entity of XML; otherwise it is used unchanged.
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
    holds_files,
    root_repairs,
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
# An element at the start of a line belongs to the answer; within a line it may be part of a sentence.
_LINE_START = re.compile(r"^[ \t]{0,40}<(solution|file)(?:\s[^<>]{0,500})?>", re.MULTILINE)


def read_xml(text: str) -> Reading | None:
    """Return the files of an XML answer, or None if no file element has a path."""
    # Start at a root that begins a line, unless a file element begins an earlier line.
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
    """Return the element around the files: the tag just before the first file, or a tag with a known name."""
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
    """Parse the files below the root with lxml, or return None if lxml fails or content holds markup.

    DTDs, entities and network access are disabled; lxml's size limits are enabled.
    """
    from lxml import etree

    # The slice begins at the root's tag. It has no prolog, so it cannot define a DTD or entities.
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
    found.note(*root_repairs(text, root, root.start))
    return found if _collect(tree, found) and found.files else None


def _collect(element: _Element, found: Reading) -> bool:
    """Collect the file elements below `element`; return False if one needs the text search."""
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
        return False  # an unclosed section contains the next file: well-formed, but not intended
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
    """Return an element's content, and whether it was in CDATA, which lxml's `text` does not show."""
    from lxml import etree

    source = etree.tostring(element, encoding="unicode", with_tail=False)
    if source.endswith("/>"):
        return "", False
    inner = source[source.index(">") + 1 : source.rindex("</")]
    if CDATA not in inner:
        return trimmed(without_entities(inner)), False
    return _sections(inner), True


def _sections(inner: str) -> str:
    """Join CDATA sections and character data; drop blanks before the first and after the last section."""
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
