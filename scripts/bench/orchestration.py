"""CPU, memory and event-loop lag of everything but the model and the container.

Runs the real runner, pools, parser, integration, logs, metrics, live.json and live display over an in-memory
provider and sandbox, 512 calls in flight with log-normal latencies. Each size has a process of its own; the
first row is an empty one. `--profile` prints where the time of 2,080 samples goes.

    scripts/bench/run orchestration [--large | --profile]
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, cast

import uvloop

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.asking.throttle import Pool
    from astra_async.running.progress import OpenRun
    from astra_async.running.runner import Runner
    from astra_async.types import CallWatch, Completion, ModelRequest, ModelSettings

PROBLEMS = 65
SAMPLES = 32
IN_FLIGHT = 512
ANSWER_CHARACTERS = 3000
LATENCY_S = 2.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="also 65 problems x 32 samples x 32 models")
    parser.add_argument("--profile", action="store_true", help="2,080 samples under cProfile")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--resume", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            print(json.dumps(runner.run(_measure(options.one, Path(options.resume)))))
        return
    if options.profile:
        profile()
        return
    print("| samples | CPU ms/sample | lag p50 ms | lag p99 ms | resident MB | resume s |")
    print("|---|---|---|---|---|---|")
    for models in (0, 1, 32) if options.large else (0, 1):
        with tempfile.TemporaryDirectory() as folder:
            first, again = (_in_a_process(models, folder) for _ in range(2))
        samples = models * PROBLEMS * SAMPLES
        per_sample = f"{1000 * first['cpu_s'] / samples:.2f}" if samples else "-"
        print(
            f"| {samples} | {per_sample} | {first['lag_p50_ms']:.1f} | {first['lag_p99_ms']:.1f}"
            f" | {first['resident_mb']:.0f} | {again['wall_s']:.2f} |"
        )


def profile() -> None:
    """Print the functions that take most of the time themselves."""
    import cProfile
    import pstats

    with tempfile.TemporaryDirectory() as folder, cProfile.Profile() as profiler:
        uvloop.run(_run(1, Path(folder)))
    pstats.Stats(profiler).sort_stats("tottime").print_stats(30)


def _in_a_process(models: int, folder: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", str(models), "--resume", folder]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


async def _measure(models: int, folder: Path) -> dict[str, float]:
    began, cpu = time.perf_counter(), time.process_time()
    lags: list[float] = [0.0]
    ticking = asyncio.create_task(_tick(lags))
    if models:
        await _run(models, folder)
    ticking.cancel()
    lags.sort()
    return {
        "cpu_s": time.process_time() - cpu,
        "wall_s": time.perf_counter() - began,
        "lag_p50_ms": 1000 * statistics.median(lags),
        "lag_p99_ms": 1000 * lags[int(0.99 * (len(lags) - 1))],
        "resident_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


async def _tick(lags: list[float]) -> None:
    while True:
        due = time.perf_counter() + 0.01
        await asyncio.sleep(0.01)
        lags.append(max(0.0, time.perf_counter() - due))


async def _run(models: int, folder: Path) -> None:
    from astra_async.asking.throttle import Pool
    from fakes import CountingSandbox
    from in_memory import run_in_memory

    settings = [model_settings(f"m{number}", IN_FLIGHT // models) for number in range(models)]
    pools = {each.name: Pool(each, InMemoryProvider(), price=lambda _: None) for each in settings}
    showing: list[asyncio.Task[None]] = []
    await run_in_memory(
        folder,
        pools,
        CountingSandbox(),
        problem_ids=[f"p{number}" for number in range(PROBLEMS)],
        samples=SAMPLES,
        max_in_flight=IN_FLIGHT // models,
        on_open=lambda runner: showing.append(asyncio.create_task(_show(runner, pools))),
    )
    showing[0].cancel()
    await asyncio.wait(showing)
    for pool in pools.values():
        await pool.close()


async def _show(runner: Runner, pools: Mapping[str, Pool]) -> None:
    """The live display, drawn into memory as on a terminal of 120 columns."""
    from types import SimpleNamespace

    from rich.console import Console

    from astra_async.cli.display import Display
    from astra_async.running.live import kept_live
    from astra_async.running.progress import view_of

    opened = cast("OpenRun", SimpleNamespace(runner=runner, pools=pools, sandbox=None))
    console = Console(file=io.StringIO(), force_terminal=True, width=120, height=40)
    async with kept_live(opened):
        await Display("live", lambda: console).show(lambda: view_of(opened, stopping=False))


class InMemoryProvider:
    """Answers after a log-normal latency, its first token after a tenth of it."""

    charges_max_tokens = False
    cached_input_is_exempt = False

    def __init__(self) -> None:
        self._latencies = random.Random(1)
        self._padding = "// " + "x" * ANSWER_CHARACTERS

    async def complete(self, request: ModelRequest, watch: CallWatch) -> Completion:
        """One answer; every fifth passes all tests."""
        from fakes import completion, xml_answer

        latency_s = self._latencies.lognormvariate(0.0, 0.5) * LATENCY_S / 1.13
        await asyncio.sleep(0.1 * latency_s)
        watch.first_token()
        await asyncio.sleep(0.9 * latency_s)
        return completion(xml_answer(request.key.sample % 5) + self._padding)

    async def close(self) -> None:
        """Nothing is open."""


def model_settings(name: str, max_in_flight: int) -> ModelSettings:
    """A model without announced limits."""
    from astra_async.types import ModelSettings

    return ModelSettings(
        name=name, spec=f"simulated/{name}", provider="simulated", model=name, max_in_flight=max_in_flight
    )


if __name__ == "__main__":
    main()
