"""`--cluster local:N`: a scheduler and N workers as processes of this machine, for one run.

The processes use TLS with certificates made for this run. Without TLS, every local account could execute
code as this user through a Dask worker. Each process ends when its standard input is closed, so none
outlives the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

import uvloop
from distributed.security import Security

from astra_async.errors import EngineUnavailable
from astra_async.tasks import closed_on_error

if TYPE_CHECKING:
    from collections.abc import Mapping

_START_S = 60.0
_STOP_S = 20.0
# Credential files and their names in Dask's configuration.
_CREDENTIALS = {"ca_file": "CA_FILE"} | {
    f"{role}_{kind}": f"{role}__{kind}".upper()
    for role in ("scheduler", "worker", "client")
    for kind in ("key", "cert")
}
_KEPT_BEGINNINGS = ("DOCKER_", "DASK_")
_KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH")


class LocalCluster:
    """The processes of a local cluster."""

    def __init__(self, folder: Path) -> None:
        self.address = ""
        self._folder = folder
        self._processes: list[asyncio.subprocess.Process] = []
        self._files = {name: folder / name for name in _CREDENTIALS}
        made = Security.temporary()
        for name, path in self._files.items():
            path.touch(mode=0o600)
            path.write_text(getattr(made, f"tls_{name}"))
        self.security = Security(
            require_encryption=True,
            **{f"tls_{name}": str(path) for name, path in self._files.items()},
        )

    @classmethod
    async def start(cls, workers: int, sandboxes: int) -> Self:
        """Start the processes; `sandboxes` is the total number of containers, at least one per worker.

        Raises EngineUnavailable if they do not start.
        """
        cluster = cls(Path(tempfile.mkdtemp(prefix="astra-cluster-")))
        async with closed_on_error(cluster.stop):
            scheduler = await cluster._spawn("scheduler")
            assert scheduler.stdout is not None  # noqa: S101 - set by _spawn
            async with asyncio.timeout(_START_S):
                cluster.address = (await scheduler.stdout.readline()).decode().strip()
            cluster._check()
            for number in range(workers):
                share = max(1, sandboxes // workers + (number < sandboxes % workers))
                await cluster._spawn("worker", cluster.address, str(share), f"local-{number + 1}")
        return cluster

    @property
    def scheduler_pid(self) -> int:
        """The process id of the scheduler."""
        return self._processes[0].pid

    async def stop(self) -> None:
        """Stop the processes and wait until they have cleaned up."""
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
        for process in reversed(self._processes):
            try:
                async with asyncio.timeout(_STOP_S):
                    await process.wait()
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _spawn(self, *words: str) -> asyncio.subprocess.Process:
        with (self._folder / "output").open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "astra_async.cluster.local", *words),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=output,
                env=_environment(os.environ, self._files),
                start_new_session=True,  # Ctrl-C must not reach them, so that running tests can finish
            )
        self._processes.append(process)
        return process

    def _check(self) -> None:
        if not self.address:
            output = (self._folder / "output").read_text(errors="replace").strip()[-400:]
            raise EngineUnavailable(f"the local Dask scheduler did not start: {output}")


def _environment(environ: Mapping[str, str], files: Mapping[str, Path]) -> dict[str, str]:
    """Return the environment of the processes, without any provider's API key."""
    kept = {name: environ[name] for name in environ if name in _KEPT or name.startswith(_KEPT_BEGINNINGS)}
    tls = {f"DASK_DISTRIBUTED__COMM__TLS__{_CREDENTIALS[name]}": str(path) for name, path in files.items()}
    return kept | tls | {"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true"}


async def _scheduler() -> None:
    from distributed import Scheduler

    async with Scheduler(host="tls://127.0.0.1", port=0, dashboard=False) as scheduler:
        print(scheduler.address, flush=True)  # noqa: T201 - read by the parent process
        await _input_ends()


async def _worker(address: str, sandboxes: int, name: str) -> None:
    from astra_async.cluster.membership import serve

    ended = asyncio.create_task(_input_ends())
    await serve(address, sandboxes, {"name": name, "port": 0}, until=ended)


async def _input_ends() -> None:
    await asyncio.to_thread(sys.stdin.buffer.read)


if __name__ == "__main__":
    role, *rest = sys.argv[1:]
    uvloop.run(_scheduler() if role == "scheduler" else _worker(rest[0], int(rest[1]), rest[2]))
