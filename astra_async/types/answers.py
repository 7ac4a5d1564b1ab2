"""What an answer gives, and what of it is applied to the project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.types.results import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """The files an answer gives, path to full text, as the model wrote the paths; repairs by name."""

    files: Mapping[str, str]
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """An answer without a usable solution: 0 of T, and the reason in one line."""

    failure: Failure
    reason: str
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A change that was not applied, and the rule that says so."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One file that an answer adds or changes, with the lines that a diff would show as added and removed."""

    path: str
    added: int
    removed: int
    kind: Literal["new", "changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Integrated:
    """What an answer changes in the project: new content by path, and what was dropped.

    `lines_written` counts lines that the pristine file does not have: a moved line is none of them, though
    `changes` counts it as added and removed. `sha256` covers the applied paths and contents.
    """

    files: Mapping[str, bytes]
    changes: tuple[FileChange, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    suspicions: tuple[str, ...] = ()
    files_changed: int = 0
    lines_written: int = 0
    sha256: str = ""
