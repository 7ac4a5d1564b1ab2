"""Tables (objects of JSON, TOML) out of a project's files, which may hold anything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


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
