"""live.json: whole at every moment, true, seldom written, and worth nothing to the run."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import orjson

import astra_async
from astra_async.running.plan import Speed

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS: dict[str, Any] = {
    "problems": "bundled",
    "model": ("simulated/steady", "simulated/erratic"),
    "samples": 10,
    "limit": 3,
    "seed": 1,
    "generate_only": True,
}
PLANNED = 60


def live_of(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = orjson.loads((path / "live.json").read_bytes())
    return content


async def watched(path: Path, **options: Any) -> list[dict[str, Any]]:
    """Every content that a reader finds while a run is on, read 200 times a second, the last one included."""
    found: list[dict[str, Any]] = []
    running = asyncio.create_task(astra_async.run(out=path, **(OPTIONS | options)))
    while not running.done():
        await asyncio.sleep(0.005)
        if (path / "live.json").exists() and (live := live_of(path)) not in found:
            found.append(live)
    assert (await running).outcome == "complete"
    return [*found, live_of(path)]


async def test_a_reader_sees_a_run_grow_until_it_says_that_it_has_ended(tmp_path: Path) -> None:
    found = await watched(tmp_path / "r")
    assert len(found) > 2
    for live in found:
        samples = live["samples"]
        counted = ("answered", "asking", "waiting", "missing")
        assert sum(samples[name] for name in counted) == samples["planned"] == PLANNED
        assert (live["schema"], live["pid"]) == (1, os.getpid())
        assert live["models"].keys() == set(OPTIONS["model"])
    assert [live["ended"] for live in found[:-1]] == [False] * (len(found) - 2) + [True]
    assert found[-1]["samples"]["answered"] == PLANNED
    assert any(model["in_flight"] for live in found for model in live["models"].values())
    times = [live["at"] for live in found]
    assert times == sorted(times)


async def test_a_place_that_cannot_be_written_costs_the_run_nothing(tmp_path: Path) -> None:
    (tmp_path / "r" / "live.json").mkdir(parents=True)
    finished = await astra_async.run(out=tmp_path / "r", **OPTIONS)
    assert finished.outcome == "complete"
    assert not list((tmp_path / "r").glob(".*.tmp"))


async def test_drafts_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    for name in (".live.json.17.3.tmp", ".problems.csv.17.4.tmp", ".labels.csv.99.0.tmp"):
        (tmp_path / "r" / name).write_bytes(b"half")
    await astra_async.run(out=tmp_path / "r", **OPTIONS)
    assert [path.name for path in (tmp_path / "r").glob(".*.tmp")] == [".labels.csv.99.0.tmp"]  # another's


def test_time_left_goes_by_what_this_call_has_done() -> None:
    now = 0.0
    pace = Speed(900, 900, clock=lambda: now)
    now = 10.0
    assert pace.left_s(910, 1000) == 90.0


async def test_a_resumed_run_does_not_take_the_answers_of_earlier_calls_for_its_speed(tmp_path: Path) -> None:
    await astra_async.run(out=tmp_path / "r", **OPTIONS)
    found = await watched(tmp_path / "r", samples=11)
    for live in found:
        if live["samples"]["planned"] == PLANNED + 6 and live["samples"]["answered"] == PLANNED:
            assert live["seconds_left"] is None  # with 60 answers "in a second" it would be next to nothing
