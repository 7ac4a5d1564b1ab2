"""Reads `<solution><file path="..."><![CDATA[...]]></file></solution>`, well-formed or not.

First strict XML (lxml: no DTD, no entities, no network, size limits on), then plain searching for
the file elements. lxml's recover mode is never used: it silently alters code. Every step is linear.

What counts as content: all CDATA sections of an element, or its text where it has none. One newline
after the opening mark is dropped, the rest is kept; indentation before `</file>` is dropped. Line ends
are LF as in XML 1.0, section 2.11. Content without CDATA is unescaped only if it holds no `<` and
every `&` begins one of XML's own entities; otherwise it is code as it stands.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from astra_async.solution.reading import Reading, surroundings

if TYPE_CHECKING:
    from lxml.etree import _Element

# fmt: off
_PATH_NAMES = (
    "path", "filepath", "file_path", "file-path", "filename", "file_name", "name", "src", "location",
)
_CONTENT_NAMES = ("content", "contents", "file_content", "code", "source", "body", "text", "data")
# fmt: on
_PATHS = "|".join(_PATH_NAMES)
_CONTENTS = "|".join(_CONTENT_NAMES)
_CDATA = "<![CDATA["

# Repetitions are bounded and stop at the next angle bracket, so that no input makes them quadratic.
_HEAD = re.compile(rf"<(?:file\b(?P<attributes>[^<>]{{0,2000}})|(?:{_PATHS}))>", re.IGNORECASE)
_QUOTED = r"\"([^\"]*)\"|'([^']*)'|“([^”]*)”|([^\s\"'/>][^\s\"'>]*)"
_ATTRIBUTE = re.compile(rf"(?:^|(?<=[\s\"']))({_PATHS})\s{{0,20}}=\s{{0,20}}(?:{_QUOTED})", re.IGNORECASE)
_DELETION = re.compile(r"=\s{0,20}[\"']?(?:deleted?|removed?)\b", re.IGNORECASE)
_PATH_CHILD = re.compile(
    rf"\s{{0,200}}<({_PATHS})>"
    r"(?:\s{0,200}<!\[CDATA\[([^<>]{0,1400}?)\]\]>\s{0,200}|([^<>]{0,1400}))</\1>",
    re.IGNORECASE,
)
_CONTENT_CHILD = re.compile(rf"\s{{0,200}}<({_CONTENTS})(?:\s[^<>]{{0,200}})?>", re.IGNORECASE)
_OPEN_TAG = re.compile(r"<([A-Za-z_][\w.-]{0,60})(?:\s[^<>]{0,500})?>\s*\Z")
_KNOWN_ROOT = re.compile(
    r"<(solution|answer|response|files|output|result|project)(?:\s[^<>]{0,500})?>", re.IGNORECASE
)
_CLOSERS = re.compile(
    rf"\s{{0,200}}(?:</(?:{_CONTENTS})\s{{0,20}}>\s{{0,200}})?(?:</file\s{{0,20}}>)?", re.IGNORECASE
)
_CDATA_END = re.compile(
    rf"\]\]>(?=\s{{0,200}}(?:</(?:{_CONTENTS}|file|files|solution)\s{{0,20}}>|<file[\s>]|\Z))", re.IGNORECASE
)
_FILE_END = re.compile(r"</file\s{0,20}>", re.IGNORECASE)
_CONTENT_END = re.compile(
    rf"</({_CONTENTS})\s{{0,20}}>"
    rf"(?=\s{{0,200}}(?:</?file[\s>]|<(?:{_PATHS})>|</(?:files|solution)\b|\Z))",
    re.IGNORECASE,
)
_NEXT_HEAD = re.compile(
    r"(?:</file\s{0,20}>\s{0,200}|\n[ \t]{0,40})" rf"(?=<file\s[^<>]{{0,200}}?(?:{_PATHS})\s?=)",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")
_TAG = re.compile(r"<[?!/]?[A-Za-z][^<>]{0,300}>")
_SWALLOWED = re.compile(
    rf"\n[ \t]{{0,40}}<file\s[^<>]{{0,200}}?(?:{_PATHS})\s?=[^<>]{{0,300}}>"
    r"\s{0,200}<!\[CDATA\[",
    re.IGNORECASE,
)
_INDENTATION = re.compile(r"(?<=\n)[ \t]{1,200}\Z")


def xml_start(text: str) -> int:
    """Where the first element that can be a file begins, or -1."""
    first = _HEAD.search(text)
    return first.start() if first else -1


def read_xml(text: str) -> Reading | None:
    """The files of an XML answer, or None when no file element with a path is found."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    first = _HEAD.search(text)
    if first is None:
        return None
    root = _root(text, first.start())
    if root is not None and root.end >= 0 and _HEAD.search(text, root.end) is None:
        reading = _read_strictly(text, root)
        if reading is not None:
            return reading
    return _read_loosely(text, root, first.start())


@dataclass(frozen=True, slots=True)
class _Root:
    """Where the root element lies; `end` is -1 when it is not closed."""

    name: str
    start: int
    end: int

    @property
    def repairs(self) -> tuple[str, ...]:
        return () if self.name == "solution" else ("other_root",)


def _root(text: str, first_file: int) -> _Root | None:
    """The element that encloses the files: the tag right before the first one, else a known name."""
    last_tag = text.rfind("<", 0, first_file)
    tag = _OPEN_TAG.match(text, last_tag, first_file) if last_tag >= 0 else None
    tag = tag or _KNOWN_ROOT.search(text, 0, first_file)
    if tag is None:
        return None
    closing = text.rfind(f"</{tag.group(1)}")
    bracket = text.find(">", closing)
    end = bracket + 1 if first_file < closing < bracket else -1
    return _Root(tag.group(1), tag.start(), end)


# --- well-formed answers ----------------------------------------------------------------------------


def _read_strictly(text: str, root: _Root) -> Reading | None:
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
    found = _Files()
    if not _collect(tree, found):
        return None
    around = surroundings(_TAG.sub("", text[: root.start]), _TAG.sub("", text[root.end :]))
    return Reading(files=found.files, repairs=(*around, *root.repairs, *found.repairs), closed=True)


@dataclass(slots=True)
class _Files:
    """Files found so far; `repairs` keeps the order in which they were first needed."""

    files: dict[str, str] = field(default_factory=dict)
    repairs: dict[str, None] = field(default_factory=dict)

    def add(self, path: str, content: str, *repairs: str) -> None:
        if path in self.files:
            self.note("duplicate_path")
            del self.files[path]
        self.files[path] = content
        self.note(*repairs)

    def note(self, *repairs: str) -> None:
        self.repairs.update(dict.fromkeys(repairs))


def _collect(element: _Element, found: _Files) -> bool:
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


def _add_element(element: _Element, path: str | None, found: _Files) -> bool:
    repairs = []
    children = {str(child.tag).lower(): child for child in element.iterchildren(tag="*")}
    holder = next((children[name] for name in _CONTENT_NAMES if name in children), None)
    if path is None:
        repairs.append("child_path")
        path = next((_text_of(children[name]) for name in _PATH_NAMES if name in children), "")
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
    return next((str(element.attrib[name]) for name in _PATH_NAMES if name in element.attrib), None)


def _has_path_child(element: _Element) -> bool:
    tags = {str(child.tag).lower() for child in element.iterchildren(tag="*")}
    return any(name in tags for name in _PATH_NAMES) and any(name in tags for name in _CONTENT_NAMES)


def _is_deletion(element: _Element) -> bool:
    values = (str(value) for value in element.attrib.values())
    return not _text_of(element).strip() and any(_DELETION.match(f"={value}") for value in values)


def _text_of(element: _Element) -> str:
    return "".join(str(piece) for piece in element.itertext())


def _content_of(element: _Element) -> tuple[str, bool]:
    """An element's content, and whether it stood in CDATA (lxml's `text` cannot tell them apart)."""
    from lxml import etree

    source = etree.tostring(element, encoding="unicode", with_tail=False)
    if source.endswith("/>"):
        return "", False
    inner = source[source.index(">") + 1 : source.rindex("</")]
    if _CDATA not in inner:
        return _trimmed(_without_entities(inner)), False
    return _sections(inner), True


def _sections(inner: str) -> str:
    """Text of mixed CDATA sections and character data; blanks before the first and after the last go."""
    pieces: list[str] = []
    position = 0
    while (opening := inner.find(_CDATA, position)) >= 0:
        outside = inner[position:opening]
        pieces.append(_without_entities(outside) if pieces or outside.strip() else "")
        closing = inner.index("]]>", opening)
        pieces.append(inner[opening + len(_CDATA) : closing])
        position = closing + 3
    rest = inner[position:]
    pieces.append(_without_entities(rest) if rest.strip() else "")
    return "".join(pieces).removeprefix("\n")


# --- answers that are not well-formed ---------------------------------------------------------------


def _read_loosely(text: str, root: _Root | None, first_file: int) -> Reading | None:
    found = _Files()
    found.note(*surroundings(*_around(text, root, first_file)), *(root.repairs if root else ("no_root",)))
    found.note("not_well_formed")
    marks = _Marks.of(text, root)
    position = first_file
    while (head := _HEAD.search(text, position)) is not None:
        position = _read_file(text, head, marks, found)
    if not found.files:
        return None
    closed = root is not None and root.end >= position
    if root is not None and not closed:
        found.note("unclosed_root")
    if root is not None and text.find(f"<{root.name}>", root.start + 1, root.end) > 0:
        found.note("several_blocks")
    return Reading(files=found.files, repairs=tuple(found.repairs), closed=closed)


def _around(text: str, root: _Root | None, first_file: int) -> tuple[str, str]:
    before = _TAG.sub("", text[: root.start if root else first_file])
    return before, _TAG.sub("", text[root.end :]) if root is not None and root.end >= 0 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Marks:
    """Positions of everything that can end a file, found once: looking one up is then logarithmic."""

    cdata_ends: list[int]
    file_ends: list[int]
    content_ends: dict[str, list[int]]
    next_heads: list[int]
    end: int

    @classmethod
    def of(cls, text: str, root: _Root | None) -> _Marks:
        content_ends: dict[str, list[int]] = {}
        for match in _CONTENT_END.finditer(text):
            content_ends.setdefault(match.group(1).lower(), []).append(match.start())
        end = len(text)
        if root is not None and root.end >= 0:
            end = text.rindex("</", 0, root.end)
        return cls(
            cdata_ends=[match.start() for match in _CDATA_END.finditer(text)],
            file_ends=[match.start() for match in _FILE_END.finditer(text)],
            content_ends=content_ends,
            next_heads=[match.start() for match in _NEXT_HEAD.finditer(text)],
            end=end,
        )


def _read_file(text: str, head: re.Match[str], marks: _Marks, found: _Files) -> int:
    """Adds the file that begins here, if it has a path; returns where to go on."""
    attributes = head.group("attributes") or ""
    path, position = _path_in(attributes), head.end()
    if path is None:
        child = _PATH_CHILD.match(text, head.start() if head.group("attributes") is None else position)
        if child is None:
            return head.end()
        path, position = child.group(2) or child.group(3) or "", child.end()
        found.note("child_path")
    path = _without_entities(path).strip()
    if attributes.rstrip().endswith("/"):
        found.note("deletion_ignored") if _DELETION.search(attributes) else found.add(path, "")
        return position
    wrapper = _CONTENT_CHILD.match(text, position)
    tag = wrapper.group(1).lower() if wrapper else ""
    if wrapper is None and head.group("attributes") is None:
        return head.end()
    content, end = _body(text, wrapper.end() if wrapper else position, tag, marks, found)
    if path:
        found.add(path, content)
    return max(end, head.end())


def _path_in(attributes: str) -> str | None:
    match = _ATTRIBUTE.search(attributes)
    if match is None:
        return None
    return next(value for value in match.groups()[1:] if value is not None)


def _body(text: str, start: int, tag: str, marks: _Marks, found: _Files) -> tuple[str, int]:
    """The content that begins here, and the position after the file's closing tags."""
    opening = len(text[start : start + 200]) - len(text[start : start + 200].lstrip())
    in_cdata = text.startswith(_CDATA, start + opening)
    if in_cdata:
        start += opening + len(_CDATA)
    ends = marks.cdata_ends if in_cdata else marks.content_ends.get(tag, []) if tag else marks.file_ends
    end, boundary = _from(ends, start), _from(marks.next_heads, start)
    if end < 0 or 0 <= boundary < end:
        stop = boundary if boundary >= 0 else max(start, marks.end)
        found.note("unclosed_cdata" if in_cdata else "unclosed_file")
        return _cleaned(_without_closers(text[start:stop]), in_cdata=in_cdata, found=found), stop
    after = end + 3 if in_cdata else end
    closers = _CLOSERS.match(text, after)
    if closers is None or "</file" not in closers.group().lower():
        found.note("unclosed_file")
    return _cleaned(text[start:end], in_cdata=in_cdata, found=found), closers.end() if closers else after


def _without_closers(raw: str) -> str:
    """Unclosed content without the closing marks and the fence that stand at its very end."""
    bare = raw.rstrip()
    for closer in ("```", "</file>", "</content>", "]]>"):
        bare = bare.removesuffix(closer).rstrip() if bare.endswith(closer) else bare
    return bare + raw[len(raw.rstrip()) :] if len(bare) == len(raw.rstrip()) else bare + "\n"


def _from(positions: list[int], start: int) -> int:
    """The first of the sorted positions that is not before `start`, or -1."""
    index = bisect_left(positions, start)
    return positions[index] if index < len(positions) else -1


def _cleaned(raw: str, *, in_cdata: bool, found: _Files) -> str:
    if in_cdata:
        raw = raw.replace(f"]]>{_CDATA}", "")
        if "]]>" in raw:
            found.note("cdata_end")
        return raw.removeprefix("\n")
    if raw:
        found.note("no_cdata")
    if "<" not in raw and "&" in raw and len(_ENTITY.findall(raw)) == raw.count("&"):
        raw = _without_entities(raw)
    return _trimmed(raw)


def _trimmed(text: str) -> str:
    """Character data without the newline after the opening tag and the closing tag's indentation."""
    return _INDENTATION.sub("", text.removeprefix("\n"))


def _without_entities(text: str) -> str:
    return _ENTITY.sub(lambda entity: html.unescape(entity.group()), text) if "&" in text else text
