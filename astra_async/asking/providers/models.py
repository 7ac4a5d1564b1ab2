"""API keys, prices, context windows and output limits of models.

Prices and context windows come from genai-prices (offline data). Prices in the settings take precedence. The
table below lists only models whose longest output is below DEFAULT_MAX_TOKENS.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from astra_async.asking.providers import PROVIDERS
from astra_async.asking.providers.connection import address
from astra_async.asking.providers.counts import tier_name
from astra_async.errors import ConfigError
from astra_async.redaction import register_sent_secret
from astra_async.transport import is_local
from astra_async.types import DEFAULT_MAX_TOKENS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yarl import URL

    from astra_async.types import ModelSettings, Usage

# Service tiers at the model's standard price (`batch`: times `batch_share`). Other tiers (flex, priority ...)
# cost about half or twice as much; genai-prices lists them under the names in `_TIER_NAMES`.
_LISTED_TIERS = frozenset({"auto", "batch", "default", "on_demand", "standard", "standard_only"})
_TIER_NAMES = ("service_tier", "speed")
_BYTES_PER_TOKEN = 4.2
_CLAUDE_BYTES_PER_TOKEN = 3.4
# Longest output in tokens. The first match applies. Sources: the providers' model pages.
_LONGEST_OUTPUT = (
    (r"gpt-4o-2024-05-13", 4_096),
    (r"gpt-4o|chatgpt-4o", 16_384),
    (r"gpt-4-turbo|gpt-4-\d{4}-preview|gpt-3\.5", 4_096),
    (r"gpt-4(-\d{4})?$|gpt-4-32k", 8_192),
    (r"gpt-5(\.\d)?-chat", 16_384),
    (r"claude-3-(opus|sonnet|haiku)|claude-(2|v1|instant)", 4_096),
    (r"claude-3-5", 8_192),
    (r"claude-opus-4(-0|-1|-2025\d{4}|$|-1-2025\d{4})", 32_000),
    (r"gemini-(1\.|2\.0)", 8_192),
    (r"nova-(micro|lite|pro)", 10_000),
    (r"nova-premier", 32_000),
    (r"titan-text", 4_096),
    (r"meta\.llama3-\d+b", 2_048),
    (r"meta\.llama", 8_192),
    (r"deepseek-chat", 8_192),
)


def key_for(settings: ModelSettings, environ: Mapping[str, str]) -> str | None:
    """Return the API key for this model from the environment, or None if no key is sent.

    Compatible servers use `api_key_env`, else OPENAI_API_KEY if set, else no key. A server on this machine
    needs no key. Bedrock uses AWS credentials, simulated models use no key.

    Raises:
        ConfigError: the variable is not set, or its value cannot be sent in a header.
    """
    usual = PROVIDERS[settings.provider].key_variable
    if not usual:
        return None
    name = settings.api_key_env or usual
    key = environ.get(name, "").strip()
    if key:
        if not (key.isascii() and key.isprintable()):
            raise ConfigError(f"{name} contains characters that are invalid in an API key: set it again")
        register_sent_secret(key)
        return key
    base = settings.base_url
    local = is_local(_base(base, settings.name)) if base else False
    if settings.api_key_env is None and (settings.provider == "openai-compatible" or local):
        return None
    raise ConfigError(f"{settings.name} needs an API key: set {name} in the environment")


def resolve(settings: ModelSettings) -> ModelSettings:
    """Return the settings with `max_tokens` and, if known, `context_length` filled in.

    max_tokens = min(the model's longest output, 32,768), and at most half of a known context window, because
    prompt and answer share the window.
    """
    listed = None if settings.context_length else _listed(settings)
    context = listed[1].context_window if listed else settings.context_length
    most = settings.max_tokens
    if most is None:
        name = settings.model.lower()
        longest = (tokens for pattern, tokens in _LONGEST_OUTPUT if re.search(pattern, name))
        most = min(next(longest, DEFAULT_MAX_TOKENS), DEFAULT_MAX_TOKENS)
        most = min(most, context // 2) if context else most
    return replace(settings, context_length=context, max_tokens=most)


def batch_share(settings: ModelSettings) -> float:
    """Return the factor on the model's price: 0.5 in batches if the provider confirms it, else 1."""
    return 0.5 if settings.batch and PROVIDERS[settings.provider].half_price_batches else 1.0


def cost_usd(settings: ModelSettings, usage: Usage) -> float | None:
    """Return the cost of one call in US dollars, or None if a price or a count is unknown.

    1. Configured prices apply if `price_input` and `price_output` are both set. Cache reads then cost
       `price_cached_input` and cache writes `price_cache_write`; both default to `price_input`.
    2. Otherwise the cost that the provider reports applies.
    3. Otherwise the listed price of the service tier that served the call applies, or of the requested tier
       if the former has no price.
    """
    return priced_usd(settings, usage) if costs_by_price(settings, usage) else usage.reported_usd


def costs_by_price(settings: ModelSettings, usage: Usage) -> bool:
    """Return True if prices determine the cost, False if the cost reported by the provider applies."""
    return usage.reported_usd is None or _has_own_prices(settings)


def priced_usd(settings: ModelSettings, usage: Usage) -> float | None:
    """Return the cost of one call in US dollars by configured or listed prices; None if unknown."""
    total, output = usage.input_tokens, usage.output_tokens
    if total is None or output is None:
        return None
    read = min(usage.cached_tokens or 0, total)
    written = min(usage.cache_write_tokens or 0, total - read)
    if settings.price_input is None or settings.price_output is None:
        counts = {"input_tokens": total, "cache_read_tokens": read, "cache_write_tokens": written}
        tier = _asked_tier(settings) if unpriced_tier(settings, usage) else usage.service_tier
        listed_usd = _listed_usd(settings, {**counts, "output_tokens": output}, tier or _asked_tier(settings))
        return None if listed_usd is None else listed_usd * batch_share(settings)
    read_usd, written_usd = settings.price_cached_input, settings.price_cache_write
    parts = (
        (total - read - written, settings.price_input),
        (read, settings.price_input if read_usd is None else read_usd),
        (written, settings.price_input if written_usd is None else written_usd),
        (output, settings.price_output),
    )
    return sum(tokens * usd for tokens, usd in parts) / 1e6 * batch_share(settings)


def unpriced_tier(settings: ModelSettings, usage: Usage) -> str:
    """Return the service tier that served a call if its price is unknown, else an empty string.

    Configured prices apply to the requested tier only.
    """
    served, asked = usage.service_tier, _asked_tier(settings)
    if served is None or served == asked or (served in _LISTED_TIERS and asked in _LISTED_TIERS):
        return ""
    if _has_own_prices(settings):
        return served
    listed = _listed(settings)
    return served if listed and not _is_listed(listed[1], served) else ""


def bytes_per_token(settings: ModelSettings) -> float:
    """Return the average UTF-8 bytes per token, for estimates before a run.

    4.2 was measured on this project's prompts with a real tokenizer. Claude's tokenizer produces more tokens,
    according to Anthropic. The throttle does not use this value, because it calibrates itself.
    """
    return _CLAUDE_BYTES_PER_TOKEN if "claude" in settings.model.lower() else _BYTES_PER_TOKEN


def _has_own_prices(settings: ModelSettings) -> bool:
    return settings.price_input is not None and settings.price_output is not None


def _listed_usd(settings: ModelSettings, counts: dict[str, int], tier: str) -> float | None:
    listed = _listed(settings)
    if listed is None or not _is_listed(listed[1], tier):
        return None
    from datetime import UTC, datetime

    from genai_prices import Usage as PricedUsage

    provider, model = listed
    try:
        price = model.calc_price(
            PricedUsage(**counts),
            provider,
            genai_request_timestamp=datetime.now(UTC),
            price_context={} if tier in _LISTED_TIERS else dict.fromkeys(_TIER_NAMES, tier),
        )
    except ValueError:  # the library has no price for one of these counts
        return None
    return float(price.total_price)


def _is_listed(model: Any, tier: str) -> bool:
    """Return True if the list has a price for a model's service tier."""
    names = [variant.when.get(name) for variant in model.price_variants or () for name in _TIER_NAMES]
    return tier in _LISTED_TIERS or tier in names


def _asked_tier(settings: ModelSettings) -> str:
    """Return the requested service tier, from the setting or from `extra_body`."""
    extra = settings.extra_body
    tier = (
        settings.service_tier or extra.get("service_tier") or extra.get("serviceTier") or extra.get("speed")
    )
    return tier_name(tier) or "default"


def _listed(settings: ModelSettings) -> tuple[Any, Any] | None:
    known = PROVIDERS.get(settings.provider)
    provider = known and known.prices
    return _lookup(settings.model, provider, None if provider else settings.base_url, settings.name)


@lru_cache(maxsize=256)
def _lookup(model: str, provider: str | None, base_url: str | None, name: str) -> tuple[Any, Any] | None:
    """Return genai-prices' (provider, model). Local servers skip the import, which takes 0.2 s and 25 MB."""
    if provider is None and (base_url is None or is_local(_base(base_url, name))):
        return None
    from genai_prices.data_snapshot import get_snapshot

    try:
        return get_snapshot().find_provider_model(model, None, provider, base_url)
    except LookupError:
        return None


def _base(base_url: str, name: str) -> URL:
    return address(base_url, where=f"base_url of {name}")
