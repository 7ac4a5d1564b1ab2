"""A separate Docker Engine that tests may restart and kill."""

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

from astra_async.errors import EngineUnavailable
from astra_async.images.base_image import build_image
from astra_async.testing.sandbox.engine import Engine
from waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator

needs_own_engine = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("dockerd") or not shutil.which("unshare"),
    reason="needs root, dockerd and unshare to start an engine",
)


@contextlib.contextmanager
def private_engine(image: str, programs: tuple[str, ...], *options: str) -> Iterator[PrivateEngine]:
    """A running engine with one image, of these programs of this machine; ended and removed afterwards.

    `options` are further ones of dockerd.
    """
    folder = Path(tempfile.mkdtemp(prefix="astra-"))  # short: a socket's path has at most 107 bytes
    engine = PrivateEngine(folder, *options)

    async def build() -> None:
        async with await Engine.open(engine.host) as opened:
            await build_image(opened, io.BytesIO(small_system(programs)), tag=image, progress=print)

    engine.start()
    try:
        engine.await_answer()
        asyncio.run(build())
        yield engine
    finally:
        # A running engine can remove containers that a failed test left.
        engine.stop()
        engine.start()
        engine.await_answer()
        asyncio.run(remove_all_containers(engine.host))
        engine.stop()
        kill_orphans(folder)
        shutil.rmtree(folder)


class PrivateEngine:
    """Docker Engine with its own data, socket and containers.

    In namespaces of its own, and that is vital: without a bridge, dockerd deletes the one of the host, on
    which the machine's real engine depends. Mounts end with the namespace.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self.host = f"unix://{folder}/docker.sock"
        self._log = folder / "log"
        self._containerd_pid = folder / "exec/containerd/containerd.pid"
        self._command = [
            *("unshare", "--net", "--mount", "dockerd"),
            *(f"--host={self.host}", f"--data-root={folder}/data", f"--exec-root={folder}/exec"),
            *(f"--pidfile={folder}/pid", "--bridge=none", "--iptables=false", "--ip6tables=false"),
            *("--shutdown-timeout=1", "--containerd-namespace=astra-test"),
            *("--containerd-plugins-namespace=astra-test-plugins", *options),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        # containerd dies with a killed dockerd; without a wait its pid would remain in use.
        self._containerd_pid.unlink(missing_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, start_new_session=True)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=PATIENCE_S)
            self._process = None

    def await_answer(self) -> None:
        async def ask() -> None:
            async with await Engine.open(self.host):
                pass

        for _ in range(1200):
            try:
                asyncio.run(ask())
            except EngineUnavailable:
                time.sleep(0.1)
            else:
                return
        pytest.fail(f"the private engine does not start: {self._log.read_text()[-2000:]}")


def small_system(programs: tuple[str, ...]) -> bytes:
    """Return the build context of an image with programs of this machine and their libraries."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:") as archive:
        files: dict[str, Path] = {}
        for name in programs:
            program = Path(shutil.which(name) or "").resolve()
            files[f"bin/{name}"] = program
            listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
            libraries = [word for word in listed.split() if word.startswith("/")]
            files |= {library.lstrip("/"): Path(library).resolve() for library in libraries}
        for name, path in files.items():
            archive.add(path, name)
        content = packed.getvalue()
    context = {"Dockerfile": b"FROM scratch\nADD root.tar /\nENV PATH=/bin\n", "root.tar": content}
    with tarfile.open(fileobj=(whole := io.BytesIO()), mode="w:") as archive:
        for name, content in context.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return whole.getvalue()


def kill_orphans(folder: Path) -> None:
    """Kill shims of containers that a killed dockerd was starting."""
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if f"{folder}/exec/".encode() in command.read_bytes():
                os.kill(int(command.parent.name), signal.SIGKILL)


async def remove_all_containers(host: str) -> None:
    async with await Engine.open(host) as engine:
        for container in await engine.docker.containers.list(all=True):
            await engine.remove(container.id)
