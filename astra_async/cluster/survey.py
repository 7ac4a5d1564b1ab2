"""`astra doctor --cluster`: what each node is, and what keeps it from taking part."""

from __future__ import annotations

import asyncio
import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from distributed.core import rpc
from distributed.security import Security

from astra_async.cluster import connection_to
from astra_async.cluster.head import members
from astra_async.cluster.messages import ABOUT, VERSION, connected, unpack

if TYPE_CHECKING:
    from collections.abc import Mapping

_ANSWER_S = 10.0
_CLOCK_S = 5.0  # times in records come from the head; far apart, a node's log is hard to read


async def survey(address: str) -> list[tuple[str, str, str]]:
    """Each worker's name, a line on what it is, and why it cannot take part (empty if it can).

    Raises EngineUnavailable when no scheduler answers, ConfigError for tls:// without certificates.
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
        return address, "does not answer", str(error) or type(error).__name__
    if packed is None:
        return address, "Dask without astra", "start it with astra worker"
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
        return f"another version: install astra_async {ours} there"
    if about["trouble"]:
        return str(about["trouble"])
    return f"set its clock: it is {skew_s:+.0f} s off" if abs(skew_s) > _CLOCK_S else ""
