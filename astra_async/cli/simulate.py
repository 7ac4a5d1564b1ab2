"""`astra simulate`: the simulated provider server alone."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from astra_async.cli.signals import Stopper
from astra_async.errors import ConfigError


@click.command()
@click.option("--port", type=int, default=8080, metavar="P", help="Port on 127.0.0.1 [default: 8080].")
@click.option(
    "--speed", type=float, metavar="X", help="Factor on token times; 0 is without delay [default: 1]."
)
@click.option("--requests-per-minute", type=float, metavar="N", help="Limit of each model [default: none].")
@click.option("--tokens-per-minute", type=float, metavar="N", help="Limit of each model [default: none].")
@click.option(
    "--burst-s",
    type=float,
    metavar="S",
    help="Seconds' worth of a limit that may come at once [default: 60].",
)
@click.option(
    "--fault-rate",
    type=float,
    metavar="P",
    help="Chance of a fault for each attempt; 0 is none [default: 0.02].",
)
@click.option(
    "--fault",
    "fault_kinds",
    multiple=True,
    metavar="KIND",
    help="Only this kind of fault; may be repeated. One of rate_limit, server_error, unavailable, overloaded,"
    " reset, cut, stream_error, stall [default: all].",
)
@click.option("--stall-s", type=float, metavar="S", help="Seconds of silence of a `stall` [default: 2].")
@click.option(
    "--deny",
    "denied",
    multiple=True,
    metavar="MODEL=WHY",
    help="Refuse a model's calls: `key` (refused) or `quota` (used up); may be repeated.",
)
@click.option(
    "--chunk-characters", type=int, metavar="N", help="Characters in one event of a stream [default: 60]."
)
@click.option(
    "--cache-ttl-s",
    type=float,
    metavar="S",
    help="Seconds that an unused prompt stays cached [default: 300].",
)
@click.option("--seed", type=int, metavar="N", help="For requests that name no sample [default: 0].")
def simulate(*, port: int, denied: tuple[str, ...], **given: Any) -> None:
    """Serve the simulated models over HTTP until stopped, in the wire formats of all providers.

    Answers and faults are a function of the sample's name and the attempt: the same flags bring the same
    faults again. The table [simulation] of a TOML file has the same settings for `astra run`.
    """
    settings = {name: value for name, value in given.items() if value not in (None, ())}
    asyncio.run(_serve(port, settings | {"denied": dict(map(_denial, denied))}))


def _denial(text: str) -> tuple[str, str]:
    from astra_async.simulate.profiles import PROFILES

    model, _, why = text.partition("=")
    if model not in PROFILES:
        raise ConfigError(
            f"--deny {text!r}: write MODEL=key or MODEL=quota; models are {', '.join(PROFILES)}"
        )
    return model, why


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
