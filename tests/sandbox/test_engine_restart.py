"""What a restart of the engine in mid-run does, on an engine of the tests' own."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sandbox_jobs import own_containers, tar

from astra_async.errors import ContainerLost, EngineUnavailable
from astra_async.sandbox.build import build_image
from astra_async.sandbox.engine import Engine
from astra_async.sandbox.pool import DockerSandbox
from astra_async.types import Execution, Job, Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("dockerd") or not shutil.which("unshare"),
        reason="needs root, dockerd and unshare to start an engine",
    ),
]
IMAGE = "restart-test:1"


class PrivateEngine:
    """A dockerd with its own data, socket and containers.

    In namespaces of its own, and that is vital: without a bridge, dockerd deletes the one of the host, on
    which the machine's real engine depends. Mounts end with the namespace.
    """

    def __init__(self, folder: Path) -> None:
        self.host = f"unix://{folder}/docker.sock"
        self._log = folder / "log"
        self._containerd_pid = folder / "exec/containerd/containerd.pid"
        self._command = [
            *("unshare", "--net", "--mount", "dockerd"),
            *(f"--host={self.host}", f"--data-root={folder}/data", f"--exec-root={folder}/exec"),
            *(f"--pidfile={folder}/pid", "--bridge=none", "--iptables=false", "--ip6tables=false"),
            *("--shutdown-timeout=1", "--containerd-namespace=astra-test"),
            "--containerd-plugins-namespace=astra-test-plugins",
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        # containerd dies with a killed dockerd; where nobody collects it, its pid seems in use for good.
        self._containerd_pid.unlink(missing_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, start_new_session=True)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=30)
            self._process = None

    def await_answer(self) -> None:
        async def ask() -> None:
            async with await Engine.open(self.host):
                pass

        for _ in range(300):
            try:
                asyncio.run(ask())
            except EngineUnavailable:
                time.sleep(0.1)
            else:
                return
        pytest.fail(f"the private engine does not start: {self._log.read_text()[-2000:]}")


def small_system() -> bytes:
    """A root file system of this machine's bash, sleep, rm and mkdir, and the libraries they need."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:") as archive:
        files: dict[str, Path] = {}
        for name in ("bash", "sleep", "rm", "mkdir"):
            program = Path(shutil.which(name) or "").resolve()
            files[f"bin/{name}"] = program
            listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
            libraries = [word for word in listed.split() if word.startswith("/")]
            files |= {library.lstrip("/"): Path(library).resolve() for library in libraries}
        for name, path in files.items():
            archive.add(path, name)
        content = packed.getvalue()
    context = {"Dockerfile": b"FROM scratch\nADD root.tar /\nENV PATH=/bin\n", "root.tar": content}
    return tar(context)


def kill_orphans(folder: Path) -> None:
    """End the shims that a killed dockerd forgot while it started their containers."""
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if f"{folder}/exec/".encode() in command.read_bytes():
                os.kill(int(command.parent.name), signal.SIGKILL)


async def remove_all_containers(host: str) -> None:
    async with await Engine.open(host) as engine:
        for container in await engine.docker.containers.list(all=True):
            await engine.remove(container.id)


@pytest.fixture(scope="module")
def private() -> Iterator[PrivateEngine]:
    folder = Path(tempfile.mkdtemp(prefix="astra-"))  # not tmp_path: a socket's path has at most 107 bytes
    engine = PrivateEngine(folder)

    async def build() -> None:
        async with await Engine.open(engine.host) as opened:
            await build_image(opened, io.BytesIO(small_system()), tag=IMAGE, progress=print)

    engine.start()
    try:
        engine.await_answer()
        asyncio.run(build())
        yield engine
    finally:
        # Whatever a failed test left, a started engine knows and ends.
        engine.stop()
        engine.start()
        engine.await_answer()
        asyncio.run(remove_all_containers(engine.host))
        engine.stop()
        kill_orphans(folder)
        shutil.rmtree(folder)


def job(command: str) -> Job:
    return Job(image=IMAGE, archive=tar({"a": b"a"}), command=command, limits=Limits(timeout_s=60.0))


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_restart_in_mid_run_loses_the_container_and_never_scores_it(
    private: PrivateEngine, how: signal.Signals
) -> None:
    async def check() -> None:
        async with await DockerSandbox.open(run_id="r", slots=3, docker_host=private.host) as sandbox:
            before = await sandbox.run(job("exit 3"))
            assert before.exit_code == 3
            jobs = [asyncio.create_task(sandbox.run(job("sleep 50"))) for _ in range(2)]
            await asyncio.sleep(1.5)
            assert (sandbox.running, len(await own_containers(sandbox.engine))) == (2, 2)
            await asyncio.to_thread(private.stop, how)
            ends = await asyncio.gather(*jobs, return_exceptions=True)
            assert [type(end) for end in ends] == [ContainerLost, ContainerLost]
            # A job that comes while the engine is away waits for it.
            late = asyncio.create_task(sandbox.run(job("echo back; exit 4")))
            await asyncio.sleep(0.5)
            await asyncio.to_thread(private.start)
            done = await late
            assert isinstance(done, Execution)
            assert (done.exit_code, done.stdout) == (4, "back\n")
        async with await Engine.open(private.host) as engine:
            assert await own_containers(engine) == []

    asyncio.run(check())


def test_a_restart_at_any_moment_gives_a_true_result_or_an_error(private: PrivateEngine) -> None:
    async def check() -> None:
        async with await DockerSandbox.open(run_id="r2", slots=6, docker_host=private.host) as sandbox:
            await sandbox.run(job("true"))
            jobs = []
            for number in range(6):
                jobs.append(asyncio.create_task(sandbox.run(job(f"sleep 0.{number}; exit 7"))))
                await asyncio.sleep(0.1)
            await asyncio.to_thread(private.stop, signal.SIGKILL)
            await asyncio.to_thread(private.start)
            await asyncio.to_thread(private.await_answer)
            for end in await asyncio.gather(*jobs, return_exceptions=True):
                assert isinstance(end, ContainerLost) or (isinstance(end, Execution) and end.exit_code == 7)
        async with await Engine.open(private.host) as engine:
            assert await own_containers(engine) == []

    asyncio.run(check())


def test_an_engine_that_stays_away_is_named_after_a_while(private: PrivateEngine) -> None:
    async def check() -> None:
        engine = await Engine.open(private.host)
        async with DockerSandbox(engine, run_id="r3", slots=1, patience_s=1.0) as sandbox:
            await sandbox.run(job("true"))
            await asyncio.to_thread(private.stop)
            with pytest.raises(EngineUnavailable, match="No Docker Engine answers"):
                await sandbox.run(job("true"))

    asyncio.run(check())
    private.start()
    private.await_answer()
