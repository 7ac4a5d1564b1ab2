"""Pages name only existing tests and files, and the page of promises names tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")))
TESTS = frozenset(
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in (path.stem, *re.findall(r"^(?:async )?def (test_\w+)\(", path.read_text(), re.MULTILINE))
)
# At least three words: `test_command` is a column and `test_file` a reason; no test name is so short.
_NAMED = re.compile(r"`(test(?:_[a-z0-9]+){3,})`")
_PLACE = re.compile(r"`((?:astra_async|docs|scripts|tests)/[\w/.-]+)")


def test_the_page_of_promises_has_names_of_tests() -> None:
    assert len(set(_NAMED.findall((ROOT / "docs" / "development" / "promises.md").read_text()))) > 30


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    assert set(_NAMED.findall(page.read_text())) <= TESTS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    assert not {name for name in _PLACE.findall(page.read_text()) if not (ROOT / name).exists()}
