"""Every name that the static screen can give is explained in docs/protected.md."""

from __future__ import annotations

import re
from pathlib import Path

from astra_async.overlay import suspicions

PAGE = (Path(__file__).parents[2] / "docs" / "protected.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## What the static screen names")[2].partition("\n## ")[0]


def test_the_page_explains_every_sign_of_the_screen() -> None:
    explained = set(re.findall(r"^\| `(\w+)` \|", SECTION, re.MULTILINE))
    signs = {name for name, *_ in suspicions._SIGNS}
    # Three are found by no pattern of the screen's own.
    assert explained == signs | {"unscreened", "test_file", "report_file"}
