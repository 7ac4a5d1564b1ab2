"""live.json: the current state of a run, for other processes.

The file is replaced atomically at most twice a second, and less often if building its content would take
more than SHARE of one core's time. Writing is best effort: a disk that fails or hangs does not affect the
run, and a killed run leaves its last file. Readers check `at` and `pid` (see docs/formats.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from astra_async.errors import StorageError
from astra_async.files import file_mode, write_atomically
from astra_async.log import encode, now_utc
from astra_async.redaction import mask
from astra_async.running.progress import activities

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from astra_async.running.model_pools import AnyPool
    from astra_async.running.plan import Counts
    from astra_async.running.progress import OpenRun
    from astra_async.running.runner import Runner

SCHEMA = 1
SHARE = 0.002
_INTERVAL_S = 0.5
# Fields in live.json, with the attributes of the sandbox.
_CONTAINERS = {"busy": "running", "ahead": "ahead", "slots": "slots"}
_CLOSE_TIMEOUT_S = 1.0  # maximum wait for a hanging disk when the run ends


@asynccontextmanager
async def kept_live(run: OpenRun) -> AsyncIterator[None]:
    """Keep live.json up to date while the context is open; the last version has `ended: true`."""
    path, since = run.runner.directory.path / "live.json", now_utc()
    disk = ThreadPoolExecutor(1, thread_name_prefix="live")  # a hanging disk blocks only this thread
    keeping = asyncio.create_task(_rewrite_regularly(run, path, disk, since))
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.wait([keeping], timeout=_CLOSE_TIMEOUT_S)
        disk.shutdown(wait=False)


async def _rewrite_regularly(run: OpenRun, path: Path, disk: ThreadPoolExecutor, since: str) -> None:
    loop = asyncio.get_running_loop()
    try:
        while True:
            began = time.thread_time()
            content = encode(live_state(run, since=since))
            pause_s = max(_INTERVAL_S, (time.thread_time() - began) / SHARE)
            await loop.run_in_executor(disk, _write, path, content)
            await asyncio.sleep(pause_s)
    finally:
        await loop.run_in_executor(disk, _write, path, encode(live_state(run, since=since, ended=True)))


def _write(path: Path, content: bytes) -> None:
    with contextlib.suppress(StorageError):
        write_atomically(path, content, mode=file_mode(path.parent), sync=False)


def live_state(run: OpenRun, *, since: str = "", ended: bool = False) -> dict[str, Any]:
    """Return the content of live.json (docs/formats.md)."""
    runner, tally, turns = run.runner, run.runner.tally, run.runner.tally.turns
    done, missing = tally.final if run.sandbox else tally.answered, tally.missing.total()
    return {
        "schema": SCHEMA,
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": since,
        "at": now_utc(),
        "ended": ended,
        "stopping": runner.stopping.is_set(),
        "samples": {
            "planned": tally.planned,
            **_counts(tally),
            "waiting": max(0, tally.planned - done - tally.asking - tally.grading - missing),
            "missing": missing,
        },
        **({"turns": _counts(turns) | {"missing": turns.missing.total()}} if runner.setup.turns.most else {}),
        "models": {model: _model(runner, model, run.pools.get(model)) for model in runner.plan.models},
        "containers": {name: getattr(run.sandbox, member, 0) for name, member in _CONTAINERS.items()},
        "doing": list(activities(runner)),
        "seconds_left": runner.seconds_left,
    }


def _counts(counts: Counts) -> dict[str, int]:
    return {name: getattr(counts, name) for name in ("answered", "final", "asking", "grading")}


def _model(runner: Runner, model: str, pool: AnyPool | None) -> dict[str, Any]:
    earlier = runner.directory.earlier.get(model)
    spent_usd = earlier.cost_usd if earlier else 0.0
    if pool is None:
        idle = {"in_flight": 0, "waiting": 0, "per_minute": None, "paused_s": 0.0, "paused_why": ""}
        return idle | {"batches": [], "waits_for": None, "spent_usd": spent_usd or None, "failed": None}
    state, dead = pool.state, runner.dead.get(model)
    return {
        "in_flight": state.in_flight,
        "waiting": state.waiting,
        "per_minute": None if state.send_rate is None else round(60 * state.send_rate, 1),
        "paused_s": round(state.paused_for_s, 1),
        "paused_why": mask(state.pause_reason) if state.pause_reason else "",
        "waits_for": state.held_by,
        "batches": [asdict(each) | {"age_s": round(each.age_s)} for each in state.batches],
        "spent_usd": (spent_usd + (state.cost_usd or 0.0)) or None,
        "failed": None if dead is None else str(dead),
    }
