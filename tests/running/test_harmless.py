"""Nothing of one model, provider or disk harms another: limits, unexpected errors, pauses."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from functools import wraps
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from astra_async.errors import ContainerLost, EngineUnavailable, PoolUnusable, ProviderError, StorageError
from astra_async.log import AppendLog, keep_synced
from astra_async.running.admission import FairPermits
from astra_async.running.directory import RunDirectory
from astra_async.running.recorded import spent
from astra_async.types import Completion, Execution, Job, ModelRequest
from fakes import CountingSandbox, ScriptedPool, completion, xml_answer
from in_memory import run_in_memory
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from astra_async.running.runner import Runner

PROBLEMS = ("p1", "p2")


def on_a_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    @wraps(test)
    def run(**fixtures: object) -> None:
        asyncio.run(test(**fixtures))  # type: ignore[arg-type]

    return run


def by_sample(request: ModelRequest) -> Completion:
    return completion(xml_answer(request.key.sample % 5))


class PatientSandbox(CountingSandbox):
    """Ends a run of what is not the untouched project when both models have tests waiting, 60 times."""

    def __init__(self) -> None:
        super().__init__()
        self.runners: list[Runner] = []

    async def run(self, job: Job) -> Execution:
        while len(PROBLEMS) <= self.runs < 60 and len(self.runners[0].permits._waiting) < 2:
            await asyncio.sleep(0.001)
        return await super().run(job)


@on_a_loop
async def test_stalled_models_leave_every_place_to_a_model_that_answers(tmp_path: Path) -> None:
    """Five models at 256 places: four of them never answer, and hold more than a thousand places."""
    never = asyncio.Event()

    async def stalls(_: ModelRequest) -> Completion:
        await never.wait()
        raise PoolUnusable("gave up")

    stalled = {f"stalled-{n}": ScriptedPool(stalls) for n in range(4)}
    good = ScriptedPool(by_sample)
    running = asyncio.create_task(
        run_in_memory(
            tmp_path, {**stalled, "good": good}, CountingSandbox(), problem_ids=PROBLEMS, samples=300
        )
    )
    async with asyncio.timeout(PATIENCE_S):
        while len(recorded(tmp_path, "results.jsonl")) < 600:
            assert not running.done()
            await asyncio.sleep(0.05)
    assert len(good.asked) == 600
    never.set()
    await running


@on_a_loop
async def test_answers_that_wait_for_their_tests_hold_up_no_other_model(tmp_path: Path) -> None:
    """One model has answered everything and waits for the only container: the other is asked all the same."""
    go = asyncio.Event()

    class Closed(CountingSandbox):
        async def run(self, job: Job) -> Execution:
            await go.wait()
            return await super().run(job)

    async def slowly(request: ModelRequest) -> Completion:
        await full.wait()
        return by_sample(request)

    def quickly(request: ModelRequest) -> Completion:
        if len(quick.asked) >= 500:
            full.set()
        return by_sample(request)

    full = asyncio.Event()
    quick, slow = ScriptedPool(quickly), ScriptedPool(slowly)
    pools = {"quick": quick, "slow": slow}
    running = asyncio.create_task(
        run_in_memory(tmp_path, pools, Closed(), problem_ids=PROBLEMS, samples=300, max_in_flight=32)
    )
    async with asyncio.timeout(PATIENCE_S):
        while Counter(line["model"] for line in recorded(tmp_path, "completions.jsonl"))["slow"] < 400:
            assert not running.done()
            await asyncio.sleep(0.05)
    go.set()
    runner = await running
    assert runner.tally.final == 2 * 2 * 300


@on_a_loop
async def test_models_take_turns_at_the_tests(tmp_path: Path) -> None:
    """A model whose answers came late is tested beside the one whose answers were all there before."""
    early, late = ScriptedPool(by_sample), ScriptedPool(by_sample)
    await run_in_memory(
        tmp_path, {"early": early, "late": late}, CountingSandbox(), problem_ids=PROBLEMS, samples=1
    )
    (tmp_path / "results.jsonl").unlink()

    async def after_all_of_early(request: ModelRequest) -> Completion:
        await all_of_early.wait()
        return by_sample(request)

    def early_answer(request: ModelRequest) -> Completion:
        if len(early.asked) >= 200:
            all_of_early.set()
        return by_sample(request)

    all_of_early = asyncio.Event()
    early, late = ScriptedPool(early_answer), ScriptedPool(after_all_of_early)
    sandbox = PatientSandbox()
    await run_in_memory(
        tmp_path,
        {"early": early, "late": late},
        sandbox,
        problem_ids=PROBLEMS,
        samples=101,
        at_once=2,
        on_open=sandbox.runners.append,
    )
    tested = [line["model"] for line in recorded(tmp_path, "results.jsonl")]
    first_late = tested.index("late", 2)
    halves = Counter(tested[first_late : first_late + 40])
    assert abs(halves["early"] - halves["late"]) <= 4


@on_a_loop
async def test_a_pause_after_sandbox_trouble_ends_with_the_run(tmp_path: Path) -> None:
    class Lost(CountingSandbox):
        async def run(self, job: Job) -> Execution:
            if self.runs >= len(PROBLEMS):
                asyncio.get_running_loop().call_later(0.1, stop)
                raise ContainerLost("the engine restarted")
            return await super().run(job)

    runners: list[Runner] = []

    def stop() -> None:
        runners[0].stop()

    began = time.monotonic()
    runner = await run_in_memory(
        tmp_path,
        {"m": ScriptedPool(by_sample)},
        Lost(),
        problem_ids=PROBLEMS,
        samples=2,
        retry_delays_s=(600.0,),
        on_open=runners.append,
    )
    assert time.monotonic() - began < 120
    assert runner.tally.final == 0
    assert not runner.tally.missing, "left for the next call, not missing"


@on_a_loop
async def test_a_rooms_own_cancellation_is_the_samples_trouble(tmp_path: Path) -> None:
    async def cancels(request: ModelRequest) -> Completion:
        if request.key.problem_id == "p2":
            raise asyncio.CancelledError
        return by_sample(request)

    runner = await run_in_memory(
        tmp_path, {"m": ScriptedPool(cancels)}, CountingSandbox(), problem_ids=PROBLEMS, samples=3
    )
    assert runner.tally.final == runner.tally.missing["provider_error"] == 3


@on_a_loop
async def test_a_defect_that_meets_every_call_of_a_model_ends_its_pool_after_ten(tmp_path: Path) -> None:
    def broken(_: ModelRequest) -> Completion:
        return dict[str, Completion]()["delta"]

    pools = {"broken": ScriptedPool(broken), "good": ScriptedPool(by_sample)}
    runner = await run_in_memory(
        tmp_path, pools, CountingSandbox(), problem_ids=PROBLEMS, samples=100, max_in_flight=1
    )
    assert len(pools["broken"].asked) == 10
    assert runner.metrics.summary("good", "xml").complete
    assert runner.tally.missing == {"provider_error": 200}
    told = [line for line in recorded(tmp_path, "events.jsonl") if line["kind"] == "provider_error"]
    assert "unexpected KeyError: 'delta' (at running/sample.py:" in told[0]["detail"]
    assert "broken" in runner.dead


@on_a_loop
async def test_what_a_pool_that_ends_has_cost_counts_after_a_resume(tmp_path: Path) -> None:
    async def costly(request: ModelRequest) -> Completion:
        if request.key.sample:
            error = PoolUnusable("HTTP 402: no credit left", status=402)
            error.cost_usd = 0.25
            raise error
        return by_sample(request)

    await run_in_memory(
        tmp_path, {"m": ScriptedPool(costly)}, CountingSandbox(), problem_ids=("p1",), samples=3
    )
    directory = RunDirectory.open(tmp_path)
    assert sum(each.cost_usd for each in spent(directory.path).values()) == pytest.approx(0.001 + 2 * 0.25)
    directory.close()


def recorded(path: Path, name: str) -> list[dict[str, Any]]:
    log = path / name
    return [orjson.loads(line) for line in log.read_bytes().splitlines()] if log.exists() else []


@on_a_loop
async def test_a_turn_that_comes_to_a_cancelled_task_goes_to_the_next() -> None:
    permits, had = FairPermits(1), list[str]()

    async def take(name: str) -> None:
        async with permits.permit(name):
            had.append(name)

    async with permits.permit("holder"):
        tasks = [asyncio.create_task(take(name)) for name in ("a", "b", "c")]
        await asyncio.sleep(0)
        tasks[0].cancel()
    tasks[1].cancel()  # its turn has just come
    await asyncio.gather(*tasks, return_exceptions=True)
    assert had == ["c"]
    async with asyncio.timeout(PATIENCE_S), permits.permit("later"):
        had.append("later")


@on_a_loop
async def test_work_in_threads_holds_up_no_sync_to_disk(tmp_path: Path) -> None:
    log = AppendLog.open(tmp_path / "a.jsonl")
    log.append({"n": 1})
    go_on = threading.Event()
    busy = [asyncio.create_task(asyncio.to_thread(go_on.wait)) for _ in range(100)]
    syncing = asyncio.create_task(keep_synced((log,), lambda _: None, interval_s=0.01))
    try:
        for _ in range(500):
            await asyncio.sleep(0.01)
            if not log._dirty:
                break
        assert not log._dirty
    finally:
        go_on.set()
        syncing.cancel()
        await asyncio.gather(*busy)
        log.close()


@on_a_loop
async def test_a_table_that_cannot_be_written_stops_no_sample_and_is_told_at_the_end(tmp_path: Path) -> None:
    """Answers come over more than the five seconds after which the table is written for the first time."""

    async def slowly(request: ModelRequest) -> Completion:
        await asyncio.sleep(2.0)
        return by_sample(request)

    (tmp_path / "problems.csv" / "in the way").mkdir(parents=True)
    pool = ScriptedPool(slowly)
    with pytest.raises(StorageError, match=r"problems\.csv: Is a directory"):
        await run_in_memory(
            tmp_path, {"m": pool}, CountingSandbox(), problem_ids=PROBLEMS, samples=4, max_in_flight=2
        )
    assert len(recorded(tmp_path, "results.jsonl")) == 8
    assert "publish_failed" in {line["kind"] for line in recorded(tmp_path, "events.jsonl")}


@on_a_loop
async def test_a_pool_that_cannot_be_stopped_keeps_no_other_from_being_stopped(tmp_path: Path) -> None:
    class Stubborn(ScriptedPool):
        def stop(self) -> None:
            raise RuntimeError("no running event loop")

    class Stoppable(ScriptedPool):
        stopped = False

        def stop(self) -> None:
            self.stopped = True

    first, second = Stubborn(by_sample), Stoppable(by_sample)
    with pytest.raises(ProviderError, match="first: cannot be stopped: RuntimeError"):
        await run_in_memory(
            tmp_path,
            {"first": first, "second": second},
            CountingSandbox(),
            problem_ids=PROBLEMS,
            samples=2,
            on_open=lambda runner: runner.stop(),
        )
    assert second.stopped


@on_a_loop
async def test_a_stop_while_the_engine_is_away_leaves_its_samples_for_the_next_call(tmp_path: Path) -> None:
    class Away(CountingSandbox):
        async def run(self, job: Job) -> Execution:
            if self.runs >= len(PROBLEMS):
                runners[0].stop()
                raise EngineUnavailable("No Docker Engine answers")
            return await super().run(job)

    runners: list[Runner] = []
    runner = await run_in_memory(
        tmp_path,
        {"m": ScriptedPool(by_sample)},
        Away(),
        problem_ids=PROBLEMS,
        samples=2,
        on_open=runners.append,
    )
    assert runner.fatal is None
    assert not runner.tally.missing
