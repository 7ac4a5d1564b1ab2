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

    from astra_async.agents.model_calls import AgentCalls, CallPool
    from astra_async.types import Completion, ModelRequest, Provider, RateLimits
    from astra_async.types.agents import AgentLimits

URL = "http://gateway"


@dataclass(frozen=True, slots=True)
class Behind:
    """What a client sees, and what is behind it."""

    calls: AgentCalls
    session: aiohttp.ClientSession
    gateway: Gateway

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.calls.token}"}


class Straight:
    """A pool without limits, retries or prices: each call is one attempt of a provider."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    async def call(self, request: ModelRequest) -> Completion:
        return await self._provider.complete(request, self)

    def limits(self, limits: RateLimits) -> None:
        """Nobody keeps to any."""

    def first_token(self) -> None:
        """Nobody waits for it."""

    def streamed(self, characters: int) -> None:
        """Nobody counts."""


@asynccontextmanager
async def behind(
    folder: Path,
    pool: CallPool,
    *,
    spec: str = "openai-compatible/real-name",
    limits: AgentLimits | None = None,
    sample_header: str | None = None,
) -> AsyncIterator[Behind]:
    """A started gateway, and its sample's calls."""
    gateway = Gateway()
    await gateway.start()
    calls = calls_of(folder, pool, spec=spec, limits=limits, sample_header=sample_header)
    connector = aiohttp.UnixConnector(str(gateway.socket))
    try:
        async with aiohttp.ClientSession(connector=connector) as session:
            with gateway.admit(calls):
                yield Behind(calls, session, gateway)
    finally:
        await calls.close()
        await gateway.close()
