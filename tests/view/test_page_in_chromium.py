"""The viewer's page in a real browser on a real server. Skipped where there is no Chromium."""

from __future__ import annotations

import asyncio
import csv
import os
import socket
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import orjson
import pytest
from watched_runs import (
    LONG_LINE,
    NASTY_ID,
    NASTY_TEST,
    PLAIN,
    RUNS_SCRIPT,
    SUSPICION,
    change_lines,
    key_of,
    model_call,
    nasty_run,
)

from astra_async.files import write_atomically
from astra_async.log import encode, now_utc
from astra_async.report.audited import AUDIT_LOG, AuditEvidence, AuditLine
from astra_async.report.deciding import group_of, recorded
from astra_async.report.table import shown
from astra_async.stats.sequential import schedule_of
from astra_async.types import SampleKey
from astra_async.view.access import Access
from astra_async.view.serving import Viewer, served
from axe import source, violations
from browser import PROGRAM, Tab, open_tab
from made_runs import agreeing, write_run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    Steps = Callable[["Page"], Awaitable[None]]

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine")

KEYS = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
    "PageDown": 34,
}
ROUTES = ("", "map", "map?by=models", "list", "problem", "compare", "sample/alpha/p01/0", "nonsense/x?y")


class Page:
    """A tab on a viewer."""

    def __init__(self, tab: Tab, address: str) -> None:
        self.tab, self.address = tab, address
        self.run, self.until = tab.run, tab.until
        self.loads = 0

    async def go(self, route: str, shown: str) -> None:
        """Load a route from nothing, until an expression is true."""
        self.loads += 1
        await self.tab.open(f"{self.address}?{self.loads}#/{route}")
        await self.until(shown)

    async def press(self, *keys: str) -> None:
        for key in keys:
            text = {"text": key} if len(key) == 1 else {}
            code = {"windowsVirtualKeyCode": KEYS[key]} if key in KEYS else {}
            for kind in ("keyDown", "keyUp"):
                await self.tab.call("Input.dispatchKeyEvent", type=kind, key=key, **text, **code)

    async def text(self, selector: str) -> str:
        return str(await self.run(f"document.querySelector({selector!r})?.textContent ?? ''"))


def all_of(selector: str, what: str) -> str:
    """An expression: what each node `b` has, as a list."""
    return f"[...document.querySelectorAll('{selector}')].map((b) => {what})"


@asynccontextmanager
async def opened(directories: list[Path], port: int | None = 0) -> AsyncIterator[Page]:
    async with (
        served(Viewer(directories, Access(None)), "127.0.0.1", port) as bound,
        open_tab() as tab,
    ):
        yield Page(tab, f"http://127.0.0.1:{bound}/")
        assert tab.complaints == []
        assert {urlsplit(url).netloc for url in tab.requests} <= {f"127.0.0.1:{bound}", ""}
        assert await tab.run("window.canary ?? null") is None


def look(directory: Path, steps: Steps) -> None:
    async def all_steps() -> None:
        async with opened([directory]) as page:
            await steps(page)

    asyncio.run(all_steps())


@asynccontextmanager
async def kept_live(directory: Path, live: dict[str, Any]) -> AsyncIterator[None]:
    """Write live.json again and again, as a run does: an old one is one of a run that has died."""

    async def keep() -> None:
        while True:
            write_atomically(directory / "live.json", orjson.dumps(live | {"at": now_utc()}))
            await asyncio.sleep(0.5)

    keeping = asyncio.create_task(keep())
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("plain") / "run", PLAIN)


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nasty_run(tmp_path_factory.mktemp("nasty") / "run")


def scores(directory: Path) -> dict[tuple[str, str, int], dict[str, Any]]:
    lines = map(orjson.loads, (directory / "results.jsonl").read_bytes().splitlines())
    return {(line["model"], line["problem_id"], line["sample"]): line for line in lines}


def test_the_overview_has_the_leaderboard_and_what_came_of_the_samples(plain: Path) -> None:
    async def steps(page: Page) -> None:
        await page.go("", "document.querySelectorAll('.board tbody tr').length === 2")
        assert await page.text(".standing-line strong") == "48 of 48 samples graded (100 %)"
        first = await page.text(".board tbody tr:first-child")
        assert first.startswith("alpha")
        assert await page.run("document.querySelector('.board .track i').style.width") != ""
        perfect = sum(line["passed"] == line["total"] for line in scores(plain).values())
        assert await page.text(".whole .chip b") == str(perfect)
        await page.until("document.querySelector('a[href*=\"fail=tests_failed\"]')")
        await page.run("document.querySelector('a[href*=\"fail=tests_failed\"]').click()")
        failed = sum(line["failure"] == "tests_failed" for line in scores(plain).values())
        await page.until(
            f"document.querySelector('.filters .count')?.textContent === '{failed} of 48 samples'"
        )

    look(plain, steps)


def test_a_keyboard_walks_the_map_and_its_address_brings_the_same_place_back(plain: Path) -> None:
    async def steps(page: Page) -> None:
        await page.go("map?sort=hard", "document.querySelectorAll('.grid-names a').length === 6")
        await page.press("j", "ArrowRight", "ArrowRight", "]")
        line = await page.text(".grid-line")
        assert "beta" in line
        assert "sample 2" in line
        model, problem, _ = line.split(": ")[0].split(" · ")
        found = scores(plain)[model, problem, 2]
        words = {0: "no test passed", found["total"]: "all tests passed"}
        assert words.get(found["passed"], f"{found['passed']} of {found['total']} tests passed") in line
        address = await page.run("location.hash")
        await page.go(address.removeprefix("#/"), "document.querySelector('.grid-line').textContent !== ''")
        await page.until(
            f"document.querySelector('.grid-line').textContent === {orjson.dumps(line).decode()}"
        )
        await page.press("Enter")
        await page.until(f"document.querySelector('h1').textContent === 'beta / {problem} / sample 2'")
        await page.press("Escape")
        await page.until(
            f"document.querySelector('.grid-line')?.textContent === {orjson.dumps(line).decode()}"
        )

    look(plain, steps)


INK = (  # of a copy: the map's own canvas is only written
    "(() => { const canvas = document.querySelector('canvas'); let ink = 0;"
    " const copy = new OffscreenCanvas(canvas.width, canvas.height)"
    ".getContext('2d', { willReadFrequently: true });"
    " copy.drawImage(canvas, 0, 0); const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);"
    " for (let at = 3; at < data.length; at += 4) ink += data[at]; return ink })()"
)


def test_the_map_draws_every_sample_and_fades_what_a_filter_leaves_out(plain: Path) -> None:
    async def steps(page: Page) -> None:
        await page.go("map", f"document.querySelectorAll('.grid-names a').length === 6 && {INK} > 0")
        ink = await page.run(INK)
        await page.run("document.querySelector('.chips button').click()")
        await page.until(f"{INK} > 0 && {INK} < 0.9 * {ink}")
        assert "state=all" in await page.run("location.hash")
        await page.run("document.querySelector('.chips button').click()")
        await page.until(f"{INK} === {ink}")
        await page.press("v")
        await page.until("location.hash.includes('by=models')")
        assert await page.run("document.querySelector('canvas').getAttribute('role')") == "application"

    look(plain, steps)


def test_a_filter_is_typed_sent_as_an_address_and_cleared(plain: Path) -> None:
    async def steps(page: Page) -> None:
        await page.go("list", "document.querySelectorAll('.rows .row').length > 20")
        await page.press("/", *"p03", "Escape")
        await page.until("document.querySelector('.count').textContent === '8 of 48 samples'")
        assert await page.run("location.hash") == "#/list?q=p03"
        await page.go("list?q=p03&m=beta&sort=low", "document.querySelectorAll('.rows .row').length === 4")
        assert await page.run("document.getElementById('filter-text').value") == "p03"
        assert await page.text(".filters .pick summary") == "beta"
        shown = await page.run(all_of(".rows .row > :nth-child(5)", "b.textContent"))
        assert shown == sorted(shown)
        await page.press("j", "j", "Enter")
        await page.until("document.querySelector('h1')?.textContent.startsWith('beta / p03')")
        assert "2 of 4 that the filter leaves" in await page.text(".page-head")
        await page.press("Escape")
        await page.until("document.querySelector('.rows .row[aria-current]')")
        await page.run("document.querySelector('.filters button.quiet').click()")
        await page.until("document.querySelector('.count').textContent === '48 samples'")

    look(plain, steps)


def test_a_sample_shows_tests_output_and_diff_and_nothing_of_it_runs(nasty: Path) -> None:
    async def steps(page: Page) -> None:
        await page.go(f"sample/alpha/{quote(NASTY_ID, safe='')}/0", "document.querySelector('.diff')")
        assert await page.text(".verdict strong") == "1 of 3 tests passed"
        assert f"suspicious: {SUSPICION}" in await page.text(".verdict")
        first = await page.text(".outcomes li:first-child")
        assert first.startswith("failed javascript:window.canary")
        assert f"Expected 1 {RUNS_SCRIPT}" in first
        printed = await page.text("pre.terminal")
        assert printed.startswith(f"FAIL App.test.js\n{RUNS_SCRIPT}<U+202E>txt.exe")
        assert await page.text("pre.terminal .bold") == "FAIL"
        assert "The middle of the output is missing: it has 123,456 bytes" in await page.text(".why")
        assert "test/<U+202E>txt.exe" in await page.text(".dropped")
        paths = await page.run("[...document.querySelectorAll('.file .path')].map((n) => n.textContent)")
        assert sorted(paths) == ["src/<U+202E>txt.exe.jsx", "src/answer.txt"]
        added = await page.run("[...document.querySelectorAll('.line.new code')].map((n) => n.textContent)")
        assert f'  return "<U+202E>txt.exe"; // {RUNS_SCRIPT}' in added
        assert await page.run("document.querySelector('.line.old code').textContent") == "0"
        await page.until("document.querySelector('.line code .hl-keyword')?.textContent === 'export'")
        await page.press("p")
        await page.until("document.querySelector('.verbatim')?.textContent.includes('Write the answer.')")
        await page.press("a")
        await page.until("document.querySelector('.verbatim')?.textContent.startsWith('Sure! <solution>')")
        assert await page.run("document.querySelectorAll('main img, main script, main iframe').length") == 0
        assert await page.run("document.querySelectorAll('a[href^=javascript]').length") == 0

    look(nasty, steps)


def test_a_shortened_text_says_how_much_is_missing_and_why(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", PLAIN)
    found = scores(directory)
    cut, tail, none = (("alpha", "p01", 0), ("alpha", "p01", 1), ("alpha", "p01", 2))
    total = found[cut]["total"]
    missing = [{"name": f"test {place}", "outcome": "missing"} for place in range(total)]
    tests = [{"name": f"test {place}", "outcome": "failed", "message": "m" * 500} for place in range(total)]
    agent = {"agent": "own", "version": "1", "end": "time", "left_out": ["venv/: venv/a"]}
    lines = {
        cut: agreeing(found[cut], 0, status="no_solution", failure="truncated", finish_reason="length")
        | {"tests": missing, "output_tail": "", "usage": {"output_tokens": 32_768}},
        tail: agreeing(found[tail], 0, tests=tests, output_tail="e" * 2_000),
        none: agreeing(found[none], 0, output_tail="", agent=agent),
    }
    records = [lines.get(key, line) for key, line in found.items()]
    (directory / "results.jsonl").write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in records))
    change_lines(
        directory / "completions.jsonl",
        lambda answers: [
            each | {"text": "<solution><file", "finish_reason": "length", "usage": {"output_tokens": 32_768}}
            if (each["model"], each["problem_id"], each["sample"]) == cut
            else each
            for each in answers
        ],
    )

    async def steps(page: Page) -> None:
        await page.go("sample/alpha/p01/0", "document.querySelector('.why')")
        assert "truncated after 32,768 tokens, 15 characters" in await page.text(".why .banner")
        assert "-M max_tokens=N" in await page.text(".why .banner")
        assert "no usable solution, so no test ran" in await page.text(".why")
        await page.go("sample/alpha/p01/1", "document.querySelector('.why pre.terminal')")
        assert "Only the last 2,000 bytes of the output are recorded" in await page.text(".why")
        assert "first 500 characters of the message" in await page.text(".outcomes")
        await page.go("sample/alpha/p01/2", "document.querySelector('.why')")
        assert "the run used --keep-output none" in await page.text(".why")
        assert "own 1: reached its time limit" in await page.text(".verdict")
        assert "venv/: venv/a" in await page.text(".why")

    look(directory, steps)


def test_every_page_of_a_run_of_hostile_names_stands_and_nothing_runs(nasty: Path) -> None:
    async def steps(page: Page) -> None:
        for route in ROUTES:
            await page.go(route, "document.querySelector('h1')")
            assert await page.run("document.querySelectorAll('main img, main script').length") == 0, route
            assert "\u202e" not in await page.run("document.body.innerText"), route
        await page.go(f"problem/{quote(NASTY_ID, safe='')}", "document.querySelector('.tests tbody tr')")
        names = await page.run("[...document.querySelectorAll('.test-name a')].map((n) => n.textContent)")
        assert NASTY_TEST.replace("\u202e", "<U+202E>") in names

    look(nasty, steps)


def test_samples_are_filtered_by_what_was_repaired_and_what_looks_suspicious(nasty: Path) -> None:
    async def steps(page: Page) -> None:
        for flag in ("repair:prose", f"suspicion:{SUSPICION}", "suspicious"):
            await page.go(
                f"list?flag={quote(flag, safe='')}", "document.querySelectorAll('.rows .row').length === 1"
            )
            assert await page.run("document.querySelector('select.set').value") == flag
        await page.run("document.querySelector('.rows .row').click()")
        await page.until("document.querySelector('.verdict strong').textContent === '1 of 3 tests passed'")

    look(nasty, steps)


def test_an_answer_of_ten_megabytes_in_one_line_is_shown_in_pieces(nasty: Path) -> None:
    async def steps(page: Page) -> None:
        route = f"sample/alpha/{quote(NASTY_ID, safe='')}/1?tab=answer"
        await page.go(route, "document.querySelector('.verbatim')")
        shown = len(await page.text(".verbatim"))
        assert 10_000 < shown < len(LONG_LINE) / 10
        assert "thousand characters left" in await page.text(".long .more")
        await page.run("document.querySelector('.long .more').click()")
        assert await page.run("document.querySelectorAll('.verbatim').length") == 2

    look(nasty, steps)


def test_keys_lead_from_sample_to_sample(plain: Path) -> None:
    async def steps(page: Page) -> None:
        def titled(name: str) -> str:
            return f"document.querySelector('h1')?.textContent === '{name}'"

        await page.go("sample/alpha/p01/3", titled("alpha / p01 / sample 3"))
        for key, name in (("j", "beta / p01 / sample 0"), ("k", "alpha / p01 / sample 3")):
            await page.press(key)
            await page.until(titled(name))
        for key, name in (("ArrowLeft", "alpha / p01 / sample 2"), ("]", "beta / p01 / sample 2")):
            await page.press(key)
            await page.until(titled(name))
        await page.press("n")
        found = scores(plain)
        after = [
            ("beta", "p01", 3),
            *((m, f"p{p:02}", s) for p in range(2, 6) for m in ("alpha", "beta") for s in range(4)),
        ]
        model, problem, sample = next(key for key in after if found[key]["passed"] < found[key]["total"])
        await page.until(titled(f"{model} / {problem} / sample {sample}"))
        await page.press("x")
        await page.until("document.querySelectorAll('.pair .side').length === 2")
        verdicts = await page.run(
            "[...document.querySelectorAll('.side .verdict strong')].map((n) => n.textContent)"
        )
        assert len({words.split(" ")[0] == words.split(" ")[2] for words in verdicts}) == 2
        await page.press("?")
        await page.until("document.getElementById('help').open")
        assert "two samples side by side" in await page.text("#help")
        await page.press("Escape")
        await page.until("!document.getElementById('help').open")
        for name in ("beta / p01 / sample 2", "alpha / p01 / sample 2", "alpha / p01 / sample 3"):
            while await page.run(f"!({titled(name)})"):
                await page.run("history.back()")
                await page.until("document.querySelector('h1') !== null")
                await asyncio.sleep(0.1)

    look(plain, steps)


def test_back_visits_every_sample_and_escape_never_leaves_the_viewer(plain: Path) -> None:
    async def steps(page: Page) -> None:
        def titled(name: str) -> str:
            return f"document.querySelector('h1')?.textContent === '{name}'"

        await page.go("list?q=p01", "document.querySelectorAll('.rows .row').length === 8")
        await page.press("j", "Enter")
        for number in (0, 1, 2):
            await page.until(titled(f"alpha / p01 / sample {number}"))
            if number < 2:
                await page.press("j")
        for number in (1, 0):
            await page.run("history.back()")
            await page.until(titled(f"alpha / p01 / sample {number}"))
        await page.press("Escape")
        await page.until(titled("Samples"))
        await page.go("", titled("Overview"))
        await page.press("Escape", "Escape", "Escape")
        assert await page.run("location.pathname + location.hash") == "/#/"

    look(plain, steps)


def test_a_judging_models_label_looks_like_one_and_no_key_deletes_it(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", PLAIN)
    judged = "model,format,problem_id,sample,label,source\nbeta,xml,p02,1,logic,judge:openai/gpt-4o\n"
    (directory / "labels.csv").write_text(judged)

    async def steps(page: Page) -> None:
        pressed = all_of(".labels button", "b.getAttribute('aria-pressed')") + ".join()"
        await page.go("sample/beta/p02/1", "document.querySelector('.labels .judged')")
        assert await page.text(".judged") == "judge:openai/gpt-4o says: Logical and implementation"
        assert await page.run(pressed) == "false,false,false,false"
        await page.press("0")
        await page.go("list?label=logic", "document.querySelectorAll('.rows .row').length === 1")
        assert await page.run("document.querySelector('.rows .judged').title") == "by judge:openai/gpt-4o"
        assert (directory / "labels.csv").read_text() == judged

    look(directory, steps)


def test_columns_are_chosen_kept_in_the_address_and_saved_as_a_file(plain: Path) -> None:
    async def steps(page: Page) -> None:
        heads = all_of(".row-head span", "b.textContent") + ".filter(Boolean).join()"
        await page.tab.call(
            "Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1, mobile=False
        )
        await page.go("list", "document.querySelectorAll('.rows .row').length > 20")
        assert await page.run(heads) == "Model,Problem,No.,Passed,Why,Record,Tokens in,Tokens out,Cost,Answer"
        await page.run("document.querySelector('.pick-list [value=tests]').click()")
        await page.until(f"{heads}.endsWith('Answer,Tests')")
        await page.go("list?cols=model,cost", "document.querySelectorAll('.rows .row').length > 20")
        assert await page.run(heads) == "Model,Cost"
        await page.run(
            "URL.createObjectURL = (b) => { b.text().then((text) => { window.saved = text }); return '#' }"
        )
        await page.run(
            "[...document.querySelectorAll('button')].find((b) => b.textContent === 'CSV').click()"
        )
        await page.until("window.saved")
        rows = list(csv.DictReader(str(await page.run("window.saved")).splitlines()))
        found = scores(plain)
        assert len(rows) == 48
        for row in rows:
            line = found[row["model"], row["problem"], int(row["sample"])]
            assert int(row["passed"]) == line["passed"]
            assert float(row["tokens_out"]) == line["usage"]["output_tokens"]

    look(plain, steps)


def test_the_record_of_a_sample_is_there_as_json(plain: Path) -> None:
    async def steps(page: Page) -> None:
        await page.go("sample/beta/p02/1?tab=record", "document.querySelector('.written .verbatim')")
        found = orjson.loads(await page.run(all_of(".written .verbatim", "b.textContent") + ".join('')"))
        assert found["result"] == scores(plain)["beta", "p02", 1]

    look(plain, steps)


def test_a_flagged_sample_shows_the_mutated_line_and_nothing_of_it_runs(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", PLAIN)
    result = scores(directory)["beta", "p02", 1]
    evidence = AuditEvidence(test="adds", path="t.py", line=2, before="assert add() == 3", after=RUNS_SCRIPT)
    line = AuditLine(
        problem_id="p02", solution_sha256=result["solution_sha256"], outcome="flagged", flagged=(evidence,)
    )
    (directory / AUDIT_LOG).write_bytes(encode(line) + b"\n")

    async def steps(page: Page) -> None:
        await page.go("sample/beta/p02/1", "document.querySelector('.audit li')")
        shown = await page.text(".audit li")
        assert shown.startswith("adds: passed in both forms, twice")
        assert f"-assert add() == 3\n+{RUNS_SCRIPT}" in shown
        assert await page.run("window.canary ?? null") is None

    look(directory, steps)


@pytest.mark.long
@pytest.mark.first
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_axe_finds_nothing_on_any_page_and_none_is_wider_than_the_window(
    tmp_path: Path, width: int, scheme: str
) -> None:
    async def steps(page: Page) -> None:
        await page.tab.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        await page.tab.call("Emulation.setEmulatedMedia", features=[feature])
        names = quote(NASTY_ID, safe="")
        for route in (
            *ROUTES,
            f"sample/alpha/{names}/0",
            f"sample/alpha/{names}/0?tab=record",
            f"sample/alpha/{names}/0?vs={quote(f'beta/{names}/0', safe='')}",
            f"problem/{names}",
        ):
            await page.go(route, "document.querySelector('h1')")
            assert await violations(page.tab) == [], route
            assert await page.run(UNREACHABLE) == [], route
            assert await page.run("document.documentElement.scrollWidth") <= width, route
        await page.press("?")
        await page.until("document.getElementById('help').open")
        assert await violations(page.tab) == []

    source()  # skipped without it
    look(colorful_run(tmp_path / "run"), steps)


def colorful_run(directory: Path) -> Path:
    """A run with hostile names, a long output in all colors of a terminal, and many events."""
    nasty_run(directory)
    codes = [*range(30, 38), *range(40, 48), *range(90, 108), *(f"38;5;{n}" for n in range(256)), "2", "7"]
    colors = " ".join(f"\x1b[{code}mplain \x1b[2mdim\x1b[0m" for code in codes)
    output = f"{colors}\n" + "a long line\n" * 500
    change_lines(directory / "outputs.jsonl", lambda ls: [line | {"output": output} for line in ls])
    key = {"model": "alpha", "format": "xml", "problem_id": NASTY_ID, "sample": 0}
    event = {"at": "2026-11-20T10:00:00.000Z", "kind": "rate_limited", **key, "detail": "HTTP 429"}
    with (directory / "events.jsonl").open("ab") as events:
        events.write((orjson.dumps(event) + b"\n") * 150)
    return directory


# Nodes that scroll and that no key reaches, or that have no name.
UNREACHABLE = """[...document.querySelectorAll('main *')].filter((node) => {
  const style = getComputedStyle(node), scrolls = (value) => value === 'auto' || value === 'scroll';
  return (scrolls(style.overflowY) && node.scrollHeight > node.clientHeight + 1
    || scrolls(style.overflowX) && node.scrollWidth > node.clientWidth + 1)
    && !(node.tabIndex >= 0 && node.role && node.ariaLabel);
}).map((node) => node.tagName + '.' + node.className)"""


def test_a_long_output_scrolls_by_keyboard(tmp_path: Path) -> None:
    async def steps(page: Page) -> None:
        await page.go(f"sample/alpha/{quote(NASTY_ID, safe='')}/0", "document.querySelector('.why .long')")
        await page.run("document.querySelector('.why .long').focus()")
        assert await page.run("document.activeElement.ariaLabel") == "Output"
        await page.press("PageDown")
        await page.until("document.querySelector('.why .long').scrollTop > 100")

    look(colorful_run(tmp_path / "run"), steps)


@pytest.mark.long
@pytest.mark.first
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing_where_looks_are_shown_and_nothing_is_cut_off(tmp_path: Path, width: int) -> None:
    async def steps(page: Page) -> None:
        await page.tab.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        await page.go("", "document.querySelectorAll('.decided tbody tr').length === 3")
        assert await violations(page.tab) == []
        wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert not await page.run(wide)

    source()  # skipped without it
    looked_run(tmp_path / "run")
    look(tmp_path / "run", steps)


def test_a_keyboard_reaches_the_map_by_the_skip_link(plain: Path) -> None:
    async def steps(page: Page) -> None:
        await page.go("map", "document.querySelector('canvas')")
        await page.press("Tab")
        assert await page.run("document.activeElement.textContent") == "Skip to the page"
        await page.press("Enter")
        await page.until("document.activeElement.tagName === 'CANVAS'")
        assert await page.run("location.hash") == "#/map"

    look(plain, steps)


def test_nothing_is_under_way_where_no_process_lives(tmp_path: Path) -> None:
    made = replace(PLAIN, leave_out=frozenset({("alpha", "xml", "p01", 2), ("alpha", "xml", "p01", 3)}))
    directory = write_run(tmp_path / "run", made)
    path = directory / "completions.jsonl"
    lost = ("alpha", "xml", "p01", 3)
    answered = orjson.loads(path.read_bytes().splitlines()[0]) | {"problem_id": "p01", "sample": 2}
    answered |= {"model": "alpha"}
    gone = (lost, key_of(answered))
    change_lines(path, lambda lines: [*(each for each in lines if key_of(each) not in gone), answered])
    chips = all_of(".whole .chip", "b.textContent.trim()") + ".slice(4).join()"

    async def steps(page: Page) -> None:
        await page.go("", f"{chips} === 'under way 0,waiting 1,missing 1'")
        await page.go("sample/alpha/p01/2", "document.querySelector('.verdict')")
        assert await page.text(".verdict strong") == "waiting"
        assert "hash" not in await page.text(".written")
        now = {"schema": 1, "pid": os.getpid(), "host": socket.gethostname(), "ended": False}
        live = {**now, "since": now_utc(), "stopping": False, "seconds_left": None}
        counts = {"planned": 48, "answered": 47, "final": 46, "asking": 1, "grading": 1, "waiting": 0}
        live |= {"samples": {**counts, "missing": 0}, "models": {}, "doing": ["images: 1 of 2 built"]}
        live |= {"containers": {"busy": 0, "ahead": 0, "slots": 2}}
        async with kept_live(directory, live):
            await page.go("", f"{chips} === 'under way 1,waiting 1,missing 0'")
            await page.until(
                "document.querySelector('.standing-line').textContent.includes('images: 1 of 2 built')"
            )
            (directory / "calls.jsonl").write_bytes(model_call(SampleKey(*lost), 0, []))
            await page.until(f"{chips} === 'under way 2,waiting 0,missing 0'")

    look(directory, steps)


def test_what_changes_while_everything_is_fetched_is_not_missed(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", replace(PLAIN, leave_out=frozenset({("alpha", "xml", "p01", 2)})))
    slowly = """(() => { const plain = window.fetch; window.asked = 0; window.fetch = (url, about) => {
        if (!String(url).includes("api/cells")) return plain(url, about);
        window.asked += 1;
        return new Promise((go) => setTimeout(go, 4000)).then(() => plain(url, about)); }; })()"""
    live = {"schema": 1, "pid": os.getpid(), "host": socket.gethostname(), "ended": False, "models": {}}
    ended = live | {"at": now_utc(), "ended": True}

    async def steps(page: Page) -> None:
        await page.tab.call("Page.addScriptToEvaluateOnNewDocument", source=slowly)
        async with kept_live(directory, live):
            await page.go("", "window.asked === 1")
            await asyncio.sleep(1)  # api/run has said by now that it is running
        write_atomically(directory / "live.json", orjson.dumps(ended))
        await page.until("document.querySelector('#run-state').textContent === 'stopped'")

    look(directory, steps)


def test_a_key_labels_a_sample_in_labels_csv(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", PLAIN)

    async def steps(page: Page) -> None:
        pressed = all_of(".labels button", "b.getAttribute('aria-pressed')") + ".join()"
        await page.go("sample/beta/p02/1", "document.querySelector('.labels button')")
        await page.press("2")
        await page.until(f"{pressed} === 'false,true,false,false'")
        rows = list(csv.DictReader((directory / "labels.csv").read_text().splitlines()))
        assert [(row["model"], row["problem_id"], row["sample"], row["label"]) for row in rows] == [
            ("beta", "p02", "1", "logic")
        ]
        await page.go("list?label=logic", "document.querySelectorAll('.rows .row').length === 1")
        assert "Logical and implementation" in await page.text(".rows .row")
        await page.go("sample/beta/p02/1", f"{pressed} === 'false,true,false,false'")
        await page.press("0")
        await page.until(f"{pressed} === 'false,false,false,false'")
        assert "logic" not in (directory / "labels.csv").read_text()

    look(directory, steps)


def test_tests_by_model_name_what_no_sample_and_what_every_sample_passes(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", PLAIN)
    outcomes: dict[str, dict[str, list[bool]]] = {}
    for (model, problem, _), line in scores(directory).items():
        for test in line["tests"] if problem == "p01" else ():
            outcomes.setdefault(test["name"], {}).setdefault(model, []).append(test["outcome"] == "passed")

    async def steps(page: Page) -> None:
        await page.go("problem/p01", "document.querySelector('.tests tbody tr')")
        rows = await page.run(all_of(".tests tbody tr", "[...b.cells].map((c) => c.textContent)"))
        assert {row[0].split("e", 1)[0] for row in rows} == {"t"}
        assert len(rows) == len(outcomes)
        for name, *_ in rows:
            assert any(name.startswith(test) for test in outcomes)
        await page.press("j")
        await page.until("location.hash === '#/problem/p02'")

    look(directory, steps)


def test_two_models_are_compared_by_the_distributions_of_their_samples(plain: Path) -> None:
    lines = scores(plain)
    problems = [f"p{p:02}" for p in range(6)]

    def sorted_scores(model: str, problem: str) -> list[float]:
        found = [line["score"] for (name, of, _), line in lines.items() if (name, of) == (model, problem)]
        return sorted(found, reverse=True)

    by_problem = {
        problem: [sum(each) / len(each) for each in (sorted_scores(m, problem) for m in ("alpha", "beta"))]
        for problem in problems
    }

    async def steps(page: Page) -> None:
        await page.go("compare?a=alpha&b=beta", "document.querySelector('.distributions')")
        rows = await page.run(all_of(".distributions tbody tr", "[...b.cells].map((c) => c.textContent)"))
        assert sorted(row[0] for row in rows) == problems
        gaps = [abs(by_problem[row[0]][0] - by_problem[row[0]][1]) for row in rows]
        assert gaps == pytest.approx(sorted(gaps, reverse=True), abs=0.01)
        for row in rows:
            assert [row[2], row[4]] == [shown(mean, "percent") for mean in by_problem[row[0]]]
        heights = await page.run(
            all_of(
                ".distributions tbody tr:first-child td:nth-child(2) rect:nth-of-type(even)",
                "Number(b.getAttribute('height'))",
            )
        )
        assert heights == [max(1, round(19 * score)) for score in sorted_scores("alpha", rows[0][0])]
        assert "all samples of both models" in await page.text(".compare .note")
        await page.run("document.querySelector('.distributions td:last-child a').click()")
        await page.until("document.querySelectorAll('.side').length === 2")
        assert "differ" in await page.text(".titled h2")

    look(plain, steps)


def test_percentages_are_rounded_as_in_the_report(plain: Path) -> None:
    values = [place / 1600 for place in range(2, 1600)]  # many of them have a tie in the first decimal

    async def steps(page: Page) -> None:
        await page.go("", "document.querySelector('.board tbody tr')")
        found = await page.run(f"import('./page/numbers.js').then(({{ percent }}) => {values}.map(percent))")
        assert found == [shown(value, "percent") for value in values]
        assert (
            await page.run("import('./page/numbers.js').then(({ percent }) => percent(-0.5625))") == "-56.2"
        )

    look(plain, steps)


def test_what_a_change_of_the_machines_network_takes_is_asked_for_again(plain: Path) -> None:
    async def steps(page: Page) -> None:
        await page.tab.call("Network.setBlockedURLs", urls=["*/page/glyphs.js"])
        await page.tab.open(page.address)
        await page.tab.call("Network.setBlockedURLs", urls=[])
        await page.until("document.querySelector('.board')")
        page.tab.complaints.clear()  # a part of the page that was lost
        await page.run(
            "let lost = 3; const real = fetch;"
            "window.fetch = (...asked) => lost-- > 0 ? Promise.reject(new TypeError('lost')) : real(...asked)"
        )
        await page.run("location.hash = '#/sample/alpha/p01/0'")
        await page.until("document.querySelector('.tabs') && document.getElementById('trouble').hidden")
        assert await page.run("lost") < 0

    look(plain, steps)


def test_a_run_that_grows_is_followed_without_loading_again(plain: Path, tmp_path: Path) -> None:
    directory = tmp_path / "run"
    write_run(directory, PLAIN)
    results = directory / "results.jsonl"
    lines = results.read_bytes().splitlines(keepends=True)
    results.write_bytes(b"".join(lines[:8]))

    async def steps(page: Page) -> None:
        await page.go(
            "", "document.querySelector('.standing-line strong')?.textContent.startsWith('8 of 48')"
        )
        await page.run("window.same = true")
        with results.open("ab") as log:
            log.write(b"".join(lines[8:20]) + lines[20][:40])
        await page.until("document.querySelector('.standing-line strong').textContent.startsWith('20 of 48')")
        await page.run("location.hash = '#/map'")
        await page.until("document.querySelector('.chips button b')")
        with results.open("ab") as log:
            log.write(lines[20][40:] + b"".join(lines[21:]))
        await page.until("document.querySelectorAll('.chips b')[5].textContent === '0'")
        assert await page.run("window.same") is True

    look(directory, steps)


def test_the_overview_tells_what_a_running_run_waits_for(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", PLAIN)
    pool = {"in_flight": 3, "waiting": 9, "per_minute": 42.0, "spent_usd": 1.25, "failed": None}
    paused = {"paused_s": 31.0, "paused_why": f"rate limited {RUNS_SCRIPT}", "waits_for": None}
    ended = {"paused_s": 0.0, "paused_why": "", "waits_for": None, "failed": "401: no such key"}
    live = {
        "schema": 1,
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "ended": False,
        "stopping": False,
        "samples": {"planned": 48, "answered": 48, "final": 48, "asking": 3, "grading": 2, "waiting": 9},
        "models": {"alpha": pool | paused, "beta": pool | ended},
        "containers": {"busy": 2, "ahead": 1, "slots": 4},
        "seconds_left": 1200.0,
    }

    async def steps(page: Page) -> None:
        async with kept_live(directory, live):
            rows = all_of(".pools tbody tr", "[...b.cells].map((c) => c.textContent)")
            expected = [
                ["alpha", "3", "9", "42", "$1.250", f"paused 31 s: rate limited {RUNS_SCRIPT}"],
                ["beta", "3", "9", "42", "$1.250", "ended: 401: no such key"],
            ]
            shown = orjson.dumps(orjson.dumps(expected).decode()).decode()
            await page.go("", f"JSON.stringify({rows}) === {shown}")  # it is drawn anew at every change
            for part in ("3 being asked", "2 of 4 containers busy, 1 ready", "$2.50", "about 20 min left"):
                await page.until(f"document.querySelector('.standing-line').textContent.includes('{part}')")
            await page.until("document.querySelector('#run-state').textContent === 'running'")

    look(directory, steps)


def look_at(k: int, state: str, **fields: Any) -> dict[str, Any]:
    known = {"format": "xml", "k": k, "state": state, "problems": None}
    return {"a": "alpha", "b": "beta", "difference": 0.1, "interval": [-0.05, 0.25], **known, **fields}


def looked_run(directory: Path) -> dict[str, Any]:
    """Three models after the first round of `--until decided`; the record of the looks."""
    three = replace(PLAIN, skill={"alpha": 0.9, "beta": 0.5, "gamma": 0.4})
    write_run(directory, replace(three, samples=8))
    change_lines(directory / "results.jsonl", lambda lines: [x for x in lines if x["sample"] < 2])
    change_lines(directory / "completions.jsonl", lambda lines: [x for x in lines if x["sample"] < 2])
    run = orjson.loads((directory / "run.json").read_bytes())
    models, schedule = ["alpha", "beta", "gamma"], schedule_of(8)
    deciding = recorded(schedule, "decided", None) | {
        "problems": list(run["problems"]),
        "groups": [group_of(models, [])],
        "planned": dict.fromkeys(models, 2),
        "looks": [
            look_at(2, "open"),
            look_at(2, "better", b="gamma", interval=[0.05, 0.25]),
            look_at(2, "not separable", a="beta", b="gamma", difference=0.02, problems=180.0),
        ],
    }

    write_atomically(directory / "run.json", orjson.dumps(run | {"deciding": deciding}))
    return deciding


def test_the_overview_has_what_is_decided_what_is_open_and_the_price_of_the_next_round(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "run"
    deciding = looked_run(directory)

    def write(**fields: Any) -> None:
        run = orjson.loads((directory / "run.json").read_bytes())
        content = orjson.dumps(run | {"deciding": deciding | fields})
        write_atomically(directory / "run.json", content)

    async def steps(page: Page) -> None:
        await page.go("", "document.querySelectorAll('.decided tbody tr').length === 3")
        await page.until("document.querySelector('.deciding-line').textContent.includes('$')")
        line = await page.text(".deciding-line")
        assert line.startswith(
            "1 of 3 pairs decided, 1 not separable, 1 open after 2 samples of each problem;"
            " next round: up to 4 samples of each problem from alpha, beta, about $"
        )
        assert await page.text(".standing-line strong") == "36 of 36 samples graded (100 %)"
        assert await page.text("#run-state") == "stopped"  # a pair is open, and nobody works
        assert await page.text("#run-name") == "run"
        assert await page.run("document.title") == "Overview · run · astra view"
        rows = await page.run(all_of(".decided tbody tr", "[...b.cells].map((c) => c.textContent)"))
        assert rows[1][:5] == ["alpha and gamma", "better", "2", "10.0", "5.0 to 25.0"]
        assert rows[2][-1] == (
            "beta and gamma are not separable with 6 problems: their mean scores differ by 2.0 points"
            " (repeated 95 % interval [-5.0, +25.0], decided after 2 samples of each problem)."
            " If the difference is as observed, about 180 problems are needed."
        )
        write(looks=[look_at(2, "better", b=name) for name in ("beta", "gamma")] + deciding["looks"][2:])
        await page.until("document.getElementById('run-state').textContent === 'finished'")
        write(planned={"alpha": 4, "beta": 4, "gamma": 2})  # the next round has begun, and nobody works
        await page.until("document.querySelector('.standing-line strong').textContent.startsWith('36 of 60')")
        write(groups="edited")
        await page.until("!document.querySelector('.decided')")

    look(directory, steps)


def test_the_turns_of_a_sample_are_its_own_addresses(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", PLAIN)
    run = orjson.loads((directory / "run.json").read_bytes())
    (directory / "run.json").write_bytes(orjson.dumps(run | {"turns": 1}))
    found = next(key for key, line in scores(directory).items() if line["failure"] == "tests_failed")
    line = scores(directory)[found]
    passed = agreeing(line, line["total"], turn=1)
    answers = map(orjson.loads, (directory / "completions.jsonl").read_bytes().splitlines())
    answer = next(each for each in answers if key_of(each) == key_of(line))
    feedback = {
        "feedback": f"Some failed. {RUNS_SCRIPT}",
        "feedback_sha256": "f" * 64,
        "feedback_version": "f1",
    }
    (directory / "turns.jsonl").write_bytes(orjson.dumps(answer | feedback | {"turn": 1}) + b"\n")
    (directory / "turn_results.jsonl").write_bytes(orjson.dumps(passed) + b"\n")
    model, problem, sample = found

    async def steps(page: Page) -> None:
        before, total = line["passed"], line["total"]
        await page.go(
            f"sample/{model}/{problem}/{sample}", "document.querySelectorAll('.turns a').length === 2"
        )
        assert await page.text(".turns a[aria-current]") == f"0: {before}/{total}"
        await page.run("document.querySelector('.turns a:last-child').click()")
        await page.until(
            f"document.querySelector('.verdict strong').textContent === '{total} of {total} tests passed'"
        )
        await page.run("location.hash += '&tab=feedback'")
        await page.until("document.querySelector('.verbatim')?.textContent.startsWith('Some failed. <img')")

    look(directory, steps)


async def test_a_directory_that_goes_and_a_server_that_comes_back_are_told_in_one_line(
    tmp_path: Path,
) -> None:
    directory = write_run(tmp_path / "run", PLAIN)

    async with open_tab() as tab:
        viewer = Viewer([directory], Access(None))
        async with served(viewer, "127.0.0.1", 0) as port:
            page = Page(tab, f"http://127.0.0.1:{port}/")
            await page.go("", "document.querySelector('.board')")
            directory.rename(tmp_path / "moved")
            await page.until("!document.getElementById('trouble').hidden")
            assert await page.run("document.querySelector('.board') !== null")
            (tmp_path / "moved").rename(directory)
        await page.until("document.getElementById('link-state').textContent.includes('connection lost')")
        assert await page.run("document.querySelector('.board') !== null")
        async with served(Viewer([directory], Access(None)), "127.0.0.1", port):
            await page.until("document.getElementById('link-state').textContent === ''")
            await page.until("document.getElementById('trouble').hidden")


def test_a_run_without_a_result_says_what_will_appear(tmp_path: Path) -> None:
    directory = write_run(tmp_path / "run", PLAIN)
    for name in ("results.jsonl", "completions.jsonl"):
        (directory / name).write_bytes(b"")

    async def steps(page: Page) -> None:
        await page.go("", "document.querySelector('.board')")
        assert "No sample of this run was graded" in await page.text(".empty")
        for route in ROUTES[1:]:
            await page.go(route, "document.querySelector('main').textContent.length > 40")

    look(directory, steps)


def test_colours_follow_the_system_until_they_are_chosen(plain: Path) -> None:
    async def steps(page: Page) -> None:
        paper = "getComputedStyle(document.body).backgroundColor"
        dark = [{"name": "prefers-color-scheme", "value": "dark"}]
        await page.tab.call("Emulation.setEmulatedMedia", features=dark)
        await page.go("", "document.querySelector('.board')")
        assert await page.run(paper) == "rgb(21, 24, 28)"
        await page.press("T")
        assert await page.run(paper) == "rgb(255, 255, 255)"
        await page.go("map", "document.querySelector('canvas')")
        assert await page.run(paper) == "rgb(255, 255, 255)"

    look(plain, steps)


def test_the_transcript_of_an_agent_grows_while_it_works_and_runs_nothing(tmp_path: Path) -> None:
    directory = write_run(
        tmp_path / "run",
        replace(PLAIN, formats=("xml", "shell"), leave_out=frozenset({("alpha", "shell", "p01", 2)})),
    )
    key = SampleKey("alpha", "shell", "p01", 2)
    call = {"id": "c1", "name": "shell", "arguments": f'{{"command": "ls {RUNS_SCRIPT}"}}'}
    task: dict[str, Any] = {
        "role": "user",
        "text": f"Do it. {RUNS_SCRIPT}",
        "calls": [],
        "results": [],
        "native": None,
    }
    asked = task | {"role": "assistant", "text": "", "calls": [call]}
    gave = task | {"text": "", "results": [{"call": call, "text": f"app.js {RUNS_SCRIPT}", "failed": False}]}
    steps_shown = "document.querySelectorAll('.transcript .step').length"

    async def steps(page: Page) -> None:
        calls = directory / "calls.jsonl"
        await page.go("sample/alpha~shell/p01/2?tab=transcript", "document.querySelector('.sample .empty')")
        calls.write_bytes(model_call(key, 0, [task], calls=[call]))
        await page.until(f"{steps_shown} === 1")
        assert await page.run(all_of(".step h4", "b.textContent")) == ["system", "user", "model calls shell"]
        with calls.open("ab") as stream:
            stream.write(model_call(key, 1, [task, asked, gave], text=f"Done. {RUNS_SCRIPT}"))
        await page.until(f"{steps_shown} === 2")
        told = all_of("#step-1 h4, #step-1 pre", "b.textContent") + ".join(' ')"
        assert f"shell gave app.js {RUNS_SCRIPT} model Done. {RUNS_SCRIPT}" in str(await page.run(told))
        assert "1.5 s, 1,200 tokens in, 34 out" in await page.text("#step-0 h3")

    look(directory, steps)
