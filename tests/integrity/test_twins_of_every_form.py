"""What holds of the twins of all languages read by a grammar: they parse, differ and take nothing away."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from astra_async.integrity.rewriting import Manner, Settled, blurred, rewrite
from astra_async.integrity.syntax import parse

GRAMMARS = {".java": "tree_sitter_java", ".js": "tree_sitter_javascript", ".jsx": "tree_sitter_javascript"}
FILES = sorted(
    path
    for path in Path(__file__).with_name("samples").rglob("*")
    if path.suffix == ".java" or (path.suffix in GRAMMARS and path.name.startswith("every_form."))
)
MANNERS = [Manner(at_once, assertion) for at_once in (True, False) for assertion in (True, False)]


def parses(path: Path, text: str) -> bool:
    return not parse(text.encode(), GRAMMARS[path.suffix]).has_error


def twin_of(path: Path, rng: random.Random) -> str:
    return rewrite(path.name, path.read_text(), rng).text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_every_twin_of_every_form_parses_and_no_two_are_alike(path: Path) -> None:
    twins = [twin_of(path, Settled(MANNERS[seed % 4], seed)) for seed in range(24)]
    assert all(parses(path, twin) for twin in twins)
    assert len({path.read_text(), *twins}) == 25


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_a_twin_is_the_file_with_text_put_into_it(path: Path) -> None:
    text = path.read_text()
    for seed in range(8):
        for made in (twin_of(path, random.Random(seed)), blurred(path.name, text, random.Random(seed))):
            rest = iter(made)
            assert all(character in rest for character in text)  # in this order
            assert parses(path, made)
