"""The pages on the design name files that exist and every rule of the throttle that code cites."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = "".join(
    (ROOT / "docs" / "development" / f"{name}.md").read_text() for name in ("design", "decisions", "throttle")
)
BUNDLED = ROOT / "astra_async" / "bundled" / "problems"
SOURCES = [
    path
    for folder in ("astra_async", "scripts")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if not path.is_relative_to(BUNDLED)
]


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:astra_async|tests|scripts)/[\w/.]+)`", PAGE))))
def test_every_file_that_the_page_names_exists(name: str) -> None:
    assert (ROOT / name).exists()


def test_every_rule_of_the_throttle_has_its_place() -> None:
    rows = re.findall(r"^\| (\d+) \|.*\| `(astra_async/asking/[\w/]+\.py)` \|$", PAGE, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 18))


def test_every_rule_that_the_code_cites_is_on_the_page() -> None:
    cited: set[int] = set()
    for path in (ROOT / "astra_async").rglob("*.py"):
        for found in re.findall(r"\brules? (\d+(?:(?:, | and )\d+)*)", path.read_text()):
            cited |= {int(number) for number in re.findall(r"\d+", found)}
    assert cited
    assert max(cited) <= 17


def test_every_package_is_on_the_page() -> None:
    packages = {
        p.name for p in (ROOT / "astra_async").iterdir() if p.is_dir() and (p / "__init__.py").exists()
    }
    assert not {name for name in packages if f"{name}/" not in PAGE}


def test_every_page_that_code_cites_stands_in_the_repository() -> None:
    pages = {page.name for page in (*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"))}
    pages |= {"report.md", "statement.md"}  # written by a run, part of a bundled problem
    missing = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in SOURCES
        for name in re.findall(r"\b([A-Za-z][\w-]*\.md)\b", "\n".join(comments(path)))
        if name not in pages
    }
    assert not missing


def comments(path: Path) -> list[str]:
    """Comments and docstrings, roughly: lines that are one, or stand in one."""
    text = path.read_text()
    docstrings = re.findall(r'"""(.*?)"""', text, re.DOTALL)
    return [*docstrings, *re.findall(r"#(.*)$", text, re.MULTILINE)]
