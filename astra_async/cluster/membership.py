"""`astra worker`: this machine as a member of a cluster, for as long as the process runs.

A Dask worker ends when its scheduler does; here another one takes its place and waits for the next scheduler.
"""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dask
from distributed import Worker

from astra_async.cluster.worker import RESOURCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from distributed.security import Security

_AGAIN_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How a worker joins: `sandboxes` and `name` None for what the machine says; `port` 0 for any.

    `contact` is the address at which others reach it, where that is not its own.
    """

    scheduler: str
    sandboxes: int | None = None
    name: str | None = None
    host: str | None = None
    port: int = 0
    contact: str | None = None
    security: Security | None = None


async def serve(
    settings: WorkerSettings, *, until: asyncio.Future[None], say: Callable[[str], None] = lambda _: None
) -> None:
    """Be a member until `until` is done; join again whenever the scheduler was lost."""
    # Dask would look a hundred times a second at what its tasks do, and there are none.
    unwatched = dask.config.set({"distributed.worker.profile.enabled": False})
    with unwatched, tempfile.TemporaryDirectory(prefix="astra-worker-") as folder:
        while not until.done():
            worker = _worker(settings, folder)
            try:
                await _member(worker, settings, until, say)
            finally:
                await worker.close(nanny=False)
            if not until.done():
                await asyncio.wait({until}, timeout=_AGAIN_S)


async def _member(
    worker: Worker, settings: WorkerSettings, until: asyncio.Future[None], say: Callable[[str], None]
) -> None:
    joining = asyncio.ensure_future(worker)
    await asyncio.wait({joining, until}, return_when=asyncio.FIRST_COMPLETED)
    if not joining.done():
        joining.cancel()
        await asyncio.gather(joining, return_exceptions=True)
        return
    if (error := joining.exception()) is not None:
        say(f"{settings.scheduler} does not take this worker: {error}")
        return
    say(f"joined {settings.scheduler} as {worker.name}")
    left = asyncio.ensure_future(worker.finished())
    await asyncio.wait({left, until}, return_when=asyncio.FIRST_COMPLETED)
    if not left.done():
        left.cancel()
    else:
        say(f"{settings.scheduler} is lost; joining again")


def _worker(settings: WorkerSettings, folder: str) -> Worker:
    return Worker(
        settings.scheduler,
        nthreads=1,
        name=settings.name,
        host=settings.host,
        port=settings.port,
        contact_address=settings.contact,
        resources={RESOURCE: settings.sandboxes} if settings.sandboxes else None,
        memory_limit=0,  # containers have limits of their own
        local_directory=folder,
        dashboard=False,
        preload=["astra_async.cluster.worker"],
        security=settings.security,
    )
