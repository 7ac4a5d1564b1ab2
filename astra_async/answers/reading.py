"""What one reader found in an answer, before the files' contents are mended."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_LAST_FENCE_LINE = re.compile(r"(?:\A|\n)[ \t]*(?:```|~~~)[^\n`]{0,40}\Z")
_FIRST_FENCE_LINE = re.compile(r"[ \t]*(?:```|~~~)[ \t]*(?:\n|\Z)")


@dataclass(slots=True, kw_only=True)
class Reading:
    """Files by path in the order of the answer, and the repairs in the order in which they were first needed.

    `closed` is False when the root element or object has no end, or when there is none: an answer
    cut by its length limit is then truncated.
    """

    files: dict[str, str] = field(default_factory=dict)
    repairs: dict[str, None] = field(default_factory=dict)
    closed: bool = True

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
