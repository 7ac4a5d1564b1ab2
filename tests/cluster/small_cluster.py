"""A cluster of processes on this machine: a scheduler, and workers on Docker Engines of the tests' own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

from distributed.core import rpc

from astra_async.errors import SandboxError
from astra_async.testing.sandbox.engine import Engine
from astra_async.testing.sandbox.sweep import RUN_LABEL
from small_problems import TESTS, solution, write_problems
from threaded_server import answers_at, free_port
from waiting import PATIENCE_S, awaited
from whole_runs import Run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nasty_server import NastyServer
    from private_engine import PrivateEngine

IMAGE = "cluster-test:1"
_VERDICT = ("sample", "status", "failure", "passed", "total", "score", "tests", "solution_sha256")
SAMPLES = 12
SILENCE = "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP"
NO_WORKERS = "DASK_DISTRIBUTED__SCHEDULER__NO_WORKERS_TIMEOUT"
# A slow machine makes no node count as lost, and no run give up: a test that is about these says how soon.
PATIENT = {SILENCE: "120s", NO_WORKERS: "600s"}


class SmallCluster:
    """Starts, stops and kills its processes; whatever is left of them is killed in the end."""

    def __init__(self, folder: Path, **environ: str) -> None:
        """`environ` are further variables of all its processes."""
        self.port = free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self._environ = {**os.environ, **PATIENT, **environ}
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self._folder = folder
        self._scheduler: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start_scheduler()
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self.workers.values(), self._scheduler):
            if process is not None:
                with suppress(ProcessLookupError):
                    process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in (*self.workers.values(), self._scheduler):
            if process is not None:
                process.wait(timeout=PATIENCE_S)

    def start_scheduler(self) -> None:
        words = ("scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard")
        self._scheduler = self._start("scheduler", [sys.executable, "-m", "dask", *words])
        awaited(lambda: answers_at(self.port), "the scheduler")

    def kill_worker(self, name: str) -> None:
        """Kill it, and wait until the scheduler knows."""
        self.workers[name].kill()
        self.workers.pop(name).wait()
        self.await_members()

    def await_members(self) -> None:
        """Wait until the scheduler knows the workers that run, and no other."""
        awaited(self._members, "the cluster's members", until=lambda names: names == sorted(self.workers))

    def _members(self) -> list[str]:
        async def ask() -> list[str]:
            async with rpc(self.address) as scheduler:
                return sorted(str(each["name"]) for each in (await scheduler.identity())["workers"].values())

        return asyncio.run(ask())

    def stop_scheduler(self) -> None:
        assert self._scheduler is not None
        self._scheduler.kill()
        self._scheduler.wait()

    def start_worker(
        self, name: str, engine: PrivateEngine, *more: str, sandboxes: int = 2, at: str = ""
    ) -> None:
        words = ("worker", at or self.address, "--sandboxes", str(sandboxes), "--name", name, *more)
        command = [sys.executable, "-m", "astra_async", *words]
        self.workers[name] = self._start(name, command, DOCKER_HOST=engine.host)

    def start_dask_worker(self, name: str, engine: PrivateEngine, *, sandboxes: int = 2) -> None:
        """As docs/cluster.md says for those who start workers by Dask's own ways."""
        words = ("worker", self.address, "--name", name, "--nthreads", "1", "--memory-limit", "0")
        ours = ("--preload", "astra_async.cluster.worker", "--resources", f"sandboxes={sandboxes}")
        command = [sys.executable, "-m", "dask", *words, "--no-dashboard", *ours]
        self.workers[name] = self._start(name, command, DOCKER_HOST=engine.host)

    def _start(self, name: str, command: Sequence[str], **environ: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**self._environ, **environ},
            )


class Cable:
    """A TCP proxy that can be unplugged: `silent` keeps connections and carries nothing, `cut` ends them."""

    def __init__(self, to_port: int) -> None:
        self.port = free_port()
        self._to_port = to_port
        self._loop = asyncio.new_event_loop()
        self._plugged = asyncio.Event()
        self._plugged.set()
        self._refuses = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(
            target=self._loop.run_until_complete, args=(self._serve(),), daemon=True
        )
        self._thread.start()
        awaited(lambda: answers_at(self.port), "the proxy")

    def unplug(self, how: Literal["silent", "cut"]) -> None:
        self._loop.call_soon_threadsafe(self._unplug, how)

    def plug(self) -> None:
        self._loop.call_soon_threadsafe(self._plug)

    def _unplug(self, how: str) -> None:
        self._plugged.clear()
        if how == "cut":
            self._refuses = True
            for writer in self._writers:
                writer.transport.abort()

    def _plug(self) -> None:
        self._refuses = False
        self._plugged.set()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._carry, "127.0.0.1", self.port)
        async with server:
            await server.serve_forever()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to_port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        await asyncio.gather(self._copy(reader, far_writer), self._copy(far_reader, writer))
        self._writers -= {writer, far_writer}

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(64 * 1024):
                await self._plugged.wait()
                writer.write(piece)
                await writer.drain()
        writer.transport.abort()


def a_run(
    folder: Path,
    server: NastyServer,
    cluster: str,
    engine: PrivateEngine,
    *,
    sleep_s: float = 0.0,
    before: str = "",
    environ: Mapping[str, str] = MappingProxyType({}),
    **fields: Any,
) -> Run:
    """A run whose images are on `engine`; a test takes `sleep_s`, or what `before` makes of it."""
    folder.mkdir(exist_ok=True)
    slow = before or f'read -r answer < src/answer.txt; [ "$answer" = 0 ] || sleep {sleep_s}'
    known: dict[str, Any] = {"samples": SAMPLES, **fields}
    return Run(
        folder=folder,
        problems=write_problems(folder, ["p"], IMAGE, before=slow),
        base_url=server.base_url,
        options=("--cluster", cluster),
        environ={**PATIENT, **environ, "DOCKER_HOST": engine.host},
        **known,
    )


def passing(sample: str, _: int) -> Any:
    """Sample n passes n of the tests, and never none."""
    from nasty_server import answers

    return answers(solution(1 + int(sample.partition("/")[2]) % TESTS))


def await_tests(cluster_engines: Sequence[PrivateEngine], running: int) -> None:
    """Wait until so many tests are running on each engine."""
    for engine in cluster_engines:
        awaited(lambda engine=engine: len(containers(engine, running_only=True)) >= running, "running tests")  # type: ignore[misc]


def containers(engine: PrivateEngine, *, running_only: bool = False) -> list[str]:
    """Names of containers that a run made on an engine and that are there."""

    async def ask() -> list[str]:
        async with await Engine.open(engine.host) as opened:
            found = await opened.containers(RUN_LABEL)
        return [str(each["Id"]) for each in found if not running_only or each["State"] == "running"]

    return asyncio.run(ask())


def executing(engine: PrivateEngine) -> list[str]:
    """Containers that run a job's tests, those apart that were made ahead and wait for one."""

    async def ask() -> list[str]:
        async with await Engine.open(engine.host) as opened:
            return [each for each in running if (await opened.inspect(each))["ExecIDs"]]

    running = containers(engine, running_only=True)
    with suppress(SandboxError):  # one has ended since
        return asyncio.run(ask())
    return []


def check_scores(run: Run, server: NastyServer, *, graded_by: set[str]) -> None:
    """Whatever happened, every sample has the score of its answer, once, and was asked for once."""
    results = run.lines("results.jsonl")
    assert {line["sample"]: line["passed"] for line in results} == {
        n: 1 + n % TESTS for n in range(run.samples)
    }
    assert len(results) == run.samples
    assert {line["node"] for line in results} <= graded_by
    assert set(server.asked.values()) == {1}


def check_nothing_left(engines: Sequence[PrivateEngine]) -> None:
    for engine in engines:
        awaited(lambda engine=engine: not containers(engine), "no container to be left")  # type: ignore[misc]


def give_another_image(engine: PrivateEngine) -> None:
    """The engine has something else under the name of the tests' image."""
    forget_image(engine)

    async def tag() -> None:
        async with await Engine.open(engine.host) as opened:
            await opened.tag("other:1", IMAGE)

    asyncio.run(tag())


def forget_image(engine: PrivateEngine) -> None:
    """The engine has no image of the tests any more."""

    async def remove() -> None:
        async with await Engine.open(engine.host) as opened:
            await opened.remove_image(IMAGE)

    asyncio.run(remove())


def verdicts(run: Run) -> list[Mapping[str, Any]]:
    """What a verdict is made of, in the order of the samples."""
    lines = sorted(
        run.lines("results.jsonl"), key=lambda line: (line["model"], line["problem_id"], line["sample"])
    )
    return [{name: line[name] for name in _VERDICT} for line in lines]
