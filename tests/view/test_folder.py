"""`astra view` of a folder with runs: the list, the viewer of each run, hostile names, broken runs."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import aiohttp
import orjson
import pytest
from yarl import URL

from astra_async.log import now_utc
from astra_async.report.tables import build_report
from astra_async.view.access import Access
from astra_async.view.folder import Folder
from astra_async.view.serving import served
from axe import source, violations
from browser import PROGRAM, Tab, open_tab
from made_runs import Made, made_problems, run_json, write_run, write_turns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

MADE = Made(problems=made_problems(3), samples=2, run_id="one")
SCRIPT = "<img src=x onerror='window.canary=1'>"
NAMES = (SCRIPT, "..%2f..", "a b?c#d", "{run}", "line\nbreak", "\u202egnp", "'\"&amp;", "ümlaut")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two good runs, one with a missing sample, hostile names, broken runs, and other files."""
    path = tmp_path_factory.mktemp("folder")
    write_run(path / "october", MADE)
    later = write_run(path / "november", Made(problems=made_problems(3), samples=2, run_id="two"))
    run = orjson.loads((later / "run.json").read_bytes()) | {"created_at": "2026-11-24T10:00:00.000Z"}
    (later / "run.json").write_bytes(orjson.dumps(run))
    write_turns(path / "october", MADE, 2, MADE.skill)
    lines = (later / "results.jsonl").read_bytes().splitlines(keepends=True)
    (later / "results.jsonl").write_bytes(b"".join(lines[1:]))
    for name in NAMES:
        shutil.copytree(path / "october", path / name)
    os.rename(  # noqa: PTH104 - a name of bytes
        shutil.copytree(path / "october", path / "bytes"), os.fsencode(path) + b"/\xff"
    )
    (path / "torn").mkdir()
    (path / "torn" / "run.json").write_text('{"schema": 1, "run_id"')
    (path / "empty").mkdir()
    (path / "notes.txt").write_text("not a run")
    return path


@asynccontextmanager
async def serving(folder: Path, token: str | None = None) -> AsyncIterator[str]:
    async with served(Folder(folder, Access(token)), "127.0.0.1", 0) as port:
        yield f"http://127.0.0.1:{port}/"


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


async def test_the_list_has_the_figures_of_each_runs_report_and_changes_nothing(folder: Path) -> None:
    before = files_of(folder)
    async with serving(folder) as address, aiohttp.ClientSession() as session:
        found = await (await session.get(f"{address}api/runs")).json()
    assert files_of(folder) == before
    rows = {row["name"]: row for row in found["runs"]}
    assert rows.keys() == {"october", "november", "torn", "\\xff", *NAMES}
    assert found["runs"][0]["name"] == "november", "the latest run is first"
    for name, (valid, state) in {"october": (12, "finished"), "november": (11, "stopped")}.items():
        row, report = rows[name], build_report([folder / name])
        best = report.leaderboard.by_name()[0]
        assert row["best"]["model"] == best["model"]
        assert row["best"]["score"] == pytest.approx(best["mean_score"])
        assert (row["valid"], row["planned"], row["state"]) == (valid, 12, state)
        total = sum(cell for cell in report.table("costs").column("cost_usd") if isinstance(cell, float))
        assert row["cost_usd"] == pytest.approx(total)
        assert row["models"] == ["alpha", "beta"]
    assert "restore it from a copy" in rows["torn"]["error"]
    assert rows["\\xff"]["address"] is None
    assert "not valid UTF-8" in rows["\\xff"]["error"]


def exactly(address: str) -> URL:
    """Return an address that the client does not normalize."""
    return URL(address, encoded=True)


async def test_each_run_has_its_own_viewer_and_no_other_path_has_one(folder: Path, tmp_path: Path) -> None:
    outside = write_run(tmp_path / "secret", MADE)
    async with serving(folder) as address, aiohttp.ClientSession() as session:
        rows = (await (await session.get(f"{address}api/runs")).json())["runs"]
        for row in rows:
            if row["address"]:
                page = await session.get(exactly(address + row["address"]))
                assert page.status == 200
                run = await session.get(exactly(f"{address}{row['address']}api/run"))
                assert (await run.json())["directories"] == [str(folder / row["name"])]
                cells = await session.get(exactly(f"{address}{row['address']}api/cells"))
                assert len(await cells.read()) == (12 if not row["error"] else 0)
        for name in ("..", "empty", "notes.txt", f"../{outside.name}", str(outside), "unknown"):
            answer = await session.get(exactly(f"{address}run/{quote(name, safe='')}/api/run"))
            assert answer.status == 404


async def test_a_run_that_appears_is_listed_and_a_run_that_grew_is_read_again(tmp_path: Path) -> None:
    first = write_run(tmp_path / "first", MADE)
    whole = (first / "results.jsonl").read_bytes()
    (first / "results.jsonl").write_bytes(b"")
    async with serving(tmp_path) as address, aiohttp.ClientSession() as session:

        async def rows() -> dict[str, Any]:
            found = await (await session.get(f"{address}api/runs")).json()
            return {row["name"]: row for row in found["runs"]}

        assert [(row["valid"], row["best"]) for row in (await rows()).values()] == [(0, None)]
        (first / "results.jsonl").write_bytes(whole)
        write_run(tmp_path / "second", MADE)
        assert {name: row["valid"] for name, row in (await rows()).items()} == {"first": 12, "second": 12}


async def test_a_running_run_is_read_on_and_a_truncated_log_is_read_again(tmp_path: Path) -> None:
    first = write_run(tmp_path / "first", MADE)
    live = {"at": now_utc(), "pid": os.getpid(), "host": socket.gethostname(), "ended": False}
    (first / "live.json").write_bytes(orjson.dumps(live))
    lines = (first / "results.jsonl").read_bytes().splitlines(keepends=True)
    async with serving(tmp_path) as address, aiohttp.ClientSession() as session:
        for count in (3, 9, 5, 12):
            (first / "results.jsonl").write_bytes(b"".join(lines[:count]))
            (row,) = (await (await session.get(f"{address}api/runs")).json())["runs"]
            assert (row["state"], row["valid"]) == ("running", count)
        (first / "run.json").write_bytes(orjson.dumps(run_json(MADE) | {"models": []}))
        (first / "results.jsonl").unlink()
        (row,) = (await (await session.get(f"{address}api/runs")).json())["runs"]
        assert (row["error"], row["planned"], row["cost_usd"]) == (None, 0, None)


async def test_the_list_needs_the_token_that_the_viewer_has(folder: Path) -> None:
    async with serving(folder, "t" * 32) as address, aiohttp.ClientSession() as session:
        for path in ("", "api/runs", "run/october/", "run/october/api/run"):
            assert (await session.get(address + path)).status == 403
            given = f"{address}{path}?token={'t' * 32}"
            assert (await session.get(given, allow_redirects=False)).status in {200, 303}


@pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("width", [390, 1400])
def test_the_list_opens_each_run_and_no_name_is_interpreted(folder: Path, width: int) -> None:
    async def steps(tab: Tab, address: str) -> None:
        await tab.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        for scheme in ("light", "dark"):
            feature = {"name": "prefers-color-scheme", "value": scheme}
            await tab.call("Emulation.setEmulatedMedia", features=[feature])
            await tab.open(address)
            await tab.until("document.querySelectorAll('.runs tbody tr').length === 12")
            assert await violations(tab) == []
            assert await tab.run("document.documentElement.scrollWidth") <= width
        assert await tab.run("document.querySelectorAll('img').length") == 0
        assert "restore it from a copy" in await tab.run("document.querySelector('.broken .why').textContent")
        links = await tab.run("[...document.querySelectorAll('.runs td:first-child a')].map((a) => a.href)")
        assert len(links) == 11
        for link in links:
            await tab.open(link)
            await tab.until("document.querySelector('h1')?.textContent === 'Overview'")
            assert await tab.run("document.getElementById('all-runs').href") == address
        assert await tab.run("window.canary ?? null") is None
        assert tab.complaints == []

    source()  # skipped without axe-core
    browse(folder, steps)


def browse(folder: Path, steps: Callable[[Tab, str], Awaitable[None]]) -> None:
    async def all_steps() -> None:
        async with serving(folder) as address, open_tab() as tab:
            await steps(tab, address)

    asyncio.run(all_steps())
