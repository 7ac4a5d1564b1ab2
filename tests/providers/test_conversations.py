"""A conversation that goes on, in each provider's own form, as it arrives at a server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from bedrock_server import BedrockServer, bedrock
from provider_calls import KEYS, call, request, settings
from recorded import RECORDED
from test_odd_servers import BEDROCK_TEXT
from test_official_clients import library
from wire_server import Reply, serving

from astra_async.types import Exchange, ModelRequest

STREAMS = {recorded.spec.partition("/")[0]: recorded.stream for recorded in RECORDED}
EARLIER = (
    Exchange(answer="<solution>1</solution>", feedback="2 of 3 tests passed.", sha256="c1"),
    Exchange(answer="(no answer)", feedback="It could not be used.", sha256="c2"),
)
SAID = ["Add a field.", *(text for each in EARLIER for text in (each.answer, each.feedback))]
MARK = {"type": "ephemeral"}


def further(**fields: Any) -> ModelRequest:
    return request(earlier=EARLIER, **fields)


def sent(spec: str, asked: ModelRequest) -> Any:
    async def run() -> Any:
        async with serving(Reply(pieces=[STREAMS[spec.partition("/")[0]]])) as server:
            await call(settings(spec, base_url=server.base_url, max_tokens=9000), asked, environ=KEYS)
            return server.asked[0].json

    return asyncio.run(run())


def sent_to_bedrock(model: str, asked: ModelRequest) -> Any:
    async def run() -> Any:
        async with bedrock(BedrockServer(list(BEDROCK_TEXT))) as server:
            await call(settings(f"bedrock/{model}", base_url=server.base_url, max_tokens=9000), asked)
            return server.asked[0][2]

    return asyncio.run(run())


def roles(assistant: str) -> list[str]:
    return ["user", assistant, "user", assistant, "user"]


@pytest.mark.parametrize("spec", ["openai/gpt-5.4", "azure/gpt-5.4", "openai-compatible/qwen"])
def test_chat_completions(spec: str) -> None:
    body = sent(spec, further(cache=True, goes_on=True))
    assert body["messages"] == [
        {"role": role, "content": text} for role, text in zip(roles("assistant"), SAID, strict=True)
    ]
    # The same key as the first answer's request: what routes equal beginnings to the same cache.
    assert body.get("prompt_cache_key") == (("ab" * 32)[:64] if spec.startswith("openai/") else None)


def test_responses_are_given_all_that_was_said_since_nothing_is_stored() -> None:
    body = sent("openai-responses/gpt-5.4", further())
    assert body["input"] == [
        {"role": role, "content": text} for role, text in zip(roles("assistant"), SAID, strict=True)
    ]
    assert body["store"] is False


def test_gemini_calls_the_assistant_model() -> None:
    body = sent("gemini/gemini-x", further(cache=True, goes_on=True))
    assert body["contents"] == [
        {"role": role, "parts": [{"text": text}]} for role, text in zip(roles("model"), SAID, strict=True)
    ]


@pytest.mark.parametrize(
    ("fields", "marked"),
    [({}, []), ({"cache": True}, [0]), ({"cache": True, "goes_on": True}, [0, 4]), ({"goes_on": True}, [])],
    ids=str,
)
def test_anthropic_and_bedrock_mark_the_prompt_and_the_end_where_a_next_turn_reads_it(
    fields: dict[str, Any], marked: list[int]
) -> None:
    messages = sent("anthropic/claude-x", further(**fields))["messages"]
    assert [message["role"] for message in messages] == roles("assistant")
    assert [message["content"][0]["text"] for message in messages] == SAID
    places = [at for at, message in enumerate(messages) if "cache_control" in message["content"][0]]
    assert places == marked
    assert all(messages[at]["content"][0]["cache_control"] == MARK for at in places)

    messages = sent_to_bedrock("eu.anthropic.claude-x", further(**fields))["messages"]
    assert [message["role"] for message in messages] == roles("assistant")
    assert [message["content"][0]["text"] for message in messages] == SAID
    points = [
        at for at, message in enumerate(messages) if {"cachePoint": {"type": "default"}} in message["content"]
    ]
    assert points == marked


def test_a_first_request_that_goes_on_is_marked_once() -> None:
    body = sent("anthropic/claude-x", request(cache=True, goes_on=True))
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Add a field.", "cache_control": MARK}]}
    ]
    body = sent_to_bedrock("amazon.nova-x", request(cache=True, goes_on=True))
    assert body["messages"][0]["content"] == [{"text": "Add a field."}, {"cachePoint": {"type": "default"}}]


def test_bedrocks_other_models_get_no_cache_point() -> None:
    messages = sent_to_bedrock("meta.llama-x", further(cache=True, goes_on=True))["messages"]
    assert all(len(message["content"]) == 1 for message in messages)


def typed(annotation: Any, value: Any) -> None:
    """Each message checked against the type that a vendor's client declares for it."""
    from pydantic import TypeAdapter

    adapter = TypeAdapter(annotation)
    for each in value:
        adapter.validate_python(each)


def test_the_vendors_own_types_take_what_is_sent() -> None:
    asked = further(cache=True, goes_on=True)
    chat, responses = library("openai.types.chat"), library("openai.types.responses")
    typed(chat.ChatCompletionMessageParam, sent("openai/gpt-5.4", asked)["messages"])
    typed(responses.EasyInputMessageParam, sent("openai-responses/gpt-5.4", asked)["input"])
    typed(library("anthropic.types").MessageParam, sent("anthropic/claude-x", asked)["messages"])
    typed(library("google.genai").types.Content, sent("gemini/gemini-x", asked)["contents"])
