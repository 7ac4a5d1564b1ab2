"""How much of the cores' time reaches the tests, where each run of the tests costs two seconds of CPU.

`astra run` with as many containers at once as there are cores, tests that spin until they have used their
seconds, and answers that come at once. In turns with it, in the same run: as many bare life-cycles (create,
start, wait, remove of `true`) at the same number at once. The share is

    CPU of the tests / (cores x time from the first answer to the last result - cores x time of the bare ones)

    scripts/bench/run busy [--rounds 3] [--samples 40] [--seconds 2]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import aiodocker
import uvloop
from programs import astra_run, run, tiny_image, toy_server

from small_problems import write_problems

SPIN = "perl -e 'do {{ 1 for 1..20000; @used = times }} while $used[0] + $used[1] < {seconds}'"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    cores, image = os.cpu_count() or 1, tiny_image()
    print("| round | cores | tests' CPU s | run, s | bare life-cycles, s | share of the tests |")
    print("|---|---|---|---|---|---|")
    shares = []
    for number in range(options.rounds):
        bare_s = uvloop.run(bare_cycles(image, options.samples, cores))
        with tempfile.TemporaryDirectory() as folder:
            os.environ["ASTRA_CACHE"] = f"{folder}/cache"
            tests_s, took_s = whole_run(Path(folder), image, options)
        shares.append(tests_s / (cores * (took_s - bare_s)))
        cells = (number + 1, cores, f"{tests_s:.1f}", f"{took_s:.1f}", f"{bare_s:.1f}", f"{shares[-1]:.3f}")
        print(f"| {' | '.join(map(str, cells))} |", flush=True)
    print(f"\nmedian share: {statistics.median(shares):.3f}")


def whole_run(folder: Path, image: str, options: argparse.Namespace) -> tuple[float, float]:
    """CPU seconds of the tests, and seconds from the first answer to the last result."""
    problems = write_problems(folder, ["p"], image, before=SPIN.format(seconds=options.seconds), named=True)
    out = folder / "run"
    with toy_server(writes=1) as server:
        run(astra_run(problems, out, server.base_url, "--samples", options.samples))
    results = [json.loads(line) for line in (out / "results.jsonl").read_bytes().splitlines()]
    assert len(results) == options.samples
    assert all(result["status"] == "scored" and not result["timed_out"] for result in results)
    took_s = (out / "results.jsonl").stat().st_mtime - server.seen["first_at"]
    return options.seconds * len(results), took_s


async def bare_cycles(image: str, count: int, at_once: int) -> float:
    """Seconds that so many bare life-cycles take."""
    waiting = iter(range(count))

    async def slot(docker: aiodocker.Docker) -> None:
        for _ in waiting:
            container = await docker.containers.create({"Image": image, "Cmd": ["true"]})
            await container.start()
            await container.wait()
            await container.delete()

    began = time.perf_counter()
    async with aiodocker.Docker() as docker, asyncio.TaskGroup() as slots:
        for _ in range(at_once):
            slots.create_task(slot(docker))
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
