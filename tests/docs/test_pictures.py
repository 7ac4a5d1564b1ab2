"""docs/pictures shows what the viewer's pages consist of today; scripts/pictures.py makes them anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from browser import PROGRAM
from pictured import PAGES, layout, made_run, opened

DOCS = Path(__file__).parents[2] / "docs"
LARGEST_BYTES = 200_000


def test_every_picture_is_of_modest_size_and_shown_somewhere() -> None:
    pages = "".join(path.read_text() for path in (*DOCS.glob("*.md"), DOCS.parent / "README.md"))
    for picture in (*DOCS.glob("pictures/*.png"), *DOCS.glob("pictures/*.svg")):
        assert picture.stat().st_size < LARGEST_BYTES, picture
        assert f"pictures/{picture.name}" in pages, picture


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine")
async def test_the_pages_consist_of_what_their_pictures_show(tmp_path: Path) -> None:
    async def layouts() -> dict[str, Any]:
        async with opened(made_run(tmp_path / "run")) as (tab, address):
            return {name: await layout(tab, address, name) for name in PAGES}

    shown = json.loads((DOCS / "pictures" / "layout.json").read_text())
    assert (await layouts()) == shown, "run scripts/pictures.py: the pages have changed"
