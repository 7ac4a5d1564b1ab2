"""Ours beside the vendors' own clients (extra `sdks`, installed by scripts/long): what is sent, what is read.

Each official client is a client of `astra simulate`, sends the same settings to a server that keeps its
request, and reads the same recorded stream. boto3 comes with the AWS library and is always there.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest
from bedrock_server import BedrockServer, bedrock
from provider_calls import KEYS, call, request, settings
from recorded import RECORDED, TEXT
from test_odd_servers import BEDROCK_TEXT
from wire_server import Reply, serving

from astra_async.simulate.server import SimulatedServer
from astra_async.types.simulation import SimulationSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from astra_async.types import Completion

pytestmark = pytest.mark.filterwarnings("ignore")  # theirs, not ours

STREAMS = {recorded.spec.partition("/")[0]: recorded.stream for recorded in RECORDED}
REASON = "the vendors' clients are an extra: pip install 'astra_async[sdks]'; scripts/long does"

Read = dict[str, Any]  # what a client makes of a stream: text, finish, input and output tokens


def library(name: str) -> Any:
    return pytest.importorskip(name, reason=REASON)


# --- the official clients ---------------------------------------------------------------------------------


def openai_chat(base_url: str, fields: dict[str, Any], headers: dict[str, str]) -> Read:
    with library("openai").OpenAI(base_url=base_url, api_key="k", max_retries=0) as client:
        read: Read = {"text": ""}
        for chunk in client.chat.completions.create(**fields, stream=True, extra_headers=headers):
            for choice in chunk.choices:
                read["text"] += choice.delta.content or ""
                read["finish"] = choice.finish_reason or read.get("finish")
            if chunk.usage:
                read["input"], read["output"] = chunk.usage.prompt_tokens, chunk.usage.completion_tokens
        return read


def openai_responses(base_url: str, fields: dict[str, Any], headers: dict[str, str]) -> Read:
    with library("openai").OpenAI(base_url=base_url, api_key="k", max_retries=0) as client:
        last = None
        for event in client.responses.create(**fields, stream=True, extra_headers=headers):
            if event.type == "response.completed":
                last = event.response
        assert last is not None
        return {
            "text": "".join(
                part.text for item in last.output if item.type == "message" for part in item.content
            ),
            "finish": {"completed": "stop"}[last.status],
            "input": last.usage.input_tokens,
            "output": last.usage.output_tokens,
        }


def anthropic(base_url: str, fields: dict[str, Any], headers: dict[str, str]) -> Read:
    with (
        library("anthropic").Anthropic(base_url=base_url, api_key="k", max_retries=0) as client,
        client.messages.stream(**fields, extra_headers=headers) as stream,
    ):
        message = stream.get_final_message()
    usage = message.usage
    cached = (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    return {
        "text": "".join(block.text for block in message.content if block.type == "text"),
        "finish": {"end_turn": "stop", "max_tokens": "length"}[message.stop_reason],
        "input": usage.input_tokens + cached,
        "output": usage.output_tokens,
    }


def gemini(base_url: str, fields: dict[str, Any], headers: dict[str, str]) -> Read:
    genai = library("google.genai")
    options = {"base_url": base_url, "headers": headers}
    client = genai.Client(api_key="k", http_options=options)
    read: Read = {"text": ""}
    for chunk in client.models.generate_content_stream(**fields):
        read["text"] += chunk.text or ""
        for candidate in chunk.candidates or []:
            read["finish"] = {"STOP": "stop"}.get(
                str(candidate.finish_reason and candidate.finish_reason.value)
            )
        usage = chunk.usage_metadata
        if usage and usage.total_token_count:
            read["input"] = usage.prompt_token_count
            read["output"] = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
    return read


def converse(base_url: str, fields: dict[str, Any], headers: dict[str, str]) -> Read:
    client = library("boto3").client(
        "bedrock-runtime",
        endpoint_url=base_url,
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
    )
    client.meta.events.register("before-call", lambda params, **_: params["headers"].update(headers))
    read: Read = {"text": ""}
    for event in client.converse_stream(**fields)["stream"]:
        read["text"] += event.get("contentBlockDelta", {}).get("delta", {}).get("text", "")
        if "messageStop" in event:
            read["finish"] = {"end_turn": "stop"}[event["messageStop"]["stopReason"]]
        if "metadata" in event:
            usage = event["metadata"]["usage"]
            cached = usage.get("cacheReadInputTokens", 0) + usage.get("cacheWriteInputTokens", 0)
            read["input"], read["output"] = usage["inputTokens"] + cached, usage["outputTokens"]
    client.close()
    return read


PROMPT = "Add a field."
USER = {"role": "user", "content": PROMPT}
SYSTEM = {"role": "system", "content": "Be brief."}
OURS: dict[str, Any] = {"max_tokens": 9000, "temperature": 0.5, "top_p": 0.9, "system_prompt": "Be brief."}

# spec -> client, the address after the server's, its fields for the same settings as `ours`, and `ours`.
Case = tuple["Callable[[str, dict[str, Any], dict[str, str]], Read]", str, dict[str, Any], dict[str, Any]]
CASES: dict[str, Case] = {
    "openai/MODEL": (
        openai_chat,
        "/v1",
        {
            "model": "MODEL",
            "messages": [SYSTEM, USER],
            "max_completion_tokens": 9000,
            "temperature": 0.5,
            "top_p": 0.9,
            "stop": ["END"],
            "reasoning_effort": "low",
            "service_tier": "flex",
            "stream_options": {"include_usage": True, "include_obfuscation": False},
        },
        {**OURS, "stop": ("END",), "reasoning_effort": "low", "service_tier": "flex"},
    ),
    "openai-responses/MODEL": (
        openai_responses,
        "/v1",
        {
            "model": "MODEL",
            "input": PROMPT,
            "instructions": "Be brief.",
            "max_output_tokens": 9000,
            "temperature": 0.5,
            "top_p": 0.9,
            "reasoning": {"effort": "low"},
            "service_tier": "flex",
            "store": False,
            "stream_options": {"include_obfuscation": False},
        },
        {**OURS, "reasoning_effort": "low", "service_tier": "flex"},
    ),
    "anthropic/MODEL": (
        anthropic,
        "",
        {
            "model": "MODEL",
            "max_tokens": 9000,
            "system": "Be brief.",
            "messages": [{"role": "user", "content": [{"type": "text", "text": PROMPT}]}],
            "stop_sequences": ["END"],
            "thinking": {"type": "enabled", "budget_tokens": 2048},
            "output_config": {"effort": "low"},
            "service_tier": "standard_only",
            # Its newest version has no parameters for sampling, which today's models refuse.
            "extra_body": {"temperature": 0.5, "top_p": 0.9, "top_k": 40},
        },
        {
            **OURS,
            "top_k": 40,
            "stop": ("END",),
            "thinking_budget": 2048,
            "reasoning_effort": "low",
            "service_tier": "standard_only",
        },
    ),
    "gemini/MODEL": (
        gemini,
        "",
        {
            "model": "MODEL",
            "contents": [{"role": "user", "parts": [{"text": PROMPT}]}],
            "config": {
                "system_instruction": {"parts": [{"text": "Be brief."}]},
                "max_output_tokens": 9000,
                "temperature": 0.5,
                "top_p": 0.9,
                "top_k": 40,
                "stop_sequences": ["END"],
                "thinking_config": {"thinking_level": "LOW"},
                "service_tier": "flex",
            },
        },
        {
            **OURS,
            "top_k": 40,
            "stop": ("END",),
            "reasoning_effort": "low",
            "service_tier": "flex",
            "api_version": "v1",
        },
    ),
    "bedrock/anthropic.MODEL": (
        converse,
        "",
        {
            "modelId": "anthropic.MODEL",
            "system": [{"text": "Be brief."}],
            "messages": [{"role": "user", "content": [{"text": PROMPT}]}],
            "inferenceConfig": {
                "maxTokens": 9000,
                "temperature": 0.5,
                "topP": 0.9,
                "stopSequences": ["END"],
            },
            "additionalModelRequestFields": {
                "thinking": {"type": "enabled", "budget_tokens": 2048},
                "top_k": 40,
            },
        },
        {**OURS, "top_k": 40, "stop": ("END",), "thinking_budget": 2048},
    ),
}
every_client = pytest.mark.parametrize("spec", CASES)


@every_client
async def test_the_request_is_that_of_the_official_client(spec: str) -> None:
    client, path, fields, ours = CASES[spec]
    client_of(spec)

    async def run() -> list[tuple[str, Any]]:
        if spec.startswith("bedrock"):
            async with bedrock(BedrockServer(list(BEDROCK_TEXT))) as server:
                await asyncio.to_thread(client, server.base_url, fields, {})
                await call(settings(spec, base_url=server.base_url, **ours), request(PROMPT), environ=KEYS)
                return [(path, body) for path, _, body in server.asked]
        async with serving(Reply(pieces=[STREAMS[spec.partition("/")[0]]])) as wire:
            await asyncio.to_thread(client, wire.base_url + path, fields, {})
            await call(settings(spec, base_url=wire.base_url + path, **ours), request(PROMPT), environ=KEYS)
            return [(asked.path, asked.json) for asked in wire.asked]

    official, mine = await run()
    assert mine == (official[0], in_camel_case(official[1]) if client is gemini else official[1])


def in_camel_case(body: Any) -> Any:
    """Gemini's server takes `thinking_level` for `thinkingLevel`, and its client sends either."""
    if isinstance(body, list):
        return [in_camel_case(inner) for inner in body]
    if not isinstance(body, dict):
        return body
    return {re.sub(r"_(\w)", lambda m: m[1].upper(), name): in_camel_case(v) for name, v in body.items()}


@every_client
async def test_a_recorded_stream_is_read_as_by_the_official_client(spec: str) -> None:
    client, path, fields, ours = CASES[spec]
    client_of(spec)

    async def run() -> tuple[Read, Completion]:
        if spec.startswith("bedrock"):
            async with bedrock(BedrockServer(list(BEDROCK_TEXT))) as server:
                official = await asyncio.to_thread(client, server.base_url, fields, {})
                return official, await call(settings(spec, base_url=server.base_url, **ours))
        async with serving(Reply(pieces=[STREAMS[spec.partition("/")[0]]])) as wire:
            official = await asyncio.to_thread(client, wire.base_url + path, fields, {})
            return official, await call(settings(spec, base_url=wire.base_url + path, **ours))

    official, mine = await run()
    assert official == read_of(mine)
    assert official["text"] == ("All done." if spec.startswith("bedrock") else TEXT)


@every_client
async def test_the_official_client_is_served_by_astra_simulate(spec: str) -> None:
    client, path, fields, _ = CASES[spec]
    client_of(spec)
    named = {name: value for name, value in fields.items() if name in {"model", "modelId"}}
    fields = {**fields, **{name: str(value).replace("MODEL", "steady") for name, value in named.items()}}
    spec = spec.replace("MODEL", "steady")
    if spec.startswith("bedrock"):
        fields["modelId"], spec = "steady", "bedrock/steady"
    sample = "7/xml/nothing/3"

    async def run() -> tuple[Read, Completion]:
        server = await SimulatedServer.start(settings=SimulationSettings(speed=0.001))
        base_url = server.base_url.removesuffix("/v1")
        try:
            official = await asyncio.to_thread(client, base_url + path, fields, {"x-astra-sample": sample})
            chosen = settings(spec, base_url=base_url + path, max_tokens=9000)
            return official, await call(chosen, request(PROMPT, sample_header=sample))
        finally:
            await server.stop()

    official, mine = await run()
    assert official["text"] == mine.text
    assert official["finish"] == mine.finish_reason
    assert len(mine.text) > 20


def client_of(spec: str) -> None:
    """Skip, with the reason, where this client is not installed."""
    names = {"anthropic": "anthropic", "gemini": "google.genai", "bedrock": "boto3"}
    library(names.get(spec.partition("/")[0], "openai"))


def read_of(completion: Completion) -> Read:
    return {
        "text": completion.text,
        "finish": completion.finish_reason,
        "input": completion.usage.input_tokens,
        "output": completion.usage.output_tokens,
    }
