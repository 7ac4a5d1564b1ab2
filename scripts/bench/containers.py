"""What a container costs: our whole life-cycle beside a bare create-start-wait-remove.

    scripts/bench/run containers [REPETITIONS]      (needs a Docker Engine; about a minute)

Both run `true`, in turns, so that a busy machine slows both. Ours uploads a project of 15 files, looks for a
report and is hardened; the bare one has Docker's defaults. One image holds nothing in the project's folder,
the other 30 MB, so that its containers have a bounded layer. Wall time is what lies between an answer and its
verdict; CPU is that of this process alone. The last two rows are 64 jobs, four at a time.
"""

from __future__ import annotations

import asyncio
import dataclasses
import io
import statistics
import sys
import tarfile
import time
from functools import partial
from typing import TYPE_CHECKING

import uvloop

from astra_async.images.base_image import build_image, ensure_base
from astra_async.testing.sandbox.docker_sandbox import DockerSandbox
from astra_async.types import Job, Limits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from astra_async.testing.sandbox.engine import Engine

_JOBS = 64
_AT_ONCE = 4
_LARGE = "astra-bench/large:1"


async def bare(engine: Engine, image: str) -> None:
    """Create, start, wait, remove, as short as it gets, with the engine's defaults."""
    container = await engine.docker.containers.create({"Image": image, "Cmd": ["true"]})
    await container.start()
    await container.wait()
    await container.delete()


async def timed(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Wall and CPU milliseconds of this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    await work()
    return (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000


async def one_by_one(sandbox: DockerSandbox, job: Job, large: Job, repetitions: int) -> None:
    """Medians of single runs, the kinds in turns."""
    engine = sandbox.engine
    reporting = dataclasses.replace(job, command="echo '<testsuites/>' > junit.xml")

    async def ahead(job: Job) -> tuple[float, float]:
        sandbox.expect(job.image, job.limits)
        await asyncio.sleep(1.0)  # the model is still answering
        return await timed(lambda: sandbox.run(job))

    async def later(job: Job) -> tuple[float, float]:
        await asyncio.sleep(1.0)  # what is done after a run is done
        return await timed(lambda: sandbox.run(job))

    kinds: dict[str, Callable[[], Awaitable[tuple[float, float]]]] = {
        "bare create-start-wait-remove": lambda: timed(lambda: bare(engine, job.image)),
        "ours, container made ahead": lambda: ahead(job),
        "ours, from nothing": lambda: timed(lambda: sandbox.run(job)),
        "ours, with a report to read": lambda: timed(lambda: sandbox.run(reporting)),
        "ours, large image, made ahead": lambda: ahead(large),
        "ours, large image, from nothing": lambda: later(large),
    }
    seen: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for _ in range(repetitions):
        for kind, measure in kinds.items():
            seen[kind].append(await measure())
    walls = {kind: statistics.median(wall for wall, _ in values) for kind, values in seen.items()}
    for kind, values in seen.items():
        cpu = statistics.median(cpu for _, cpu in values)
        print(f"| {kind} | {walls[kind]:.0f} | {cpu:.1f} | {walls[kind] / next(iter(walls.values())):.2f} |")


async def many(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """All jobs, so many at once."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one() -> None:
        async with gate:
            await work()

    async def every() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(_JOBS):
                group.create_task(one())

    return await timed(every)


async def main(repetitions: int) -> None:
    """Print the table."""
    async with await DockerSandbox.open(run_id="bench", slots=_AT_ONCE) as sandbox:
        image = await ensure_base(sandbox.engine, progress=lambda line: print(line, file=sys.stderr))
        job = Job(
            image=image, archive=project(), command="true", result_files=("junit.xml",), limits=Limits()
        )
        large = dataclasses.replace(job, image=await large_image(sandbox.engine, image))
        await sandbox.run(job)
        await sandbox.run(large)
        print("| life-cycle | wall ms | client CPU ms | against bare |\n|---|---|---|---|")
        await one_by_one(sandbox, job, large, repetitions)
        floor, floor_cpu = await many(lambda: bare(sandbox.engine, image))
        print(f"| {_JOBS} bare, {_AT_ONCE} at once | {floor:.0f} | {floor_cpu:.0f} | 1.00 |")
        for kind, each in (("ours", job), ("ours, large image", large)):
            wall, cpu = await many(partial(sandbox.run, each))
            print(f"| {_JOBS} of {kind}, {_AT_ONCE} at once | {wall:.0f} | {cpu:.0f} | {wall / floor:.2f} |")
        await sandbox.engine.remove_image(large.image)


async def large_image(engine: Engine, image: str) -> str:
    """The image with 30 MB in the project's folder."""
    packed = io.BytesIO()
    fill = "mkdir -p /projects/challenge && head -c 30m /dev/urandom > /projects/challenge/large"
    dockerfile = f"FROM {image}\nRUN {fill}\n"
    with tarfile.open(fileobj=packed, mode="w:") as tar:
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(dockerfile)
        tar.addfile(entry, io.BytesIO(dockerfile.encode()))
    packed.seek(0)
    await build_image(engine, packed, tag=_LARGE, progress=lambda line: print(line, file=sys.stderr))
    return _LARGE


def project() -> bytes:
    """A project of 15 files of 4 KB in three folders."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:") as tar:
        for number in range(15):
            entry = tarfile.TarInfo(f"{('src', 'tests', 'public')[number % 3]}/file{number}.js")
            entry.size, entry.uid, entry.gid = 4096, 1000, 1000
            tar.addfile(entry, io.BytesIO(b"x" * 4096))
    return packed.getvalue()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 15))
