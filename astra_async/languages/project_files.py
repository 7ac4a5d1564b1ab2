"""Helpers for a project's paths, for JSON tables, and for package names in commands."""

from __future__ import annotations

import json
import posixpath
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemTools:
    """The tools of a problem, the folders where they run, and all its commands as one text.

    `command` is the test command alone, `above_tests` are the folders above the tests; `development` names
    packages that are needed for development only.
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
    """The original project: file texts, protected paths, tools, and the words of the problem statement."""

    texts: Mapping[str, str]
    protected: frozenset[str]
    tools: ProblemTools
    statement: frozenset[str] = frozenset()

    @cached_property
    def folders(self) -> frozenset[str]:
        """Return all folders except the root."""
        return frozenset(folder for path in self.texts for folder in above(path))

    @cached_property
    def protected_folders(self) -> frozenset[str]:
        """Return the folders that contain protected files at any depth."""
        return frozenset(folder for path in self.protected for folder in above(path))

    @cached_property
    def suffixes(self) -> Mapping[tuple[str, str], frozenset[str]]:
        """Map (folder, name without suffix) to the suffixes of the protected files of that name."""
        found: dict[tuple[str, str], set[str]] = {}
        for path in self.protected:
            folder, stem, suffix = split(path)
            found.setdefault((folder, stem), set()).add(suffix)
        return {place: frozenset(names) for place, names in found.items()}


def below(path: str, root: str) -> str | None:
    """Return a path relative to a folder; None if the path is outside."""
    if not root:
        return path
    return path.removeprefix(f"{root}/") if path.startswith(f"{root}/") else None


def folder_named(text: str) -> str:
    """Normalize a folder: `./src/` becomes `src`, `.` becomes ''."""
    place = posixpath.normpath(text.strip()).lstrip("/") if text.strip() else ""
    return "" if place == "." else place


_PACKAGE = re.compile(r"@?[A-Za-z0-9][\w./@+~^=<>!,\[\]*-]*\Z")


def above(path: str) -> Iterable[str]:
    """Return every folder above a path, topmost first."""
    parts = path.split("/")[:-1]
    return ("/".join(parts[: count + 1]) for count in range(len(parts)))


def split(path: str) -> tuple[str, str, str]:
    """Return folder, name without its last suffix, and that suffix in lower case without the dot."""
    folder, _, name = path.rpartition("/")
    stem, _, suffix = name.rpartition(".")
    return (folder, stem, suffix.lower()) if stem else (folder, name, "")


def read_table(content: bytes | str | None, *, strict: bool = True) -> dict[str, Any] | None:
    """Parse a JSON object; return None if there is no file or no valid object.

    With `strict=False`, strings may contain unescaped line breaks and control characters.
    """
    try:
        text = content.removeprefix("\ufeff") if isinstance(content, str) else content or b""
        value = json.loads(text, strict=strict)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def dependencies_of(package: Mapping[str, Any]) -> dict[str, str]:
    """Return version or range by name, for all dependencies of a package.json."""
    groups = (table(package.get(name)) for name in ("devDependencies", "dependencies"))
    return {str(name): str(version) for group in groups for name, version in group.items()}


def table(value: object) -> Mapping[str, Any]:
    """Return the value if it is a dict, else an empty dict."""
    return value if isinstance(value, dict) else {}


def package_names(words: Sequence[str], values: tuple[str, ...] = ()) -> list[str]:
    """Return the package names in an install command, without options and their values."""
    packages = []
    skip = False
    for word in words:
        if skip or word.startswith("-"):
            skip = not skip and word in values
        elif _PACKAGE.match(word) and not word.startswith((".", "/")):
            packages.append(word)
    return packages
