"""Every message on docs/troubleshooting.md is a text of the program."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
MESSAGES = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)


@cache
def texts() -> str:
    """All string literals of the program, with adjacent literals joined."""
    sources = [path for path in (ROOT / "astra_async").rglob("*.py") if "bundled" not in path.parts]
    nodes = (node for path in sources for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    return "\0".join(
        node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def test_the_page_has_messages() -> None:
    assert 20 <= len(MESSAGES) == len(set(MESSAGES))


@pytest.mark.parametrize("message", MESSAGES)
def test_the_program_has_the_message(message: str) -> None:
    parts = [part.strip() for part in message.split("...") if part.strip()]
    assert parts
    assert not [part for part in parts if part not in texts()]
