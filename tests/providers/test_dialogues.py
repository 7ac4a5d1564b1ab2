"""Dialogues with tools in every wire format: the requests, the collected answers, and answers sent back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from bedrock_server import frame
from provider_calls import KEYS, call, request, settings
from recorded import chat_chunk, gemini_chunk
from wire_server import Asked, Reply, named, pieces, serving, sse

from astra_async.asking.providers.gemini import GeminiReader
from astra_async.errors import TruncatedStream
from astra_async.types.agents import Dialogue, Message, NativeBody, Tool, ToolCall, ToolResult

if TYPE_CHECKING:
    from astra_async.types import Completion

TOOL = Tool(
    name="shell",
    description="Runs a command.",
    parameters={"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
)
OPENING = Dialogue(system="Work.", tools=(TOOL,), messages=(Message(role="user", text="Fix it."),))
FIRST, SECOND = '{"command":"ls -la"}', '{"command":"cat a.txt"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """A stream with a signature, a word and two calls, whose arguments come in pieces."""

    spec: str
    stream: bytes
    cut: bytes
    ids: tuple[str, str] | None = ("c1", "c2")
    finish: str = "stop"


def chat(*, numbered: bool = True) -> bytes:
    def piece(index: int, arguments: str, *, begins: bool = False) -> dict[str, Any]:
        head = {"id": f"c{index + 1}", "type": "function"} if begins else {}
        name = {"name": "shell"} if begins else {}
        number = {"index": index} if numbered else {}
        call = {**number, **head, "function": {**name, "arguments": arguments}}
        return chat_chunk({"tool_calls": [call]})

    return sse(
        chat_chunk({"role": "assistant", "content": "", "reasoning_content": "hm"}),
        chat_chunk({"content": "I look."}),
        piece(0, FIRST[:6], begins=True),
        piece(0, FIRST[6:]),
        piece(1, SECOND[:9], begins=True),
        piece(1, SECOND[9:]),
        chat_chunk({}, "tool_calls"),
        "[DONE]",
    )


ITEMS: list[dict[str, Any]] = [
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "shell", "arguments": FIRST},
    {"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "shell", "arguments": SECOND},
]
RESPONSES: tuple[dict[str, Any], ...] = (
    {"type": "response.created", "response": {"status": "in_progress"}},
    {"type": "response.output_text.delta", "delta": "I look."},
    {"type": "response.function_call_arguments.delta", "delta": FIRST},
    *({"type": "response.output_item.done", "item": item} for item in ITEMS),
    {"type": "response.completed", "response": {"model": "toy-1", "status": "completed", "output": ITEMS}},
)


def block(index: int, first: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    at = {"index": index}
    return [
        {"type": "content_block_start", "content_block": first, **at},
        *({"type": "content_block_delta", "delta": delta, **at} for delta in deltas),
        {"type": "content_block_stop", **at},
    ]


def used(index: int, number: int, arguments: str) -> list[dict[str, Any]]:
    first = {"type": "tool_use", "id": f"c{number}", "name": "shell", "input": {}}
    parts = [{"type": "input_json_delta", "partial_json": arguments[i : i + 7]} for i in range(0, 40, 7)]
    return block(index, first, *parts)


MESSAGES: tuple[dict[str, Any], ...] = (
    {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}},
    *block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": "sealed"},
    ),
    *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "I look."}),
    *used(2, 1, FIRST),
    *used(3, 2, SECOND),
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 30}},
    {"type": "message_stop"},
)
GEMINI = (
    gemini_chunk({"text": "hm", "thought": True}),
    gemini_chunk({"text": "I "}),
    gemini_chunk({"text": "look."}),
    gemini_chunk(
        {"functionCall": {"name": "shell", "args": orjson.loads(FIRST)}, "thoughtSignature": "sealed"},
        {"functionCall": {"name": "shell", "args": orjson.loads(SECOND)}},
    ),
    gemini_chunk(finish="STOP"),
)


def converse_use(index: int, number: int, arguments: str) -> list[bytes]:
    at = {"contentBlockIndex": index}
    start = {"toolUse": {"toolUseId": f"c{number}", "name": "shell"}}
    deltas = [{"toolUse": {"input": arguments[i : i + 9]}} for i in range(0, len(arguments), 9)]
    return [
        frame("contentBlockStart", {"start": start, **at}),
        *(frame("contentBlockDelta", {"delta": delta, **at}) for delta in deltas),
        frame("contentBlockStop", at),
    ]


CONVERSE = [
    frame("messageStart", {"role": "assistant"}),
    frame("contentBlockDelta", {"delta": {"reasoningContent": {"text": "hm"}}, "contentBlockIndex": 0}),
    frame(
        "contentBlockDelta", {"delta": {"reasoningContent": {"signature": "sealed"}}, "contentBlockIndex": 0}
    ),
    frame("contentBlockDelta", {"delta": {"text": "I look."}, "contentBlockIndex": 1}),
    *converse_use(2, 1, FIRST),
    *converse_use(3, 2, SECOND),
    frame("messageStop", {"stopReason": "tool_use"}),
]
WORKED = (
    Worked(spec="openai/toy", stream=chat(), cut=chat()[:-160]),
    Worked(spec="openai-compatible/toy", stream=chat(numbered=False), cut=chat()[:-160]),
    Worked(spec="azure/toy", stream=chat(), cut=chat()[:-160]),
    Worked(spec="openai-responses/gpt-5.4", stream=named(*RESPONSES), cut=named(*RESPONSES[:-1])),
    Worked(spec="anthropic/toy", stream=named(*MESSAGES), cut=named(*MESSAGES[:-2])),
    Worked(spec="gemini/toy", stream=sse(*GEMINI), cut=sse(*GEMINI[:-1]), ids=None),
    Worked(spec="bedrock/anthropic.claude-toy", stream=b"".join(CONVERSE), cut=b"".join(CONVERSE[:-1])),
)
every_format = pytest.mark.parametrize("worked", WORKED, ids=lambda w: w.spec)


def asked(
    worked: Worked, *dialogues: Dialogue, reply: Reply | None = None
) -> tuple[list[Completion], list[Asked]]:
    async def run() -> tuple[list[Completion], list[Asked]]:
        async with serving(reply or Reply(pieces=pieces(worked.stream, 50))) as server:
            chosen = settings(worked.spec, base_url=server.base_url, timeout_s=5)
            made = [request("", dialogue=each, cache=True, goes_on=True) for each in dialogues]
            return [await call(chosen, each) for each in made], server.asked

    return asyncio.run(run())


@every_format
def test_calls_are_gathered_from_their_pieces(worked: Worked) -> None:
    (completion,), _ = asked(worked, OPENING)
    assert completion.text == "I look."
    assert completion.finish_reason == "stop"
    assert [(one.name, one.arguments) for one in completion.calls] == [("shell", FIRST), ("shell", SECOND)]
    ids = tuple(one.id for one in completion.calls)
    assert ids == worked.ids if worked.ids else len(set(ids)) == 2


@every_format
def test_an_answer_of_calls_goes_back_as_it_came_with_their_results(worked: Worked) -> None:
    (completion,), _ = asked(worked, OPENING)
    results = tuple(ToolResult(call=one, text=f"out {n}") for n, one in enumerate(completion.calls))
    said = (
        *OPENING.messages,
        Message(role="assistant", text=completion.text, calls=completion.calls, native=completion.native),
        Message(role="user", text="Go on.", results=results),
    )
    _, sent = asked(worked, Dialogue(system="Work.", tools=(TOOL,), messages=said))
    body = sent[0].body.decode()
    for part in ("Work.", "Fix it.", "I look.", "ls -la", "cat a.txt", "out 0", "out 1", "Go on.", "shell"):
        assert part in body, part
    signed = worked.spec.partition("/")[0] not in {"openai", "openai-compatible", "azure"}
    assert ("sealed" in body) == signed
    assert "reasoning_content" in body or signed


@every_format
def test_a_foreign_answer_is_written_from_its_calls(worked: Worked) -> None:
    made = ToolCall(id="x1", name="shell", arguments=FIRST)
    said = (
        *OPENING.messages,
        Message(role="assistant", calls=(made,)),
        Message(role="user", results=(ToolResult(call=made, text="out", failed=True),)),
    )
    _, sent = asked(worked, Dialogue(tools=(TOOL,), messages=said))
    body = sent[0].body.decode()
    assert "ls -la" in body
    assert "x1" in body
    assert '"text":""' not in body


@every_format
def test_a_stream_that_breaks_off_between_calls_has_failed(worked: Worked) -> None:
    with pytest.raises(TruncatedStream):
        asked(worked, OPENING, reply=Reply(pieces=[worked.cut]))


def test_a_call_that_was_cut_by_length_is_kept_as_far_as_it_came() -> None:
    events = (*MESSAGES[:-6], {"type": "content_block_stop", "index": 3})
    ending = ({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}, {"type": "message_stop"})
    stream = named(*events[:-3], *ending)
    (completion,), _ = asked(WORKED[4], OPENING, reply=Reply(pieces=[stream]))
    assert completion.finish_reason == "length"
    assert completion.calls[-1].arguments == SECOND[: len(completion.calls[-1].arguments)]


@pytest.mark.parametrize(
    ("spec", "fields", "kept"),
    [
        ("openai/toy", {"max_tokens": 7}, {"max_tokens": 7, "model": "toy", "stream": True}),
        ("openai/toy", {}, {"max_completion_tokens": 99}),
        (
            "openai-responses/toy",
            {"max_output_tokens": 7, "include": ["x"]},
            {"include": ["x"], "store": False},
        ),
        ("anthropic/toy", {"max_tokens": 7, "thinking": {"type": "adaptive"}}, {"max_tokens": 7}),
        (
            "gemini/toy",
            {"generationConfig": {"topK": 3}},
            {"generationConfig": {"topK": 3, "maxOutputTokens": 99}},
        ),
    ],
)
async def test_an_agents_own_body_goes_on_but_for_what_is_ours(
    spec: str, fields: dict[str, Any], kept: dict[str, Any]
) -> None:
    worked = next(one for one in WORKED if one.spec.startswith(spec.partition("/")[0] + "/"))
    body = {"model": "agents-name", "odd": {"field": 1}, "messages": [{"role": "user"}], **fields}

    async def run() -> tuple[Completion, Asked]:
        async with serving(Reply(pieces=[worked.stream])) as server:
            chosen = settings(spec, base_url=server.base_url, max_tokens=99)
            native = NativeBody(
                fields=body, headers={"anthropic-beta": "some-beta", "anthropic-version": "v"}
            )
            return await call(chosen, request("", native=native)), server.asked[0]

    completion, sent = await run()
    assert len(completion.calls) == 2
    assert completion.native is not None
    assert sent.json["odd"] == {"field": 1}
    assert sent.json["messages"] == [{"role": "user"}]
    assert {name: sent.json.get(name) for name in kept} == kept
    assert sent.json.get("max_completion_tokens") != 99 or "max_tokens" not in sent.json
    assert sent.headers["anthropic-beta"] == "some-beta"


def test_a_key_in_a_calls_arguments_is_masked() -> None:
    key = KEYS["ANTHROPIC_API_KEY"]
    stream = named(*MESSAGES).replace(b'"hm"', orjson.dumps(f"key {key}"))
    (completion,), _ = asked(WORKED[4], OPENING, reply=Reply(pieces=[stream]))
    assert key not in orjson.dumps(completion.native).decode()
    assert "key_masked" in completion.repairs


async def test_a_plain_answer_keeps_no_message() -> None:
    async def run() -> Completion:
        async with serving(Reply(pieces=[WORKED[0].stream])) as server:
            return await call(settings("openai/toy", base_url=server.base_url))

    completion = await run()
    assert (completion.native, completion.calls, completion.text) == (None, (), "I look.")


def test_an_empty_text_at_the_end_of_geminis_stream_does_not_follow_a_call() -> None:
    """Gemini CLI takes what stands behind a call for the whole answer, and calls nothing."""
    reader = GeminiReader()
    reader.keep_complete = True
    part = {"functionCall": {"name": "look", "args": {}}}
    for parts, end in (([part], {}), ([{"text": ""}], {"finishReason": "STOP"})):
        reader.feed({"candidates": [{"content": {"role": "model", "parts": parts}, **end}]})
    whole, calls = reader.complete_response()
    assert whole["candidates"][0]["content"]["parts"] == [part]
    assert [each.name for each in calls] == ["look"]
