"""What a cluster costs: the same jobs on one sandbox, and on 1, 2 and 3 nodes with as many slots in all.

    scripts/bench/run cluster [JOBS]      (needs a Docker Engine; a few minutes)

Tests are trivial (`true`), archives have 100 KB, all nodes are processes of this machine on the same engine.
Makespan is from the first job to the last result; the rounds take turns, and the ratio is of medians. CPU is
that of the head alone, for each job; memory is what head and scheduler hold afterwards above what they held.

The second table needs no container: nodes answer after 10 ms, so that the head is what bounds them.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import statistics
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop
from distributed.core import Server, Status

from astra_async.cluster.head import ClusterSandbox
from astra_async.cluster.local import LocalCluster
from astra_async.cluster.messages import TESTS, Stream, from_execution, unpack
from astra_async.images.base_image import ensure_base
from astra_async.testing.sandbox.docker_sandbox import DockerSandbox
from astra_async.testing.sandbox.engine import Engine
from astra_async.types import Execution, Job, Limits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from distributed.comm import Comm

    from astra_async.types import RunSandbox

SLOTS = 6
_TOY, _TOY_JOBS = "toy", 2000
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Measured:
    """One round."""

    wall_s: float
    head_cpu_ms: float


async def main(jobs: int) -> None:
    """Print both tables."""
    await head_alone()
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


async def head_alone() -> None:
    """What the head itself spends on a job, and how many it can serve in a second."""
    print("| nodes | head CPU ms a job | jobs a second | head MB |\n|---|---|---|---|")
    for count in (1, 2, 3):
        with toy_nodes(count) as address:
            sandbox = await ClusterSandbox.open(
                address, run_id="bench", limits=Limits(), sandboxes=1, say=lambda _: None
            )
            await sandbox.bring([_TOY])
            job = Job(image=_TOY, archive=archive(), command="true", limits=Limits())
            await all_jobs(sandbox, job, 100)
            before = resident_mb(os.getpid())
            seen = await all_jobs(sandbox, job, _TOY_JOBS)
            print(
                f"| {count} | {seen.head_cpu_ms:.2f} | {_TOY_JOBS / seen.wall_s:.0f}"
                f" | {resident_mb(os.getpid()) - before:+.0f} |",
                flush=True,
            )
            await sandbox.close()


@contextlib.contextmanager
def toy_nodes(count: int) -> Iterator[str]:
    """The address of a server that knows so many nodes, itself the first."""
    command = [sys.executable, __file__, "toy"]
    nodes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    try:
        addresses = [node.stdout.readline().strip() for node in nodes if node.stdout]
        for node in nodes:
            if node.stdin:
                node.stdin.write(" ".join(addresses) + "\n")
                node.stdin.flush()
        yield addresses[0]
    finally:
        for node in nodes:
            node.kill()
            node.communicate()


async def toy_node() -> None:
    """Answer jobs after ten milliseconds with two kilobytes of output."""
    known: list[str] = []
    done = from_execution(Execution(exit_code=0, duration_s=0.01, output="x" * 2000))

    async def identity() -> dict[str, object]:
        return {"workers": dict.fromkeys(known, "")}

    async def serve(comm: Comm, hello: bytes) -> Status:
        stream, asked = Stream(comm), unpack(hello)
        told = {"name": "toy", "slots": 8, "process": "a:b:1:2", "engine_id": "", "trouble": ""}
        stream.send("about", **told, messages=asked["messages"], version=asked["version"])
        tasks = set()
        with contextlib.suppress(OSError):
            while True:
                for message in await stream.receive():
                    if message["op"] == "images":
                        stream.send("images", found=dict.fromkeys(message["wanted"], "sha256:toy"))
                    elif message["op"] == "run":
                        tasks.add(asyncio.create_task(answer(stream, message["number"])))
        return Status.dont_reply

    async def answer(stream: Stream, number: int) -> None:
        await asyncio.sleep(0.01)
        stream.send("done", number=number, execution=done)

    async with Server({TESTS: serve, "identity": identity}) as server:
        await server.listen("tcp://127.0.0.1:0")
        print(server.address, flush=True)
        known += (await asyncio.to_thread(sys.stdin.readline)).split()
        await asyncio.Event().wait()


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
    toy = sys.argv[1:] == ["toy"]
    uvloop.run(toy_node() if toy else main(int(sys.argv[1]) if len(sys.argv) > 1 else 60))
