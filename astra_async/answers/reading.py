"""What one reader found in an answer, before the files' contents are mended."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_LAST_FENCE_LINE = re.compile(r"(?:\A|\n)[ \t]*(?:```|~~~)[^\n`]{0,40}\Z")
_FIRST_FENCE_LINE = re.compile(r"[ \t]*(?:```|~~~)[ \t]*(?:\n|\Z)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Files by path in the order of the answer, the repairs made, and whether the root was closed.

    `closed` is False when the root element or object has no end, or when there is none: an answer
    cut by its length limit is then truncated.
    """

    files: Mapping[str, str]
    repairs: tuple[str, ...]
    closed: bool


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
