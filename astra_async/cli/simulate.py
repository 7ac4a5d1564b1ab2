"""`astra simulate`: the simulated provider server alone."""

from __future__ import annotations

import asyncio
from typing import Any, get_args

import click

from astra_async.cli.click_options import declared_option
from astra_async.cli.console import say
from astra_async.cli.signals import Stopper
from astra_async.errors import ConfigError
from astra_async.options import flag_of
from astra_async.types import Text, checked_value, declared
from astra_async.types.declarations import shown
from astra_async.types.simulation import Denial, SimulationSettings

_FLAGS = {
    "fault_kinds": "--fault",
    "denied": "--deny",
    "batch_faults": "--batch-fault",
}  # what may be repeated is named in the singular
_NO_FLAG = {"faults"}  # --fault-rate 0


def _simulation_options(command: Any) -> Any:
    """A flag for each setting of the server, made from its declaration."""
    for item in reversed(declared(SimulationSettings)):
        if item.name not in _NO_FLAG:
            command = declared_option(item, _FLAGS.get(item.name, ""))(command)
    return command


@click.command()
@click.option("--port", type=int, default=8080, metavar="P", help="Port on 127.0.0.1 [default: 8080].")
@_simulation_options
def simulate(*, port: int, denied: tuple[str, ...], **given: Any) -> None:
    """Serve the simulated models over HTTP until stopped, in the wire formats of all providers.

    Answers and faults are a function of the sample's name and the attempt: the same flags bring the same
    faults again. The table [simulation] of a TOML file has the same settings for `astra run`.
    """
    known = {item.name: item for item in declared(SimulationSettings)}
    settings = {}
    for name, value in given.items():
        if value not in (None, ()):
            flag = _FLAGS.get(name, flag_of(name))
            typed = Text(value) if isinstance(value, str) else value
            settings[name] = checked_value(known[name], typed, f"{flag} {shown(value)}")
    asyncio.run(_serve(port, settings | {"denied": dict(map(_denial, denied))}))


def _denial(text: str) -> tuple[str, str]:
    from astra_async.simulate.profiles import PROFILES

    model, _, why = text.partition("=")
    if model not in PROFILES or why not in get_args(Denial):
        raise ConfigError(
            f"--deny {text!r}: write MODEL=key or MODEL=quota; models are {', '.join(PROFILES)}"
        )
    return model, why


async def _serve(port: int, settings: dict[str, Any]) -> None:
    from astra_async.simulate.server import SimulatedServer

    stopped = asyncio.Event()
    server = await SimulatedServer.start(port=port, settings=SimulationSettings(**settings))
    say(f"simulated models answer at {server.base_url} (Ctrl-C stops)")
    try:
        with Stopper(stopped.set).installed():
            await stopped.wait()
    finally:
        await server.stop()
