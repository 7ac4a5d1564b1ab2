from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from provider_calls import KEYS, Watch, call, request, settings
from wire_server import Reply, serving, sse

from astra_async.asking.providers import open_provider
from astra_async.asking.providers.answer import AnswerTooLong, Transcript
from astra_async.asking.providers.openai_chat import OpenAIChat
from astra_async.asking.providers.request_fields import encode
from astra_async.errors import (
    ConfigError,
    Overloaded,
    PoolUnusable,
    RateLimited,
    RequestRejected,
    TransientError,
    TruncatedStream,
)
from astra_async.types import Completion, RateLimits, RateWindow, Usage

TEXT = 'const a = "é😀";\n'
USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 40,
    "total_tokens": 140,
    "prompt_tokens_details": {"cached_tokens": 64},
    "completion_tokens_details": {"reasoning_tokens": 8},
}
READ_USAGE = Usage(input_tokens=100, cached_tokens=64, output_tokens=40, reasoning_tokens=8)


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    return {"id": "c", "object": "chat.completion.chunk", "model": "toy-1", "choices": choices, **fields}


def usage_only(usage: dict[str, Any]) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "model": "toy-1", "choices": [], "usage": usage}


WHOLE = sse(
    chunk({"role": "assistant", "content": ""}),
    *(chunk({"content": c}) for c in TEXT),
    chunk(finish="stop"),
    usage_only(USAGE),
    "[DONE]",
)


def answered(
    *pieces: bytes, end: str = "clean", spec: str = "openai-compatible/toy", **reply: Any
) -> Completion:
    async def run() -> Completion:
        async with serving(Reply(pieces=pieces, end=end, **reply)) as server:
            return await call(settings(spec, base_url=server.base_url, timeout_s=5))

    return asyncio.run(run())


def refused(status: int, body: bytes, headers: dict[str, str] | None = None, **fields: Any) -> Completion:
    async def run() -> Completion:
        reply = Reply(status=status, pieces=[body], headers=headers or {}, content_type="application/json")
        async with serving(reply) as server:
            return await call(settings(base_url=server.base_url, **fields))

    return asyncio.run(run())


def test_a_streamed_answer_is_read_with_its_usage() -> None:
    completion = answered(WHOLE)
    assert completion.text == TEXT
    assert completion.finish_reason == "stop"
    assert completion.usage == READ_USAGE
    assert completion.returned_model == "toy-1"
    assert completion.ttft_s is not None
    assert 0 <= completion.ttft_s <= (completion.latency_s or 0)


async def test_the_watch_hears_of_limits_of_the_first_token_once_and_of_every_character() -> None:
    watch = Watch()
    headers = {"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "59"}
    async with serving(Reply(pieces=[WHOLE[:200], WHOLE[200:]], headers=headers)) as server:
        await call(settings(base_url=server.base_url), watch=watch)
    assert watch.first_tokens == 1
    assert watch.characters == len(TEXT)
    assert watch.announced == [RateLimits(requests=RateWindow(limit=60, remaining=59))]


async def test_only_what_the_user_set_is_sent() -> None:
    async def run() -> list[Any]:
        async with serving(Reply(pieces=[WHOLE])) as server:
            for provider in ("openai-compatible", "openai"):
                chosen = settings(f"{provider}/toy", base_url=server.base_url, max_tokens=99)
                await call(chosen)
                await call(
                    settings(
                        f"{provider}/toy",
                        base_url=server.base_url,
                        max_tokens=99,
                        temperature=0.5,
                        reasoning_effort="low",
                    ),
                    request(cache=True, seed=7, sample_header="1/xml/p/0"),
                )
            return [(asked.path, asked.json, asked.headers) for asked in server.asked]

    plain, full, official, official_full = await run()
    assert plain[0] == "/chat/completions"
    assert plain[1] == {
        "model": "toy",
        "messages": [{"role": "user", "content": "Add a field."}],
        "max_tokens": 99,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert full[1] == {**plain[1], "temperature": 0.5, "reasoning_effort": "low", "seed": 7}
    assert full[2]["x-astra-sample"] == "1/xml/p/0"
    assert official[1] == {
        "model": "toy",
        "messages": [{"role": "user", "content": "Add a field."}],
        "max_completion_tokens": 99,
        "stream": True,
        "stream_options": {"include_usage": True, "include_obfuscation": False},
    }
    assert official_full[1]["prompt_cache_key"] == "ab" * 32
    assert official[2]["authorization"] == f"Bearer {KEYS['OPENAI_API_KEY']}"
    assert "x-astra-sample" not in official[2]


async def test_a_connection_is_used_again_after_an_answer() -> None:
    async def run() -> int:
        async with serving(Reply(pieces=[WHOLE])) as server:
            provider = open_provider(settings(base_url=server.base_url), environ=KEYS)
            for _ in range(3):
                await provider.complete(request(), Watch())
            await provider.close()
            return server.connections

    assert (await run()) == 1


def test_reasoning_is_no_part_of_the_answer_but_counts_as_its_beginning() -> None:
    stream = sse(
        chunk({"reasoning_content": "hmm"}),
        chunk({"reasoning": "hm"}),
        chunk({"content": "x"}, "stop"),
        "[DONE]",
    )
    completion = answered(stream)
    assert completion.text == "x"
    assert completion.ttft_s is not None


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("model_length", "length"),
        ("content_filter", "content_filter"),
    ],
)
def test_every_finish_reason_is_told_apart(finish: str, expected: str) -> None:
    assert answered(sse(chunk({"content": "x"}, finish), "[DONE]")).finish_reason == expected


def test_a_full_context_window_without_any_answer_is_context_exceeded() -> None:
    assert answered(sse(chunk(finish="model_length"), "[DONE]")).finish_reason == "context_exceeded"


def test_a_refusal_is_a_result_with_its_text() -> None:
    completion = answered(
        sse(chunk({"refusal": "I "}), chunk({"refusal": "cannot."}), chunk(finish="stop"), "[DONE]")
    )
    assert (completion.finish_reason, completion.text) == ("refusal", "I cannot.")


@pytest.mark.parametrize(
    ("events", "usage"),
    [
        ([chunk({"content": "x"}, "stop", usage=USAGE)], READ_USAGE),
        ([chunk({"content": "x"}, "stop"), {"choices": None, "usage": USAGE}], READ_USAGE),
        ([chunk({"content": "x"}, "stop"), {"x_groq": {"usage": USAGE}}], READ_USAGE),
        (
            [chunk({"content": "x"}, usage={"prompt_tokens": 1}), chunk(finish="stop", usage=USAGE)],
            READ_USAGE,
        ),
        ([chunk({"content": "x"}, "stop", usage=None)], Usage()),
        ([chunk({"content": "x"}, "stop")], Usage()),
        ([chunk({"content": "x"}, "stop", usage={"prompt_tokens": -1, "completion_tokens": "9"})], Usage()),
        (
            [chunk({"content": "x"}, "stop", usage={"prompt_tokens": 9, "prompt_cache_hit_tokens": 4})],
            Usage(input_tokens=9, cached_tokens=4),
        ),
    ],
    ids=["with choices", "null choices", "groq", "running", "null", "missing", "nonsense", "deepseek"],
)
def test_usage_is_read_wherever_a_server_puts_it(events: list[dict[str, Any]], usage: Usage) -> None:
    assert answered(sse(*events, "[DONE]")).usage == usage


def test_reasoning_counted_beside_the_completion_is_added_to_the_output() -> None:
    usage = {**USAGE, "completion_tokens": 32}
    assert answered(sse(chunk({"content": "x"}, "stop", usage=usage), "[DONE]")).usage == READ_USAGE


def test_a_whole_answer_instead_of_a_stream_is_read_as_well() -> None:
    body = b'{"object": "chat.completion", "choices": [{"index": 0, "message": {"content": "x"}, '
    body += b'"finish_reason": "stop"}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}'
    completion = answered(body, content_type="application/json")
    assert (completion.text, completion.usage) == ("x", Usage(input_tokens=3, output_tokens=1))


def test_content_in_parts_is_joined_without_the_thinking() -> None:
    parts = [
        {"type": "thinking", "thinking": []},
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]
    assert answered(sse(chunk({"content": parts}, "stop"), "[DONE]")).text == "ab"


def test_an_answer_with_its_finish_reason_is_whole_without_done() -> None:
    assert answered(sse(chunk({"content": "x"}, "stop"))).text == "x"
    assert answered(sse(chunk({"content": "x"}, "stop")), end="cut").text == "x"


def test_usage_and_done_are_an_orderly_end_where_a_router_sends_no_finish_reason() -> None:
    completion = answered(sse(chunk({"content": "x"}), usage_only(USAGE), "[DONE]"))
    assert (completion.text, completion.finish_reason) == ("x", "stop")
    with pytest.raises(TruncatedStream):
        answered(sse(chunk({}), usage_only(USAGE), "[DONE]"))


def test_a_web_page_instead_of_a_server_is_told_as_such() -> None:
    with pytest.raises(PoolUnusable, match="HTML page: check base_url"):
        answered(b"<html>Welcome</html>", content_type="text/html; charset=utf-8")


def test_an_endless_answer_ends() -> None:
    transcript = Transcript()
    for _ in range(32):
        transcript.add("x" * 2**20)
    with pytest.raises(AnswerTooLong):
        transcript.add("x")


@pytest.mark.parametrize(
    ("base_url", "sent", "absent"),
    [
        ("https://api.mistral.ai/v1", {"max_tokens": 9, "random_seed": 7}, {"stream_options", "seed"}),
        ("https://api.openai.com/v1", {"max_completion_tokens": 9, "seed": 7}, {"max_tokens"}),
        ("https://x.openai.azure.com/openai/v1", {"max_completion_tokens": 9}, {"max_tokens"}),
        ("https://api.deepseek.com", {"max_tokens": 9, "seed": 7}, {"max_completion_tokens"}),
    ],
)
def test_servers_get_the_field_names_that_they_know(
    base_url: str, sent: dict[str, int], absent: set[str]
) -> None:
    wire = OpenAIChat(settings(base_url=base_url, max_tokens=9), "key", environ={})
    body = orjson.loads(encode(wire.body(request(seed=7, cache=True))))
    assert sent.items() <= body.items()
    assert not absent & body.keys()
    assert "prompt_cache_key" not in body


async def test_silence_after_the_finish_reason_loses_nothing() -> None:
    async def run() -> Completion:
        reply = Reply(pieces=[sse(chunk({"content": "x"}, "stop"))], end="stall")
        async with serving(reply) as server:
            return await call(settings(base_url=server.base_url, timeout_s=1.0))

    assert (await run()).text == "x"


@pytest.mark.parametrize("end", ["clean", "cut"])
def test_a_stream_without_finish_reason_and_done_is_truncated_whatever_text_came(end: str) -> None:
    with pytest.raises(TruncatedStream):
        answered(sse(chunk({"content": "x"})), end=end)


@pytest.mark.parametrize("end", ["clean", "cut"])
def test_text_and_done_without_finish_reason_is_an_answer_that_says_so(end: str) -> None:
    completion = answered(sse(chunk({"content": "x"}), "[DONE]"), end=end)
    assert (completion.text, completion.finish_reason) == ("x", "stop")
    assert completion.repairs == ("no_finish_reason",)
    with pytest.raises(TruncatedStream):
        answered(sse(chunk({}), "[DONE]"), end=end)


def test_a_connection_cut_before_any_text_is_transient() -> None:
    with pytest.raises(TransientError) as caught:
        answered(b": hello\n\n", end="cut")
    assert type(caught.value) is TransientError


async def test_silence_ends_the_attempt() -> None:
    async def run() -> None:
        async with serving(Reply(pieces=[sse(chunk({"content": "x"}))], end="stall")) as server:
            await call(settings(base_url=server.base_url, timeout_s=1.0))

    with pytest.raises(TransientError, match=r"no data for 1 s"):
        (await run())


async def test_a_stream_that_trickles_for_ever_ends_after_six_times_the_silence() -> None:
    async def run() -> None:
        async with serving(Reply(pieces=[b": still here\n\n"] * 10_000_000)) as server:
            await call(settings(base_url=server.base_url, timeout_s=0.5))

    with pytest.raises(TransientError, match="no end after"):
        (await run())


async def test_cancelling_closes_the_connection() -> None:
    async def run() -> bool:
        async with serving(Reply(pieces=[sse(chunk({"content": "x"}))], end="stall")) as server:
            begun = asyncio.Event()

            class Begun(Watch):
                def first_token(self) -> None:
                    begun.set()

            provider = open_provider(settings(base_url=server.base_url), environ=KEYS)
            task = asyncio.create_task(provider.complete(request(), Begun()))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await server.asked[0].closed.wait()
            await provider.close()
            return server.asked[0].closed.is_set()

    assert await run()


@pytest.mark.parametrize(
    "event",
    [
        {"error": {"message": "boom", "type": "server_error", "code": None}},
        {"error": "boom"},
        {"object": "error", "message": "boom", "type": "InternalServerError", "code": 500},
        {"message": "boom", "code": 500},
        {**chunk(finish="error"), "error": {"code": 502, "message": "boom"}},
    ],
    ids=["openai", "text", "vllm", "flat", "openrouter"],
)
def test_an_error_in_mid_stream_fails_whatever_text_came(event: dict[str, Any]) -> None:
    with pytest.raises(TransientError, match="boom"):
        answered(sse(chunk({"content": "x"}), event))


def test_errors_in_mid_stream_keep_their_kind() -> None:
    with pytest.raises(RateLimited):
        answered(sse({"error": {"message": "slow", "code": "rate_limit_exceeded"}}))
    with pytest.raises(Overloaded):
        answered(sse({"error": {"message": "busy", "code": 503}}))
    with pytest.raises(PoolUnusable):
        answered(sse({"error": {"message": "no money", "code": "insufficient_quota"}}))


def test_an_error_with_http_200_and_no_stream_is_an_error() -> None:
    body = b'{"error": {"message": "No endpoints", "code": 429}}'
    with pytest.raises(RateLimited, match="No endpoints"):
        answered(body, content_type="application/json")


@pytest.mark.parametrize(
    "junk",
    [b"data: {oops\n\n", b"data: 7\n\n", b'data: {"choices": 7}\n\n', b"data: " + b"[" * 99999 + b"\n\n"],
)
def test_an_unreadable_event_is_transient(junk: bytes) -> None:
    with pytest.raises(TransientError):
        answered(junk)


def test_lone_surrogates_become_replacement_characters_and_are_named() -> None:
    stream = b'data: {"choices": [{"delta": {"content": "a\\ud800b"}, "finish_reason": "stop"}]}\n\n'
    completion = answered(stream)
    assert (completion.text, completion.repairs) == ("a\ufffdb", ("surrogate",))


def test_surrogate_halves_in_two_events_are_joined_without_a_repair() -> None:
    stream = b'data: {"choices": [{"delta": {"content": "\\ud83d"}}]}\n\n'
    stream += (
        b'data: {"choices": [{"delta": {"content": "\\ude00"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    )
    completion = answered(stream)
    assert (completion.text, completion.repairs) == ("😀", ())


async def test_a_missing_key_is_named_before_anything_is_sent() -> None:
    with pytest.raises(ConfigError, match="MY_KEY"):
        (await call(settings(base_url="https://example.org", api_key_env="MY_KEY"), environ={}))
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        (await call(settings("openai/gpt"), environ={}))


def test_a_key_that_a_server_echoes_never_reaches_the_message() -> None:
    key = KEYS["OPENAI_API_KEY"]
    body = b'{"error": {"message": "Wrong key: %b and sk-proj-****abcd", "code": "invalid_api_key"}}'
    with pytest.raises(PoolUnusable, match="check the API key") as caught:
        refused(401, body % key.encode())
    assert key not in str(caught.value)
    assert "abcd" not in str(caught.value)


def test_a_parameter_that_the_model_rejects_is_one_clear_line() -> None:
    body = b'{"error": {"message": "\'temperature\' does not support 0.2", "param": "temperature", '
    body += b'"code": "unsupported_value", "type": "invalid_request_error"}}'
    with pytest.raises(RequestRejected) as caught:
        refused(400, body, temperature=0.2)
    assert "toy rejects `temperature`: unset it in [[models]]" in str(caught.value)
    assert "\n" not in str(caught.value)
