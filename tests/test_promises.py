"""The page of promises names tests; each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def named() -> list[str]:
    return sorted(set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "promises.md").read_text())))


def test_the_page_names_its_tests() -> None:
    assert len(named()) > 30


@pytest.mark.parametrize("name", named())
def test_every_promise_is_held_by_a_test_that_exists(name: str) -> None:
    pattern = re.compile(rf"^(async )?def {name}\(", re.MULTILINE)
    assert any(pattern.search(path.read_text()) for path in (ROOT / "tests").rglob("test_*.py"))
