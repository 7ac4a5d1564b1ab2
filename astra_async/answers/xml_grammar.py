"""The names and marks of an XML answer, as models write them, and what both of its readers share."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

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


@dataclass(frozen=True, slots=True)
class Root:
    """Where the root element lies; `end` is -1 when it is not closed."""

    name: str
    start: int
    end: int

    @property
    def repairs(self) -> tuple[str, ...]:
        """The repair that an unusual name stands for."""
        return () if self.name == "solution" else ("other_root",)


@dataclass(slots=True)
class FoundFiles:
    """Files found so far; `repairs` keeps the order in which they were first needed."""

    files: dict[str, str] = field(default_factory=dict)
    repairs: dict[str, None] = field(default_factory=dict)

    def add(self, path: str, content: str, *repairs: str) -> None:
        """Add a file and the repairs it took; the last content of a path wins."""
        if path in self.files:
            self.note("duplicate_path")
            del self.files[path]
        self.files[path] = content
        self.note(*repairs)

    def note(self, *repairs: str) -> None:
        """Name repairs, each once."""
        self.repairs.update(dict.fromkeys(repairs))


def trimmed(text: str) -> str:
    """Character data without the newline after the opening tag and the closing tag's indentation."""
    return _INDENTATION.sub("", text.removeprefix("\n"))


def is_escaped(text: str) -> bool:
    """Whether character data was written with entities: no `<`, and every `&` begins one of XML's own."""
    return "<" not in text and "&" in text and len(_ENTITY.findall(text)) == text.count("&")


def without_entities(text: str) -> str:
    """The text with XML's five entities and character references resolved, all others kept."""
    return _ENTITY.sub(lambda entity: html.unescape(entity.group()), text) if "&" in text else text
