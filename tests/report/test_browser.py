"""The page in a real browser. Skipped where there is none: nothing else needs Chromium."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from browser import PROGRAM, Tab, open_tab
from made_runs import Made, made_problems, write_run

from astra_async.report import write_report

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine")

MADE = Made(
    skill={"alpha": 0.9, "beta": 0.6},
    formats=("xml", "json"),
    problems=made_problems(5),
    samples=4,
    leave_out=frozenset({("beta", "json", "p01", 2)}),
)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = write_run(tmp_path_factory.mktemp("browser") / "run", MADE)
    return write_report([directory], directory / "report").index


def browse(index: Path, profile: Path, steps: Callable[[Tab], Awaitable[None]]) -> None:
    async def all_steps() -> None:
        async with open_tab(profile) as tab:
            await tab.open(index.as_uri())
            await steps(tab)
            assert tab.complaints == []
            assert {url.split(":")[0] for url in tab.requests} <= {"file", "data", "blob"}

    asyncio.run(all_steps())


def test_the_page_has_no_error_and_asks_for_nothing(index: Path, tmp_path: Path) -> None:
    async def steps(tab: Tab) -> None:
        assert await tab.run("document.querySelectorAll('figure svg text').length") > 50
        assert await tab.run("document.querySelectorAll('#map a').length") == 20

    browse(index, tmp_path, steps)


def test_a_cell_of_the_map_opens_its_sample(index: Path, tmp_path: Path) -> None:
    async def steps(tab: Tab) -> None:
        await tab.run("document.querySelector('#map tbody tr:nth-child(2) td:nth-child(4) a').click()")
        await tab.until("document.getElementById('sample').open")
        title = await tab.run("document.getElementById('sample-title').textContent")
        assert title == "alpha (xml) · p01 · sample 2"
        assert "<solution>alpha p01 2" in await tab.run("document.getElementById('sample').textContent")
        await tab.run("document.getElementById('sample-after').click()")
        await tab.until("document.getElementById('sample').textContent.includes('<solution>alpha p01 3')")
        await tab.run("document.getElementById('sample-close').click()")
        await tab.until("!document.getElementById('sample').open && location.hash === '#problems'")

    browse(index, tmp_path, steps)


def test_the_map_shows_the_model_that_is_chosen(index: Path, tmp_path: Path) -> None:
    async def steps(tab: Tab) -> None:
        await tab.run(
            "{ const select = document.getElementById('map-entry'); select.value = 3;"
            " select.dispatchEvent(new Event('change')) }"
        )
        missing = "document.querySelectorAll('#map .hm')"
        assert await tab.run(f"{missing}.length") == 1
        await tab.run(f"{missing}[0].click()")
        await tab.until("document.getElementById('sample').textContent.includes('no result yet')")

    browse(index, tmp_path, steps)


def test_a_table_sorts_by_the_column_that_is_clicked(index: Path, tmp_path: Path) -> None:
    async def steps(tab: Tab) -> None:
        header = "document.querySelector('#table-leaderboard th:nth-child(3) button')"
        values = (
            "Array.from(document.querySelectorAll('#table-leaderboard tbody td:nth-child(3)'),"
            " (cell) => cell.dataset.v)"
        )
        await tab.run(f"{header}.click()")
        rising = await tab.run(values)
        await tab.run(f"{header}.click()")
        falling = await tab.run(values)
        known = [float(value) for value in rising if value]
        assert known == sorted(known)
        assert [float(value) for value in falling if value] == known[::-1]
        sort = await tab.run(f"{header}.closest('th').getAttribute('aria-sort')")
        assert sort == "descending"

    browse(index, tmp_path, steps)


def test_nothing_is_wider_than_a_narrow_window(index: Path, tmp_path: Path) -> None:
    async def steps(tab: Tab) -> None:
        await tab.screenshot(tmp_path / "narrow.png", width=380, height=800)
        assert await tab.run("document.documentElement.scrollWidth") <= 380

    browse(index, tmp_path / "profile", steps)
