"""`astra simulate`: the simulated provider server alone."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from astra_async.cli.signals import Stopper


@click.command()
@click.option("--port", type=int, default=8080, metavar="P", help="Port on 127.0.0.1 [default: 8080].")
@click.option("--speed", type=float, default=1.0, help="Factor on token times; 0 is without delay.")
@click.option("--requests-per-minute", type=float, help="Limit of each model.")
@click.option("--tokens-per-minute", type=float, help="Limit of each model.")
@click.option("--fault-rate", type=float, default=0.02, help="Chance of a fault for each attempt.")
@click.option("--seed", type=int, default=0, help="For requests that name no sample.")
def simulate(*, port: int, **settings: Any) -> None:
    """Serve the simulated models over HTTP until stopped, in the wire formats of all providers."""
    asyncio.run(_serve(port, settings))


async def _serve(port: int, settings: dict[str, Any]) -> None:
    from astra_async.simulate.server import SimulatedServer
    from astra_async.simulate.settings import SimulationSettings

    stopped = asyncio.Event()
    server = await SimulatedServer.start(port=port, settings=SimulationSettings(**settings))
    click.echo(f"simulated models answer at {server.base_url} (Ctrl-C stops)")
    try:
        with Stopper(stopped.set).installed():
            await stopped.wait()
    finally:
        await server.stop()
