"""Find the file elements of an answer that is not well-formed XML, by text search in linear time.

The strict parser uses the same names of elements and attributes.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.answers.reading import EXACT, GUESSED, IN_SENTENCE, Reading, surrounding_repairs

if TYPE_CHECKING:
    from collections.abc import Mapping

# fmt: off
PATH_NAMES = (
    "path", "filepath", "file_path", "file-path", "filename", "file_name", "name", "src", "location",
)
CONTENT_NAMES = ("content", "contents", "file_content", "code", "source", "body", "text", "data")
# fmt: on
PATHS = "|".join(PATH_NAMES)
CONTENTS = "|".join(CONTENT_NAMES)
CDATA = "<![CDATA["

# Repetitions are bounded and stop at the next angle bracket, which keeps the search linear on any input.
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
# The start of a CDATA section, optionally after a comment.
_CDATA_START = re.compile(r"\s{0,200}(?:<!--[^<>]{0,300}-->\s{0,200})?<!\s?\[CDATA\[", re.IGNORECASE)
_FILE_END = re.compile(r"</(file)\s{0,20}>", re.IGNORECASE)
_CONTENT_END = re.compile(
    rf"</({CONTENTS})\s{{0,20}}>"
    rf"(?=\s{{0,200}}(?:</?file[\s>]|<(?:{PATHS})>|</(?:files|solution)\b|\Z))",
    re.IGNORECASE,
)
_NEXT = r"(?:</file\s{0,20}>\s{0,200}|\n[ \t]{0,40})"
_HEAD = rf"<(file)\s[^<>]{{0,200}}?(?:{PATHS})\s?="
_NEXT_HEAD = re.compile(rf"{_NEXT}(?={_HEAD})", re.IGNORECASE)
# Within CDATA, an element counts only if CDATA follows: `<File name={f.name} />` is JSX, part of the content.
HEAD_IN_CDATA = re.compile(rf"{_NEXT}(?={_HEAD}[^<>]{{0,300}}>\s{{0,200}}<!\[CDATA\[)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Root:
    """Position of the root element; `end` is -1 if the element is not closed."""

    name: str
    start: int
    end: int


def holds_files(text: str, start: int) -> bool:
    """Return True if file elements that are not part of a sentence follow `start`."""
    return first_element(text, start) < len(text)


def first_element(text: str, start: int) -> int:
    """Return the start of the first file element outside of sentences, or `len(text)`."""
    heads = FILE_HEAD.finditer(text, start)
    return next((head.start() for head in heads if not _is_in_sentence(text, head)), len(text))


def search_files(text: str, root: Root | None, first_file: int) -> Reading | None:
    """Return the files from the first file element on, or None if no element has a path."""
    found = Reading()
    found.note(*root_repairs(text, root, first_file), "not_well_formed")
    marks = _Marks.of(text, root)
    with_sentences = not holds_files(text, first_file)
    position = first_file
    while (head := FILE_HEAD.search(text, position)) is not None:
        is_read = with_sentences or not _is_in_sentence(text, head)
        position = _read_file(text, head, marks, found) if is_read else head.end()
    if not found.files:
        return None
    found.closed = root is not None and root.end >= position
    if root is not None and not found.closed:
        found.note("unclosed_root")
    if root is not None and text.find(f"<{root.name}>", root.start + 1, root.end) > 0:
        found.note("several_blocks")
    return found


def root_repairs(text: str, root: Root | None, first_file: int) -> tuple[str, ...]:
    """Return the repairs for text around the files (fence, prose) and for an unusual or missing root."""
    before = text[: root.start if root else first_file]
    after = text[root.end :] if root is not None and root.end >= 0 else ""
    name = "no_root" if root is None else "other_root"
    named = () if root is not None and root.name == "solution" else (name,)
    return (*surrounding_repairs(TAG.sub("", before), TAG.sub("", after)), *named)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Marks:
    """Positions of every mark that can end a file, found once so that each lookup is logarithmic.

    The mappings are keyed by the spelling of the element's name: `<File>` is a component in the code, not
    `<file>`.
    """

    cdata_ends: list[int]
    heads_in_cdata: list[int]
    content_ends: Mapping[str, list[int]]
    file_ends: Mapping[str, list[int]]
    next_heads: Mapping[str, list[int]]
    end: int

    @classmethod
    def of(cls, text: str, root: Root | None) -> _Marks:
        end = len(text)
        if root is not None and root.end >= 0:
            end = text.rindex("</", 0, root.end)
        return cls(
            cdata_ends=[match.start() for match in _CDATA_END.finditer(text)],
            heads_in_cdata=_heads_in_cdata(text),
            content_ends=_by_spelling(_CONTENT_END, text),
            file_ends=_by_spelling(_FILE_END, text),
            next_heads=_by_spelling(_NEXT_HEAD, text),
            end=end,
        )


def _heads_in_cdata(text: str) -> list[int]:
    """Return the starts of file elements inside an unclosed CDATA section.

    An intended nested section has a split end (`]]]]><![CDATA[>`), as the prompt asks; the next file's
    section does not.
    """
    ends = [match.start() for match in re.finditer(r"]]>", text)]
    heads = ((match.start(), _first_at_or_after(ends, match.end())) for match in HEAD_IN_CDATA.finditer(text))
    return [head for head, end in heads if not text.startswith("]]]]><![CDATA[>", max(0, end - 2))]


def _by_spelling(pattern: re.Pattern[str], text: str) -> dict[str, list[int]]:
    positions: dict[str, list[int]] = {}
    for match in pattern.finditer(text):
        positions.setdefault(match.group(1), []).append(match.start())
    return positions


def _read_file(text: str, head: re.Match[str], marks: _Marks, found: Reading) -> int:
    """Add the file that begins here, if it has a path; return the position to continue from."""
    attributes = head.group("attributes") or ""
    named, position = _ATTRIBUTE.search(attributes), head.end()
    path = next((value for value in named.groups()[1:] if value is not None), "") if named else None
    if path is None:
        child = _PATH_CHILD.match(text, head.start() if head.group("attributes") is None else position)
        if child is None:
            return head.end()
        path, position = child.group(2) or child.group(3) or "", child.end()
        found.note("child_path")
    path = without_entities(path).strip()
    if attributes.rstrip().endswith("/"):
        is_deletion = DELETION.search(_ATTRIBUTE.sub("", attributes))
        found.note("deletion_ignored") if is_deletion else found.add(path, "")
        found.spans.append(head.span())
        return position
    wrapper = _CONTENT_CHILD.match(text, position)
    if wrapper is None and head.group("attributes") is None:
        return head.end()
    spelling = (text[head.start() + 1 : head.start() + 5], wrapper.group(1) if wrapper else "")
    body = _body(text, wrapper.end() if wrapper else position, spelling, marks)
    if path:
        found.add(path, body.content, *body.repairs)
    certainty = EXACT if body.is_certain else GUESSED
    if _is_in_sentence(text, head):
        certainty = IN_SENTENCE
    found.certainty = max(found.certainty, certainty)
    found.spans.append((head.start(), body.end if certainty == EXACT else head.end()))
    return max(body.end, head.end())


def _is_in_sentence(text: str, head: re.Match[str]) -> bool:
    """Return True if text precedes the element on its line and no CDATA follows: a sentence mentions it."""
    before = text[max(0, head.start() - 40) : head.start()].rstrip(" \t")[-1:]
    return before not in {"", "\n", ">"} and _CDATA_START.match(text, head.end()) is None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Body:
    """Content of a file, and the end of its closing tags."""

    content: str
    end: int
    is_certain: bool
    repairs: tuple[str, ...]


def _body(text: str, start: int, spelling: tuple[str, str], marks: _Marks) -> _Body:
    """Return the content that begins at `start`; `spelling` is the spelling of the file and content tags."""
    element, wrapper = spelling
    section = _CDATA_START.match(text, start)
    in_cdata = section is not None
    start = section.end() if section else start
    ends = marks.content_ends.get(wrapper, []) if wrapper else marks.file_ends.get(element, [])
    end = _first_at_or_after(marks.cdata_ends if in_cdata else ends, start)
    heads = marks.heads_in_cdata if in_cdata and end >= 0 else marks.next_heads.get(element, [])
    boundary = _first_at_or_after(heads, start)
    closed = end >= 0 and not 0 <= boundary < end
    if closed:
        raw = text[start:end]
        closers = _CLOSERS.match(text, end + 3 if in_cdata else end)
        after = closers.end() if closers else end
        repairs = () if closers and "</file" in closers.group().lower() else ("unclosed_file",)
    else:
        after = boundary if boundary >= 0 else max(start, marks.end)
        raw = _without_closers(text[start:after])
        repairs = ("unclosed_cdata" if in_cdata else "unclosed_file",)
    content, more = _cleaned(raw, in_cdata=in_cdata)
    return _Body(content=content, end=after, is_certain=in_cdata or closed, repairs=(*repairs, *more))


def _without_closers(raw: str) -> str:
    """Remove closing tags and a fence at the very end of unclosed content."""
    bare = raw.rstrip()
    for closer in ("```", "</file>", "</content>", "]]>"):
        bare = bare.removesuffix(closer).rstrip() if bare.endswith(closer) else bare
    return bare + raw[len(raw.rstrip()) :] if len(bare) == len(raw.rstrip()) else bare + "\n"


def _first_at_or_after(positions: list[int], start: int) -> int:
    """Return the first of the sorted positions at or after `start`, or -1."""
    index = bisect_left(positions, start)
    return positions[index] if index < len(positions) else -1


def _cleaned(raw: str, *, in_cdata: bool) -> tuple[str, tuple[str, ...]]:
    """Return the unescaped content and the names of the repairs."""
    if in_cdata:
        raw = raw.replace(f"]]>{CDATA}", "")
        return raw.removeprefix("\n"), ("cdata_end",) if "]]>" in raw else ()
    # The content is escaped if it has no `<` and every `&` begins an entity.
    is_escaped = "<" not in raw and "&" in raw and len(_ENTITY.findall(raw)) == raw.count("&")
    return trimmed(without_entities(raw) if is_escaped else raw), ("no_cdata",) if raw else ()


def trimmed(text: str) -> str:
    """Remove the newline after the opening tag and the indentation of the closing tag."""
    return _INDENTATION.sub("", text.removeprefix("\n"))


def without_entities(text: str) -> str:
    """Resolve XML's five predefined entities and character references; keep all others."""
    return _ENTITY.sub(lambda entity: html.unescape(entity.group()), text) if "&" in text else text
