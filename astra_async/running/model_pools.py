"""The models of a run: checked, simulated if they are made up, and called through pools under one budget."""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from astra_async.errors import ConfigError, ConflictError, UsageError
from astra_async.running.trouble import described
from astra_async.types import S3Settings, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from contextlib import AsyncExitStack

    from astra_async.asking.batches.batch_log import BatchLog
    from astra_async.asking.batches.batch_pool import BatchPool
    from astra_async.asking.throttle import Account, Pool, PoolEvent
    from astra_async.config import RunConfig
    from astra_async.running.directory import RunDirectory
    from astra_async.types import Completion, ModelRequest, ModelSettings

    AnyPool = Pool | BatchPool
    Say = Callable[[str], None]


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
                " add --price-input and --price-output (USD per million tokens), or set price_input and"
                " price_output for it under [[models]]"
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


_ROUNDING_USD = 1e-9


class ModelPool(Protocol):
    """Answers requests within a provider's limits; raises ProviderError."""

    async def call(self, request: ModelRequest) -> Completion:
        """One finished answer, after as many attempts as it took."""
        ...

    def stop(self) -> None:
        """Send nothing more: calls that wait raise PoolUnusable, those in flight come to their end."""


async def open_pools(
    config: RunConfig,
    stack: AsyncExitStack,
    say: Say,
    *,
    spent_usd: float,
    on_event: Callable[[PoolEvent], None],
    directory: RunDirectory | None = None,
) -> dict[str, AnyPool]:
    """One pool for each model; a model whose key is missing stops the program before any call.

    `spent_usd` is what earlier calls have taken of the budget. With a run directory, models that are to be
    asked by batches are; without one (labels) every call is answered at once.
    """
    from astra_async.asking.providers import open_provider
    from astra_async.asking.providers.connection import open_session
    from astra_async.asking.providers.models import cost_usd
    from astra_async.asking.throttle import Account, Budget, Pool

    session = await stack.enter_async_context(open_session(os.environ))
    budget = Budget(config.budget_usd, spent_usd=spent_usd) if config.budget_usd is not None else None
    pools: dict[str, AnyPool] = {}
    log = None if directory is None else _batch_log(config, directory, stack)
    accounts: dict[tuple[str | None, ...], Account] = defaultdict(Account)
    for settings in config.models:
        pool: AnyPool
        shared: dict[str, Any] = {"budget": budget, "on_event": on_event}
        if log is not None and directory is not None and settings.batch:
            from astra_async.asking.batches.batch_pool import BatchPool
            from astra_async.asking.batches.interfaces import open_interface

            interface = open_interface(settings, session, S3Settings(**config.s3))
            shared |= {"price": partial(cost_usd, settings), "answered": directory.answered}
            pool = BatchPool(settings, interface, log, **shared)
        else:
            at_once = replace(settings, batch=False)  # which has its full price
            shared |= {"price": partial(cost_usd, at_once), "account": accounts[_account(at_once)]}
            provider = open_provider(at_once, session=session)
            close_later(stack, say, settings.name, provider.close)
            pool = Pool(at_once, provider, **shared)
        pools[settings.name] = pool
        close_later(stack, say, settings.name, pool.close)
    return pools


def _account(settings: ModelSettings) -> tuple[str | None, ...]:
    """Return the identity of a model's account: the provider, its address and the API key."""
    address = (settings.provider, settings.base_url, settings.endpoint)
    return (*address, settings.api_key_env, settings.organization, settings.project)


def _batch_log(config: RunConfig, directory: RunDirectory, stack: AsyncExitStack) -> BatchLog:
    """The log of batches; a model that has open ones is asked in no other way, or it would be paid twice."""
    from astra_async.asking.batches.batch_log import BatchLog

    log = BatchLog(directory.path, directory.run_id)
    stack.callback(log.close)
    for settings in config.models:
        count = sum(len(intent.requests) for intent in log.open_intents(settings.name))
        if count and not settings.batch:
            raise ConflictError(
                f"{directory.path}: {count} requests of {settings.name} are in batches: add --batch to"
                f" collect them; `astra batches {directory.path} --cancel` ends them before"
            )
    return log


def unrecorded_usd(pool: AnyPool, recorded_usd: float) -> float:
    """What a pool has paid and no record holds; 0 where it has no price."""
    more_usd = (pool.state.cost_usd or 0.0) - recorded_usd
    return more_usd if more_usd > _ROUNDING_USD else 0.0


def close_later(stack: AsyncExitStack, say: Say, what: str, close: Callable[[], Awaitable[None]]) -> None:
    """Close something at the end; what fails to close takes nothing from a run that has come to its end."""

    async def close_or_tell() -> None:
        try:
            await close()
        except Exception as error:  # noqa: BLE001 - the boundary: everything is recorded by now
            say(f"warning: {what} could not be closed: {described(error)}")

    stack.push_async_callback(close_or_tell)
