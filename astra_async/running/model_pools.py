"""The pools of a run's or a labelling's models: opened under one budget, and closed whatever happens."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from astra_async.running.trouble import told

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AsyncExitStack

    from astra_async.asking.throttle import Pool, PoolEvent
    from astra_async.config import RunConfig

    Say = Callable[[str], None]

_ROUNDING_USD = 1e-9


async def open_pools(
    config: RunConfig,
    stack: AsyncExitStack,
    say: Say,
    *,
    spent_usd: float,
    on_event: Callable[[PoolEvent], None],
) -> dict[str, Pool]:
    """One pool for each model; a model whose key is missing stops the program before any call.

    `spent_usd` is what earlier calls have taken of the budget.
    """
    from astra_async.asking.providers import open_provider
    from astra_async.asking.providers.connection import open_session
    from astra_async.asking.providers.models import cost_usd
    from astra_async.asking.throttle import Budget, Pool

    session = await stack.enter_async_context(open_session(os.environ))
    budget = Budget(config.budget_usd, spent_usd=spent_usd) if config.budget_usd is not None else None
    pools = {}
    for settings in config.models:
        provider = open_provider(settings, session=session)
        close_later(stack, say, settings.name, provider.close)
        pools[settings.name] = Pool(
            settings, provider, price=partial(cost_usd, settings), budget=budget, on_event=on_event
        )
        close_later(stack, say, settings.name, pools[settings.name].close)
    return pools


def unrecorded_usd(pool: Pool, recorded_usd: float) -> float:
    """What a pool has paid and no record holds; 0 where it has no price."""
    more_usd = (pool.state.cost_usd or 0.0) - recorded_usd
    return more_usd if more_usd > _ROUNDING_USD else 0.0


def close_later(stack: AsyncExitStack, say: Say, what: str, close: Callable[[], Awaitable[None]]) -> None:
    """Close a room at the end; one that fails to close takes nothing from a run that has come to its end."""

    async def close_or_tell() -> None:
        try:
            await close()
        except Exception as error:  # noqa: BLE001 - the boundary: everything is recorded by now
            say(f"warning: {what} could not be closed: {told(error)}")

    stack.push_async_callback(close_or_tell)
