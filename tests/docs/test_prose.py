"""scripts/prose.py finds each construct and reads every kind of text."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType


def _script() -> ModuleType:
    path = Path(__file__).parents[2] / "scripts" / "prose.py"
    spec = importlib.util.spec_from_file_location("prose_script", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


PROSE = _script()

# For each construct in order: a sentence that has it, and a plain sentence with the same meaning.
EXAMPLES = (
    ("The slot belongs to whoever asks first.", "The first request gets the slot."),
    ("The file belongs to nobody.", "The file has no owner."),
    ("Whether the run is complete.", "Return True if the run is complete."),
    ("A directory is no archive.", "A directory is not an archive."),
    ("The price is none for local models.", "The price is None for local models."),
    ("Each pool has a clock of its own.", "Each pool has its own clock."),
    ("Use the cache where it exists.", "Use the cache if it exists."),
    ("The sum comes to 5 USD.", "The sum is 5 USD."),
    ("The header tells that a retry is allowed.", "The header allows a retry."),
    ("The key stands in the header.", "The key is in the header."),
    ("The viewer reads the log, too.", "The viewer also reads the log."),
    ("Of all samples one is missing.", "One sample is missing."),
    ("The same for a cluster.", "Apply this rule to a cluster."),
    ("The lock lies beside the log.", "The lock is in the folder of the log."),
    ("So many permits are free.", "Eight permits are free."),
)


@pytest.mark.parametrize("number", range(len(PROSE.CONSTRUCTS)))
def test_each_construct_is_found_in_its_example_only(number: int) -> None:
    pattern = PROSE.CONSTRUCTS[number].pattern
    found, plain = EXAMPLES[number]
    assert PROSE.hits(pattern, [("a.py:1", found)])
    assert not PROSE.hits(pattern, [("a.py:1", plain)])


def test_plain_sentences_have_no_construct_at_all() -> None:
    plain = [("a.py:1", text) for _, text in EXAMPLES]
    assert not [hit for item in PROSE.CONSTRUCTS for hit in PROSE.hits(item.pattern, plain)]


def test_code_units_are_docstrings_messages_help_texts_and_comments() -> None:
    source = '''"""Module text."""
# First line,
# second line.
x = 1  # noqa: E501
def f(name):
    """Function text."""
    raise ValueError(f"no such model: {name}")
option("--all", help="every table")
Setting("Samples of each problem.", "K")
'''
    found = [(place, text.strip()) for place, text in PROSE.code_units("a.py", source) if text]
    assert sorted(found) == [
        ("a.py:1", "Module text."),
        ("a.py:2", "First line, second line."),
        ("a.py:5", "Function text."),
        ("a.py:7", "no such model:"),
        ("a.py:8", "every table"),
        ("a.py:9", "Samples of each problem."),
    ]


def test_page_units_are_paragraphs_items_and_rows_without_code_blocks() -> None:
    page = (
        "# Title\n\nOne\nparagraph.\n\n- first\n  item\n- second\n\n```sh\ncode\n```\n\n| a | b |\n\n"
        "<!-- begin generated -->\n| c |\n<!-- end generated -->\n"
    )
    found = [(place, " ".join(text.split())) for place, text in PROSE.page_units("a.md", page)]
    assert found == [
        ("a.md:1", "Title"),
        ("a.md:3", "One paragraph."),
        ("a.md:6", "first item"),
        ("a.md:8", "second"),
        ("a.md:14", "a | b |"),
    ]


def test_the_check_fails_above_an_allowed_rate_and_lists_the_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package = tmp_path / "astra_async"
    package.mkdir()
    (package / "a.py").write_text('"""Return the price."""\n')
    assert PROSE.main(["--root", str(tmp_path)]) == 0
    (package / "a.py").write_text('"""The key stands in the header."""\n')
    assert PROSE.main(["--root", str(tmp_path)]) == 1
    capsys.readouterr()
    assert PROSE.main(["--root", str(tmp_path), "--list", "9"]) == 0
    assert capsys.readouterr().out == "astra_async/a.py:1: The key stands in the header.\n"
