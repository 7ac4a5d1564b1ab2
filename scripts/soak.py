#!/usr/bin/env python3
"""20,000 samples with faults everywhere: nothing lost, nothing left, memory flat. A few minutes.

Real HTTP to a simulated server in a process of its own, in four wire formats, where one attempt in twelve is
rejected, reset, cut or silent; a sandbox in memory that loses one container in fifty; the real runner, pools,
parsers, integration, logs and metrics. The run is stopped and resumed several times. At the end: every key
has one final line, none is missing, no task, file descriptor or container is left, and memory has not
grown by more than the index of what is recorded.

    .venv/bin/python scripts/soak.py [--samples 20000]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import math
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import uvloop

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from astra_async.errors import ContainerLost, SandboxError
from fakes import CountingSandbox
from in_memory import run_in_memory

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

    from astra_async.asking.throttle import Pool, PoolEvent
    from astra_async.running.runner import Runner
    from astra_async.types import Execution, Format, Job

PROVIDERS = ("simulated", "anthropic", "gemini", "openai-responses")
PROBLEMS = 50
FORMATS: tuple[Format, ...] = ("xml", "json")
STOPS = 4
SESSIONS_TO_THE_END = 2  # what the first of them gives up for good, the second asks for again
LOST = 0.02
MOST_BYTES_A_SAMPLE = 3000  # of the index: two dictionaries of keys and places
KEYS = dict.fromkeys(("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"), "none")


class LossySandbox(CountingSandbox):
    """Loses a container now and then; `open` counts those that are there."""

    def __init__(self) -> None:
        super().__init__()
        self.open = self.most_open = self.lost = 0
        self._rng = random.Random(3)

    async def run(self, job: Job) -> Execution:
        """Run the job, or fail as an engine does."""
        self.open += 1
        self.most_open = max(self.open, self.most_open)
        try:
            await asyncio.sleep(self._rng.uniform(0.0, 0.01))
            if self.runs > PROBLEMS and self._rng.random() < LOST:
                self.lost += 1
                raise self._rng.choice((ContainerLost("killed from outside"), SandboxError("took too long")))
            return await super().run(job)
        finally:
            self.open -= 1


@dataclass(slots=True)
class Seen:
    """Memory by finished samples."""

    memory: list[tuple[int, int]] = field(default_factory=list)
    events: Counter[str] = field(default_factory=Counter)


def main() -> None:
    """Run, check, and print what was seen."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=20_000)
    options = parser.parse_args()
    ports: Queue[int] = multiprocessing.get_context("spawn").Queue()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(ports,), daemon=True)
    server.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            uvloop.run(soak(Path(folder), ports.get(timeout=60), options.samples))
    finally:
        server.terminate()
        server.join()


async def soak(folder: Path, port: int, planned: int) -> None:
    """All sessions and the checks."""
    samples = math.ceil(planned / (len(PROVIDERS) * PROBLEMS * len(FORMATS)))
    planned = samples * len(PROVIDERS) * PROBLEMS * len(FORMATS)
    sandbox, seen = LossySandbox(), Seen()
    began, descriptors = time.perf_counter(), open_descriptors()
    stops: list[int | None] = [planned * number // (STOPS + 1) for number in range(1, STOPS + 1)]
    for stop_at in [*stops, *(None,) * SESSIONS_TO_THE_END]:
        missing = await one_session(folder, port, samples, sandbox=sandbox, seen=seen, stop_at=stop_at)
        print(f"{time.perf_counter() - began:.0f} s: {missing} missing", file=sys.stderr)
    await asyncio.sleep(0.1)
    check(folder, planned, sandbox, seen)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, f"tasks are left: {left}"
    assert open_descriptors() <= descriptors + 1, f"{open_descriptors()} descriptors, {descriptors} before"
    print(
        f"{planned} samples in {time.perf_counter() - began:.0f} s, {STOPS} stops;"
        f" {sandbox.lost} lost containers; events: {dict(seen.events.most_common())}"
    )


async def one_session(
    folder: Path, port: int, samples: int, *, sandbox: LossySandbox, seen: Seen, stop_at: int | None
) -> int:
    """One process's life: open, run until it is stopped or done, close; returns how many are missing."""
    async with AsyncExitStack() as stack:
        pools = {provider: await open_pool(provider, port, stack, seen) for provider in PROVIDERS}
        watching: list[asyncio.Task[None]] = []

        def begin(runner: Runner) -> None:
            watching.append(asyncio.create_task(watch(runner, seen, stop_at)))

        runner = await run_in_memory(
            folder,
            pools,
            sandbox,
            problem_ids=[f"p{number}" for number in range(PROBLEMS)],
            samples=samples,
            formats=FORMATS,
            max_in_flight=64,
            at_once=16,
            on_open=begin,
        )
        watching[0].cancel()
        await asyncio.wait(watching)
        print(dict(runner.tally.reasons), file=sys.stderr)
        return runner.tally.missing.total()


async def watch(runner: Runner, seen: Seen, stop_at: int | None) -> None:
    """Note the memory, and stop the run when it has come so far."""
    while True:
        await asyncio.sleep(0.5)
        seen.memory.append((runner.tally.final, resident_bytes()))
        counts = f"{runner.tally.final} final, {runner.tally.asking} asking, {runner.tally.grading} grading"
        print(f"{counts}, {resident_bytes() >> 20} MB", file=sys.stderr)
        if stop_at is not None and runner.tally.final >= stop_at:
            runner.stop()
            return


async def open_pool(provider: str, port: int, stack: AsyncExitStack, seen: Seen) -> Pool:
    """A pool over the provider's own wire format."""
    from astra_async.asking.providers import open_provider
    from astra_async.asking.throttle import Pool
    from astra_async.types import ModelSettings

    root = f"http://127.0.0.1:{port}"
    settings = ModelSettings(
        name=provider,
        spec=f"{provider}/erratic",
        provider=provider,
        model="erratic",
        base_url=root if provider in ("anthropic", "gemini") else f"{root}/v1",
        max_in_flight=64,
        timeout_s=5.0,
    )
    opened = open_provider(settings, environ=KEYS)
    stack.push_async_callback(opened.close)

    def note(event: PoolEvent) -> None:
        seen.events[event.kind] += 1

    pool = Pool(settings, opened, price=lambda _: None, on_event=note)
    stack.push_async_callback(pool.close)
    return pool


def check(folder: Path, planned: int, sandbox: LossySandbox, seen: Seen) -> None:
    """What must hold at the end."""
    names = ("model", "format", "problem_id", "sample")
    for log in ("completions.jsonl", "results.jsonl"):
        keys: Counter[tuple[object, ...]] = Counter()
        with (folder / log).open("rb") as stream:
            for line in stream:
                record = orjson.loads(line)
                keys[tuple(record[name] for name in names)] += 1
        assert len(keys) == planned, f"{log}: {len(keys)} of {planned} keys"
        assert set(keys.values()) == {1}, f"{log}: a key has two lines"
    with (folder / "events.jsonl").open("rb") as stream:
        seen.events.update(orjson.loads(line)["kind"] for line in stream)
    assert sandbox.open == 0, "a container is left"
    gc.collect()
    quarter = next(each for each in seen.memory if each[0] >= planned // 4)
    last = seen.memory[-1]
    growth = (last[1] - quarter[1]) / max(1, last[0] - quarter[0])
    sizes = ", ".join(f"{size >> 20} MB at {final}" for final, size in (quarter, last))
    print(f"resident: {sizes}: {growth:.0f} bytes a sample")
    assert growth < MOST_BYTES_A_SAMPLE


def open_descriptors() -> int:
    """Of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def resident_bytes() -> int:
    """Of this process, now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def serve(ports: Queue[int]) -> None:
    """The server's process."""
    from astra_async.bundled import BundledAnswers, Faulty
    from astra_async.simulate.server import SimulatedServer
    from astra_async.types.simulation import SimulationSettings

    def files(passed: int) -> dict[str, str]:
        return {"src/answer.txt": f"{passed}\n"}

    def wrong(passed: int) -> Faulty:
        return Faulty(
            name=f"wrong-{passed}",
            files=files(passed),
            expected_passed=passed,
            error_class="logic",
            summary="",
        )

    known = BundledAnswers(reference=files(4), faulty=tuple(map(wrong, range(4))), total=4)

    async def run() -> None:
        server = await SimulatedServer.start(
            settings=SimulationSettings(speed=0.02, fault_rate=0.08, stall_s=1.0),
            answers=lambda _: known,
            find_problem=lambda _: "p",
        )
        ports.put(server.port)
        await asyncio.Event().wait()

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    uvloop.run(run())


if __name__ == "__main__":
    main()
