"""Makespan against an ideal greedy schedule without any overhead, in real time scaled down to a twentieth.

Model latency is log-normal (mean 20 s, here 1 s, sigma 0.6), tests too (mean 5 s, here 0.25 s); requests are
limited by rate, by the calls in flight, by the container slots, or by all at once. The runner, the pool,
the provider, HTTP and the logs are the real ones; a container is a slot and a pause. The ideal is computed
from the same draws: every call begins the moment that the limits allow, every test when a slot is free.

Real time cannot be scaled for what the throttle does in its first seconds, nor for our CPU: both weigh
twenty times heavier here than in a run.

    scripts/bench/run makespan [--samples 1280] [--scenario NAME]
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop
from programs import toy_server

from fakes import CountingSandbox
from in_memory import run_in_memory

if TYPE_CHECKING:
    from astra_async.types import Execution, Job, Limits

LATENCY_S, TEST_S, SIGMA = 1.0, 0.25, 0.6
PROBLEMS = 40


@dataclass(frozen=True, slots=True)
class Scenario:
    """What limits a run: calls a second (0: nothing), calls in flight, containers at once."""

    per_second: float
    in_flight: int
    slots: int


SCENARIOS = {
    "rate of calls": Scenario(20, 256, 16),
    "calls in flight": Scenario(0, 32, 16),
    "containers": Scenario(0, 64, 4),
    "everything at once": Scenario(16, 20, 4),
}


class PausingSandbox(CountingSandbox):
    """A container is a slot and a pause of the length that was drawn for it."""

    def __init__(self, slots: int) -> None:
        super().__init__()
        self._free = asyncio.Semaphore(slots)
        self._rng = random.Random(2)

    def expect(self, image: str, limits: Limits) -> None:
        """Containers cost nothing here."""

    async def run(self, job: Job) -> Execution:
        """Hold a slot for as long as the test takes."""
        async with self._free:
            await asyncio.sleep(drawn_s(self._rng, TEST_S) if self.runs else 0.0)
            return await super().run(job)


def main() -> None:
    """Measure the scenarios, all at the same time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=1280)
    parser.add_argument("--scenario", choices=SCENARIOS)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measured_s(SCENARIOS[options.scenario], options.samples)))
        return
    names = [options.scenario] if options.scenario else list(SCENARIOS)
    processes = {name: started(name, options.samples) for name in names}
    print("| bound by | ideal s | measured s | efficiency |\n|---|---|---|---|")
    for name, process in processes.items():
        took_s = float(json.loads(process.communicate()[0]))
        best_s = ideal_s(SCENARIOS[name], options.samples)
        print(f"| {name} | {best_s:.1f} | {took_s:.1f} | {best_s / took_s:.3f} |", flush=True)


def started(name: str, samples: int) -> subprocess.Popen[str]:
    """A scenario in a process of its own."""
    command = [sys.executable, __file__, "--here", "--scenario", name, "--samples", str(samples)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def measured_s(scenario: Scenario, samples: int) -> float:
    """Seconds from the first call to the last final line."""
    server = toy_server(latency=LATENCY_S, sigma=SIGMA, per_second=scenario.per_second, writes=1)
    with server as running, tempfile.TemporaryDirectory() as folder:
        return uvloop.run(run(scenario, samples, Path(folder), running.base_url))


async def run(scenario: Scenario, samples: int, folder: Path, base_url: str) -> float:
    """Run all samples over the real pool."""
    from astra_async.asking.providers import open_provider
    from astra_async.asking.throttle import Pool
    from astra_async.types import ModelSettings

    settings = ModelSettings(
        name="toy",
        spec="openai-compatible/toy",
        provider="openai-compatible",
        model="toy",
        base_url=base_url,
        max_in_flight=scenario.in_flight,
        requests_per_minute=60 * scenario.per_second or None,
    )
    provider = open_provider(settings, environ={})
    pool = Pool(settings, provider, price=lambda _: None)
    began = time.perf_counter()
    await run_in_memory(
        folder,
        {"toy": pool},
        PausingSandbox(scenario.slots),
        problem_ids=[f"p{number}" for number in range(PROBLEMS)],
        samples=samples // PROBLEMS,
        max_in_flight=scenario.in_flight,
        at_once=2 * scenario.slots,  # as the program does
    )
    took_s = time.perf_counter() - began
    await pool.close()
    await provider.close()
    return took_s


def ideal_s(scenario: Scenario, samples: int) -> float:
    """The greedy schedule: calls in order as the limits allow, tests in order of their answers."""
    latencies, tests = random.Random(1), random.Random(2)
    calls = [0.0] * scenario.in_flight
    answered = []
    for number in range(samples):
        admitted_s = (
            max(0.0, (number + 1 - scenario.per_second) / scenario.per_second) if scenario.per_second else 0.0
        )
        ended_s = max(admitted_s, heapq.heappop(calls)) + drawn_s(latencies, LATENCY_S)
        heapq.heappush(calls, ended_s)
        answered.append(ended_s)
    slots = [0.0] * scenario.slots
    for answered_s in sorted(answered):
        begun_s = max(answered_s, heapq.heappop(slots))
        heapq.heappush(slots, begun_s + drawn_s(tests, TEST_S))
    return max(slots)


def drawn_s(rng: random.Random, mean_s: float) -> float:
    """Log-normal with this mean."""
    return mean_s * rng.lognormvariate(-SIGMA * SIGMA / 2, SIGMA)


if __name__ == "__main__":
    main()
