"""Servers that are odd in one thing: what can be read is read, what is paid is kept, no more is harmed."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from bedrock_server import BedrockServer, bedrock, frame
from provider_calls import KEYS, Watch, call, request, settings
from recorded import CHAT_EVENTS, GEMINI_EVENTS, MESSAGE_EVENTS, TEXT, Recorded, chat_chunk, gemini_chunk
from test_every_format import every_format
from wire_server import Reply, serving, sse

from astra_async.asking.providers.connection import open_session
from astra_async.asking.providers.exchange import HttpProvider
from astra_async.asking.providers.openai_chat import OpenAIChat
from astra_async.errors import (
    ConfigError,
    PoolUnusable,
    ProviderError,
    RequestRejected,
    TransientError,
    TruncatedStream,
)
from astra_async.types import RateLimits, RateWindow, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from astra_async.types import Completion


def answered(spec: str, *pieces: bytes, watch: Watch | None = None, **fields: Any) -> Completion:
    reply = Reply(pieces=pieces, **{name: fields.pop(name) for name in ("end", "headers") if name in fields})

    async def run() -> Completion:
        async with serving(reply) as server:
            return await call(settings(spec, base_url=server.base_url, **fields), watch=watch)

    return asyncio.run(run())


# --- one odd event ends one attempt (P1) ---------------------------------------------------------------


class Broken(Watch):
    """A watch with a defect of its own."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def first_token(self) -> None:
        raise self.error


@every_format
@pytest.mark.parametrize(
    "error", [KeyError("x"), OSError("disk"), ValueError("x"), TimeoutError("x")], ids=repr
)
def test_what_a_callback_raises_is_no_event_of_unknown_shape(recorded: Recorded, error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        answered(recorded.spec, recorded.stream, watch=Broken(error))
    assert caught.value is error


@pytest.mark.parametrize("error", [KeyError("x"), OSError("disk"), ValueError("x")], ids=repr)
def test_bedrock_tells_a_callbacks_error_from_the_librarys(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        conversed(*BEDROCK_TEXT, watch=Broken(error))
    assert caught.value is error


ODD_EVENTS: Sequence[tuple[str, dict[str, Any]]] = (
    ("contentBlockDelta", {"delta": {}, "contentBlockIndex": 0}),
    ("contentBlockStart", {"start": {}, "contentBlockIndex": 0}),
    ("contentBlockDelta", {"delta": None}),
    ("contentBlockDelta", {"delta": {"text": 5}}),
    ("contentBlockDelta", {"delta": {"text": "a", "toolUse": {}}}),
    ("messageStop", {}),
    ("metadata", {"usage": 7}),
    ("whatIsThis", {"a": 1}),
)


@pytest.mark.parametrize("odd", ODD_EVENTS, ids=str)
def test_an_odd_bedrock_event_ends_its_attempt_at_most(odd: tuple[str, dict[str, Any]]) -> None:
    with contextlib.suppress(TransientError):  # of this attempt, and nothing else
        assert conversed(BEDROCK_TEXT[0], frame(*odd), *BEDROCK_TEXT[1:]).text.startswith("All done.")


DICT: dict[str, Any] = {"a": 1}


def message(text: Any = "ok", reason: Any = "end_turn", usage: Any = None) -> tuple[dict[str, Any], ...]:
    return (
        {"type": "message_start", "message": {"model": "toy-1"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}},
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage},
        {"type": "message_stop"},
    )


def response(**fields: Any) -> tuple[dict[str, Any], ...]:
    ended = {"status": "completed", **fields}
    return (
        {"type": "response.output_text.delta", "delta": "ok"},
        {"type": "response.completed", "response": ended},
    )


@pytest.mark.parametrize(
    ("spec", "events"),
    [
        ("anthropic/x", message(text=DICT)),
        ("anthropic/x", message(reason=DICT)),
        ("gemini/x", [gemini_chunk({"text": DICT}), gemini_chunk(finish="STOP")]),
        ("gemini/x", [gemini_chunk({"text": "a"}), {"candidates": [{"finishReason": DICT}]}]),
        ("openai/x", [chat_chunk({"refusal": DICT}), chat_chunk({}, "stop"), "[DONE]"]),
        ("openai/x", [chat_chunk({"content": [{"type": "text", "text": DICT}]}), chat_chunk({}, "stop")]),
        ("openai-responses/x", response(output=[5])),
        ("openai-responses/x", [{"type": "response.output_text.delta", "delta": DICT}]),
    ],
)
def test_a_text_or_a_reason_that_is_none_ends_one_attempt(spec: str, events: Sequence[Any]) -> None:
    with pytest.raises((TruncatedStream, TransientError), match=r"unexpected shape \(.*\)$"):
        answered(spec, sse(*events))


@pytest.mark.parametrize(
    ("spec", "events"),
    [
        ("anthropic/x", message(usage={"output_tokens_details": [1]})),
        ("gemini/x", [gemini_chunk({"text": "ok"}, finish="STOP", usageMetadata=[1, 2])]),
        ("openai-responses/x", response(usage={"input_tokens": 3, "input_tokens_details": [1]})),
    ],
)
def test_an_answer_outlives_counts_that_are_none(spec: str, events: Sequence[Any]) -> None:
    completion = answered(spec, sse(*events))
    assert (completion.text, completion.finish_reason) == ("ok", "stop")
    assert completion.usage == Usage()


@pytest.mark.parametrize("before", [b" ", b"\t ", b"\x1e", b" \x1e "], ids=repr)
def test_lines_of_json_are_read_whatever_stands_before_them(before: bytes) -> None:
    events = (chat_chunk({"content": "to"}), chat_chunk({"content": "ld"}), chat_chunk({}, "stop"))
    lines = [orjson.dumps(event) + b"\n" for event in events]
    assert answered("openai/x", lines[0], before + lines[1], before + lines[2]).text == "told"


class Careless(OpenAIChat):
    """A format that takes every header for a number."""

    def limits(self, headers: Mapping[str, str]) -> RateLimits | None:
        return RateLimits(requests=RateWindow(limit=int(headers["x-limit"])))


@pytest.mark.parametrize("headers", [{}, {"X-Limit": "many"}, {"X-Limit": "1" * 5000}], ids=len)
async def test_an_answer_is_not_lost_to_an_odd_header(headers: dict[str, str]) -> None:
    async def run() -> Completion:
        async with serving(Reply(pieces=[sse(*CHAT_EVENTS)], headers=headers)) as server:
            chosen = settings("openai-compatible/x", base_url=server.base_url)
            async with open_session({}) as session:
                wire = Careless(chosen, None, environ={})
                return await HttpProvider(chosen, wire, session, environ={}).complete(request(), Watch())

    assert (await run()).text == TEXT


def test_garbage_in_the_event_stream_ends_its_attempt() -> None:
    broken = bytearray(frame("contentBlockDelta", {"delta": {"text": "x"}}))
    broken[-1] ^= 1
    for piece in (bytes(broken), b"\xff" * 400, frame("contentBlockDelta", {})[:-9] + b"{not json" * 3):
        with pytest.raises(TransientError):
            conversed(piece)


BEDROCK_TEXT = (
    frame("contentBlockDelta", {"delta": {"text": "All done."}, "contentBlockIndex": 0}),
    frame("messageStop", {"stopReason": "end_turn"}),
    frame("metadata", {"usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}}),
)


def conversed(*frames: bytes, end: str = "clean", watch: Watch | None = None, **fields: Any) -> Completion:
    async def run() -> Completion:
        async with bedrock(BedrockServer(list(frames), end=end)) as server:
            chosen = settings("bedrock/anthropic.claude-x", base_url=server.base_url, **fields)
            return await call(chosen, watch=watch)

    return asyncio.run(run())


# --- a finished answer is kept, whatever follows it (P10) ----------------------------------------------


@pytest.mark.alone
@pytest.mark.parametrize("end", ["cut", "stall"])
def test_bedrock_cut_after_its_stop_keeps_the_answer(end: str) -> None:
    completion = conversed(*BEDROCK_TEXT[:2], end=end, timeout_s=2.0)
    assert completion.text == "All done."
    assert completion.usage.output_tokens is None  # the cost will be an estimate


def test_bedrock_failing_after_its_stop_keeps_the_answer() -> None:
    failure = frame("internalServerException", {"message": "oops"}, message="exception")
    assert conversed(*BEDROCK_TEXT[:2], failure).text == "All done."
    assert conversed(*BEDROCK_TEXT[:2], frame("contentBlockDelta", {"delta": {}})).text == "All done."


@pytest.mark.parametrize(
    "after", [sse({"error": {"message": "late", "code": 500}}), b"data: {not json\n\n", sse({"choices": 7})]
)
def test_a_finished_answer_is_kept_whatever_follows_it(after: bytes) -> None:
    assert answered("openai/toy", sse(*CHAT_EVENTS[:-1]), after).text == TEXT


def test_text_and_error_in_one_read_are_told_as_paid() -> None:
    watch = Watch()
    with pytest.raises(TransientError):
        answered("openai/toy", sse(*CHAT_EVENTS[:9], {"error": {"message": "x", "code": 500}}), watch=watch)
    assert watch.first_tokens == 1
    assert watch.characters == 8


# --- what is readable is read (P10) --------------------------------------------------------------------

WHOLE_MESSAGE = {
    "type": "message",
    "role": "assistant",
    "model": "toy-1",
    "content": [{"type": "thinking", "thinking": "hm", "signature": "x"}, {"type": "text", "text": TEXT}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 20, "cache_read_input_tokens": 100, "output_tokens": 48},
}


@pytest.mark.parametrize("indent", [0, orjson.OPT_INDENT_2])
def test_a_whole_message_where_a_stream_was_asked_is_read(indent: int) -> None:
    completion = answered("anthropic/toy", orjson.dumps(WHOLE_MESSAGE, option=indent))
    assert (completion.text, completion.finish_reason, completion.usage.input_tokens) == (TEXT, "stop", 120)


@pytest.mark.parametrize("shape", ["compact", "pretty", "lines"])
def test_geminis_array_is_read(shape: str) -> None:
    events = list(GEMINI_EVENTS)
    body = orjson.dumps(events, option=orjson.OPT_INDENT_2 if shape == "pretty" else 0)
    if shape == "lines":  # as its server streams it without alt=sse
        body = b"[" + b"\n,\r\n".join(orjson.dumps(e, option=orjson.OPT_INDENT_2) for e in events) + b"\n]\n"
    completion = answered("gemini/toy", *(body[i : i + 50] for i in range(0, len(body), 50)))
    assert completion.text == TEXT
    assert completion.usage.reasoning_tokens == 8


def test_only_the_first_choice_counts() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": None}]}
    both = {"choices": [*other["choices"], {"index": 0, "delta": {"content": "mine"}}]}
    last = {"choices": [{"index": 1, "delta": {}, "finish_reason": "length"}]}
    stream = sse(other, both, last, chat_chunk({}, "stop"), "[DONE]")
    completion = answered("openai/toy", stream)
    assert (completion.text, completion.finish_reason) == ("mine", "stop")


def test_only_the_first_candidate_counts() -> None:
    second = {**gemini_chunk({"text": "other"})["candidates"][0], "index": 1}
    chunk = gemini_chunk({"text": "mine"}, finish="STOP")
    chunk["candidates"] = [second, *chunk["candidates"]]
    assert answered("gemini/toy", sse({"candidates": [second]}, chunk)).text == "mine"


def test_bytes_that_are_no_text_are_replaced_and_named() -> None:
    stream = sse(chat_chunk({"content": "a?b"}), chat_chunk({}, "stop"), "[DONE]").replace(
        b"a?b", b"a\xff\xfeb"
    )
    completion = answered("openai/toy", stream)
    assert completion.text == "a\ufffd\ufffdb"
    assert completion.repairs == ("invalid_utf8",)
    honest = sse(chat_chunk({"content": "\ufffd"}), chat_chunk({}, "stop"), "[DONE]")
    assert answered("openai/toy", honest).repairs == ()


@every_format
def test_long_headers_are_read(recorded: Recorded) -> None:
    headers = {"Content-Security-Policy": "x" * 60_000, **{f"X-Trace-{i}": "y" for i in range(200)}}
    assert answered(recorded.spec, recorded.stream, headers=headers).text == TEXT


# --- addresses -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "provider", ["openai", "openai-compatible", "anthropic", "gemini", "azure", "bedrock"]
)
@pytest.mark.parametrize(
    "text",
    [
        *("http://[::1/v1", "http://host:port/v1", "ftp://u:verysecret@h/v1", "u:verysecret@h/v1"),
        *("http:///v1", "http://u:verysecret@h/v1", "http://h:99999/v1", "http://", "x"),
        *(f"http://{'a' * 64}.example/v1", "http://a..b/v1"),
    ],
)
async def test_a_bad_address_is_one_clear_line_without_secrets(provider: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        (await call(settings(f"{provider}/toy", base_url=text)))
    line = str(caught.value)
    assert provider in line
    assert "verysecret" not in line
    assert "\n" not in line


@every_format
async def test_the_query_of_a_base_url_is_sent(recorded: Recorded) -> None:
    async def run() -> str:
        async with serving(Reply(pieces=[recorded.stream])) as server:
            await call(settings(recorded.spec, base_url=f"{server.base_url}/v1/?tenant=a%20b&sig=x%2By%3D"))
            return server.asked[0].path

    path, _, query = (await run()).partition("?")
    assert not path.endswith("/v1")
    assert query.startswith("tenant=a+b&sig=x%2By%3D")


# --- errors --------------------------------------------------------------------------------------------


def refused(status: int, body: object, spec: str = "openai-compatible/toy", **fields: Any) -> ProviderError:
    content = body.encode() if isinstance(body, str) else orjson.dumps(body)

    async def run() -> None:
        async with serving(Reply(status=status, pieces=[content], content_type="application/json")) as server:
            await call(settings(spec, base_url=server.base_url, **fields))

    with pytest.raises(ProviderError) as caught:
        asyncio.run(run())
    return caught.value


OVERFLOWS = (
    (500, {"error": {"code": 500, "message": "the request exceeds the available context size. try increasing"
                     " the context size or enable context shift", "type": "server_error"}}),
    (500, {"error": {"code": 500, "message": "the request exceeds the available context size",
                     "type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 4096}}),
    (400, {"object": "error", "message": "This model's maximum context length is 4096 tokens. However, your"
           " request has 9000 input tokens.", "type": "BadRequestError", "param": None, "code": 400}),
    (422, {"error": "Input validation error: `inputs` must have less than 4096 tokens. Given: 9000",
           "error_type": "validation"}),
    (400, {"error": "Trying to keep the first 9000 tokens when context the overflows. However, the model is"
           " loaded with context length of only 4096 tokens"}),
    (400, {"message": "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received"
           " 9000"}),
    (400, {"error": {"message": "prompt is too long: 210,000 tokens > 200,000 maximum"}}),
    (400, {"error": {"code": 400, "message": "This endpoint's maximum context length is 16384 tokens."
           " However, you requested about 94307 tokens (94307 of text input). Please reduce the length"}}),
    (400, {"error": {"error": {"message": "This endpoint's maximum context length is 131072 tokens."
           " However, you requested about 238956 tokens (207884 of text input, 31072 in the output)."}}}),
    (400, {"message": "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update"}),
    (400, {"error": {"code": "invalid_parameter_error", "message":
           "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]"}}),
    (502, "This model's maximum context length is 4096 tokens, your messages resulted in 9000 tokens."),
)  # fmt: skip


@pytest.mark.parametrize(("status", "body"), OVERFLOWS, ids=lambda value: str(value)[:40])
async def test_a_prompt_that_does_not_fit_is_a_result_however_it_is_said(status: int, body: object) -> None:
    content = body.encode() if isinstance(body, str) else orjson.dumps(body)

    async def run() -> Completion:
        reply = Reply(status=status, pieces=[content], content_type="application/json")
        async with serving(reply) as server:
            return await call(settings(base_url=server.base_url, max_tokens=100))

    completion = await run()
    assert (completion.finish_reason, completion.text) == ("context_exceeded", "")


def test_a_prompt_that_fits_without_the_output_is_no_result() -> None:
    told = "This endpoint's maximum context length is 16384 tokens. However, you requested about 20000 tokens"
    error = refused(
        400, {"error": {"code": 400, "message": f"{told} (4000 of text input, 16000 in the output)."}}
    )
    assert isinstance(error, RequestRejected)
    assert "set a lower max_tokens" in str(error)


@pytest.mark.parametrize(
    "inner", [{"code": "9" * 5000}, {"code": "9" * 5000, "status": "503"}, {"message": [{}]}]
)
def test_an_odd_error_is_an_error(inner: dict[str, Any]) -> None:
    assert refused(500, {"error": inner}).status == 500


async def test_a_proxy_whose_name_no_host_can_have_is_told() -> None:
    environ = {**KEYS, "ALL_PROXY": f"http://{'a' * 64}.example:3128"}
    with pytest.raises(PoolUnusable, match="the address is invalid"):
        (await call(settings(base_url="http://host.example/v1"), environ=environ))


def test_a_status_is_said_once() -> None:
    line = str(refused(401, {"error": {"message": "No auth credentials found", "code": 401}}))
    assert "HTTP 401: check the API key" in line
    line = str(refused(401, {"error": {"message": "nope", "code": "401"}}))
    assert "401 401" not in line


def test_a_models_name_is_said_once() -> None:
    error = refused(
        404, {"error": {"message": "openai-compatible/toy: no such model", "code": "model_not_found"}}
    )
    assert str(error).count("openai-compatible/toy") == 1


API_VERSION = "Model o3 is enabled only for api versions 2024-12-01-preview and later"
EFFORT = "This model does not support the effort parameter."
MAX_TOKENS = (
    "Unsupported parameter: 'max_tokens' is not supported with this model."
    " Use 'max_completion_tokens' instead."
)
BUDGET = '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive"'


@pytest.mark.parametrize(
    ("spec", "fields", "status", "body", "remedy"),
    [
        ("azure/o3", {}, 400, {"error": {"code": "BadRequest", "message": API_VERSION}}, "set api_version"),
        ("anthropic/c", {"reasoning_effort": "high"}, 400,
         {"type": "error", "error": {"type": "invalid_request_error", "message": EFFORT}},
         "rejects `reasoning_effort`: unset it"),
        ("anthropic/c", {"thinking_budget": 2000}, 400,
         {"type": "error", "error": {"type": "invalid_request_error", "message": BUDGET}},
         "rejects `thinking_budget`: unset it"),
        ("openai-compatible/alias", {}, 400,
         {"error": {"message": MAX_TOKENS, "param": "max_tokens", "code": "unsupported_parameter"}},
         'set max_tokens_field = "max_completion_tokens"'),
        ("openai-compatible/toy", {"top_k": 5}, 422, {"error": {"message": "extra field", "param": "top_k"}},
         "rejects `top_k`: unset it"),
        ("openai-compatible/toy", {}, 404, {"detail": "Not Found"}, "check base_url and the model's name"),
    ],
)  # fmt: skip
def test_an_error_that_meets_every_request_names_its_remedy(
    spec: str, fields: dict[str, Any], status: int, body: object, remedy: str
) -> None:
    error = refused(status, body, spec, **fields)
    assert isinstance(error, RequestRejected)
    assert remedy in str(error)
    assert error.meets_all


def test_an_error_about_one_prompt_does_not_meet_every_request() -> None:
    for status, inner in (
        (413, {"message": "Request too large"}),
        (400, {"message": "x", "code": "invalid_prompt"}),
        (400, {"message": "string too long", "param": "messages[0].content"}),
        (429, {"message": "Request too large for gpt-x: Limit 10", "code": "rate_limit_exceeded"}),
    ):
        assert not refused(status, {"error": inner}).meets_all


def test_errors_that_say_the_same_are_alike() -> None:
    def alike(message: str, status: int = 500) -> str:
        return refused(status, {"error": {"message": message}}).likeness

    assert alike("Internal error, request req_011CABC9 at 17:30:01") == alike(
        "Internal error, request req_87zz21 at 17:31:59"
    )
    assert alike("a") != alike("b")
    assert alike("a") != alike("a", 502)
    assert refused(401, {"error": {"message": "bad key"}}).meets_all
    assert isinstance(refused(401, {"error": {"message": "bad key"}}), PoolUnusable)


def test_a_stream_that_breaks_is_alike_too() -> None:
    with pytest.raises(TruncatedStream) as caught:
        answered("openai/toy", sse(*CHAT_EVENTS[:9]))
    assert "#" in caught.value.likeness


def test_a_whole_message_is_no_stream_event_of_another_kind() -> None:
    cut = b"".join(b"data: %b\n\n" % orjson.dumps(event) for event in MESSAGE_EVENTS[:-2])
    with pytest.raises(TruncatedStream):
        answered("anthropic/toy", cut)
