"""The models of a configuration: refused where they cannot be called, and played where they are simulated."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from astra_async.errors import ConfigError, UsageError
from astra_async.types import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from astra_async.config import RunConfig
    from astra_async.types import ModelSettings

_DEMO_SPEED = 0.02  # simulated models answer in a second or so, not in the better part of a minute
_SIMULATED_SOON = "http://127.0.0.1"  # its server is not started yet


def check_models(config: RunConfig, environ: Mapping[str, str] = os.environ) -> None:
    """Refuse models that cannot be called (no key, no address, a setting without meaning) before all else.

    So are models without a price, where there is a budget to keep.
    """
    from astra_async.asking.batches.interfaces import check_batch
    from astra_async.asking.providers import check_settings
    from astra_async.asking.providers.models import cost_usd
    from astra_async.simulate.profiles import PROFILES

    for model in config.models:
        if model.provider == "simulated" and not model.base_url and model.model not in PROFILES:
            raise ConfigError(f"{model.name}: no such simulated model; there are {', '.join(PROFILES)}")
        will_be_simulated = is_simulated(model, config) and not model.base_url
        check_settings(replace(model, base_url=_SIMULATED_SOON) if will_be_simulated else model, environ)
        if model.batch:
            check_batch(model)
        thousand = Usage(input_tokens=1000, output_tokens=1000)
        if config.budget_usd is not None and cost_usd(model, thousand) is None:
            raise ConfigError(
                f"--budget-usd: no price is known for {model.name};"
                " set price_input and price_output (USD per million tokens) for it under [[models]]"
            )


def check_agents(config: RunConfig, *, generate_only: bool) -> None:
    """Refuse what agents cannot be asked with, before anything is opened."""
    if not config.agents:
        return
    for flag, is_given, why in (
        ("--generate-only", generate_only, "agents work in the containers that it leaves out"),
        ("--turns", config.turns > 0, "agents run the tests by themselves"),
        ("--batch", any(model.batch for model in config.models), "an agent waits for each answer"),
    ):
        if is_given:
            raise UsageError(f"--agent and {flag}: {why}; leave one of them out")


@asynccontextmanager
async def simulated_models(config: RunConfig) -> AsyncIterator[RunConfig]:
    """The configuration with the address of a simulated server that runs for as long as this is open."""
    needs = [model for model in config.models if is_simulated(model, config) and not model.base_url]
    if not needs:
        yield config
        return
    from astra_async.simulate.server import SimulatedServer
    from astra_async.types.simulation import SimulationSettings

    settings = SimulationSettings(**{"speed": _DEMO_SPEED, **config.simulation})
    server = await SimulatedServer.start(settings=settings)
    try:
        played = {model.name: replace(model, base_url=server.base_url) for model in needs}
        yield replace(config, models=tuple(played.get(model.name, model) for model in config.models))
    finally:
        await server.stop()


def simulated_names(config: RunConfig) -> frozenset[str]:
    """The models that are played by a simulated server."""
    return frozenset(model.name for model in config.models if is_simulated(model, config))


def resolved_models(config: RunConfig) -> RunConfig:
    """The configuration with what the model table knows filled in (max_tokens, context length)."""
    from astra_async.asking.providers.models import resolve

    return replace(config, models=tuple(map(resolve, config.models)))


def is_simulated(model: ModelSettings, config: RunConfig) -> bool:
    """Whether a simulated server plays it."""
    return config.simulate_all or model.provider == "simulated"


def without_address(model: ModelSettings, config: RunConfig) -> ModelSettings:
    """A simulated server has a new port in every run: its address is no part of any record."""
    return replace(model, base_url=None) if is_simulated(model, config) else model
