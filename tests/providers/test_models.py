from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from provider_calls import settings

from astra_async.asking.providers import PROVIDERS, parse_spec
from astra_async.asking.providers.models import bytes_per_token, cost_usd, key_for, resolve, unpriced_tier
from astra_async.errors import ConfigError
from astra_async.types import Usage

USAGE = Usage(input_tokens=1_000_000, cached_tokens=400_000, output_tokens=100_000)


def test_a_spec_is_a_provider_and_a_model_that_may_hold_slashes() -> None:
    assert parse_spec("openai-compatible/meta/llama-3") == ("openai-compatible", "meta/llama-3")
    assert parse_spec(" simulated/steady ") == ("simulated", "steady")


@pytest.mark.parametrize("spec", ["mistral/large", "openai", "openai/", "", "/x"])
def test_a_spec_that_cannot_be_read_is_refused_with_what_is_known(spec: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_spec(spec)
    assert "no model name" in str(caught.value) or ", ".join(PROVIDERS) in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "fields", "environ", "key"),
    [
        ("openai/x", {}, {"OPENAI_API_KEY": "a"}, "a"),
        ("openai/x", {"api_key_env": "MINE"}, {"OPENAI_API_KEY": "a", "MINE": " b\n"}, "b"),
        ("anthropic/x", {}, {"ANTHROPIC_API_KEY": "a"}, "a"),
        ("openai-compatible/x", {"base_url": "https://h"}, {"OPENAI_API_KEY": "a"}, "a"),
        ("openai-compatible/x", {"base_url": "https://h"}, {}, None),
        ("gemini/x", {"base_url": "http://127.0.0.1:1"}, {}, None),
        ("simulated/x", {}, {"OPENAI_API_KEY": "a"}, None),
        ("bedrock/x", {}, {"OPENAI_API_KEY": "a"}, None),
    ],
)
def test_keys_come_from_the_environment(
    spec: str, fields: dict[str, Any], environ: dict[str, str], key: str | None
) -> None:
    assert key_for(settings(spec, **fields), environ) == key


@pytest.mark.parametrize(
    ("spec", "fields", "environ", "named"),
    [
        ("openai/x", {}, {}, "OPENAI_API_KEY"),
        ("openai-responses/x", {}, {"OPENAI_API_KEY": "  "}, "OPENAI_API_KEY"),
        ("anthropic/x", {}, {"OPENAI_API_KEY": "a"}, "ANTHROPIC_API_KEY"),
        ("gemini/x", {}, {}, "GEMINI_API_KEY"),
        ("azure/x", {}, {}, "AZURE_OPENAI_API_KEY"),
        ("openai-compatible/x", {"api_key_env": "MINE"}, {"OPENAI_API_KEY": "a"}, "MINE"),
        ("openai/x", {}, {"OPENAI_API_KEY": "a\nb"}, "OPENAI_API_KEY"),
        ("openai/x", {}, {"OPENAI_API_KEY": "schlüssel"}, "OPENAI_API_KEY"),
    ],
)
def test_a_key_that_is_missing_or_broken_is_named_without_its_value(
    spec: str, fields: dict[str, Any], environ: dict[str, str], named: str
) -> None:
    with pytest.raises(ConfigError, match=named) as caught:
        key_for(settings(spec, **fields), environ)
    assert "schl" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "fields", "max_tokens", "context"),
    [
        ("openai/gpt-4o", {}, 16_384, 128_000),
        ("openai/gpt-4o-2024-05-13", {}, 4_096, 128_000),
        ("openai/gpt-4", {}, 4_096, 8_192),
        ("openai/gpt-5", {}, 32_768, 400_000),
        ("openai/o3-mini", {}, 32_768, 200_000),
        ("openai/gpt-4.1", {}, 32_768, 1_000_000),
        ("anthropic/claude-sonnet-4-5", {}, 32_768, 200_000),
        ("anthropic/claude-opus-4-1-20250805", {}, 32_000, 200_000),
        ("anthropic/claude-opus-4-20250514", {}, 32_000, 200_000),
        ("anthropic/claude-opus-4-5", {}, 32_768, 200_000),
        ("anthropic/claude-3-5-sonnet-20241022", {}, 8_192, 200_000),
        ("gemini/gemini-2.0-flash", {}, 8_192, 1_000_000),
        ("bedrock/us.amazon.nova-pro-v1:0", {}, 10_000, 300_000),
        ("bedrock/meta.llama3-3-70b-instruct-v1:0", {}, 8_192, 128_000),
        ("bedrock/meta.llama3-70b-instruct-v1:0", {}, 2_048, 8_192),
        ("openai/gpt-5", {"max_tokens": 100_000}, 100_000, 400_000),
        ("openai/gpt-5", {"context_length": 9}, 4, 9),
        ("openai-compatible/mine", {"base_url": "http://127.0.0.1:1"}, 32_768, None),
        ("openai-compatible/mine", {"context_length": 8_192}, 4_096, 8_192),
        ("simulated/steady", {}, 32_768, None),
        ("openai/who-knows", {}, 32_768, None),
    ],
)
def test_max_tokens_and_context_are_filled_in_where_known(
    spec: str, fields: dict[str, Any], max_tokens: int, context: int | None
) -> None:
    found = resolve(settings(spec, **fields))
    assert found.max_tokens == max_tokens
    assert found.context_length == context


def test_listed_prices_know_the_cache() -> None:
    gpt = settings("openai/gpt-4o")
    whole = cost_usd(gpt, Usage(input_tokens=1_000_000, output_tokens=100_000))
    saved = cost_usd(gpt, USAGE)
    assert whole == pytest.approx(2.5 + 1.0)
    assert saved == pytest.approx(0.6 * 2.5 + 0.4 * 1.25 + 1.0)
    assert cost_usd(settings("azure/gpt-4o"), USAGE) == pytest.approx(saved)


def test_a_cache_write_costs_more_than_plain_input() -> None:
    claude = settings("anthropic/claude-sonnet-4-5")
    plain = cost_usd(claude, Usage(input_tokens=1000, output_tokens=0))
    written = cost_usd(claude, Usage(input_tokens=1000, cache_write_tokens=1000, output_tokens=0))
    assert plain is not None
    assert written == pytest.approx(1.25 * plain)


def test_own_prices_outrank_the_list() -> None:
    own = settings("openai/gpt-4o", price_input=1.0, price_output=10.0)
    assert cost_usd(own, USAGE) == pytest.approx(1.0 + 1.0)
    cached = settings("openai/gpt-4o", price_input=1.0, price_cached_input=0.0, price_output=10.0)
    assert cost_usd(cached, USAGE) == pytest.approx(0.6 + 1.0)


@pytest.mark.parametrize(
    ("spec", "usage"),
    [
        ("openai-compatible/mine", USAGE),
        ("simulated/steady", USAGE),
        ("openai/who-knows", USAGE),
        ("openai/gpt-4o", Usage()),
        ("openai/gpt-4o", Usage(input_tokens=5)),
    ],
)
def test_what_is_not_known_has_no_cost(spec: str, usage: Usage) -> None:
    assert cost_usd(settings(spec), usage) is None


def test_counts_that_contradict_each_other_still_have_a_cost() -> None:
    usage = Usage(input_tokens=10, cached_tokens=99, cache_write_tokens=99, output_tokens=1)
    cost = cost_usd(settings("anthropic/claude-sonnet-4-5"), usage)
    assert cost is not None
    assert cost > 0


def test_a_compatible_server_of_a_known_host_has_listed_prices() -> None:
    groq = settings("openai-compatible/llama-3.3-70b-versatile", base_url="https://api.groq.com/openai/v1")
    assert cost_usd(groq, USAGE) is not None


def test_tokens_are_estimated_as_a_real_tokenizer_counts_them() -> None:
    """3.2 bytes to a token gave 1.31 times as many tokens as a tokenizer counted in our prompts."""
    assert bytes_per_token(settings("openai/gpt-5.4")) == pytest.approx(3.2 * 1.31, rel=0.1)
    assert bytes_per_token(settings("bedrock/eu.anthropic.claude-x")) < bytes_per_token(settings("gemini/g"))


@pytest.mark.parametrize("asked", [{"service_tier": "scale"}, {"extra_body": {"serviceTier": "scale"}},
                                   {"extra_body": {"service_tier": {"type": "Scale"}}}])  # fmt: skip
def test_a_service_tier_that_is_not_listed_has_no_price(asked: dict[str, Any]) -> None:
    own = {"price_input": 1.0, "price_output": 2.0}
    assert cost_usd(settings("openai/gpt-5", **asked), USAGE) is None
    assert cost_usd(settings("openai/gpt-5", **asked, **own), USAGE) == pytest.approx(1.2)
    standard = cost_usd(settings("openai/gpt-5"), USAGE)
    assert standard is not None
    assert cost_usd(settings("openai/gpt-5", service_tier="default"), USAGE) == standard


@pytest.mark.parametrize(("tier", "times"), [("flex", 0.5), ("priority", 2.0), ("fast", 2.0), ("auto", 1.0)])
def test_a_listed_service_tier_has_its_own_price(tier: str, times: float) -> None:
    standard = cost_usd(settings("openai/gpt-5"), USAGE)
    assert standard is not None
    assert cost_usd(settings("openai/gpt-5", service_tier=tier), USAGE) == pytest.approx(times * standard)
    served = replace(USAGE, service_tier=tier)
    assert cost_usd(settings("openai/gpt-5"), served) == pytest.approx(times * standard)
    assert unpriced_tier(settings("openai/gpt-5"), served) == ""
