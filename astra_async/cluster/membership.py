"""`astra worker`: make this machine a member of a cluster while the process runs.

A Dask worker ends when its scheduler does. In that case a new one is created, which waits for the next
scheduler.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import dask
from distributed import Worker
from distributed.core import rpc
from distributed.security import Security

from astra_async.cluster import connection_to
from astra_async.cluster.head import members
from astra_async.cluster.messages import ABOUT, VERSION, connected, unpack
from astra_async.cluster.worker import RESOURCE
from astra_async.tasks import cancel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_ANSWER_S = 10.0
_CLOCK_S = 5.0  # with a larger difference, a node's log cannot be compared with the head's records


async def survey(address: str) -> list[tuple[str, str, str]]:
    """Return each worker's name, a description, and the reason why it is unusable ('' if it is usable).

    Raises EngineUnavailable if no scheduler responds, ConfigError for tls:// without certificates.
    """
    connection = connection_to(address, Security(), "client")
    async with rpc(address, timeout=_ANSWER_S, connection_args=connection) as scheduler:
        found = await members(scheduler, timeout_s=_ANSWER_S)
    return list(await asyncio.gather(*(_one(each, connection) for each in sorted(found))))


async def _one(address: str, connection: Mapping[str, Any]) -> tuple[str, str, str]:
    began = time.time()
    try:
        async with asyncio.timeout(_ANSWER_S):
            async with connected(address, connection) as comm:
                await comm.write({"op": ABOUT})
                packed = await comm.read()
    except OSError as error:
        return address, "does not respond", str(error) or type(error).__name__
    if packed is None:
        return address, "a Dask worker without astra", "start it with astra worker"
    about = unpack(packed)
    skew_s = float(about.get("clock", began)) - (began + time.time()) / 2
    line = (
        f"Docker {about.get('engine') or '-'}, {about.get('cores')} cores, "
        f"{about.get('memory_bytes', 0) / 1e9:.1f} GB, {about.get('slots')} sandboxes, "
        f"{about.get('images')} images, {about.get('free_disk_bytes', 0) / 1e9:.0f} GB disk free, "
        f"clock {skew_s:+.1f} s, astra_async {about.get('version')} ({address})"
    )
    return str(about.get("name")), line, _trouble(about, skew_s)


def _trouble(about: Mapping[str, Any], skew_s: float) -> str:
    ours = version("astra_async")
    if (about.get("messages"), about.get("version")) != (VERSION, ours):
        return f"version mismatch: install astra_async {ours} there"
    if about["trouble"]:
        return str(about["trouble"])
    return f"its clock is {skew_s:+.0f} s off; set the clock" if abs(skew_s) > _CLOCK_S else ""


_AGAIN_S = 1.0


async def serve(
    scheduler: str,
    sandboxes: int | None,
    own: Mapping[str, Any],
    *,
    until: asyncio.Future[None],
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Be a member until `until` is done; rejoin whenever the scheduler is lost.

    `sandboxes` is None to derive the number from the machine. `own` has further arguments of Dask's Worker
    (name, host, port, contact_address, security).
    """
    # Disable Dask's profiler, which samples 100 times a second, because there are no Dask tasks.
    unwatched = dask.config.set({"distributed.worker.profile.enabled": False})
    with unwatched, tempfile.TemporaryDirectory(prefix="astra-worker-") as folder:
        while not until.done():
            worker = Worker(
                scheduler,
                nthreads=1,
                resources={RESOURCE: sandboxes} if sandboxes else None,
                memory_limit=0,  # containers have their own limits
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
        say(f"{scheduler} rejected this worker: {error}")
        return
    say(f"joined {scheduler} as {worker.name}")
    left = asyncio.ensure_future(worker.finished())
    await asyncio.wait({left, until}, return_when=asyncio.FIRST_COMPLETED)
    if not left.done():
        left.cancel()
    else:
        say(f"connection to {scheduler} lost; rejoining")
