"""`await astra_async.run(...)`: as the command runs, resumable, cancellable."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import astra_async
from astra_async.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.types import Result

SMALL: dict[str, Any] = {
    "problems": "bundled",
    "model": "simulated/steady",
    "samples": 2,
    "limit": 2,
    "seed": 1,
}


async def test_answers_are_recorded_and_a_second_call_asks_for_nothing(tmp_path: Path) -> None:
    said: list[str] = []

    first = await astra_async.run(out=tmp_path / "r", generate_only=True, say=said.append, **SMALL)
    size = (tmp_path / "r" / "completions.jsonl").stat().st_size
    second = await astra_async.run(out=tmp_path / "r", generate_only=True, **SMALL)
    assert (tmp_path / "r" / "completions.jsonl").stat().st_size == size
    assert second.directory == tmp_path / "r"
    assert second.missing == ()
    assert (first.outcome, second.outcome) == ("complete", "complete")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampels": 3}, "unknown key `sampels`; did you mean `samples`"),
        ({"samples": 0}, "samples"),
        ({"model": "gpt-4o"}, "write provider/model"),
    ],
)
async def test_options_are_checked_as_the_command_checks_them(
    tmp_path: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        (await astra_async.run(out=tmp_path / "r", **{**SMALL, **options}))
    assert not (tmp_path / "r").exists()


async def test_a_whole_configuration_takes_no_options(tmp_path: Path) -> None:
    from astra_async.config import load_config

    config = load_config({**SMALL, "model": ("simulated/steady",), "out": str(tmp_path / "r")})
    with pytest.raises(UsageError, match="remove samples"):
        (await astra_async.run(config, samples=3))
    assert (await astra_async.run(config, generate_only=True)).outcome == "complete"


async def test_a_cancelled_run_keeps_what_was_asked_and_is_resumed(tmp_path: Path) -> None:
    many = {**SMALL, "samples": 40}

    async def cancelled() -> None:
        task = asyncio.create_task(astra_async.run(out=tmp_path / "r", generate_only=True, **many))
        while not (tmp_path / "r" / "completions.jsonl").exists():
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    await cancelled()
    finished = await astra_async.run(out=tmp_path / "r", generate_only=True, **many)
    assert finished.outcome == "complete"
    lines = (tmp_path / "r" / "completions.jsonl").read_text().splitlines()
    assert len(lines) == 80


@pytest.mark.first
@pytest.mark.docker
def test_every_final_line_is_handed_on_and_a_listener_that_breaks_ends_the_run_resumable(
    tmp_path: Path,
) -> None:
    seen: list[Result] = []
    small = {**SMALL, "only": ["product-api"], "samples": 3}

    def breaks(result: Result) -> None:
        raise KeyError(result.problem_id)

    with pytest.raises(KeyError):
        asyncio.run(astra_async.run(out=tmp_path / "r", on_result=breaks, **small))
    finished = asyncio.run(astra_async.run(out=tmp_path / "r", on_result=seen.append, **small))
    assert finished.outcome == "complete"
    run = finished.load()
    assert run.complete
    assert len(run.samples) == 3
    assert {result.sample for result in seen} <= set(run.samples["sample"])
    assert len(run.leaderboard) == 1
