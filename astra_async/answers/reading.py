"""Parse result of one answer, before the contents of its files are repaired."""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_right
from dataclasses import dataclass, field

import orjson

from astra_async.types import Solution, Unusable

_UNREADABLE = "the record of the agent's files is damaged: restore completions.jsonl from a backup"


def read_agents_files(text: str) -> Solution | Unusable:
    """Decode the recorded files of an agent; an agent that changed nothing has failed.

    Raises:
        ValueError: the record is damaged. No verdict is possible, because the agent is not at fault.
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
            executable=frozenset(answer["executable"]) if "executable" in answer else None,
        )
    except (orjson.JSONDecodeError, binascii.Error, AttributeError, TypeError) as error:
        raise ValueError(_UNREADABLE) from error
    if not (solution.files or solution.deleted or solution.binary):
        return Unusable(failure="no_change", reason="the answer changes no file")
    return solution


_LAST_FENCE_LINE = re.compile(r"(?:\A|\n)[ \t]*(?:```|~~~)[^\n`]{0,40}\Z")
_FIRST_FENCE_LINE = re.compile(r"^[ \t]*+(?:```|~~~)[ \t]*+(?:\n|\Z)", re.MULTILINE)


# Confidence in a parse result.
IN_SENTENCE = 0  # possibly only mentioned in a sentence
GUESSED = 1  # outside of sentences, but the ends of files were guessed
EXACT = 2


@dataclass(slots=True, kw_only=True)
class Reading:
    """Files by path in the order of the answer, and repairs in the order of their first use.

    A result without files means that an answer begins in the text, but this parser cannot parse it.

    `closed` is False if the root element or object has no end, or does not exist; an answer cut by its length
    limit is then truncated. `spans` are the sorted ranges of the text that certainly belong to the answer.
    `strict` holds the paths whose content was parsed without a guess and must not be repaired.
    """

    files: dict[str, str] = field(default_factory=dict)
    repairs: dict[str, None] = field(default_factory=dict)
    closed: bool = True
    certainty: int = IN_SENTENCE
    spans: list[tuple[int, int]] = field(default_factory=list)
    strict: set[str] = field(default_factory=set)

    def encloses(self, other: Reading) -> bool:
        """Return True if `other` was parsed from text inside this result's files."""
        return any(self.covers(start) for start, _ in other.spans)

    def covers(self, position: int) -> bool:
        """Return True if this position of the text certainly belongs to the answer."""
        index = bisect_right(self.spans, position, key=lambda span: span[0]) - 1
        return index >= 0 and position < self.spans[index][1]

    def add(self, path: str, content: str, *repairs: str) -> None:
        """Add a file and its repairs; the last content of a path wins."""
        if path in self.files:
            self.note("duplicate_path")
            del self.files[path]
            self.strict.discard(path)
        self.files[path] = content
        self.note(*repairs)

    def note(self, *repairs: str) -> None:
        """Record repairs, each once."""
        self.repairs.update(dict.fromkeys(repairs))


def surrounding_repairs(before: str, after: str) -> tuple[str, ...]:
    """Return the repairs for text around the answer's root: `fence`, `prose`, both or neither."""
    repairs = []
    bare_before, fences_before = _LAST_FENCE_LINE.subn("", before.rstrip())
    bare_after, fences_after = _FIRST_FENCE_LINE.subn("", after.lstrip(), count=1)
    if fences_before or fences_after:
        repairs.append("fence")
    if bare_before.strip() or bare_after.strip():
        repairs.append("prose")
    return tuple(repairs)
