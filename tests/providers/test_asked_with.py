"""What a model is asked with: every setting in each provider's own form, as it arrives at a server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from bedrock_server import BedrockServer, bedrock
from provider_calls import KEYS, call, request, settings
from recorded import RECORDED
from test_odd_servers import BEDROCK_TEXT
from wire_server import Asked, Reply, serving

from astra_async.asking.providers import check_settings
from astra_async.asking.providers.models import cost_usd
from astra_async.errors import ConfigError
from astra_async.types import Usage

STREAMS = {recorded.spec.partition("/")[0]: recorded.stream for recorded in RECORDED}
ASKED: dict[str, Any] = {"system_prompt": "Be brief.", "top_p": 0.9, "temperature": 0.5}
MORE: dict[str, Any] = {"stop": ("END", "STOP"), "top_k": 40}


def sent(spec: str, environ: dict[str, str] | None = None, **fields: Any) -> Asked:
    """The request for these settings, as a real server got it."""

    async def run() -> Asked:
        async with serving(Reply(pieces=[STREAMS[spec.partition("/")[0]]])) as server:
            chosen = settings(spec, **{"base_url": server.base_url, "max_tokens": 9000, **fields})
            await call(chosen, request(seed=7), environ={**KEYS, **(environ or {})})
            return server.asked[0]

    return asyncio.run(run())


def sent_to_bedrock(model: str, **fields: Any) -> tuple[dict[str, str], Any]:
    async def run() -> tuple[dict[str, str], Any]:
        async with bedrock(BedrockServer(list(BEDROCK_TEXT))) as server:
            chosen = settings(f"bedrock/{model}", base_url=server.base_url, **{"max_tokens": 9000, **fields})
            await call(chosen)
            return server.asked[0][1:]

    return asyncio.run(run())


def test_chat_completions() -> None:
    asked = sent("openai/gpt-5.4", **ASKED, stop=("END",), service_tier="flex", reasoning_effort="none")
    assert asked.json == {
        "model": "gpt-5.4",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Add a field."},
        ],
        "max_completion_tokens": 9000,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["END"],
        "seed": 7,
        "reasoning_effort": "none",
        "service_tier": "flex",
        "stream": True,
        "stream_options": {"include_usage": True, "include_obfuscation": False},
    }


def test_a_compatible_server_gets_top_k_as_well() -> None:
    body = sent("openai-compatible/qwen", **ASKED, **MORE).json
    assert (body["top_k"], body["stop"], body["max_tokens"]) == (40, ["END", "STOP"], 9000)


def test_responses() -> None:
    body = sent("openai-responses/gpt-5.4", **ASKED, service_tier="priority", reasoning_effort="high").json
    assert (body["instructions"], body["input"]) == ("Be brief.", "Add a field.")
    assert (body["top_p"], body["service_tier"]) == (0.9, "priority")
    assert body["reasoning"] == {"effort": "high"}


def test_anthropic() -> None:
    asked = sent("anthropic/claude-x", **ASKED, **MORE, service_tier="standard_only")
    assert asked.json == {
        "model": "claude-x",
        "max_tokens": 9000,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Add a field."}]}],
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 40,
        "stop_sequences": ["END", "STOP"],
        "service_tier": "standard_only",
        "stream": True,
    }


CLAUDE = (
    ({"thinking_budget": 2048}, {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
    ({"thinking": "adaptive"}, {"thinking": {"type": "adaptive"}}),
    ({"thinking": "off"}, {"thinking": {"type": "disabled"}}),
    (
        {"thinking": "adaptive", "reasoning_effort": "xhigh"},
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}},
    ),
    ({"reasoning_effort": "low"}, {"output_config": {"effort": "low"}}),
)


@pytest.mark.parametrize(("fields", "expected"), CLAUDE, ids=str)
def test_claude_is_told_to_think_alike_at_anthropic_and_bedrock(
    fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    body = sent("anthropic/claude-x", **fields).json
    assert {name: body[name] for name in ("thinking", "output_config") if name in body} == expected
    _, body = sent_to_bedrock("eu.anthropic.claude-x", **fields)
    assert body["additionalModelRequestFields"] == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"thinking_budget": 2048}, {"thinkingBudget": 2048}),
        ({"thinking_budget": 0}, {"thinkingBudget": 0}),
        ({"thinking": "adaptive"}, {"thinkingBudget": -1}),
        ({"thinking": "off"}, {"thinkingBudget": 0}),
        ({"reasoning_effort": "low"}, {"thinkingLevel": "LOW"}),
        ({"reasoning_effort": "-1"}, {"thinkingBudget": -1}),
    ],
    ids=str,
)
def test_gemini_is_told_to_think_by_level_or_budget(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert sent("gemini/gemini-x", **fields).json["generationConfig"]["thinkingConfig"] == expected


def test_gemini() -> None:
    body = sent("gemini/gemini-x", **ASKED, **MORE, service_tier="flex").json
    assert body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "Add a field."}]}],
        "generationConfig": {
            "maxOutputTokens": 9000,
            "temperature": 0.5,
            "topP": 0.9,
            "topK": 40,
            "stopSequences": ["END", "STOP"],
            "seed": 7,
        },
        "serviceTier": "flex",
    }


def test_bedrock() -> None:
    headers, body = sent_to_bedrock(
        "anthropic.claude-x",
        **ASKED,
        **MORE,
        service_tier="flex",
        extra_headers={"X-Trace": "a b"},
        extra_body={"requestMetadata": {"team": "red"}, "additionalModelRequestFields": {"beta": 1}},
    )
    assert body == {
        "system": [{"text": "Be brief."}],
        "messages": [{"role": "user", "content": [{"text": "Add a field."}]}],
        "inferenceConfig": {
            "maxTokens": 9000,
            "temperature": 0.5,
            "topP": 0.9,
            "stopSequences": ["END", "STOP"],
        },
        "additionalModelRequestFields": {"top_k": 40, "beta": 1},
        "serviceTier": {"type": "flex"},
        "requestMetadata": {"team": "red"},
    }
    assert headers["X-Trace"] == "a b"
    assert "x-trace" in headers["Authorization"]  # signed with the rest


def test_nova_at_bedrock() -> None:
    _, body = sent_to_bedrock("us.amazon.nova-2-lite-v1:0", reasoning_effort="low", top_k=20)
    assert body["additionalModelRequestFields"] == {
        "inferenceConfig": {"topK": 20},
        "reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"},
    }


@pytest.mark.parametrize(
    ("model", "field"),
    [
        ("gpt-5.1", "max_completion_tokens"),
        ("openai/gpt-5", "max_completion_tokens"),
        ("o3-mini", "max_completion_tokens"),
        ("gpt-4o", "max_tokens"),
        ("gpt-oss-120b", "max_tokens"),
        ("qwen3-coder", "max_tokens"),
        ("olmo-3", "max_tokens"),
    ],
)
def test_openais_newer_models_get_their_own_field_behind_any_router(model: str, field: str) -> None:
    assert sent(f"openai-compatible/{model}").json[field] == 9000
    for chosen in ("max_tokens", "max_completion_tokens"):
        body = sent(f"openai-compatible/{model}", max_tokens_field=chosen).json
        assert [name for name in body if name.startswith("max_")] == [chosen]
    assert "max_tokens" in sent("azure/d", max_tokens_field="max_tokens").json


# --- open headers and bodies ------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [recorded.spec for recorded in RECORDED])
def test_headers_and_body_are_open_in_every_format(spec: str) -> None:
    asked = sent(
        spec,
        environ={"MY_ROUTER_KEY": "router-0123"},
        extra_headers={"X-Router": "Bearer ${MY_ROUTER_KEY}", "User-Agent": "mine"},
        extra_body={"provider": {"order": ["a"]}, "temperature": 0.25, "note": "${MY_ROUTER_KEY}"},
    )
    assert asked.headers["x-router"] == "Bearer router-0123"
    assert asked.headers["user-agent"] == "mine"
    assert asked.json["provider"] == {"order": ["a"]}
    assert asked.json["temperature"] == 0.25
    assert asked.json["note"] == "router-0123"


def test_a_header_of_the_users_own_replaces_ours_whatever_its_case() -> None:
    asked = sent("openai/gpt-x", extra_headers={"authorization": "Basic abc"})
    assert asked.headers["authorization"] == "Basic abc"
    assert str(asked.headers).count("'authorization'") == 1


def test_a_field_of_the_users_own_replaces_ours() -> None:
    assert sent("openai/gpt-x", extra_body={"temperature": 0.25}, temperature=1.0).json["temperature"] == 0.25


def test_tables_of_the_body_are_merged() -> None:
    body = sent("gemini/g", extra_body={"generationConfig": {"responseMimeType": "text/plain"}}).json
    assert body["generationConfig"]["maxOutputTokens"] == 9000
    assert body["generationConfig"]["responseMimeType"] == "text/plain"


def test_organization_and_project_come_from_settings_or_openais_own_variables() -> None:
    asked = sent("openai/gpt-x", organization="org-a", project="proj-b")
    assert (asked.headers["openai-organization"], asked.headers["openai-project"]) == ("org-a", "proj-b")
    # A server of somebody else is not told which organization at OpenAI the user belongs to.
    elsewhere = sent("openai-compatible/x", environ={"OPENAI_ORG_ID": "org-a"})
    assert "openai-organization" not in elsewhere.headers


# --- unsupported settings are refused before any request is sent ----------------------------------------


@pytest.mark.parametrize(
    ("spec", "fields", "line"),
    [
        ("openai/gpt-x", {"thinking_budget": 2000}, "thinking_budget is not supported .* reasoning_effort"),
        ("openai/gpt-x", {"top_k": 4}, "top_k is not supported"),
        ("openai-responses/gpt-x", {"stop": ("END",)}, "stop is not supported .* unset it, or use openai/"),
        ("openai-compatible/x", {"thinking": "adaptive"}, "the server's own field in extra_body"),
        ("azure/d", {"organization": "o"}, "organization is not supported"),
        ("openai/gpt-x", {"api_version": "v2"}, "api_version is not supported .* unset it"),
        ("anthropic/c", {"thinking_budget": 500}, "must be at least 1024"),
        ("anthropic/c", {"thinking_budget": 9000, "max_tokens": 9000}, "below max_tokens .9000."),
        ("anthropic/c", {"thinking": "off", "thinking_budget": 2000}, "exclude each other"),
        ("gemini/g", {"reasoning_effort": "low", "thinking_budget": 5}, "exclude each other"),
        ("bedrock/meta.llama4", {"reasoning_effort": "low"}, "extra_body.additionalModelRequestFields"),
        ("openai/gpt-x", {"extra_headers": {"X": "a\nb"}}, "extra_headers: X: .* line break"),
        ("openai/gpt-x", {"extra_headers": {"a b": "c"}}, "extra_headers: a b: this header is invalid"),
        ("openai/gpt-x", {"extra_headers": {"Host": "c"}}, "invalid or cannot be set"),
        ("openai/gpt-x", {"extra_headers": {"X": "${NOT_SET}"}}, "the variable NOT_SET is not set"),
        ("openai/gpt-x", {"extra_body": {"n": 4}}, "extra_body: n cannot be set"),
        ("gemini/g", {"extra_body": {"generationConfig": {"candidateCount": 2}}}, "candidateCount cannot"),
        ("bedrock/anthropic.c", {"extra_body": {"messages": []}}, "messages cannot be set"),
    ],
    ids=str,
)
def test_a_setting_without_meaning_is_refused_with_its_remedy(
    spec: str, fields: dict[str, Any], line: str
) -> None:
    chosen = settings(spec, **{"base_url": "http://127.0.0.1:9/v1", "max_tokens": 9000, **fields})
    with pytest.raises(ConfigError, match=line):
        check_settings(chosen, KEYS)


# --- what it costs (P5) -------------------------------------------------------------------------------------


def test_own_prices_know_the_price_of_a_cache_write() -> None:
    usage = Usage(input_tokens=1_000_000, cached_tokens=200_000, cache_write_tokens=300_000, output_tokens=0)
    own: dict[str, Any] = {"price_input": 10.0, "price_cached_input": 1.0, "price_output": 30.0}
    assert cost_usd(settings(**own), usage) == pytest.approx(5 + 0.2 + 3)
    assert cost_usd(settings(**own, price_cache_write=12.5), usage) == pytest.approx(5 + 0.2 + 3.75)


async def test_cache_writes_of_the_responses_interface_are_counted() -> None:
    stream = STREAMS["openai-responses"].replace(
        b'"cached_tokens":100', b'"cached_tokens":40,"cache_write_tokens":60'
    )

    async def run() -> Usage:
        async with serving(Reply(pieces=[stream])) as server:
            return (await call(settings("openai-responses/toy", base_url=server.base_url))).usage

    usage = await run()
    assert (usage.cached_tokens, usage.cache_write_tokens) == (40, 60)
