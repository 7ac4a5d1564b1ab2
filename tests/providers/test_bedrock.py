from __future__ import annotations

import asyncio
from typing import Any

import pytest
from bedrock_server import BedrockServer, bedrock, frame
from provider_calls import KEYS, Watch, call, request, settings
from wire_server import pieces

from astra_async.asking.providers import check_settings, open_provider
from astra_async.errors import (
    ConfigError,
    Overloaded,
    PoolUnusable,
    ProviderError,
    RateLimited,
    RequestRejected,
    TransientError,
    TruncatedStream,
)
from astra_async.types import Completion, ModelRequest, Usage

MODEL = "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"
TEXT = "<solution>é😀\n</solution>"
USAGE = {
    "inputTokens": 20,
    "outputTokens": 48,
    "totalTokens": 168,
    "cacheReadInputTokens": 90,
    "cacheWriteInputTokens": 10,
}
EVENTS = [
    frame("messageStart", {"role": "assistant"}),
    frame("contentBlockDelta", {"delta": {"reasoningContent": {"text": "hm"}}, "contentBlockIndex": 0}),
    *(frame("contentBlockDelta", {"delta": {"text": c}, "contentBlockIndex": 1}) for c in TEXT),
    frame("contentBlockStop", {"contentBlockIndex": 1}),
    frame("messageStop", {"stopReason": "end_turn"}),
    frame("metadata", {"usage": USAGE, "metrics": {"latencyMs": 5}}),
]


def stopped(reason: str, *, text: str = "x") -> list[bytes]:
    said = [frame("contentBlockDelta", {"delta": {"text": text}, "contentBlockIndex": 0})] if text else []
    return [*said, frame("messageStop", {"stopReason": reason})]


def played(server: BedrockServer, *, timeout_s: float = 5.0, watch: Watch | None = None) -> Completion:
    async def run() -> Completion:
        async with bedrock(server):
            return await call(settings(MODEL, base_url=server.base_url, timeout_s=timeout_s), watch=watch)

    return asyncio.run(run())


def refused(status: int, code: str, message: str = "no", **headers: str) -> ProviderError:
    body = b'{"message": "%b"}' % message.encode()
    server = BedrockServer([body], status=status, headers={"x-amzn-errortype": code, **headers})
    with pytest.raises(ProviderError) as caught:
        played(server)
    return caught.value


@pytest.mark.parametrize("size", [1, 13, 100_000])
def test_a_stream_is_read_whatever_its_pieces(size: int) -> None:
    watch = Watch()
    completion = played(BedrockServer(pieces(b"".join(EVENTS), size)), watch=watch)
    assert completion.text == TEXT
    assert completion.finish_reason == "stop"
    assert completion.usage == Usage(
        input_tokens=120, cached_tokens=90, cache_write_tokens=10, output_tokens=48
    )
    assert (watch.first_tokens, watch.characters) == (1, len(TEXT))
    assert completion.ttft_s is not None


async def test_only_what_the_user_set_is_sent() -> None:
    async def asked(chosen: dict[str, Any], sample: ModelRequest, model: str = MODEL) -> Any:
        async with bedrock(BedrockServer(EVENTS)) as server:
            await call(settings(model, base_url=server.base_url, max_tokens=99, **chosen), sample)
            return server.asked[0]

    path, headers, body = await asked({}, request())
    assert path.endswith("/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream")
    assert headers["Authorization"].startswith("AWS4-HMAC-SHA256")
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in str(headers)
    assert body == {
        "messages": [{"role": "user", "content": [{"text": "Add a field."}]}],
        "inferenceConfig": {"maxTokens": 99},
    }
    _, _, body = await asked({"temperature": 0.5, "reasoning_effort": "low"}, request(cache=True, seed=1))
    assert body["messages"][0]["content"][1] == {"cachePoint": {"type": "default"}}
    assert body["inferenceConfig"] == {"maxTokens": 99, "temperature": 0.5}
    assert body["additionalModelRequestFields"] == {"output_config": {"effort": "low"}}
    _, _, body = await asked({}, request(cache=True), "bedrock/meta.llama3-3-70b-instruct-v1:0")
    assert len(body["messages"][0]["content"]) == 1


async def test_a_server_on_this_machine_needs_no_credentials() -> None:
    async def run() -> tuple[Completion, dict[str, str]]:
        async with bedrock(BedrockServer(EVENTS)) as server:
            completion = await call(settings(MODEL, base_url=server.base_url), environ={})
            return completion, server.asked[0][1]

    completion, headers = await run()
    assert completion.text == TEXT
    assert "Authorization" not in headers


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("content_filtered", "content_filter"),
        ("guardrail_intervened", "content_filter"),
        ("malformed_model_output", "other"),
    ],
)
def test_every_stop_reason_is_told_apart(reason: str, expected: str) -> None:
    assert played(BedrockServer(stopped(reason))).finish_reason == expected


def test_a_full_context_window_without_any_answer_is_context_exceeded() -> None:
    server = BedrockServer(stopped("model_context_window_exceeded", text=""))
    assert played(server).finish_reason == "context_exceeded"


def test_an_answer_without_metadata_has_no_usage() -> None:
    assert played(BedrockServer(stopped("end_turn"))).usage == Usage()


@pytest.mark.parametrize("end", ["clean", "cut"])
def test_a_stream_without_its_stop_reason_is_truncated(end: str) -> None:
    with pytest.raises(TruncatedStream):
        played(BedrockServer(EVENTS[:-2], end=end))


def test_a_broken_frame_is_transient() -> None:
    with pytest.raises(TransientError):
        played(BedrockServer([EVENTS[0], b"\x00" * 64]))


@pytest.mark.alone
def test_silence_in_mid_stream_ends_an_attempt_that_is_paid_for() -> None:
    with pytest.raises(TruncatedStream, match="no data"):
        played(BedrockServer(EVENTS[:4], end="stall"), timeout_s=2.0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("throttlingException", RateLimited),
        ("serviceUnavailableException", Overloaded),
        ("internalServerException", TransientError),
        ("modelStreamErrorException", TransientError),
        ("validationException", RequestRejected),
    ],
)
def test_an_exception_in_mid_stream_keeps_its_kind(name: str, expected: type[Exception]) -> None:
    with pytest.raises(expected, match="boom"):
        played(BedrockServer([*EVENTS[:4], frame(name, {"message": "boom"}, message="exception")]))


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (429, "ThrottlingException", RateLimited),
        (429, "ModelNotReadyException", RateLimited),
        (408, "ModelTimeoutException", TransientError),
        (424, "ModelErrorException", TransientError),
        (500, "InternalServerException", TransientError),
        (503, "ServiceUnavailableException", Overloaded),
        (400, "ValidationException", RequestRejected),
        (403, "AccessDeniedException", PoolUnusable),
        (403, "UnrecognizedClientException", PoolUnusable),
        (404, "ResourceNotFoundException", PoolUnusable),
        (502, "SomethingNewException", TransientError),
        (418, "SomethingElseException", RequestRejected),
    ],
)
def test_every_error_of_the_table_has_its_kind(status: int, code: str, expected: type[Exception]) -> None:
    error = refused(status, code)
    assert type(error) is expected
    assert (error.status, error.code) == (status, code)


def test_tokens_per_day_that_are_used_up_end_the_pool() -> None:
    error = refused(429, "ThrottlingException", "Too many tokens per day, please wait before trying again.")
    assert isinstance(error, PoolUnusable)


def test_a_prompt_that_is_too_long_is_a_result() -> None:
    body = b'{"message": "Input is too long for requested model."}'
    server = BedrockServer([body], status=400, headers={"x-amzn-errortype": "ValidationException"})
    assert played(server).finish_reason == "context_exceeded"


async def test_a_model_that_cannot_stream_is_asked_for_the_whole_answer() -> None:
    async def run() -> tuple[list[Completion], list[str]]:
        whole = {
            "output": {"message": {"role": "assistant", "content": [{"text": TEXT}]}},
            "stopReason": "end_turn",
            "usage": {"inputTokens": 5, "outputTokens": 7, "totalTokens": 12},
            "metrics": {"latencyMs": 1},
        }
        body = b'{"message": "The model is unsupported for streaming"}'
        headers = {"x-amzn-errortype": "ValidationException"}
        async with bedrock(BedrockServer([body], status=400, headers=headers, converse=whole)) as server:
            provider = open_provider(settings(MODEL, base_url=server.base_url), environ=KEYS)
            answers = [await provider.complete(request(), Watch()) for _ in range(2)]
            await provider.close()
            return answers, [path.rpartition("/")[2] for path, _, _ in server.asked]

    answers, paths = await run()
    assert [answer.text for answer in answers] == [TEXT, TEXT]
    assert answers[0].usage == Usage(input_tokens=5, output_tokens=7)
    assert paths == ["converse-stream", "converse", "converse"]


async def test_calls_run_side_by_side_over_one_client() -> None:
    async def run() -> list[str]:
        async with bedrock(BedrockServer(EVENTS)) as server:
            provider = open_provider(settings(MODEL, base_url=server.base_url), environ=KEYS)
            done = await asyncio.gather(*(provider.complete(request(), Watch()) for _ in range(20)))
            await provider.close()
            return [completion.text for completion in done]

    assert (await run()) == [TEXT] * 20


async def test_cancelling_a_call_leaves_the_provider_usable() -> None:
    async def run() -> str:
        async with (
            bedrock(BedrockServer(EVENTS[:4], end="stall")) as stalled,
            bedrock(BedrockServer(EVENTS)) as well,
        ):
            begun = asyncio.Event()

            class Begun(Watch):
                def first_token(self) -> None:
                    begun.set()

            provider = open_provider(settings(MODEL, base_url=stalled.base_url), environ=KEYS)
            task = asyncio.create_task(provider.complete(request(), Begun()))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await provider.close()
            return (await call(settings(MODEL, base_url=well.base_url))).text

    assert (await run()) == TEXT


def test_a_missing_region_is_one_clear_line() -> None:
    with pytest.raises(ConfigError, match="AWS_REGION"):
        check_settings(settings(MODEL), {})


async def test_an_effort_that_a_model_does_not_know_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="reasoning_effort"):
        (await call(settings("bedrock/meta.llama3", reasoning_effort="low")))
