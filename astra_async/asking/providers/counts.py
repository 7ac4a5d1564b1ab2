"""Token counts, costs and service tiers from the usage of responses."""

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
    """Return the value if it is a plausible token count (a whole number from 0 to 10^12), else None."""
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def output_tokens(total: int | None, inputs: int | None, output: int | None) -> int | None:
    """Return all output tokens. Some routers count thinking only in the total, so total - input is used."""
    if total is None or inputs is None or total <= inputs + (output or 0):
        return output
    return total - inputs


def usage_from_parts(counts: Iterable[object], thinking: object = None) -> Usage:
    """Build a Usage from four counts: uncached input, cache reads, cache writes, output."""
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

    Counts are cumulative. The larger number is kept, so that a zero in a later event does not reset a count.
    """
    if isinstance(earlier, dict) and isinstance(later, dict):
        both = {name: merged(earlier[name], value) for name, value in later.items() if name in earlier}
        return {**earlier, **later, **both}
    if type(earlier) in (int, float) and type(later) in (int, float):
        return max(earlier, later)
    return later if later is not None and not isinstance(earlier, dict) else earlier


def known(usage: Usage, counts: Any, tier: object) -> Usage:
    """Return the usage without impossible counts, with the reported cost and the service tier."""
    tokens = {name: count(getattr(usage, name)) for name in _COUNTS}
    if all(value is None for value in tokens.values()):
        return Usage()
    return Usage(**tokens, reported_usd=reported_usd(counts), service_tier=tier_name(tier))


def reported_usd(counts: Any) -> float | None:
    """Return the cost in US dollars that a response reports, or None.

    OpenRouter's `cost` is in credits of one dollar. If the user brings their key for the upstream provider
    (`is_byok`), `cost` is only the fee, and `cost_details.upstream_inference_cost` must be added.
    """
    if not isinstance(counts, dict):
        return None
    if (ticks := _number(counts.get("cost_in_usd_ticks"))) is not None:
        return _usd(ticks / _TICKS_PER_USD)
    cost = counts.get("cost", counts.get("estimated_cost"))  # `estimated_cost`: DeepInfra
    cost = _number(cost.get("total_cost") if isinstance(cost, dict) else cost)  # `total_cost`: Perplexity
    details = counts.get("cost_details")
    upstream = _number(details.get("upstream_inference_cost")) if isinstance(details, dict) else None
    if cost is not None and upstream is not None and counts.get("is_byok", upstream > cost):
        cost += upstream
    return None if cost is None else _usd(cost)


def tier_name(tier: object) -> str | None:
    """Return a service tier in lower case without Vertex AI's prefix, or None.

    Bedrock reports the tier as an object with a `type`.
    """
    if isinstance(tier, dict):
        tier = tier.get("type")
    if not isinstance(tier, str) or not tier.strip():
        return None
    return one_line(tier.strip().lower(), length=_LONGEST_TIER).removeprefix(_ON_DEMAND)


def with_headers(usage: Usage, headers: Mapping[str, str]) -> Usage:
    """Add the cost and the tier from response headers if the body does not report them.

    LiteLLM's cost header is 0 or missing for streams; the cost is then in the usage.
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
    """Return the cost of one call in US dollars, or None if the value is implausible."""
    return value if math.isfinite(value) and 0 <= value <= _MOST_USD else None
