"""CPU and memory of 2,080 streamed calls of 50 chunks by `astra run`, beside another commit's.

The two are run in turn, so that both meet the same machine; the ratio is of pairs. A call's CPU is what the
run took beyond a run of one sample, over the calls.

    scripts/bench/run calls [--commit bdf4636] [--rounds 5]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from programs import astra_run, checked_out, run, toy_server

from small_problems import write_problems

PROBLEMS, SAMPLES = 65, 32
PROMPT_CHARACTERS = 23_000


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--commit", help="measured beside this checkout, such as bdf4636")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, checked_out(options.commit) as trees:
        ids = [f"p{number}" for number in range(PROBLEMS)]
        problems = write_problems(Path(folder), ids, "", characters=PROMPT_CHARACTERS, named=True)
        found: dict[str, list[tuple[float, ...]]] = {name: [] for name in trees}
        for number in range(options.rounds):
            for name, tree in trees.items():
                found[name].append(measured(problems, Path(folder) / f"{number}-{name}", tree))
    print("| of | ms of CPU a call | CPU s of the run | of its start | MB of the run | of its start |")
    print("|---|---|---|---|---|---|")
    for name, rounds in found.items():
        call, whole, start, run_mb, start_mb = (statistics.median(each) for each in zip(*rounds, strict=True))
        print(f"| {name} | {call:.2f} | {whole:.2f} | {start:.2f} | {run_mb:.0f} | {start_mb:.0f} |")
    if len(found) > 1:
        here, other = found.values()
        pairs = [one[0] / two[0] for one, two in zip(here, other, strict=True)]
        print(f"\nA call, this checkout to {options.commit}: {statistics.median(pairs):.2f}, median of pairs")


def measured(problems: Path, out: Path, tree: Path) -> tuple[float, ...]:
    """Milliseconds a call; seconds of the run and of a start; megabytes of both."""
    with toy_server(events=50, writes=50) as server:
        many = ("--generate-only", "--samples", SAMPLES)
        whole = run(astra_run(problems, out / "whole", server.base_url, *many), tree=tree)
        one = ("--generate-only", "--samples", 1, "--only", "p0")
        start = run(astra_run(problems, out / "start", server.base_url, *one), tree=tree)
    call_ms = 1e3 * (whole.cpu_s - start.cpu_s) / (PROBLEMS * SAMPLES - 1)
    return call_ms, whole.cpu_s, start.cpu_s, whole.resident_mb, start.resident_mb


if __name__ == "__main__":
    main()
