"""`write_json`: what a command writes for programs, with the records that its figures come from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from astra_async.cli.console import write_json
from astra_async.types import NamedOutcome

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("text", ["passed", "lone \ud800", "\x1b[31m"])
def test_records_and_any_text_are_written(tmp_path: Path, text: str) -> None:
    path = tmp_path / "found.json"
    write_json(path, [{"text": text, "tests": (NamedOutcome(name="adds", outcome="passed"),)}])
    (found,) = json.loads(path.read_bytes())
    assert found["text"] == text
    assert found["tests"][0]["name"] == "adds"
