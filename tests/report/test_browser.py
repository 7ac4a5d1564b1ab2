"""The page in a real browser. Skipped where there is none: nothing else needs Chromium."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING

import orjson
import pytest

from astra_async.report.tables import build_report
from astra_async.report.write import write_built
from axe import source, violations
from browser import PROGRAM, Tab, open_tab
from made_runs import Made, made_problems, write_run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine")

ESCAPES = (
    "\x1b[1m\x1b[31mFAIL\x1b[39m\x1b[22m App.test.js\r\n"
    "\x1b[38;5;208morange\x1b[0m \x1b[48;2;1;2;3mpaper\x1b[m"
    "\x1b]0;owned\x07\x1b[2J\x1b[H<img src=x onerror=alert(1)>\x1b[32m\u202etxt.exe\x1b"
)
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
    results = directory / "results.jsonl"
    lines = [orjson.loads(line) for line in results.read_bytes().splitlines()]
    for line in lines:
        line["output_tail"] = line["output_tail"] and ESCAPES
        line["changes"] = [{"path": "src/<b>\u202exsj.a", "kind": "changed", "added": 7, "removed": 2}]
        for test in line["tests"]:
            if test["outcome"] != "passed":
                test["message"] = "expected <b>1</b> to equal 2\n    at t.js:1:1"
    results.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return write_built(build_report([directory]), directory / "report")


def browse(index: Path, steps: Callable[[Tab], Awaitable[None]]) -> None:
    async def all_steps() -> None:
        async with open_tab() as tab:
            await tab.open(index.as_uri())
            await steps(tab)
            assert tab.complaints == []
            assert {url.split(":")[0] for url in tab.requests} <= {"file", "data", "blob"}

    asyncio.run(all_steps())


def test_the_page_has_no_error_and_asks_for_nothing(index: Path) -> None:
    async def steps(tab: Tab) -> None:
        assert await tab.run("document.querySelectorAll('figure svg text').length") > 50
        assert await tab.run("document.querySelectorAll('#map a').length") == 20

    browse(index, steps)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_axe_finds_nothing_on_the_page_and_in_a_sample(index: Path, width: int, scheme: str) -> None:
    async def steps(tab: Tab) -> None:
        await tab.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        await tab.call("Emulation.setEmulatedMedia", features=[feature])
        assert await violations(tab) == []
        failed = "[...document.querySelectorAll('#map a')].find((cell) => /, tests_failed$/.test(cell.title))"
        await tab.run(f"{failed}.click()")
        await tab.until("document.querySelector('#sample pre.terminal')")
        assert await violations(tab) == []

    source()  # skipped without axe-core
    browse(index, steps)


def test_a_cell_of_the_map_opens_its_sample(index: Path) -> None:
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

    browse(index, steps)


def test_the_map_shows_the_model_that_is_chosen(index: Path) -> None:
    async def steps(tab: Tab) -> None:
        await tab.run(
            "{ const select = document.getElementById('map-entry'); select.value = 3;"
            " select.dispatchEvent(new Event('change')) }"
        )
        missing = "document.querySelectorAll('#map .hm')"
        assert await tab.run(f"{missing}.length") == 1
        await tab.run(f"{missing}[0].click()")
        await tab.until("document.getElementById('sample').textContent.includes('no result yet')")

    browse(index, steps)


def test_a_table_sorts_by_the_column_that_is_clicked(index: Path) -> None:
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

    browse(index, steps)


def test_nothing_is_wider_than_a_narrow_window(index: Path, tmp_path: Path) -> None:
    async def steps(tab: Tab) -> None:
        await tab.screenshot(tmp_path / "narrow.png", width=380, height=800)
        assert await tab.run("document.documentElement.scrollWidth") <= 380

    browse(index, steps)


def test_a_sample_shows_its_messages_changes_and_output_in_colours_and_obeys_none(index: Path) -> None:
    async def steps(tab: Tab) -> None:
        failed = "[...document.querySelectorAll('#map a')].find((cell) => /, tests_failed$/.test(cell.title))"
        await tab.run(f"{failed}.click()")
        await tab.until("document.querySelector('#sample pre.terminal')")
        shown = await tab.run("document.querySelector('#sample pre.terminal').textContent")
        assert shown == "FAIL App.test.js\norange paper<img src=x onerror=alert(1)><U+202E>txt.exe"
        spans = await tab.run(
            "[...document.querySelectorAll('#sample pre.terminal span')].map((span) =>"
            " [span.textContent, span.className, span.style.color, span.style.backgroundColor])"
        )
        assert spans == [
            ["FAIL", "bold", "rgb(255, 123, 114)", ""],
            ["orange", "", "rgb(255, 135, 0)", ""],
            ["paper", "", "rgb(230, 233, 237)", "rgb(1, 2, 3)"],
            ["<U+202E>txt.exe", "", "rgb(86, 211, 100)", ""],
        ]
        assert await tab.run("document.querySelectorAll('#sample img, #sample b').length") == 0
        message = await tab.run("document.querySelector('#sample .outcomes .message').textContent")
        assert message == "expected <b>1</b> to equal 2\n    at t.js:1:1"
        changed = await tab.run("document.querySelector('#sample .changed').textContent")
        assert changed == "src/<b><U+202E>xsj.a (changed): 7 lines added, 2 removed"

    browse(index, steps)


def type_into_search(text: str) -> str:
    return (
        f"{{ const search = document.getElementById('search'); search.value = '{text}';"
        " search.dispatchEvent(new Event('input')) }"
    )


def test_search_leaves_the_rows_with_that_text(index: Path) -> None:
    async def steps(tab: Tab) -> None:
        await tab.run(type_into_search("p03"))
        for table in ("#map", "#matrix", "#table-problems"):
            rows = f"[...document.querySelectorAll('{table} tbody tr')].filter((row) => !row.hidden)"
            found = await tab.run(f"{rows}.map((row) => row.textContent)")
            assert found, table
            assert all("p03" in row for row in found), table
        assert await tab.run("document.getElementById('costs').hidden")
        await tab.run(type_into_search(""))
        assert not await tab.run(
            "[...document.querySelectorAll('tbody tr, section')].some((item) => item.hidden)"
        )

    browse(index, steps)


def test_search_finds_the_samples_whose_answer_has_the_text(index: Path) -> None:
    async def steps(tab: Tab) -> None:
        await tab.run(type_into_search("<solution>beta p04 1"))
        await tab.run("document.getElementById('search-inside').click()")
        await tab.until("document.querySelectorAll('#search-hits a').length === 2")
        hits = await tab.run(
            "[...document.querySelectorAll('#search-hits a')].map((link) => link.textContent)"
        )
        assert sorted(hits) == ["beta (json) · p04 · sample 1", "beta (xml) · p04 · sample 1"]
        await tab.run("document.querySelector('#search-hits a').click()")
        await tab.until("document.getElementById('sample').textContent.includes('<solution>beta p04 1')")

    browse(index, steps)


def test_the_matrix_has_a_cell_for_each_problem_and_model_and_leads_to_its_samples(index: Path) -> None:
    async def steps(tab: Tab) -> None:
        assert await tab.run("document.querySelectorAll('#matrix tbody a').length") == 5 * 4
        await tab.run(
            "{ const order = document.getElementById('matrix-order'); order.value = 'hard';"
            " order.dispatchEvent(new Event('change')) }"
        )
        means = await tab.run(
            "[...document.querySelectorAll('#matrix tbody tr')].map((row) => [...row.querySelectorAll('a')]"
            ".reduce((sum, cell) => sum + Number(cell.textContent), 0))"
        )
        assert len(means) == 5
        assert all(first <= second + 4 for first, second in pairwise(means))  # shown rounded to 1 %
        await tab.run("document.querySelector('#matrix tbody tr td:nth-child(4) a').click()")
        assert await tab.run("document.querySelector('#map caption').textContent") == "beta (xml)"

    browse(index, steps)


def test_the_first_screen_answers_and_its_data_is_one_click_away(index: Path, tmp_path: Path) -> None:
    async def steps(tab: Tab) -> None:
        await tab.screenshot(tmp_path / "wide.png", width=1400, height=900)
        bottom = "document.querySelector('{}').getBoundingClientRect().bottom"
        assert await tab.run(bottom.format(".conclusions")) < 450
        assert await tab.run(bottom.format("#table-leaderboard tbody tr:last-child")) < 900
        links = await tab.run(
            "[...document.querySelectorAll('a.csv, footer a')].map((a) => a.getAttribute('href'))"
        )
        assert {"leaderboard.csv", "pairwise.csv", "problems.csv", "runs.csv", "report.json"} <= set(links)
        assert all((index.parent / link).is_file() for link in links)

    browse(index, steps)


def test_a_phone_shows_what_matters_without_scrolling_sideways(index: Path, tmp_path: Path) -> None:
    async def steps(tab: Tab) -> None:
        await tab.screenshot(tmp_path / "phone.png", width=390, height=844)
        assert await tab.run("document.documentElement.scrollWidth") <= 390
        right = await tab.run(
            "[...document.querySelectorAll('#table-leaderboard td[data-label]')].map((cell) =>"
            " cell.getBoundingClientRect().right)"
        )
        assert right
        assert max(right) <= 390
        letters = await tab.run(
            "[...document.querySelectorAll('svg.plot text')].map((text) =>"
            " text.getBoundingClientRect().height)"
        )
        assert min(letters) >= 9

    browse(index, steps)


def test_on_paper_nothing_is_cut_and_no_figure_is_torn(index: Path, tmp_path: Path) -> None:
    async def steps(tab: Tab) -> None:
        await tab.call("Emulation.setEmulatedMedia", media="print")
        await tab.screenshot(tmp_path / "print.png", width=1030, height=700)  # A4 across, 12 mm margins
        wide = await tab.run(
            "[...document.querySelectorAll('table.data')].filter((table) => table.checkVisibility() &&"
            " table.getBoundingClientRect().right > 1030).map((table) => table.id)"
        )
        assert wide == []
        for what in ("figure", "table.data tr"):
            rule = f"getComputedStyle(document.querySelector('{what}')).breakInside"
            assert await tab.run(rule) == "avoid", what

    browse(index, steps)
