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
from waiting import awaited
from whole_runs import Beside, Run, key

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [needs_compiler, pytest.mark.alone]
SAMPLES = 80
PROMISED_S = 1.0  # what a power loss may cost; docs/development/promises.md


@pytest.mark.parametrize("after_s", [0.3, 0.9])
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
            awaited(lambda: synced_answers(run, tmp_path / "synced") >= 3, "the first syncs")
            time.sleep(after_s)
            process.send_signal(signal.SIGKILL)
            failed_at = datetime.now(UTC)
            process.communicate()
        before = {key(line): line["finished_at"] for line in run.lines("completions.jsonl")}
        lose_power(run.out, tmp_path / "synced")
        left = {key(line) for line in run.lines("completions.jsonl")}
        assert len(left) >= 3
        lost = [datetime.fromisoformat(before[each]) for each in before.keys() - left]
        ages_s = [(failed_at - moment).total_seconds() for moment in lost]
        assert beside.allows(max(ages_s, default=0), PROMISED_S)
        server.script = lambda _, __: answers()
        run.environ = {}
        run.finish()
        run.check_end(of="completions.jsonl")
        assert {server.asked[f"p/{each[3]}"] for each in left} == {1}


def confirmed_sizes(notes: Path) -> dict[str, int]:
    """How much of each file is on the disk."""
    whole = notes.read_text().rpartition("\n")[0] if notes.exists() else ""
    sizes = (line.partition(" ") for line in whole.splitlines())
    return {name: int(size) for size, _, name in sizes}


def synced_answers(run: Run, notes: Path) -> int:
    path = run.out / "completions.jsonl"
    size = confirmed_sizes(notes).get(str(path), 0)
    return path.read_bytes()[:size].count(b"\n") if size else 0


def lose_power(folder: Path, notes: Path) -> None:
    """Cut every log to what was confirmed of it."""
    confirmed = confirmed_sizes(notes)
    assert str(folder) in confirmed, "the directory's own entries"
    for path in folder.iterdir():
        if path.is_file() and not is_replaced_whole(path):
            os.truncate(path, min(path.stat().st_size, confirmed.get(str(path), 0)))


def is_replaced_whole(path: Path) -> bool:
    """Written beside and confirmed before it takes its name (see `runlog.write_atomically`)."""
    return path.suffix in {".json", ".csv"}
