"""What holds for every wire format over HTTP: the same stream, however cut, delayed or broken."""

from __future__ import annotations

import asyncio

import pytest
from bedrock_server import frame
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from provider_calls import KEYS, Watch, call, request, settings
from recorded import RECORDED, TEXT, Recorded, chat_chunk, gemini_chunk
from wire_server import Reply, named, pieces, serving, sse

from astra_async.asking.providers import PROVIDERS, open_provider
from astra_async.asking.providers.reception import Reception
from astra_async.errors import PoolUnusable, RateLimited, TransientError, TruncatedStream
from astra_async.types import Completion, Usage

every_format = pytest.mark.parametrize("recorded", RECORDED, ids=lambda r: r.spec)


def played(
    recorded: Recorded, reply: Reply, *, timeout_s: float = 5.0, watch: Watch | None = None
) -> Completion:
    async def run() -> Completion:
        async with serving(reply) as server:
            chosen = settings(recorded.spec, base_url=server.base_url, timeout_s=timeout_s)
            return await call(chosen, watch=watch)

    return asyncio.run(run())


def read(recorded: Recorded, chunks: list[bytes]) -> Completion | None:
    reception = Reception(settings(recorded.spec), Watch(), recorded.reader())
    splitter = recorded.splitter()
    for chunk in chunks:
        reception.take(splitter.feed(chunk))
    reception.take(splitter.finish())
    return reception.reader.answer()


def test_every_provider_over_http_is_recorded() -> None:
    elsewhere = {"simulated"}  # tests/simulate
    assert {recorded.spec.partition("/")[0] for recorded in RECORDED} == set(PROVIDERS) - elsewhere


@every_format
@pytest.mark.parametrize("size", [7, 64, 100_000])
def test_a_stream_is_read_whatever_its_pieces(recorded: Recorded, size: int) -> None:
    watch = Watch()
    completion = played(recorded, Reply(pieces=pieces(recorded.stream, size)), watch=watch)
    assert completion.text == recorded.answer.text
    assert completion.finish_reason == recorded.answer.finish_reason
    assert completion.usage == recorded.answer.usage
    assert completion.returned_model == recorded.answer.returned_model
    assert (watch.first_tokens, watch.characters) == (1, len(TEXT))
    assert completion.repairs == ()


@every_format
def test_a_stream_is_read_byte_by_byte(recorded: Recorded) -> None:
    assert read(recorded, pieces(recorded.stream, 1)) == recorded.answer


@given(st.data())
@hypothesis_settings(max_examples=60, deadline=None)
def test_any_chunks_of_any_stream_give_the_same_answer(data: st.DataObject) -> None:
    recorded = data.draw(st.sampled_from(RECORDED))
    stream = recorded.stream
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=60)))
    marks = [0, *cuts, len(stream)]
    chunks = [stream[marks[i] : marks[i + 1]] for i in range(len(marks) - 1)]
    assert read(recorded, chunks) == recorded.answer


@every_format
@pytest.mark.parametrize("end", ["clean", "cut"])
def test_a_stream_without_its_terminal_marker_has_failed_whatever_text_came(
    recorded: Recorded, end: str
) -> None:
    with pytest.raises(TruncatedStream):
        played(recorded, Reply(pieces=[recorded.cut], end=end))


@every_format
def test_silence_in_mid_stream_ends_an_attempt_that_is_paid_for(recorded: Recorded) -> None:
    with pytest.raises(TruncatedStream, match="no data"):
        played(recorded, Reply(pieces=[recorded.cut], end="stall"), timeout_s=2.0)


@pytest.mark.parametrize("recorded", [r for r in RECORDED if r.reader.has_end_mark], ids=lambda r: r.spec)
def test_a_stall_after_the_terminal_marker_loses_nothing(recorded: Recorded) -> None:
    completion = played(recorded, Reply(pieces=[recorded.stream], end="stall"), timeout_s=5)
    assert completion.text == TEXT


@every_format
def test_an_empty_stream_is_truncated(recorded: Recorded) -> None:
    with pytest.raises(TruncatedStream, match="the stream was empty"):
        played(recorded, Reply(pieces=[]))


@every_format
async def test_a_redirect_is_not_followed_with_the_key(recorded: Recorded) -> None:
    async def run() -> list[str]:
        async with serving(Reply(status=302, headers={"Location": "/elsewhere"})) as server:
            with pytest.raises(PoolUnusable, match="base_url"):
                await call(settings(recorded.spec, base_url=server.base_url))
            return [asked.path for asked in server.asked]

    assert len(await run()) == 1


@every_format
@pytest.mark.parametrize("echo", [401, 429, 200])
async def test_the_key_goes_into_its_header_and_never_into_a_message(recorded: Recorded, echo: int) -> None:
    async def run() -> tuple[str, str]:
        variable = PROVIDERS[recorded.spec.partition("/")[0]].key_variable
        key = KEYS[variable or "AWS_ACCESS_KEY_ID"]
        body = b'{"error": {"message": "who is %b", "code": "rate_limit_exceeded"}}' % key.encode()
        if echo != 200:
            body = body.replace(b"rate_limit_exceeded", b"x")
        async with serving(Reply(status=echo, pieces=[body], content_type="application/json")) as server:
            with pytest.raises((PoolUnusable, RateLimited)) as caught:
                await call(settings(recorded.spec, base_url=server.base_url))
            sent = "\n".join(server.asked[0].headers.values())
            assert key in sent
            assert key not in server.asked[0].path
            return key, str(caught.value)

    key, message = await run()
    assert key not in message
    assert "who is ***" in message


@every_format
@pytest.mark.parametrize("cut", [1, 7, 100_000])
async def test_a_key_that_a_server_puts_into_the_answer_is_masked_and_named(
    recorded: Recorded, cut: int
) -> None:
    """The recorded text is made of the key's letters, one event each, so that it comes in pieces."""
    key = KEYS[PROVIDERS[recorded.spec.partition("/")[0]].key_variable or "AWS_SECRET_ACCESS_KEY"]

    async def run() -> Completion:
        async with serving(Reply(pieces=pieces(echoed(recorded.spec, f"const k = '{key}';"), cut))) as server:
            return await call(settings(recorded.spec, base_url=server.base_url))

    completion = await run()
    assert completion.text == "const k = '***';"
    assert completion.repairs == ("key_masked",)


def echoed(spec: str, text: str) -> bytes:
    """An answer of that text, in halves."""
    halves = text[:20], text[20:]
    match spec.partition("/")[0]:
        case "anthropic":
            kind = {"type": "content_block_delta"}
            deltas = [{**kind, "delta": {"type": "text_delta", "text": half}} for half in halves]
            return named(*deltas, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
        case "gemini":
            return sse(*(gemini_chunk({"text": half}) for half in halves), gemini_chunk(finish="STOP"))
        case "bedrock":
            frames = [frame("contentBlockDelta", {"delta": {"text": half}}) for half in halves]
            return b"".join(frames) + frame("messageStop", {"stopReason": "end_turn"})
        case "openai-responses":
            said = [{"type": "message", "content": [{"type": "output_text", "text": text}]}]
            return named({"type": "response.completed", "response": {"status": "completed", "output": said}})
        case _:
            return sse(*(chat_chunk({"content": half}) for half in halves), chat_chunk({}, "stop"), "[DONE]")


@every_format
async def test_a_server_on_this_machine_needs_no_key(recorded: Recorded) -> None:
    async def run() -> Completion:
        async with serving(Reply(pieces=[recorded.stream])) as server:
            return await call(settings(recorded.spec, base_url=server.base_url), environ={})

    assert (await run()).text == TEXT


@every_format
async def test_nobody_listening_is_transient(recorded: Recorded) -> None:
    async def run() -> None:
        async with serving(Reply()) as server:
            url = server.base_url
        await call(settings(recorded.spec, base_url=url))

    with pytest.raises(TransientError, match="connection failed"):
        (await run())


@every_format
async def test_many_calls_share_one_session_and_do_not_wait_for_each_other(recorded: Recorded) -> None:
    async def run() -> set[str]:
        async with serving(Reply(pieces=pieces(recorded.stream, 400))) as server:
            provider = open_provider(settings(recorded.spec, base_url=server.base_url), environ=KEYS)
            done = await asyncio.gather(*(provider.complete(request(), Watch()) for _ in range(40)))
            await provider.close()
            return {completion.text for completion in done}

    assert (await run()) == {TEXT}


def test_an_error_keeps_the_tokens_that_the_provider_had_announced() -> None:
    recorded = next(r for r in RECORDED if r.spec == "anthropic/toy")
    with pytest.raises(TruncatedStream) as caught:
        played(recorded, Reply(pieces=[recorded.stream[:1000]]))
    assert caught.value.usage == Usage(input_tokens=120, cached_tokens=100, cache_write_tokens=0)
