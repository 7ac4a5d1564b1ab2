"""An answer without text keeps the reasoning, or the tool call, that its server made of the text."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from bedrock_server import frame
from provider_calls import KEYS, call, settings
from recorded import chat_chunk, gemini_chunk
from wire_server import Reply, named, serving, sse

import astra_async
from astra_async.asking.providers.answer import MAX_REASONING
from astra_async.running.recorded import readable_records

if TYPE_CHECKING:
    from pathlib import Path

    from astra_async.types import Completion


def answered(spec: str, stream: bytes) -> Completion:
    async def run() -> Completion:
        async with serving(Reply(pieces=[stream])) as server:
            return await call(settings(spec, base_url=server.base_url))

    return asyncio.run(run())


def chat(*deltas: dict[str, Any], finish: str = "stop") -> bytes:
    return sse(*(chat_chunk(delta) for delta in deltas), chat_chunk({}, finish), "[DONE]")


def claude(*deltas: dict[str, Any]) -> bytes:
    return named(
        {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 9}}},
        *({"type": "content_block_delta", "delta": delta} for delta in deltas),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    )


def responses(*pieces: str) -> bytes:
    whole = {"status": "completed", "model": "m", "output": [], "usage": {}}
    return named(
        *({"type": "response.reasoning_text.delta", "delta": piece} for piece in pieces),
        {"type": "response.completed", "response": whole},
    )


def converse(*pieces: str) -> bytes:
    frames = (
        frame("contentBlockDelta", {"delta": {"reasoningContent": {"text": piece}}}) for piece in pieces
    )
    return b"".join(frames) + frame("messageStop", {"stopReason": "end_turn"})


CALL = {"index": 0, "id": "c", "type": "function", "function": {"name": "write_file", "arguments": '{"a":'}}
EMPTY = {
    "openai-compatible/m": chat({"reasoning_content": "<sol"}, {"reasoning_content": "ution>"}),
    "openai/m": chat({"reasoning": "<sol"}, {"content": None, "reasoning": "ution>"}),
    "azure/m": chat(
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "<solution>"}]}]}
    ),
    "anthropic/m": claude(*({"type": "thinking_delta", "thinking": piece} for piece in ("<sol", "ution>"))),
    "openai-responses/m": responses("<sol", "ution>"),
    "gemini/m": sse(gemini_chunk({"text": "<solution>", "thought": True}), gemini_chunk(finish="STOP")),
    "bedrock/m": converse("<sol", "ution>"),
}


@pytest.mark.parametrize("spec", EMPTY)
def test_the_reasoning_of_an_empty_answer_is_kept(spec: str) -> None:
    answer = answered(spec, EMPTY[spec])
    assert (answer.text, answer.reasoning) == ("", "<solution>")


def test_a_swallowed_tool_call_is_kept() -> None:
    more = {"index": 0, "function": {"arguments": " 1}"}}
    answer = answered(
        "openai-compatible/m", chat({"tool_calls": [CALL]}, {"tool_calls": [more]}, finish="tool_calls")
    )
    assert (answer.reasoning, answer.native_finish_reason) == ('write_file{"a": 1}', "tool_calls")


def test_an_answer_with_text_keeps_no_reasoning() -> None:
    assert answered("openai/m", chat({"reasoning": "hm"}, {"content": "42"})).reasoning == ""


def test_what_is_kept_is_bounded_and_masked() -> None:
    pieces = [{"reasoning": "x" * 1000}] * 100
    assert len(answered("openai/m", chat(*pieces)).reasoning) == MAX_REASONING
    key = KEYS["OPENAI_API_KEY"]
    assert key not in answered("openai/m", chat({"reasoning": f"the key {key}"})).reasoning


@pytest.mark.parametrize("reasoning", [3, {"a": 1}, ["x"], True])
def test_reasoning_of_an_unknown_shape_loses_no_answer(reasoning: object) -> None:
    assert answered("openai/m", chat({"reasoning": reasoning}, {"content": "42"})).text == "42"


async def test_a_run_says_so_once_and_records_what_arrived(tmp_path: Path) -> None:
    said: list[str] = []

    async def run() -> None:
        async with serving(Reply(pieces=[EMPTY["openai-compatible/m"]])) as server:
            await astra_async.run(
                problems="bundled",
                only=["product-api"],
                model="openai-compatible/m",
                base_url=server.base_url,
                out=tmp_path / "run",
                samples=8,
                generate_only=True,
                say=said.append,
            )

    await run()
    told = [line for line in said if "have no text but reasoning text" in line]
    assert len(told) == 1
    assert told[0].startswith("warning: openai-compatible/m: ")
    records = [record for _, record in readable_records(tmp_path / "run" / "completions.jsonl")]
    assert [record["reasoning"] for record in records] == ["<solution>"] * 8
    assert [line for line in said if "requested was m" in line] != []
