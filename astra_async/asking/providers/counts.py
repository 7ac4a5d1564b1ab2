"""Token counts, costs and service tiers, as responses report them."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from astra_async.redaction import one_line
from astra_async.types import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MOST_TOKENS = 10**12
_MOST_USD = 10**6
_LONGEST_TIER = 40
_COUNTS = tuple(each.name for each in fields(Usage) if each.name.endswith("_tokens"))
_TICKS_PER_USD = 1e10  # xAI: docs.x.ai/developers/cost-tracking
# Vertex AI's `trafficType` of requests that are paid by use: ON_DEMAND, ON_DEMAND_PRIORITY, ON_DEMAND_FLEX.
_ON_DEMAND = "on_demand_"


def count(value: object) -> int | None:
    """A token count as providers should send it: a whole number that can be one; anything else is None."""
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def output_tokens(total: int | None, inputs: int | None, output: int | None) -> int | None:
    """All tokens of the output: routers leave thinking out of it, and count it in the total only."""
    if total is None or inputs is None or total <= inputs + (output or 0):
        return output
    return total - inputs


def uncached(counts: Iterable[object], thinking: object = None) -> Usage:
    """A usage of input that no cache held, what it read, what was written to it, and output."""
    fresh, read, written, output = map(count, counts)
    return Usage(
        input_tokens=None if fresh is None else fresh + (read or 0) + (written or 0),
        cached_tokens=read,
        cache_write_tokens=written,
        output_tokens=output,
        reasoning_tokens=count(thinking),
    )


def merged(earlier: Any, later: Any) -> Any:
    """Merge the counts of two events of one stream.

    Counts are cumulative: the larger number counts, so that a zero in a later event removes nothing.
    """
    if isinstance(earlier, dict) and isinstance(later, dict):
        both = {name: merged(earlier[name], value) for name, value in later.items() if name in earlier}
        return {**earlier, **later, **both}
    if type(earlier) in (int, float) and type(later) in (int, float):
        return max(earlier, later)
    return later if later is not None and not isinstance(earlier, dict) else earlier


def known(usage: Usage, counts: Any, tier: object) -> Usage:
    """The usage without counts that cannot be true, with the reported cost and the tier that served it."""
    tokens = {name: count(getattr(usage, name)) for name in _COUNTS}
    if all(value is None for value in tokens.values()):
        return Usage()
    return Usage(**tokens, reported_usd=reported_usd(counts), service_tier=tier_name(tier))


def reported_usd(counts: Any) -> float | None:
    """The cost in US dollars that a response's usage reports, None if it reports none.

    OpenRouter's `cost` is in credits of one dollar. For a key of the user's own (`is_byok`) it is the fee
    only, and `cost_details.upstream_inference_cost` is what the other provider charges.
    """
    if not isinstance(counts, dict):
        return None
    if (ticks := _number(counts.get("cost_in_usd_ticks"))) is not None:
        return _usd(ticks / _TICKS_PER_USD)
    cost = counts.get("cost", counts.get("estimated_cost"))  # the latter is DeepInfra's
    cost = _number(cost.get("total_cost") if isinstance(cost, dict) else cost)  # the former is Perplexity's
    details = counts.get("cost_details")
    upstream = _number(details.get("upstream_inference_cost")) if isinstance(details, dict) else None
    if cost is not None and upstream is not None and counts.get("is_byok", upstream > cost):
        cost += upstream
    return None if cost is None else _usd(cost)


def tier_name(tier: object) -> str | None:
    """A service tier in small letters without Vertex AI's prefix; None if none is named.

    Bedrock writes it as a table with a `type`.
    """
    if isinstance(tier, dict):
        tier = tier.get("type")
    if not isinstance(tier, str) or not tier.strip():
        return None
    return one_line(tier.strip().lower(), length=_LONGEST_TIER).removeprefix(_ON_DEMAND)


def with_headers(usage: Usage, headers: Mapping[str, str]) -> Usage:
    """The usage with the cost and the tier that a response's headers report, unless its body does.

    LiteLLM's cost header is 0 or missing for a stream, whose cost is in its usage.
    """
    if usage.input_tokens is None and usage.output_tokens is None:
        return usage
    cost, tier = usage.reported_usd, usage.service_tier or tier_name(headers.get("x-gemini-service-tier"))
    if cost is None and (text := headers.get("x-litellm-response-cost")):
        with suppress(ValueError):
            cost = _usd(float(text)) or None
    return replace(usage, reported_usd=cost, service_tier=tier)


def _number(value: object) -> float | None:
    return float(value) if type(value) in (int, float) else None  # type: ignore[arg-type]


def _usd(value: float) -> float | None:
    """US dollars of one call, None if they cannot be true."""
    return value if math.isfinite(value) and 0 <= value <= _MOST_USD else None
