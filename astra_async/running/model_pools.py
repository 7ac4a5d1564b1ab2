"""Models of a run: validation, simulated servers, and request pools that share one budget."""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from astra_async.errors import ConfigError, ConflictError, UsageError
from astra_async.running.trouble import described
from astra_async.types import S3Settings, is_agent
from astra_async.types.task_work import WITHOUT_MODEL, TaskSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from contextlib import AsyncExitStack

    from astra_async.asking.batches.batch_log import BatchLog
    from astra_async.asking.batches.batch_pool import BatchPool
    from astra_async.asking.throttle import Account, Pool, PoolEvent
    from astra_async.config import RunConfig
    from astra_async.running.directory import RunDirectory
    from astra_async.types import Completion, ModelRequest, ModelSettings, Problem

    AnyPool = Pool | BatchPool
    Say = Callable[[str], None]


_DEMO_SPEED = 0.02  # simulated models answer within about a second
_SIMULATED_SOON = "http://127.0.0.1"  # placeholder until the simulated server is started


def check_models(config: RunConfig, environ: Mapping[str, str] = os.environ) -> None:
    """Check the models' settings, API keys and addresses before anything is opened.

    Raises ConfigError, also for a model without a known price if a budget is set.
    """
    from astra_async.asking.batches.interfaces import check_batch
    from astra_async.asking.providers import check_settings
    from astra_async.asking.providers.models import cost_usd
    from astra_async.asking.throttle.budget import require_price
    from astra_async.simulate.profiles import PROFILES

    for model in config.models:
        if model.provider == "simulated" and not model.base_url and model.model not in PROFILES:
            raise ConfigError(f"{model.name}: unknown simulated model; choose one of {', '.join(PROFILES)}")
        will_be_simulated = is_simulated(model, config) and not model.base_url
        check_settings(replace(model, base_url=_SIMULATED_SOON) if will_be_simulated else model, environ)
        if model.batch:
            check_batch(model)
        if config.budget_usd is not None:
            require_price(model.name, partial(cost_usd, model))


def check_agents(config: RunConfig, *, generate_only: bool) -> None:
    """Raise UsageError for options that cannot be combined with agents."""
    if not config.agents:
        return
    for flag, is_given, why in (
        ("--generate-only", generate_only, "agents need containers"),
        ("--turns", config.turns > 0, "agents can run the tests themselves"),
        ("--batch", any(model.batch for model in config.models), "an agent needs each answer immediately"),
    ):
        if is_given:
            raise UsageError(f"--agent cannot be combined with {flag} because {why}; remove one of them")


def check_tasks(config: RunConfig, problems: Sequence[Problem]) -> None:
    """Refuse options that do not fit tasks, and agents that are only for tasks. Raises UsageError."""
    if not any(problem.task for problem in problems):
        tasks, default = config.tasks, TaskSettings()
        given = [f"--agent {agent.name}" for agent in config.agents if agent.name in WITHOUT_MODEL]
        given += [
            flag
            for flag, is_given in (
                ("--allow-root", tasks.allow_root),
                ("--allow-network", tasks.allow_network),
                ("--timeout-multiplier", tasks.times != default.times),
                ("--reward-range", (tasks.low, tasks.high) != (default.low, default.high)),
                ("--keep-artifacts", config.keep_artifacts),
            )
            if is_given
        ]
        if given and not config.answers_only_from_record:
            raise UsageError(
                f"{given[0]} is for tasks only, and {config.problems} is a set of projects: leave it out"
            )
        return
    if answers := [fmt for fmt in config.formats if not is_agent(fmt)]:
        raise UsageError(
            f"{config.problems} has tasks, which a single answer ({answers[0]}) cannot do: name agents, such"
            " as --agent shell, and leave out --agent none"
        )
    if config.cluster:
        raise UsageError("--cluster: tasks run on this machine's Docker Engine only; leave it out")


def check_until(config: RunConfig, run: Mapping[str, Any], *, generate_only: bool) -> None:
    """Raise UsageError if --until can never decide. `run` is the content of run.json, empty for a new run."""
    if config.until is None:
        return
    if (config.until == "precise") != (config.target_se is not None):
        raise UsageError(
            "--until precise and --target-se must be used together: --until precise --target-se 1.5"
        )
    if generate_only or config.answers_only_from_record:
        raise UsageError("--until needs a run that requests and grades answers: remove --until")
    groups = (run.get("deciding") or {}).get("groups", ())
    names = {model.name for model in config.models}.union(*(group["models"] for group in groups))
    if config.until == "decided" and len(names) == 1:
        raise UsageError(
            "--until decided compares models, and not agents or formats of one model: name two or more"
            " models, or use --until precise --target-se 1.5"
        )


@asynccontextmanager
async def simulated_models(config: RunConfig) -> AsyncIterator[RunConfig]:
    """Start a simulated server if needed, and yield the configuration with its address.

    The server is stopped when the context is closed.
    """
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
    """Return the names of the models that a simulated server answers for."""
    return frozenset(model.name for model in config.models if is_simulated(model, config))


def resolved_models(config: RunConfig) -> RunConfig:
    """Fill in model settings from the table of known models (max_tokens, context length)."""
    from astra_async.asking.providers.models import resolve

    return replace(config, models=tuple(map(resolve, config.models)))


def is_simulated(model: ModelSettings, config: RunConfig) -> bool:
    """Return True if a simulated server answers for the model."""
    return config.simulate_all or model.provider == "simulated"


def without_address(model: ModelSettings, config: RunConfig) -> ModelSettings:
    """Remove the address of a simulated server, because its port differs in every run."""
    return replace(model, base_url=None) if is_simulated(model, config) else model


_ROUNDING_USD = 1e-9


class ModelPool(Protocol):
    """Pool that sends requests to one model within its provider's limits."""

    async def call(self, request: ModelRequest) -> Completion:
        """Return a complete answer, retrying as necessary. Raises ProviderError."""
        ...

    def stop(self) -> None:
        """Send no more requests; waiting calls raise PoolUnusable, requests in flight finish."""


async def open_pools(
    config: RunConfig,
    stack: AsyncExitStack,
    say: Say,
    *,
    spent_usd: float,
    on_event: Callable[[PoolEvent], None],
    directory: RunDirectory | None = None,
) -> dict[str, AnyPool]:
    """Open a pool for each model; the pools are closed with `stack`.

    `spent_usd` is the part of the budget that earlier invocations have spent. Batches need a run `directory`;
    without one (labels), every request is sent individually. Raises ConflictError if a model has open batches
    but is not configured for batches.
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
            at_once = replace(settings, batch=False)  # without the price reduction for batches
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
    """Open the log of batches.

    Raises ConflictError if a model has open batches but is not configured for batches, because its answers
    would be paid for twice.
    """
    from astra_async.asking.batches.batch_log import BatchLog

    log = BatchLog(directory.path, directory.run_id)
    stack.callback(log.close)
    for settings in config.models:
        count = sum(len(intent.requests) for intent in log.open_intents(settings.name))
        if count and not settings.batch:
            raise ConflictError(
                f"{directory.path}: {count} requests of {settings.name} are in open batches: add --batch to"
                f" collect them, or cancel them first: astra batches {directory.path} --cancel"
            )
    return log


def unrecorded_usd(pool: AnyPool, recorded_usd: float) -> float:
    """Return a pool's cost in US dollars that is not recorded yet; 0 if no price is known."""
    more_usd = (pool.state.cost_usd or 0.0) - recorded_usd
    return more_usd if more_usd > _ROUNDING_USD else 0.0


def close_later(stack: AsyncExitStack, say: Say, what: str, close: Callable[[], Awaitable[None]]) -> None:
    """Close something with the stack; an exception becomes a warning, because all results are recorded."""

    async def close_or_warn() -> None:
        try:
            await close()
        except Exception as error:  # noqa: BLE001 - everything is recorded by now
            say(f"warning: {what} could not be closed: {described(error)}")

    stack.push_async_callback(close_or_warn)
