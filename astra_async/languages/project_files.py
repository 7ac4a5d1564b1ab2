"""Paths of a project, tables out of its files (JSON, TOML), packages out of its commands."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_PACKAGE = re.compile(r"@?[A-Za-z0-9][\w./@+~^=<>!,\[\]*-]*\Z")


def above(path: str) -> Iterable[str]:
    """Every folder above a path, from the root down."""
    parts = path.split("/")[:-1]
    return ("/".join(parts[: count + 1]) for count in range(len(parts)))


def split(path: str) -> tuple[str, str, str]:
    """Folder, name without its last suffix, and that suffix in lower case and without the dot."""
    folder, _, name = path.rpartition("/")
    stem, _, suffix = name.rpartition(".")
    return (folder, stem, suffix.lower()) if stem else (folder, name, "")


def read_table(content: bytes | str | None, *, strict: bool = True) -> dict[str, Any] | None:
    """The table that a JSON file holds; None where there is no file, or one that holds none.

    Unless it is `strict`, texts may hold line breaks and other control characters as they are.
    """
    try:
        text = content.removeprefix("\ufeff") if isinstance(content, str) else content or b""
        value = json.loads(text, strict=strict)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def dependencies_of(package: Mapping[str, Any]) -> dict[str, str]:
    """What a package.json needs, for whatever purpose: version or range by name."""
    groups = (table(package.get(name)) for name in ("devDependencies", "dependencies"))
    return {str(name): str(version) for group in groups for name, version in group.items()}


def table(value: object) -> Mapping[str, Any]:
    """The value, if it is a table; else an empty one."""
    return value if isinstance(value, dict) else {}


def package_names(words: Sequence[str], values: tuple[str, ...] = ()) -> list[str]:
    """Names of packages among the words of an install command, without options and their values."""
    packages = []
    skip = False
    for word in words:
        if skip or word.startswith("-"):
            skip = not skip and word in values
        elif _PACKAGE.match(word) and not word.startswith((".", "/")):
            packages.append(word)
    return packages
