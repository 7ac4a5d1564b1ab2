"""Finds the file elements of an answer that is not well-formed XML, by plain searching in linear time.

The names and marks, as models write them, and what stands around the files serve the strict reader, too.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left
from dataclasses import dataclass

from astra_async.answers.reading import Reading, surroundings

# fmt: off
PATH_NAMES = (
    "path", "filepath", "file_path", "file-path", "filename", "file_name", "name", "src", "location",
)
CONTENT_NAMES = ("content", "contents", "file_content", "code", "source", "body", "text", "data")
# fmt: on
PATHS = "|".join(PATH_NAMES)
CONTENTS = "|".join(CONTENT_NAMES)
CDATA = "<![CDATA["

# Repetitions are bounded and stop at the next angle bracket, so that no input makes them quadratic.
FILE_HEAD = re.compile(rf"<(?:file\b(?P<attributes>[^<>]{{0,2000}})|(?:{PATHS}))>", re.IGNORECASE)
DELETION = re.compile(r"=\s{0,20}[\"']?(?:deleted?|removed?)\b", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")
TAG = re.compile(r"<[?!/]?[A-Za-z][^<>]{0,300}>")
_INDENTATION = re.compile(r"(?<=\n)[ \t]{1,200}\Z")
_QUOTED = r"\"([^\"]*)\"|'([^']*)'|“([^”]*)”|([^\s\"'/>][^\s\"'>]*)"
_ATTRIBUTE = re.compile(rf"(?:^|(?<=[\s\"']))({PATHS})\s{{0,20}}=\s{{0,20}}(?:{_QUOTED})", re.IGNORECASE)
_PATH_CHILD = re.compile(
    rf"\s{{0,200}}<({PATHS})>"
    r"(?:\s{0,200}<!\[CDATA\[([^<>]{0,1400}?)\]\]>\s{0,200}|([^<>]{0,1400}))</\1>",
    re.IGNORECASE,
)
_CONTENT_CHILD = re.compile(rf"\s{{0,200}}<({CONTENTS})(?:\s[^<>]{{0,200}})?>", re.IGNORECASE)
_CLOSERS = re.compile(
    rf"\s{{0,200}}(?:</(?:{CONTENTS})\s{{0,20}}>\s{{0,200}})?(?:</file\s{{0,20}}>)?", re.IGNORECASE
)
_CDATA_END = re.compile(
    rf"\]\]>(?=\s{{0,200}}(?:</(?:{CONTENTS}|file|files|solution)\s{{0,20}}>|<file[\s>]|\Z))", re.IGNORECASE
)
_FILE_END = re.compile(r"</file\s{0,20}>", re.IGNORECASE)
_CONTENT_END = re.compile(
    rf"</({CONTENTS})\s{{0,20}}>"
    rf"(?=\s{{0,200}}(?:</?file[\s>]|<(?:{PATHS})>|</(?:files|solution)\b|\Z))",
    re.IGNORECASE,
)
_NEXT_HEAD = re.compile(
    r"(?:</file\s{0,20}>\s{0,200}|\n[ \t]{0,40})" rf"(?=<file\s[^<>]{{0,200}}?(?:{PATHS})\s?=)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Root:
    """Where the root element lies; `end` is -1 when it is not closed."""

    name: str
    start: int
    end: int


def search_files(text: str, root: Root | None, first_file: int) -> Reading | None:
    """The files from the first file element on, or None when none has a path."""
    found = Reading()
    found.note(*around(text, root, first_file), "not_well_formed")
    marks = _Marks.of(text, root)
    position = first_file
    while (head := FILE_HEAD.search(text, position)) is not None:
        position = _read_file(text, head, marks, found)
    if not found.files:
        return None
    found.closed = root is not None and root.end >= position
    if root is not None and not found.closed:
        found.note("unclosed_root")
    if root is not None and text.find(f"<{root.name}>", root.start + 1, root.end) > 0:
        found.note("several_blocks")
    return found


def around(text: str, root: Root | None, first_file: int) -> tuple[str, ...]:
    """The repairs that name what stands around the files: fence, prose, an unusual root or none."""
    before = text[: root.start if root else first_file]
    after = text[root.end :] if root is not None and root.end >= 0 else ""
    name = "no_root" if root is None else "other_root"
    named = () if root is not None and root.name == "solution" else (name,)
    return (*surroundings(TAG.sub("", before), TAG.sub("", after)), *named)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Marks:
    """Positions of everything that can end a file, found once: looking one up is then logarithmic."""

    cdata_ends: list[int]
    file_ends: list[int]
    content_ends: dict[str, list[int]]
    next_heads: list[int]
    end: int

    @classmethod
    def of(cls, text: str, root: Root | None) -> _Marks:
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


def _read_file(text: str, head: re.Match[str], marks: _Marks, found: Reading) -> int:
    """Adds the file that begins here, if it has a path; returns where to go on."""
    attributes = head.group("attributes") or ""
    path, position = _path_in(attributes), head.end()
    if path is None:
        child = _PATH_CHILD.match(text, head.start() if head.group("attributes") is None else position)
        if child is None:
            return head.end()
        path, position = child.group(2) or child.group(3) or "", child.end()
        found.note("child_path")
    path = without_entities(path).strip()
    if attributes.rstrip().endswith("/"):
        found.note("deletion_ignored") if DELETION.search(attributes) else found.add(path, "")
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


def _body(text: str, start: int, tag: str, marks: _Marks, found: Reading) -> tuple[str, int]:
    """The content that begins here, and the position after the file's closing tags."""
    opening = len(text[start : start + 200]) - len(text[start : start + 200].lstrip())
    in_cdata = text.startswith(CDATA, start + opening)
    if in_cdata:
        start += opening + len(CDATA)
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


def _cleaned(raw: str, *, in_cdata: bool, found: Reading) -> str:
    if in_cdata:
        raw = raw.replace(f"]]>{CDATA}", "")
        if "]]>" in raw:
            found.note("cdata_end")
        return raw.removeprefix("\n")
    if raw:
        found.note("no_cdata")
    if _is_escaped(raw):
        raw = without_entities(raw)
    return trimmed(raw)


def trimmed(text: str) -> str:
    """Character data without the newline after the opening tag and the closing tag's indentation."""
    return _INDENTATION.sub("", text.removeprefix("\n"))


def _is_escaped(text: str) -> bool:
    """Whether character data was written with entities: no `<`, and every `&` begins one of XML's own."""
    return "<" not in text and "&" in text and len(_ENTITY.findall(text)) == text.count("&")


def without_entities(text: str) -> str:
    """The text with XML's five entities and character references resolved, all others kept."""
    return _ENTITY.sub(lambda entity: html.unescape(entity.group()), text) if "&" in text else text
