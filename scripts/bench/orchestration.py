#!/usr/bin/env python3
"""CPU, memory and event-loop lag of everything but the model and the container.

Runs the real runner, parser, integration, logs and metrics over an in-memory pool and sandbox, 512 calls
in flight with log-normal latencies. Each size has a process of its own; the first row is an empty one.

    .venv/bin/python scripts/bench/orchestration.py [--large]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

PROBLEMS = 65
SAMPLES = 32
ANSWER_CHARACTERS = 3000
LATENCY_S = 2.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="also 65 problems x 32 samples x 32 models")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--resume", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            print(json.dumps(runner.run(_measure(options.one, Path(options.resume)))))
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
    from astra_async.expected import Expectations
    from astra_async.lenient import LenientParser
    from astra_async.metrics import Metrics
    from astra_async.pipeline import Asking, Workshop
    from astra_async.prepare import prepare_all
    from astra_async.rundir import RunDirectory
    from astra_async.runner import Plan, Runner
    from astra_async.types import Completion, Limits, ModelRequest
    from fakes import (
        CountingSandbox,
        MemorySource,
        ScriptedPool,
        a_problem,
        a_project,
        completion,
        xml_answer,
    )

    latencies = random.Random(1)
    padding = "// " + "x" * ANSWER_CHARACTERS

    async def answer(request: ModelRequest) -> Completion:
        await asyncio.sleep(latencies.lognormvariate(0.0, 0.5) * LATENCY_S / 1.13)
        return completion(xml_answer(request.key.sample % 5) + padding)

    names = [f"p{number}" for number in range(PROBLEMS)]
    pools = {f"m{number}": ScriptedPool(answer) for number in range(models)}
    source = MemorySource({name: a_project() for name in names})
    prepared, _ = await prepare_all([a_problem(name) for name in names], source, ("xml",))
    sandbox = CountingSandbox()
    metrics = Metrics({(model, "xml"): dict.fromkeys(names, SAMPLES) for model in pools})
    recorded: list[tuple[str, str, int, int]] = []
    directory = RunDirectory.open(
        folder,
        lambda line: recorded.append((line["model"], line["problem_id"], line["passed"], line["total"])),
    )
    with closing(directory):
        for model, problem_id, passed, total in recorded:
            metrics.add(model, "xml", problem_id, passed, total)
        plan = Plan(
            models=tuple(pools),
            formats=("xml",),
            problem_ids=tuple(names),
            samples=SAMPLES,
            prepared=prepared,
            max_in_flight=dict.fromkeys(pools, 512 // max(1, models)),
        )
        workshop = Workshop(
            sandbox=sandbox,
            images=dict.fromkeys(names, "any"),
            expectations=Expectations(folder / "expected.json", folder / "cache", sandbox, Limits()),
            lenient=LenientParser(),
            limits=Limits(),
        )
        await Runner(plan, directory, metrics, asking=Asking(pools=pools), workshop=workshop).run()


if __name__ == "__main__":
    main()
