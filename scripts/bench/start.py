"""How long a person waits for the program to begin: help, and the first request. Whole processes.

    scripts/bench/run start [--rounds 5]

The first request is timed from the start of `astra run` to its arrival at a server in another process; the
images are there. A resume of 66,560 finished samples: see orchestration.py --large.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

from programs import astra_run, run, tiny_image, toy_server

from small_problems import write_problems


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    help_s = [run([sys.executable, "-m", "astra_async", "--help"]).wall_s for _ in range(options.rounds)]
    print("| what | median s | least s |\n|---|---|---|")
    show("astra --help", help_s)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ASTRA_CACHE"] = f"{folder}/cache"
        root = Path(folder)
        problems = write_problems(root, ["p"], tiny_image())
        for name, words in (("with Docker", ()), ("--generate-only", ("--generate-only",))):
            show(
                f"astra run, {name}: first request",
                [first_request_s(problems, root / f"{name}-{n}", words) for n in range(options.rounds)],
            )


def first_request_s(problems: Path, out: Path, words: tuple[str, ...]) -> float:
    """Seconds from the start of the program to its first request."""
    with toy_server(writes=1) as server:
        began_at = run(astra_run(problems, out, server.base_url, "--samples", 1, *words)).began_at
    return server.seen["first_at"] - began_at


def show(name: str, seconds: list[float]) -> None:
    """One row."""
    print(f"| {name} | {statistics.median(seconds):.2f} | {min(seconds):.2f} |", flush=True)


if __name__ == "__main__":
    main()
