"""A pristine project and the tools of its problem, as lookups and rules see them."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from astra_async.languages.project_files import above, split

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsAtHand:
    """The tools of a problem, the folders where they look, and everything that is run, as one text.

    `command` is the test command alone, `above_tests` are the folders above the tests; `development` names
    packages for development alone.
    """

    names: frozenset[str]
    places: frozenset[str]
    tests: frozenset[str]
    above_tests: frozenset[str]
    command: str
    commands: str
    development: frozenset[str]

    def __contains__(self, tool: object) -> bool:
        return not self.names or tool in self.names


@dataclass(frozen=True, kw_only=True)
class Pristine:
    """The text of each file, the protected ones, the tools at hand, and the words of the statement."""

    texts: Mapping[str, str]
    protected: frozenset[str]
    tools: ToolsAtHand
    statement: frozenset[str] = frozenset()

    @cached_property
    def folders(self) -> frozenset[str]:
        """All folders but the root."""
        return frozenset(folder for path in self.texts for folder in above(path))

    @cached_property
    def protected_folders(self) -> frozenset[str]:
        """Those that hold protected files, at any depth."""
        return frozenset(folder for path in self.protected for folder in above(path))

    @cached_property
    def suffixes(self) -> Mapping[tuple[str, str], frozenset[str]]:
        """By folder and name without suffix: the suffixes of the protected files of that name."""
        found: dict[tuple[str, str], set[str]] = {}
        for path in self.protected:
            folder, stem, suffix = split(path)
            found.setdefault((folder, stem), set()).add(suffix)
        return {place: frozenset(names) for place, names in found.items()}


def below(path: str, root: str) -> str | None:
    """The rest of a path below a folder; None where it lies elsewhere."""
    if not root:
        return path
    return path.removeprefix(f"{root}/") if path.startswith(f"{root}/") else None


def folder_named(text: str) -> str:
    """A folder as the project names it: `./src/` is `src`, and `.` the root."""
    place = posixpath.normpath(text.strip()).lstrip("/") if text.strip() else ""
    return "" if place == "." else place
