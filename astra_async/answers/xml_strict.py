"""Reads a well-formed XML answer with lxml: no DTD, no entities, no network, size limits on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from astra_async.answers.reading import Reading, surroundings
from astra_async.answers.xml_grammar import (
    CDATA,
    CONTENT_NAMES,
    DELETION,
    PATH_NAMES,
    PATHS,
    TAG,
    FoundFiles,
    Root,
    trimmed,
    without_entities,
)

if TYPE_CHECKING:
    from lxml.etree import _Element

_SWALLOWED = re.compile(
    rf"\n[ \t]{{0,40}}<file\s[^<>]{{0,200}}?(?:{PATHS})\s?=[^<>]{{0,300}}>"
    r"\s{0,200}<!\[CDATA\[",
    re.IGNORECASE,
)


def read_well_formed(text: str, root: Root) -> Reading | None:
    """The files below the root, or None when it is not well-formed or holds more than text."""
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
    found = FoundFiles()
    if not _collect(tree, found):
        return None
    around = surroundings(TAG.sub("", text[: root.start]), TAG.sub("", text[root.end :]))
    return Reading(files=found.files, repairs=(*around, *root.repairs, *found.repairs), closed=True)


def _collect(element: _Element, found: FoundFiles) -> bool:
    """Gathers the file elements below; False when one holds markup, which only the search can read."""
    for child in element.iterchildren(tag="*"):
        path = _attribute_of(child)
        if path is None and not _has_path_child(child):
            if str(child.tag).lower() == "file" or not _collect(child, found):
                return False
        elif path is not None and _is_deletion(child):
            found.note("deletion_ignored")
        elif not _add_element(child, path, found):
            return False
    return True


def _add_element(element: _Element, path: str | None, found: FoundFiles) -> bool:
    repairs = []
    children = {str(child.tag).lower(): child for child in element.iterchildren(tag="*")}
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
    if has_cdata and "]]>" not in content and _SWALLOWED.search(content):
        return False  # an unclosed section has swallowed the next file: well-formed, but not meant
    if not has_cdata and content:
        repairs.append("no_cdata")
    found.add(path.strip(), content, *repairs)
    return True


def _attribute_of(element: _Element) -> str | None:
    return next((str(element.attrib[name]) for name in PATH_NAMES if name in element.attrib), None)


def _has_path_child(element: _Element) -> bool:
    tags = {str(child.tag).lower() for child in element.iterchildren(tag="*")}
    return any(name in tags for name in PATH_NAMES) and any(name in tags for name in CONTENT_NAMES)


def _is_deletion(element: _Element) -> bool:
    values = (str(value) for value in element.attrib.values())
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
