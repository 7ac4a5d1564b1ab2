"""A run from Python: opened, driven, closed; what it has cost, however it ends."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from astra_async.config import RunConfig
from astra_async.errors import ConflictError, SourceError
from astra_async.prepare import prepare_all
from astra_async.running.directory import RunDirectory
from astra_async.running.opening import _to_its_end, drive, open_run
from astra_async.types import ModelSettings
from command_server import astra
from fakes import MemorySource, a_problem, a_project
from nasty_server import NastyServer, answers, falls_silent
from small_problems import write_problems
from waiting import awaited

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.running.opening import RunEnd


def a_model(server: NastyServer, **fields: Any) -> ModelSettings:
    return ModelSettings(
        name="m",
        spec="simulated/steady",
        provider="simulated",
        model="steady",
        base_url=server.base_url,
        **{"max_in_flight": 8, **fields},
    )


def a_config(folder: Path, model: ModelSettings, **fields: Any) -> RunConfig:
    problems = folder / "problems.csv"
    if not problems.exists():
        write_problems(folder, ["p"], "any")
    return RunConfig(out=folder / "run", models=(model,), problems=str(problems), samples=8, **fields)


def await_all_asked(server: NastyServer) -> None:
    awaited(
        lambda: (server.asked.total(), server.answered.total()),
        "eight calls and two answers",
        until=lambda seen: seen[0] >= 8 and seen[1] >= 2,
    )


async def run(config: RunConfig, said: list[str]) -> RunEnd:
    async with open_run(config, generate_only=True, say=said.append) as opened:
        return await drive(opened)


def recorded(folder: Path, name: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (folder / "run" / name).read_bytes().splitlines()]


async def test_a_run_is_opened_driven_and_closed_from_python_without_a_word(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    with NastyServer(lambda _, __: answers()) as server:
        config = a_config(tmp_path, a_model(server))
        assert (await run(config, said)) == "complete"
        assert (await run(config, said)) == "complete"
        assert server.asked.total() == 8
    assert len(recorded(tmp_path, "completions.jsonl")) == 8
    assert said == []
    assert capfd.readouterr() == ("", "")


async def test_a_run_can_be_stopped_from_python_and_is_resumed(tmp_path: Path) -> None:
    async def stopped(config: RunConfig) -> RunEnd:
        async with open_run(config, generate_only=True) as opened:
            driving = asyncio.create_task(drive(opened))
            while server.answered.total() < 2 and not driving.done():
                await asyncio.sleep(0.01)
            opened.stop()
            return await driving

    with NastyServer(lambda _, __: answers(after_s=0.3)) as server:
        config = a_config(tmp_path, a_model(server, max_in_flight=2))
        assert (await stopped(config)) == "stopped"
        assert 2 <= len(recorded(tmp_path, "completions.jsonl")) < 8
        assert (await run(config, [])) == "complete"
        assert set(server.asked.values()) == {1}


async def test_a_call_that_is_cancelled_writes_nothing_behind_its_end() -> None:
    written: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    def write() -> None:
        begun.set()
        go_on.wait()
        written.append("run.json")

    writing = asyncio.create_task(_to_its_end(write))
    await asyncio.to_thread(begun.wait)
    writing.cancel()
    asyncio.get_running_loop().call_later(0.1, go_on.set)
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert written == ["run.json"]


async def test_a_refused_run_leaves_nothing_behind(tmp_path: Path) -> None:
    async def second(config: RunConfig) -> None:
        async with open_run(config, generate_only=True):
            with pytest.raises(ConflictError, match="is in use by process"):
                await run(config, [])

    with NastyServer(lambda _, __: answers()) as server:
        (await second(a_config(tmp_path, a_model(server))))


async def test_what_calls_cost_that_were_cancelled_counts_after_a_resume(tmp_path: Path) -> None:
    """Two answers come, six stall after their first words: all eight are billed when it is broken off."""

    async def broken_off(config: RunConfig) -> None:
        async with open_run(config, generate_only=True) as opened:
            driving = asyncio.create_task(drive(opened))
            await asyncio.to_thread(await_all_asked, server)
            await asyncio.sleep(0.5)  # for the first words of the six
            driving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await driving
            billed.append(opened.pools["m"].state.cost_usd or 0.0)

    billed: list[float] = []
    with NastyServer(lambda sample, _: answers() if sample[2:] in "01" else falls_silent) as server:
        prices = {"price_input": 1000.0, "price_output": 1000.0, "max_tokens": 10}
        (await broken_off(a_config(tmp_path, a_model(server, **prices))))
    answered = sum(line["cost_usd"] for line in recorded(tmp_path, "completions.jsonl"))
    assert billed[0] > 2 * answered > 0
    with closing(RunDirectory.open(tmp_path / "run")) as directory:
        assert directory.earlier["m"].cost_usd == pytest.approx(billed[0])


def test_one_model_that_the_budget_stops_is_exit_1_and_the_remedy_is_told(tmp_path: Path) -> None:
    with NastyServer(lambda _, __: answers()) as server:
        (tmp_path / "astra.toml").write_text(
            f'[[models]]\nspec = "simulated/steady"\nbase_url = "{server.base_url}"\nmax_tokens = 1000\n'
            "price_input = 1.0\nprice_output = 1000.0\nmax_in_flight = 1\n"
        )
        write_problems(tmp_path, ["p"], "any")
        words = "run --problems problems.csv --config astra.toml --out run --generate-only --samples 8"
        environ = {**os.environ, "ASTRA_CACHE": str(tmp_path / "cache")}
        done = astra(*words.split(), "--budget-usd", "1.05", cwd=tmp_path, env=environ)
        assert done.returncode == 1, done.stderr
        assert 0 < server.asked.total() < 8
        assert "samples missing: simulated/steady: the budget of $1.05 is reached" in done.stderr
        assert done.stderr.count("the budget of") == 1, "once, and not for the pool and each sample"
        asked = server.asked.total()
        (command,) = re.findall("continue with: astra (.*)", done.stderr)
        assert command.startswith(words)
        assert float(command.rpartition(" --budget-usd ")[2]) > 1.05
        told = astra("status", "run", cwd=tmp_path, env=environ).stdout
        assert f"next: astra {command}\n      continues the run with a higher budget" in told
        assert f"{8 - asked} over budget" in told
        assert "provider error" not in told
        astra(*command.split(), cwd=tmp_path, env=environ)
        assert server.asked.total() > asked


async def test_an_unexpected_error_of_one_problem_leaves_the_others_ready_and_a_shared_cause_is_one() -> None:
    class Source(MemorySource):
        async def load(self, location: str) -> Any:
            await asyncio.sleep(0)
            if location == "odd":
                return dict[str, Any]()["files"]
            if location.startswith("gone"):
                raise SourceError("no such file", where=location)
            return await super().load(location)

    source = Source({"fine": a_project(), "also": a_project()})
    names = ["fine", "odd", "gone-1", "also", "gone-2"]
    problems = [a_problem(name) for name in names]
    ready, failed = await prepare_all(problems, source, ("xml",))
    assert list(ready) == ["fine", "also"]
    assert list(failed) == ["odd", "gone-1", "gone-2"]
    assert str(failed["odd"]).startswith("problem odd: unexpected KeyError: 'files'")
    assert str(failed["gone-1"]) == "problem gone-1: gone-1: no such file"
    assert failed["gone-1"].cause == failed["gone-2"].cause == "no such file"
