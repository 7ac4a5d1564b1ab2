"""Every wire format, read by the most literal reader that its documents allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pytest
from botocore.eventstream import EventStreamBuffer
from simulated_client import PROMPT, Heard, chat, running, sse_data

from astra_async.types.simulation import SimulationSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    import aiohttp

    from astra_async.simulate.server import SimulatedServer

FORMATS = ("responses", "anthropic", "gemini", "bedrock")


async def test_every_format_gives_the_same_answer_as_chat_completions() -> None:
    async with running() as place:
        for number in range(6):
            sample = f"7/xml/shop/{number}"
            expected = await chat(place, sample, model="erratic")
            for fmt in FORMATS:
                heard = await ask(place, fmt, sample, model="erratic")
                assert (heard.text, heard.done) == (expected.text, True), fmt
                assert await whole_text(place, fmt, sample, model="erratic") == expected.text


@pytest.mark.parametrize(
    ("fmt", "finish"),
    [
        ("responses", "max_output_tokens"),
        ("anthropic", "max_tokens"),
        ("gemini", "MAX_TOKENS"),
        ("bedrock", "max_tokens"),
    ],
)
async def test_a_cut_answer_says_so_in_the_formats_own_words(fmt: str, finish: str) -> None:
    async with running() as place:
        heard = await ask(place, fmt, "7/xml/shop/0", model="erratic", max_tokens=40)
    assert (heard.finish, heard.done, len(heard.text)) == (finish, True, 144)
    assert heard.usage is not None
    assert 40 in heard.usage.values()


@pytest.mark.parametrize(
    ("fmt", "finishes"),
    [
        ("responses", {"refusal", "content_filter"}),
        ("anthropic", {"refusal"}),
        ("gemini", {"PROHIBITED_CONTENT", "SAFETY"}),
        ("bedrock", {"guardrail_intervened", "content_filtered"}),
    ],
)
async def test_refusals_are_told_in_the_formats_own_words(fmt: str, finishes: set[str]) -> None:
    ordinary = {"completed", "max_output_tokens", "end_turn", "max_tokens", "STOP", "MAX_TOKENS"}

    async with running() as place:
        heard = [await ask(place, fmt, f"7/xml/shop/{n}", model="refuser") for n in range(80)]
    assert all(one.done for one in heard)
    assert {one.finish for one in heard} - ordinary == finishes


async def test_responses_numbers_its_events_and_ends_with_the_whole_response() -> None:
    async with running() as place:
        heard = await ask(place, "responses", "7/xml/shop/0")
    assert [event["sequence_number"] for event in heard.events] == list(range(len(heard.events)))
    last = heard.events[-1]["response"]
    assert last["output"][0]["content"][0]["text"] == heard.text
    assert set(last["usage"]) >= {"input_tokens", "input_tokens_details", "output_tokens"}


@pytest.mark.parametrize("fmt", ["anthropic", "bedrock"])
async def test_a_prompt_is_cached_only_where_a_marker_asks_for_it(fmt: str) -> None:
    async with running() as place:
        plain = [await ask(place, fmt, f"7/xml/shop/{n}") for n in range(2)]
        marked = [await ask(place, fmt, f"7/xml/shop/{n}", marked=True) for n in range(3)]
    assert [cache_usage(one) for one in plain] == [(0, 0)] * 2
    (read, written), (later_read, later_written), third = map(cache_usage, marked)
    assert (read, later_written) == (0, 0)
    assert written == later_read > 1024
    assert third == (later_read, 0)
    totals = {sum(input_usage(one)) for one in plain + marked}
    assert totals == {-(-len(PROMPT) * 10 // 36)}


@pytest.mark.parametrize("fmt", FORMATS)
async def test_limits_and_denials_have_the_formats_own_bodies(fmt: str) -> None:
    settings = SimulationSettings(
        speed=0, faults=False, requests_per_minute=6, burst_s=10, denied={"weak": "key", "refuser": "quota"}
    )

    async with running(settings) as place:
        assert (await ask(place, fmt, "7/xml/shop/0")).done
        rejected = await ask(place, fmt, "7/xml/shop/1")
        key = await ask(place, fmt, "7/xml/shop/0", model="weak")
        quota = await ask(place, fmt, "7/xml/shop/0", model="refuser")
        unknown = await ask(place, fmt, "7/xml/shop/0", model="claude-0")
    assert (rejected.status, quota.status, unknown.status) == (429, 429, 404)
    assert key.status in (400, 401, 403)
    assert is_told_to_wait(fmt, rejected)
    assert not is_told_to_wait(fmt, quota)


@pytest.mark.parametrize(
    ("fmt", "words"),
    [
        ("responses", b"context_length_exceeded"),
        ("anthropic", b"prompt is too long: 55556 tokens > 32000 maximum"),
        ("gemini", b"input token count (55556) exceeds the maximum"),
        ("bedrock", b"Input is too long for requested model."),
    ],
)
async def test_a_prompt_beyond_the_context_is_refused_in_the_formats_own_words(
    fmt: str, words: bytes
) -> None:
    async with running() as place:
        heard = await ask(place, fmt, "7/xml/shop/0", model="weak", prompt="x" * 200_000)
    assert heard.status == 400
    assert words in heard.body


@pytest.mark.parametrize("fmt", FORMATS)
async def test_a_request_without_messages_is_a_bad_request(fmt: str) -> None:
    async with running() as (server, session):
        path, _ = request_of(fmt, "steady", PROMPT)
        async with session.post(server.root_url + path, json={"model": "steady"}) as response:
            assert response.status == 400
            assert b"must be an array" in await response.read()


@pytest.mark.parametrize("fmt", FORMATS)
async def test_an_error_in_mid_stream_replaces_the_terminal_marker(fmt: str) -> None:
    settings = SimulationSettings(speed=0, fault_rate=1, fault_kinds=("stream_error",))

    async with running(settings) as place:
        heard = await ask(place, fmt, "7/xml/shop/0")
    assert (heard.status, heard.done, heard.finish) == (200, False, None)
    assert heard.error is not None


async def test_anthropic_announces_its_limits_with_points_in_time() -> None:
    settings = SimulationSettings(speed=0, faults=False, requests_per_minute=60, tokens_per_minute=1e6)

    async with running(settings) as place:
        heard = await ask(place, "anthropic", "7/xml/shop/0")
    assert heard.headers["anthropic-ratelimit-requests-limit"] == "60"
    assert heard.headers["anthropic-ratelimit-requests-remaining"] == "59"
    assert heard.headers["anthropic-ratelimit-tokens-limit"] == "1000000"
    assert heard.headers["anthropic-ratelimit-requests-reset"].endswith("Z")


async def test_the_vendors_own_client_reads_a_bedrock_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    import aioboto3

    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")

    async with running() as place:
        expected = await ask(place, "bedrock", None)
        aws = aioboto3.Session(
            aws_access_key_id="a", aws_secret_access_key="b", region_name="eu-west-1"
        ).client("bedrock-runtime", endpoint_url=place[0].root_url)
        async with aws as client:
            message = {"role": "user", "content": [{"text": PROMPT}]}
            answer = await client.converse_stream(modelId="steady", messages=[message])
            events = [event async for event in answer["stream"]]
    text = "".join(e["contentBlockDelta"]["delta"]["text"] for e in events if "contentBlockDelta" in e)
    assert expected.text
    assert text
    assert events[-1]["metadata"]["usage"]["outputTokens"] > 0


# --- asking -----------------------------------------------------------------------------------------


def request_of(fmt: str, model: str, prompt: str, *, stream: bool = True) -> tuple[str, dict[str, Any]]:
    message = {"role": "user", "content": prompt}
    parts = [{"text": prompt}]
    match fmt:
        case "responses":
            return "/v1/responses", {"model": model, "input": prompt, "stream": stream}
        case "anthropic":
            body = {"model": model, "messages": [message], "max_tokens": 32_000, "stream": stream}
            return "/v1/messages", body
        case "gemini":
            action = "streamGenerateContent?alt=sse" if stream else "generateContent"
            return f"/v1beta/models/{model}:{action}", {"contents": [{"role": "user", "parts": parts}]}
        case _:
            action = "converse-stream" if stream else "converse"
            return f"/model/{model}/{action}", {"messages": [{"role": "user", "content": parts}]}


def add_max_tokens(fmt: str, body: dict[str, Any], max_tokens: int) -> None:
    match fmt:
        case "responses":
            body["max_output_tokens"] = max_tokens
        case "anthropic":
            body["max_tokens"] = max_tokens
        case "gemini":
            body["generationConfig"] = {"maxOutputTokens": max_tokens}
        case _:
            body["inferenceConfig"] = {"maxTokens": max_tokens}


def add_cache_marker(fmt: str, body: dict[str, Any]) -> None:
    if fmt == "anthropic":
        text = {"type": "text", "text": body["messages"][0]["content"]}
        body["messages"][0]["content"] = [text | {"cache_control": {"type": "ephemeral"}}]
    else:
        body["messages"][0]["content"].append({"cachePoint": {"type": "default"}})


async def ask(
    place: tuple[SimulatedServer, aiohttp.ClientSession],
    fmt: str,
    sample: str | None,
    *,
    model: str = "steady",
    prompt: str = PROMPT,
    max_tokens: int | None = None,
    marked: bool = False,
) -> Heard:
    server, session = place
    path, body = request_of(fmt, model, prompt)
    if max_tokens is not None:
        add_max_tokens(fmt, body, max_tokens)
    if marked:
        add_cache_marker(fmt, body)
    headers = {} if sample is None else {"x-astra-sample": sample}
    async with session.post(server.root_url + path, json=body, headers=headers) as response:
        heard = Heard(response.status, headers=response.headers, body=await response.read())
    if heard.status == 200:
        READERS[fmt](heard)
    return heard


async def whole_text(
    place: tuple[SimulatedServer, aiohttp.ClientSession], fmt: str, sample: str, *, model: str
) -> str:
    server, session = place
    path, body = request_of(fmt, model, PROMPT, stream=False)
    async with session.post(
        server.root_url + path, json=body, headers={"x-astra-sample": sample}
    ) as response:
        answer = await response.json()
    match fmt:
        case "responses":
            return str(answer["output"][0]["content"][0]["text"])
        case "anthropic":
            return str(answer["content"][0]["text"])
        case "gemini":
            return str(answer["candidates"][0]["content"]["parts"][0]["text"])
        case _:
            return str(answer["output"]["message"]["content"][0]["text"])


# --- hearing ----------------------------------------------------------------------------------------


def hear_responses(heard: Heard) -> None:
    for data in sse_data(heard.body):
        event = orjson.loads(data)
        heard.events.append(event)
        match event["type"]:
            case "response.output_text.delta":
                heard.text += event["delta"]
            case "response.refusal.delta":
                heard.refusal += event["delta"]
            case "response.completed" | "response.incomplete":
                heard.done = True
                response = event["response"]
                heard.usage = response["usage"]
                refused = response["output"][0]["content"][0]["type"] == "refusal"
                heard.finish = "refusal" if refused else response["status"]
                if response["incomplete_details"]:
                    heard.finish = response["incomplete_details"]["reason"]
            case "error":
                heard.error = event


def hear_anthropic(heard: Heard) -> None:
    for data in sse_data(heard.body):
        event = orjson.loads(data)
        match event["type"]:
            case "message_start":
                heard.usage = event["message"]["usage"]
            case "content_block_delta":
                heard.text += event["delta"]["text"]
            case "message_delta":
                heard.finish = event["delta"]["stop_reason"]
                heard.usage = event["usage"]
            case "message_stop":
                heard.done = True
            case "error":
                heard.error = event["error"]


def hear_gemini(heard: Heard) -> None:
    for line in filter(None, heard.body.split(b"\r\n")):
        event = orjson.loads(line.removeprefix(b"data: "))
        heard.error = event.get("error")
        heard.usage = event.get("usageMetadata")
        blocked = event.get("promptFeedback")
        if blocked:
            heard.finish, heard.done = blocked["blockReason"], True
        for candidate in event.get("candidates", ()):
            heard.text += candidate["content"]["parts"][0]["text"]
            heard.finish = candidate.get("finishReason")
            heard.done = heard.finish is not None


def hear_bedrock(heard: Heard) -> None:
    buffer = EventStreamBuffer()  # checks lengths and both checksums
    buffer.add_data(heard.body)
    for message in buffer:
        payload = orjson.loads(message.payload)
        if message.headers[":message-type"] == "exception":
            heard.error = payload
            continue
        match message.headers[":event-type"]:
            case "contentBlockDelta":
                heard.text += payload["delta"]["text"]
            case "messageStop":
                heard.finish = payload["stopReason"]
            case "metadata":
                heard.usage, heard.done = payload["usage"], True


READERS: dict[str, Callable[[Heard], None]] = {
    "responses": hear_responses,
    "anthropic": hear_anthropic,
    "gemini": hear_gemini,
    "bedrock": hear_bedrock,
}


def input_usage(heard: Heard) -> tuple[int, int, int]:
    usage = heard.usage or {}
    rest = usage["input_tokens"] if "input_tokens" in usage else usage["inputTokens"]
    return rest, *cache_usage(heard)


def cache_usage(heard: Heard) -> tuple[int, int]:
    usage = heard.usage or {}
    if "inputTokens" in usage:
        return usage["cacheReadInputTokens"], usage["cacheWriteInputTokens"]
    return usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]


def is_told_to_wait(fmt: str, heard: Heard) -> bool:
    if fmt == "gemini":
        return b"RetryInfo" in heard.body
    if fmt == "bedrock":
        return heard.headers["x-amzn-errortype"] == "ThrottlingException" and b"per day" not in heard.body
    return "retry-after" in heard.headers
