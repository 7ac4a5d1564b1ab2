"""The whole program beside the least that its work takes, in one run; medians and ratios.

Floors: floor_http.py (streamed calls with aiohttp) and floor_docker.py (containers over the socket), 30
lines each, in turns with `astra run`. All figures are of whole processes, start included, the server apart.

    scripts/bench/run floors [--rounds 3] [--part calls|limit|containers|overlap]

- calls: 2,080 streamed calls with `--generate-only` (prompt of 23,000 characters, answer of 3,000 in 1 s).
- limit: 130 calls, the server allows 5 a second (429 with `retry-after: 1`), latency 2 s; the ideal is 28 s.
- containers: 64 samples with a trivial test, 4 at a time; to the last recorded result, and to the end.
- overlap: 32 samples, latency 15 s, 2 containers at a time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from programs import Spent, astra_run, python, run, tiny_image, toy_server

from small_problems import write_problems

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS, IN_FLIGHT, PROMPT_CHARACTERS, SPREAD_S = 2080, 256, 23_000, 1.0
SAMPLES, AT_ONCE = 64, 4


def main() -> None:
    """Measure what was asked for, or everything."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", choices=PARTS)
    options = parser.parse_args()
    for name, part in PARTS.items():
        if options.part in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                os.environ["ASTRA_CACHE"] = f"{folder}/cache"
                part(Path(folder), options.rounds)


def calls(folder: Path, rounds: int) -> None:
    """CPU and memory of asking."""
    problems = write_problems(
        folder, [f"p{number}" for number in range(65)], "any", characters=PROMPT_CHARACTERS - 1500
    )
    words = ("--generate-only", "--samples", CALLS // 65, "--max-in-flight", IN_FLIGHT)
    head(f"{CALLS} streamed calls", "CPU ms/call", "resident MB", "wall s", "CPU of the floor")
    for events, writes in ((50, 50), (700, 50), (700, 700)):
        seen: dict[str, list[Spent]] = {"floor": [], "program": []}
        for number in range(rounds):
            with toy_server(events=events, writes=writes, spread=SPREAD_S) as server:
                floor = python("floor_http.py", server.base_url, CALLS, IN_FLIGHT, PROMPT_CHARACTERS)
                seen["floor"].append(run(floor))
                out = folder / f"run-{events}-{writes}-{number}"
                seen["program"].append(run(astra_run(problems, out, server.base_url, *words)))
        floor_s = _median(seen["floor"], "cpu_s")
        for name, spent in seen.items():
            cpu_s = _median(spent, "cpu_s")
            row(
                f"{name}, {events} events in {writes} writes",
                f"{1000 * cpu_s / CALLS:.2f}",
                f"{_median(spent, 'resident_mb'):.0f}",
                f"{_median(spent, 'wall_s'):.1f}",
                f"{cpu_s / floor_s:.2f}",
            )


def limit(folder: Path, rounds: int) -> None:
    """Time and rejections under a limit that nobody announces."""
    problems = write_problems(folder, [f"p{number}" for number in range(13)], "any")
    head("130 calls, 5 a second, latency 2 s", "s, first request to last answer", "of 28 s", "rejections")
    for number in range(rounds):
        with toy_server(latency=2.0, per_second=5, writes=1) as server:
            words = ("--generate-only", "--samples", 10)
            run(astra_run(problems, folder / f"run-{number}", server.base_url, *words))
        took_s = server.seen["last_at"] - server.seen["first_at"]
        row(f"round {number + 1}", f"{took_s:.1f}", f"{took_s / 28:.0%}", f"{server.seen['rejected']:.0f}")


def containers(folder: Path, rounds: int) -> None:
    """Time and CPU of testing."""
    image = tiny_image()
    problems = write_problems(folder, ["p"], image)
    rows: dict[str, list[tuple[float, float]]] = {
        "floor": [],
        "to the last result": [],
        "with the report": [],
    }
    for number in range(rounds):
        floor = run(python("floor_docker.py", image, folder / "p", SAMPLES, AT_ONCE))
        rows["floor"].append((floor.wall_s, floor.cpu_s))
        out = folder / f"run-{number}"
        with toy_server(writes=1) as server:
            ours = run(
                astra_run(problems, out, server.base_url, "--samples", SAMPLES, "--sandboxes", AT_ONCE)
            )
        rows["to the last result"].append(
            ((out / "results.jsonl").stat().st_mtime - ours.began_at, ours.cpu_s)
        )
        rows["with the report"].append((ours.wall_s, ours.cpu_s))
    head(f"{SAMPLES} containers, {AT_ONCE} at once", "wall s", "CPU s", "of the floor")
    walls = {name: statistics.median(wall for wall, _ in values) for name, values in rows.items()}
    for name, values in rows.items():
        cpu_s = statistics.median(cpu for _, cpu in values)
        row(f"{name}", f"{walls[name]:.1f}", f"{cpu_s:.1f}", f"{walls[name] / walls['floor']:.2f}")


def overlap(folder: Path, rounds: int) -> None:
    """Whether slow models and slow containers wait for each other."""
    problems = write_problems(folder, ["p"], tiny_image())
    head("32 samples, latency 15 s, 2 containers", "s to the last result", "with the report")
    for number in range(rounds):
        out = folder / f"run-{number}"
        with toy_server(latency=15.0, writes=1) as server:
            ours = run(astra_run(problems, out, server.base_url, "--samples", 32, "--sandboxes", 2))
        last_s = (out / "results.jsonl").stat().st_mtime - ours.began_at
        row(f"round {number + 1}", f"{last_s:.1f}", f"{ours.wall_s:.1f}")


def head(*cells: str) -> None:
    """The first rows of a Markdown table."""
    print()
    row(*cells)
    row(*("---" for _ in cells))


def row(*cells: str) -> None:
    """One row of it."""
    print(f"| {' | '.join(cells)} |", flush=True)


def _median(spent: list[Spent], name: str) -> float:
    return float(statistics.median(getattr(each, name) for each in spent))


PARTS: dict[str, Callable[[Path, int], None]] = {
    "calls": calls,
    "limit": limit,
    "containers": containers,
    "overlap": overlap,
}

if __name__ == "__main__":
    main()
