"""What a cluster costs: the same jobs on one sandbox of S slots, and on 1, 2 and 3 nodes with S slots in all.

    scripts/bench/run cluster [JOBS]      (needs a Docker Engine; a few minutes)

Tests are trivial (`true`), archives have 100 KB, all nodes are processes of this machine on the same engine.
Makespan is from the first job to the last result; the rounds take turns, and the ratio is of medians. CPU is
that of the head alone, for each job; memory is what head and scheduler hold afterwards above what they held.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import statistics
import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop

from astra_async.cluster.head import ClusterSandbox
from astra_async.cluster.local import LocalCluster
from astra_async.images.base_image import ensure_base
from astra_async.testing.sandbox.docker_sandbox import DockerSandbox
from astra_async.testing.sandbox.engine import Engine
from astra_async.types import Job, Limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from astra_async.types import RunSandbox

SLOTS = 6
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Measured:
    """One round."""

    wall_s: float
    head_cpu_ms: float


async def main(jobs: int) -> None:
    """Print the table."""
    async with await Engine.open() as engine:
        image = await ensure_base(engine, progress=print)
    job = Job(image=image, archive=archive(), command="true", limits=Limits())
    seen: dict[int, list[Measured]] = {nodes: [] for nodes in (0, 1, 2, 3)}
    memory: dict[int, tuple[float, float]] = {}
    for _ in range(ROUNDS):
        for nodes, rounds in seen.items():
            async with opened(nodes, image) as (sandbox, scheduler):
                await all_jobs(sandbox, job, SLOTS)  # each node looks at the image once
                before = resident_mb(os.getpid()), resident_mb(scheduler)
                rounds.append(await all_jobs(sandbox, job, jobs))
                memory[nodes] = resident_mb(os.getpid()) - before[0], resident_mb(scheduler) - before[1]
    print("| nodes | slots | makespan s | against direct | head CPU ms a job | head MB | scheduler MB |")
    print("|---|---|---|---|---|---|---|")
    direct_s = statistics.median(each.wall_s for each in seen[0])
    for nodes, rounds in seen.items():
        wall_s = statistics.median(each.wall_s for each in rounds)
        cpu_ms = statistics.median(each.head_cpu_ms for each in rounds)
        head_mb, scheduler_mb = memory[nodes]
        print(
            f"| {nodes or 'direct'} | {SLOTS} | {wall_s:.1f} | {wall_s / direct_s:.2f} | {cpu_ms:.2f}"
            f" | {head_mb:+.0f} | {scheduler_mb:+.0f} |"
        )


@contextlib.asynccontextmanager
async def opened(nodes: int, image: str) -> AsyncIterator[tuple[RunSandbox, int]]:
    """A sandbox of SLOTS slots, and the process id of its scheduler (this one's where there is none)."""
    if not nodes:
        async with await DockerSandbox.open(run_id="bench", slots=SLOTS) as sandbox:
            yield sandbox, os.getpid()
        return
    cluster = await ClusterSandbox.open(
        f"local:{nodes}", run_id="bench", limits=Limits(), sandboxes=SLOTS, say=lambda _: None
    )
    try:
        await cluster.bring([image])
        assert isinstance(cluster.local, LocalCluster)
        yield cluster, cluster.local.scheduler_pid
    finally:
        await cluster.close()


async def all_jobs(sandbox: RunSandbox, job: Job, jobs: int) -> Measured:
    """All jobs, as many waiting at once as a run has."""
    gate = asyncio.Semaphore(2 * SLOTS)

    async def one() -> None:
        async with gate:
            sandbox.expect(job.image, job.limits)
            assert (await sandbox.run(job)).exit_code == 0

    wall, cpu = time.perf_counter(), time.process_time()
    async with asyncio.TaskGroup() as group:
        for _ in range(jobs):
            group.create_task(one())
    cpu_ms = (time.process_time() - cpu) * 1000 / jobs
    return Measured(time.perf_counter() - wall, cpu_ms)


def archive() -> bytes:
    """A project of 25 files of 4 KB."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:") as tar:
        for number in range(25):
            entry = tarfile.TarInfo(f"src/file{number}.js")
            entry.size, entry.uid, entry.gid = 4096, 1000, 1000
            tar.addfile(entry, io.BytesIO(os.urandom(4096)))
    return packed.getvalue()


def resident_mb(process: int) -> float:
    """Memory that a process holds."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 60))
