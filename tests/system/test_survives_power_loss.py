"""The power fails: of every file there is left what the disk had confirmed, and nothing else."""

from __future__ import annotations

import os
import signal
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from nasty_server import NastyServer, answers
from preloaded import compiled, needs_compiler
from small_problems import write_problems
from whole_runs import Beside, Run, key

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_compiler
SAMPLES = 80
PROMISED_S = 1.0  # what a power loss may cost; docs/promises.md


@pytest.mark.parametrize("after_s", [1.5, 2.2])
def test_a_power_loss_costs_the_last_second_and_not_more(tmp_path: Path, after_s: float) -> None:
    with NastyServer(lambda sample, _: answers(after_s=0.1 * int(sample.partition("/")[2]))) as server:
        run = Run(
            folder=tmp_path,
            problems=write_problems(tmp_path, ["p"], "any"),
            base_url=server.base_url,
            samples=SAMPLES,
            options=("--generate-only",),
            settings={"max_in_flight": SAMPLES},
            environ={
                "LD_PRELOAD": str(compiled("synced_sizes", tmp_path)),
                "SYNCED": str(tmp_path / "synced"),
            },
        )
        with Beside() as beside:
            process = run.start()
            run.await_lines("completions.jsonl", 1)
            time.sleep(after_s)
            process.send_signal(signal.SIGKILL)
            failed_at = datetime.now(UTC)
            process.communicate()
        before = {key(line): line["finished_at"] for line in run.lines("completions.jsonl")}
        lose_power(run.out, tmp_path / "synced")
        left = {key(line) for line in run.lines("completions.jsonl")}
        assert len(left) >= 3, "syncing was in time for the first ones"
        lost = [datetime.fromisoformat(before[each]) for each in before.keys() - left]
        ages_s = [(failed_at - moment).total_seconds() for moment in lost]
        assert max(ages_s, default=0) < PROMISED_S * beside.slowness
        server.script = lambda _, __: answers()
        run.environ = {}
        run.finish()
        run.check_end(of="completions.jsonl")
        assert {server.asked[f"p/{each[3]}"] for each in left} == {1}


def lose_power(folder: Path, notes: Path) -> None:
    """Cut every log to what was confirmed of it."""
    confirmed: dict[str, int] = {}
    for line in notes.read_text().splitlines():
        size, _, name = line.partition(" ")
        confirmed[name] = int(size)
    assert str(folder) in confirmed, "the directory's own entries"
    for path in folder.iterdir():
        if path.is_file() and not is_replaced_whole(path):
            os.truncate(path, min(path.stat().st_size, confirmed.get(str(path), 0)))


def is_replaced_whole(path: Path) -> bool:
    """Written beside and confirmed before it takes its name (see `runlog.write_atomically`)."""
    return path.suffix in {".json", ".csv"}
