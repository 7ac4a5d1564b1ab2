"""What one reader found in an answer, before the files' contents are repaired."""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_right
from dataclasses import dataclass, field

import orjson

from astra_async.types import Solution, Unusable

_UNREADABLE = "the record of what the agent left cannot be read: restore completions.jsonl from a copy"


def read_agents_files(text: str) -> Solution | Unusable:
    """The solution; an agent that changed nothing gave none.

    Raises ValueError for a damaged record: no model wrote it, and there is no verdict on it.
    """
    try:
        answer = orjson.loads(text)
        encoded = answer.get("binary", {}).items()
        solution = Solution(
            files=answer.get("files", {}),
            exact=True,
            deleted=tuple(answer.get("deleted", ())),
            binary={path: base64.b64decode(content, validate=True) for path, content in encoded},
            before=answer.get("before", {}),
        )
    except (orjson.JSONDecodeError, binascii.Error, AttributeError, TypeError) as error:
        raise ValueError(_UNREADABLE) from error
    if not (solution.files or solution.deleted or solution.binary):
        return Unusable(failure="no_change", reason="the agent changed no file")
    return solution


_LAST_FENCE_LINE = re.compile(r"(?:\A|\n)[ \t]*(?:```|~~~)[^\n`]{0,40}\Z")
_FIRST_FENCE_LINE = re.compile(r"^[ \t]*+(?:```|~~~)[ \t]*+(?:\n|\Z)", re.MULTILINE)


# How sure it is that an answer was read.
IN_SENTENCE = 0  # it may be talked about only
GUESSED = 1  # it stands for itself; where files end was guessed
EXACT = 2


@dataclass(slots=True, kw_only=True)
class Reading:
    """Files by path in the order of the answer, and the repairs in the order in which they were first needed.

    Without files it says that an answer begins there which this reader cannot read.
    `closed` is False when the root element or object has no end, or when there is none: an answer
    cut by its length limit is then truncated. `spans` are the places of the text that surely belong to the
    answer, in order. `strict` holds the paths whose content was parsed without a guess: no repair may
    change it.
    """

    files: dict[str, str] = field(default_factory=dict)
    repairs: dict[str, None] = field(default_factory=dict)
    closed: bool = True
    certainty: int = IN_SENTENCE
    spans: list[tuple[int, int]] = field(default_factory=list)
    strict: set[str] = field(default_factory=set)

    def encloses(self, other: Reading) -> bool:
        """Whether the other one has read what stands within this one's files."""
        return any(self.covers(start) for start, _ in other.spans)

    def covers(self, position: int) -> bool:
        """Whether this place of the text surely belongs to the answer."""
        index = bisect_right(self.spans, position, key=lambda span: span[0]) - 1
        return index >= 0 and position < self.spans[index][1]

    def add(self, path: str, content: str, *repairs: str) -> None:
        """Add a file and the repairs it took; the last content of a path wins."""
        if path in self.files:
            self.note("duplicate_path")
            del self.files[path]
            self.strict.discard(path)
        self.files[path] = content
        self.note(*repairs)

    def note(self, *repairs: str) -> None:
        """Name repairs, each once."""
        self.repairs.update(dict.fromkeys(repairs))


def surroundings(before: str, after: str) -> tuple[str, ...]:
    """The repairs that name what stood around the answer's root: `fence`, `prose`, both or none."""
    repairs = []
    bare_before, fences_before = _LAST_FENCE_LINE.subn("", before.rstrip())
    bare_after, fences_after = _FIRST_FENCE_LINE.subn("", after.lstrip(), count=1)
    if fences_before or fences_after:
        repairs.append("fence")
    if bare_before.strip() or bare_after.strip():
        repairs.append("prose")
    return tuple(repairs)
