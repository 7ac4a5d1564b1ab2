"""`astra worker`: this machine as a member of a cluster, for as long as the process runs.

A Dask worker ends when its scheduler does; here another one takes its place and waits for the next scheduler.
"""

from __future__ import annotations

import asyncio
import tempfile
from typing import TYPE_CHECKING, Any

import dask
from distributed import Worker

from astra_async.cluster.worker import RESOURCE
from astra_async.tasks import cancel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_AGAIN_S = 1.0


async def serve(
    scheduler: str,
    sandboxes: int | None,
    own: Mapping[str, Any],
    *,
    until: asyncio.Future[None],
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Be a member until `until` is done; join again whenever the scheduler was lost.

    `sandboxes` is None for what the machine says; `own` is what Dask's Worker is to be given (name, host,
    port, contact_address, security).
    """
    # Dask would look a hundred times a second at what its tasks do, and there are none.
    unwatched = dask.config.set({"distributed.worker.profile.enabled": False})
    with unwatched, tempfile.TemporaryDirectory(prefix="astra-worker-") as folder:
        while not until.done():
            worker = Worker(
                scheduler,
                nthreads=1,
                resources={RESOURCE: sandboxes} if sandboxes else None,
                memory_limit=0,  # containers have limits of their own
                local_directory=folder,
                dashboard=False,
                preload=["astra_async.cluster.worker"],
                **own,
            )
            try:
                await _member(worker, scheduler, until, say)
            finally:
                await worker.close(nanny=False)
            if not until.done():
                await asyncio.wait({until}, timeout=_AGAIN_S)


async def _member(
    worker: Worker, scheduler: str, until: asyncio.Future[None], say: Callable[[str], None]
) -> None:
    joining = asyncio.ensure_future(worker)
    await asyncio.wait({joining, until}, return_when=asyncio.FIRST_COMPLETED)
    if not joining.done():
        await cancel(joining)
        return
    if (error := joining.exception()) is not None:
        say(f"{scheduler} does not take this worker: {error}")
        return
    say(f"joined {scheduler} as {worker.name}")
    left = asyncio.ensure_future(worker.finished())
    await asyncio.wait({left, until}, return_when=asyncio.FIRST_COMPLETED)
    if not left.done():
        left.cancel()
    else:
        say(f"{scheduler} is lost; joining again")
