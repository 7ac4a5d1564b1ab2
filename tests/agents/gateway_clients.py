"""A gateway with one sample behind it, and clients that reach it over its socket."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp
from scripted import calls_of

from astra_async.agents.gateway.gateway_server import Gateway

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from astra_async.agents.model_calls import Calls, ModelPool
    from astra_async.types.agents import AgentLimits

URL = "http://gateway"


@dataclass(frozen=True, slots=True)
class Behind:
    """What a client sees, and what is behind it."""

    calls: Calls
    session: aiohttp.ClientSession
    gateway: Gateway

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.calls.token}"}


@asynccontextmanager
async def behind(
    folder: Path,
    pool: ModelPool,
    *,
    spec: str = "openai-compatible/toy",
    limits: AgentLimits | None = None,
) -> AsyncIterator[Behind]:
    """A started gateway, and its sample's calls."""
    gateway = Gateway()
    await gateway.start()
    calls = calls_of(folder, pool, spec=spec, limits=limits)
    connector = aiohttp.UnixConnector(str(gateway.socket))
    try:
        async with aiohttp.ClientSession(connector=connector) as session:
            with gateway.admit(calls, "chat", "real-name"):
                yield Behind(calls, session, gateway)
    finally:
        await calls.close()
        await gateway.close()
