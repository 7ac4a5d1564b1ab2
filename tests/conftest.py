"""How tests are shared among processes (pytest -n): what stands on the same containers stays together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Docker tests of a file form a group; those that grade answers one for each framework."""
    for item in items:
        if item.get_closest_marker("docker") and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(_group(item)))


def _group(item: pytest.Item) -> str:
    case = getattr(item, "callspec", None) and item.callspec.params.get("case")  # type: ignore[attr-defined]
    return str(getattr(case, "framework", Path(item.path).stem))
