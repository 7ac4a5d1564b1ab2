"""Tables out of a project's files (JSON, TOML), packages out of its commands; both may hold anything."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PACKAGE = re.compile(r"@?[A-Za-z0-9][\w./@+~^=<>!,\[\]*-]*\Z")


def read_table(content: bytes | None) -> Mapping[str, Any] | None:
    """The table that a JSON file holds; None where there is no file, or one that holds none."""
    try:
        value = json.loads(content or b"")
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
