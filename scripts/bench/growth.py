"""What each command that reads a run costs as it grows: CPU of the first and the second time, memory, slope.

Run directories as scripts/bench/reporting.py makes them, of 1,000 to 100,000 result lines (--large: a
million). Each command is a process of its own; the second time it finds what the first one kept beside the
lines. With --commit the same is measured of another commit, in turn, so that both meet the same machine.

    scripts/bench/run growth [--large] [--commit bdf4636]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import reporting
from programs import checked_out, run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from programs import Spent

MODELS, PROBLEMS = 16, 65
SAMPLES = (1, 10, 96)  # lines: about a thousand, ten thousand, a hundred thousand
MANY = 962
_RESTS_S = 3.0  # a log's stamp proves something once it is two seconds old
LOAD = "import astra_async, sys; astra_async.load(sys.argv[1], provisional=True).samples"


@dataclass(frozen=True, slots=True)
class Task:
    """A command over a run directory; `out` is a folder of its own."""

    name: str
    command: Callable[[Path, Path], Sequence[object]]


TASKS = (
    Task("astra status", lambda run, _: ("-m", "astra_async", "status", run)),
    Task("astra report", lambda run, out: ("-m", "astra_async", "report", run, "--out", out)),
    Task("load() with samples", lambda run, _: ("-c", LOAD, run)),
    Task(
        "export to Parquet",
        lambda run, out: ("-m", "astra_async", "export", run, "--to", "parquet", "--out", out),
    ),
)


def main() -> None:
    """Print the table, a row for each command and size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--commit", help="measured beside this checkout, such as bdf4636")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, checked_out(options.commit) as trees:
        print("| command | lines | of | first s | second s | MB | us a line more |")
        print("|---|---|---|---|---|---|---|")
        before: dict[tuple[str, str], tuple[int, float]] = {}
        for samples in (*SAMPLES, MANY) if options.large else SAMPLES:
            made = Path(folder) / f"run-{samples}"
            reporting.make(made, MODELS, PROBLEMS, samples, answers=False)
            time.sleep(_RESTS_S)
            lines = MODELS * PROBLEMS * samples
            for task in TASKS:
                for name, tree in trees.items():
                    first, second = measured(task, made, tree)
                    fewer, cost_s = before.get((task.name, name), (0, 0.0))
                    slope = f"{(first.cpu_s - cost_s) / (lines - fewer) * 1e6:.1f}" if fewer else ""
                    before[task.name, name] = lines, first.cpu_s
                    most = max(first.resident_mb, second.resident_mb)
                    cells = (task.name, f"{lines:,}", name, f"{first.cpu_s:.2f}", f"{second.cpu_s:.2f}")
                    print("|", " | ".join((*cells, f"{most:.0f}", slope)), "|", flush=True)


def measured(task: Task, made: Path, tree: Path) -> tuple[Spent, Spent]:
    """The first time, with nothing kept beside the lines, and the second."""
    (made / ".results.columns").unlink(missing_ok=True)
    found = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as out:
            words = task.command(made, Path(out) / "out")
            found.append(run([sys.executable, *map(str, words)], tree=tree))
    return found[0], found[1]


if __name__ == "__main__":
    main()
