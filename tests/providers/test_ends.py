"""Where an answer ends: what tells it, what takes that back, and what stands between the events."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from bedrock_server import frame
from provider_calls import call, settings
from recorded import GEMINI_EVENTS, MESSAGE_EVENTS, TEXT, chat_chunk, gemini_chunk
from test_odd_servers import answered, conversed
from wire_server import Reply, serving, sse

from astra_async.errors import PoolUnusable, TransientError, TruncatedStream
from astra_async.types import Usage
from whole_runs import Beside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.types import Completion

COUNTS = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}


def text(content: str, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return chat_chunk({"content": content}, finish, **fields)


def thought(finish: str | None = None) -> dict[str, Any]:
    return chat_chunk({"reasoning_content": "hm"}, finish)


def delta(words: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": words}}


def stopped(reason: str | None, **counts: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": counts}


STOP = {"type": "message_stop"}
UNDONE: Sequence[tuple[str, Sequence[Any]]] = (
    ("openai-compatible/x", [text("a", "stop"), text("b", "stop")]),
    ("openai-compatible/x", [text("a", "null"), text("b", "null")]),
    ("openai-compatible/x", [text("ab", "null")]),
    ("openai-compatible/x", [chat_chunk({}, "stop"), text("ab")]),
    ("openai-compatible/x", [thought("stop"), text("ab")]),
    ("openai-compatible/x", [text("a", "stop"), thought()]),
    ("openai-compatible/x", [text("a", "length", usage=COUNTS), text("b", "length", usage=COUNTS)]),
    ("gemini/x", [gemini_chunk(finish="STOP"), gemini_chunk({"text": "ab"})]),
    ("gemini/x", [gemini_chunk({"text": "a"}, finish="STOP"), gemini_chunk({"text": "b"}, finish="STOP")]),
    ("gemini/x", [gemini_chunk({"text": "ab"}, finish="FINISH_REASON_UNSPECIFIED")]),
    ("anthropic/x", [delta("a"), stopped("end_turn"), delta("b")]),
)


@pytest.mark.parametrize(("spec", "events"), UNDONE, ids=str)
@pytest.mark.parametrize(
    "after", [b"", sse({"error": {"message": "boom", "code": 502}})], ids=["cut", "error"]
)
def test_content_takes_back_the_reason_that_came_before_it(
    spec: str, events: Sequence[Any], after: bytes
) -> None:
    with pytest.raises(TransientError, match="boom" if after else "lost during the answer"):
        answered(spec, sse(*events) + after, end="cut")


@pytest.mark.parametrize(("spec", "events"), UNDONE, ids=str)
def test_such_an_answer_is_whole_once_its_stream_is_over(spec: str, events: Sequence[Any]) -> None:
    if "UNSPECIFIED" in str(events):
        with pytest.raises(TruncatedStream):  # nobody ever gave a reason
            answered(spec, sse(*events))
        return
    marks: dict[str, Any] = {"openai": "[DONE]", "anthropic": STOP}
    mark = marks.get(spec.partition("/")[0].partition("-")[0])
    completion = answered(spec, sse(*events) + (sse(mark) if mark else b""))
    assert completion.text in {"ab", "a"}
    assert completion.finish_reason == ("length" if '"length"' in orjson.dumps(events).decode() else "stop")
    if mark:
        with pytest.raises(TruncatedStream):
            answered(spec, sse(*events))


def test_bedrocks_text_after_its_stop_takes_that_back() -> None:
    said = frame("contentBlockDelta", {"delta": {"text": "a"}, "contentBlockIndex": 0})
    stop = frame("messageStop", {"stopReason": "end_turn"})
    assert conversed(said, stop, said).text == "aa"
    with pytest.raises(TruncatedStream):
        conversed(said, stop, said, end="cut")


@pytest.mark.parametrize("end", ["clean", "cut"])
def test_a_message_is_whole_with_its_stop_reason(end: str) -> None:
    completion = answered("anthropic/x", sse(*MESSAGE_EVENTS[:-1]), end=end)
    assert (completion.text, completion.finish_reason, completion.repairs) == (TEXT, "stop", ())
    assert completion.usage.output_tokens == 48


def test_a_message_that_stops_without_a_reason_says_so() -> None:
    events = [delta("ab"), stopped(None, output_tokens=9), STOP]
    assert answered("anthropic/x", sse(*events)).repairs == ("no_finish_reason",)
    with pytest.raises(TruncatedStream):
        answered("anthropic/x", sse(stopped(None), STOP))


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("SAFETY", "content_filter"),
        ("content_filter: RECITATION", "content_filter"),
        ("MAX_TOKENS", "length"),
        ("LENGTH", "length"),
        ("Max_Output_Tokens", "length"),
        ("guardrail_intervened", "content_filter"),
        ("STOP", "stop"),
        ("eos", "stop"),
    ],
)
@pytest.mark.parametrize("spec", ["openai-compatible/x", "gemini/x", "anthropic/x"])
def test_reasons_are_read_in_every_spelling_and_in_each_others_words(
    spec: str, reason: str, finish: str
) -> None:
    events: dict[str, Sequence[Any]] = {
        "openai-compatible/x": [text("a"), chat_chunk({}, reason), "[DONE]"],
        "gemini/x": [gemini_chunk({"text": "a"}, finish=reason)],
        "anthropic/x": [delta("a"), stopped(reason), STOP],
    }
    assert answered(spec, sse(*events[spec])).finish_reason == finish


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("gemini/x", "MALFORMED_FUNCTION_CALL"),
        ("gemini/x", "MALFORMED_RESPONSE"),
        ("anthropic/x", "pause_turn"),
        ("anthropic/x", "compaction"),
        ("openai-compatible/x", "tool_calls"),  # without a tool on offer: a parser swallowed the text
        ("openai-compatible/x", "repetition"),
    ],
)
@pytest.mark.parametrize("said", ["a", ""])
def test_an_unknown_reason_is_no_stop_and_is_recorded(spec: str, reason: str, said: str) -> None:
    events: dict[str, Sequence[Any]] = {
        "openai-compatible/x": [text(said), chat_chunk({}, reason), "[DONE]"],
        "gemini/x": [gemini_chunk({"text": said}, finish=reason)],
        "anthropic/x": [*([delta(said)] if said else []), stopped(reason), STOP],
    }
    completion = answered(spec, sse(*events[spec]))
    assert (completion.text, completion.finish_reason) == (said, "other")
    assert completion.native_finish_reason == reason


@pytest.mark.parametrize("content", ["<solution/>", [{"type": "text", "text": "<solution/>"}]])
def test_a_whole_message_after_its_pieces_outranks_them(content: Any) -> None:
    last = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"content": content}}]}
    for events in ([last], [chat_chunk({}, "stop"), last]):
        completion = answered("openai-compatible/x", sse(text("<sol"), text("ution/>"), *events))
        assert (completion.text, completion.finish_reason) == ("<solution/>", "stop")
    empty = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"content": ""}}]}
    assert answered("openai-compatible/x", sse(text("ab"), empty)).text == "ab"


def test_messages_in_pieces_are_joined() -> None:
    pieces = [{"choices": [{"index": 0, "message": {"content": piece}}]} for piece in "abc"]
    assert answered("openai-compatible/x", sse(*pieces, "[DONE]")).text == "abc"


def test_a_whole_anthropic_message_after_its_pieces_outranks_them() -> None:
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "abc"}]
    message = {"type": "message", "content": blocks, "stop_reason": "max_tokens"}
    completion = answered("anthropic/x", sse(delta("ab"), delta("c"), message))
    assert (completion.text, completion.finish_reason) == ("abc", "length")


# --- what is no event ----------------------------------------------------------------------------------

STRAYS = (
    b"event: ping\ndata: ping\n\n",
    b"data: null\n\n",
    b"data: 7\n\n",
    b"data: []\n\n",
    b'data: "x"\n\n',
)


@pytest.mark.parametrize("stray", STRAYS)
@pytest.mark.parametrize("first", [True, False])
def test_data_that_is_no_event_is_passed_over_and_named(stray: bytes, *, first: bool) -> None:
    before, after = sse(text("hello")), sse(text(" world", "stop"), "[DONE]")
    pieces = (stray, before, after) if first else (before, stray, after)
    completion = answered("openai-compatible/x", *pieces)
    assert (completion.text, completion.repairs) == ("hello world", ("stray_data",))


def test_blank_data_is_nothing() -> None:
    stream = sse(text("a")) + b"data: \n\ndata:  \n\n" + sse(chat_chunk({}, "stop"))
    assert answered("openai-compatible/x", stream).repairs == ()


def test_half_an_event_is_never_passed_over() -> None:
    with pytest.raises(TruncatedStream, match="is not JSON"):
        answered("openai-compatible/x", sse(text("a"), '{"choices": [{"de', text("b", "stop"), "[DONE]"))


async def test_what_a_server_says_instead_of_a_stream_is_told_without_its_key() -> None:
    key = "8f3a9c0b1d2e4f5a6b7c8d9e0f1a2b3c" * 2

    async def ask(said: str) -> str:
        async with serving(Reply(pieces=[sse(said)])) as server:
            with pytest.raises(TransientError) as caught:
                await call(settings(base_url=server.base_url), environ={"OPENAI_API_KEY": key})
            return str(caught.value)

    for said in (f"Unauthorized: token {key} is not known here", "x" * 70 + key, f"{{{key}", f"[{key}"):
        told = await ask(said)
        assert key[:8] not in told
        assert "***" in told or "xxx…" in told


def test_events_without_blank_lines_between_them_are_read() -> None:
    events: list[Any] = [text("hel"), text("lo"), chat_chunk({}, "stop", usage=COUNTS), "[DONE]"]
    completion = answered("openai-compatible/x", sse(*events, end="\n"))
    assert (completion.text, completion.usage.output_tokens) == ("hello", 3)
    pretty = b"".join(
        b"data: %b\n" % line for line in orjson.dumps(text("hi"), option=orjson.OPT_INDENT_2).splitlines()
    )
    assert answered("openai-compatible/x", pretty, b"\n", sse("[DONE]")).text == "hi"


# --- statuses and pages --------------------------------------------------------------------------------

WHOLE = sse(text("hello"), chat_chunk({}, "stop"), "[DONE]")


def received(body: bytes, **reply: Any) -> Completion:
    async def run() -> Completion:
        async with serving(Reply(pieces=[body], **reply)) as server:
            return await call(settings(base_url=server.base_url))

    return asyncio.run(run())


@pytest.mark.parametrize("status", [200, 201, 203, 226])
@pytest.mark.parametrize(
    "content_type", ["text/event-stream", "text/html; charset=utf-8", "application/json"]
)
def test_an_answer_is_read_whatever_its_headers_call_it(status: int, content_type: str) -> None:
    assert received(WHOLE, status=status, content_type=content_type).text == "hello"


@pytest.mark.parametrize(
    "page",
    [
        b"<html>Welcome</html>",
        b"\n\n \xef\xbb\xbf<!doctype html>\n",
        b"<html>\n<script>\n{\nx = [1]\n}\n{}\n",
    ],
)
@pytest.mark.parametrize("content_type", ["text/html", "text/plain"])
def test_a_page_is_known_by_how_it_begins(page: bytes, content_type: str) -> None:
    with pytest.raises(PoolUnusable, match="HTML page: check base_url"):
        received(page.replace(b"\xef\xbb\xbf", b""), content_type=content_type)
    assert received(page[:6] + b"\n" + WHOLE, content_type=content_type).text == "hello"


# --- results that came as errors -----------------------------------------------------------------------

LLAMA = {
    "code": 400,
    "message": "the request exceeds the available context size",
    "type": "exceed_context_size_error",
}


@pytest.mark.parametrize("spec", ["openai-compatible/x", "anthropic/x", "gemini/x"])
@pytest.mark.parametrize("error", [LLAMA, {"error": LLAMA}])
def test_an_error_field_of_the_stream_is_an_event(spec: str, error: dict[str, Any]) -> None:
    completion = answered(spec, b"error: %b\n\n" % orjson.dumps(error))
    assert completion.finish_reason == "context_exceeded"


@pytest.mark.parametrize(
    ("spec", "events"),
    [
        ("openai-compatible/x", [text("half"), {"error": {"code": "content_filter", "message": "no"}}]),
        (
            "anthropic/x",
            [delta("half"), {"type": "error", "error": {"type": "content_filter", "message": "no"}}],
        ),
        (
            "gemini/x",
            [gemini_chunk({"text": "half"}), {"error": {"code": "content_filter", "message": "no"}}],
        ),
    ],
)
def test_a_filter_in_mid_stream_keeps_what_had_come(spec: str, events: Sequence[Any]) -> None:
    completion = answered(spec, sse(*events))
    assert (completion.finish_reason, completion.text) == ("content_filter", "half")


# --- counts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        ({"prompt_tokens": 20, "completion_tokens": 198, "total_tokens": 623},
         Usage(input_tokens=20, output_tokens=603)),
        ({"prompt_tokens": 20, "total_tokens": 25}, Usage(input_tokens=20, output_tokens=5)),
        ({"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 20},
         Usage(input_tokens=20, output_tokens=5)),
        ({"prompt_tokens": 2000, "completion_tokens": 19, "total_tokens": 2019, "cached_tokens": 1900},
         Usage(input_tokens=2000, cached_tokens=1900, output_tokens=19)),
    ],
)  # fmt: skip
def test_counts_are_read_where_routers_put_them(usage: dict[str, int], read: Usage) -> None:
    assert answered("openai-compatible/x", sse(text("a", "stop", usage=usage), "[DONE]")).usage == read


def test_geminis_total_holds_the_thinking_that_it_does_not_count_apart() -> None:
    counts = {"promptTokenCount": 120, "candidatesTokenCount": 198, "totalTokenCount": 723}
    stream = sse(*GEMINI_EVENTS[:-1], gemini_chunk(finish="STOP", usageMetadata=counts))
    assert answered("gemini/x", stream).usage.output_tokens == 603


# --- a server that does not hang up --------------------------------------------------------------------


@pytest.mark.alone
@pytest.mark.parametrize("counts", [COUNTS, None], ids=["counted", "uncounted"])
async def test_whoever_has_told_the_end_and_the_counts_has_a_short_grace(
    counts: dict[str, int] | None,
) -> None:
    reply = Reply(pieces=[sse(text("hi"), chat_chunk({}, "stop", usage=counts))], end="comments")

    async def run() -> Completion:
        async with serving(reply) as server:
            return await call(settings(base_url=server.base_url, timeout_s=0.5))

    with Beside() as beside:
        started = time.monotonic()
        assert (await run()).text == "hi"
        took_s = time.monotonic() - started
    assert beside.allows(took_s, 2.5) if counts else took_s > 2.9
