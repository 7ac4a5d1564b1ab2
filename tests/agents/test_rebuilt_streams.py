"""An agent's stream is made from the recorded answer, and a client reads that answer out of it.

The answers have the shapes of the providers' references: reasoning with its signature, several calls, calls
of custom tools, refusals, citations.
"""

from __future__ import annotations

from typing import Any

import pytest

from astra_async.agents.gateway.gateway_server import INTERFACES
from astra_async.asking.providers.answer import decode_events
from astra_async.asking.providers.anthropic import MessageReader
from astra_async.asking.providers.chat_reader import ChatReader
from astra_async.asking.providers.gemini import GeminiReader
from astra_async.asking.providers.openai_responses import ResponsesReader
from astra_async.asking.providers.sse import SseSplitter

READERS = {
    "chat": ChatReader,
    "responses": ResponsesReader,
    "messages": MessageReader,
    "gemini": GeminiReader,
}
TEXT = "line\nübung 😀 \u2028 end"
CALL = '{"command": "ls \\"x\\"", "n": [1, 2.5, null]}'


def chat(message: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}}
    return {
        "id": "chatcmpl-9",
        "object": "chat.completion",
        "created": 1_780_000_000,
        "model": "m-2026",
        "choices": [{**choice, "finish_reason": finish, "logprobs": None}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17},
    }


def function(number: int) -> dict[str, Any]:
    return {"id": f"call_{number}", "type": "function", "function": {"name": "shell", "arguments": CALL}}


def message(*blocks: dict[str, Any], stop: str = "end_turn") -> dict[str, Any]:
    return {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": list(blocks),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 12, "output_tokens": 5, "cache_read_input_tokens": 3},
    }


def tool(number: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": 'ls "x"'}}


def response(*items: dict[str, Any], status: str = "completed", **fields: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_780_000_000,
        "status": status,
        "model": "gpt-x",
        "output": list(items),
        "usage": {"input_tokens": 12, "output_tokens": 5, "total_tokens": 17},
        **fields,
    }


def spoken(*parts: dict[str, Any]) -> dict[str, Any]:
    item = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant"}
    return {**item, "content": list(parts)}


def gemini(*parts: dict[str, Any], finish: str = "STOP") -> dict[str, Any]:
    content = {"role": "model", "parts": list(parts)}
    return {
        "candidates": [{"content": content, "finishReason": finish, "index": 0}],
        "usageMetadata": {"promptTokenCount": 12, "candidatesTokenCount": 5, "totalTokenCount": 17},
        "modelVersion": "gemini-x",
        "responseId": "r1",
    }


CUT = {"reason": "max_output_tokens"}
OUTPUT_TEXT = {"type": "output_text", "text": TEXT, "annotations": []}
ANSWERS = {
    "chat": [
        chat({"content": TEXT}),
        chat({"content": TEXT, "tool_calls": [function(1), function(2)]}, "tool_calls"),
        chat({"refusal": "I cannot do that."}),
        chat({"content": TEXT, "reasoning_content": "First,\nthen."}),
        chat({"content": TEXT}, "length"),
    ],
    "responses": [
        response(spoken(OUTPUT_TEXT)),
        response(
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": TEXT}],
                "encrypted_content": "gAAAA==",
            },
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "shell", "arguments": CALL,
             "status": "completed"},
            {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "apply_patch",
             "input": "*** Begin Patch\n*** End Patch", "status": "completed"},
        ),
        response(spoken({"type": "refusal", "refusal": "No."})),
        response(spoken(OUTPUT_TEXT, {**OUTPUT_TEXT, "text": "more"}), service_tier="default"),
        response(spoken(OUTPUT_TEXT), status="incomplete", incomplete_details=CUT),
    ],
    "messages": [
        message({"type": "text", "text": TEXT}),
        message(
            {"type": "thinking", "thinking": "First,\nthen.", "signature": "c2lnbmF0dXJl"},
            {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"},
            {"type": "text", "text": TEXT},
            tool(1),
            tool(2),
            stop="tool_use",
        ),
        message({"type": "tool_use", "id": "toolu_3", "name": "TodoRead", "input": {}}, stop="tool_use"),
        message({"type": "text", "text": TEXT}, stop="refusal"),
        message({"type": "text", "text": TEXT}, stop="max_tokens"),
    ],
    "gemini": [
        gemini({"text": TEXT}),
        gemini(
            {"text": "First,\nthen.", "thought": True},
            {"functionCall": {"name": "run", "args": {"command": 'ls "x"'}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "run", "args": {}, "id": "c2"}},
        ),
        gemini({"text": TEXT, "thoughtSignature": "c2ln"}, {"text": "more"}),
        gemini({"text": TEXT}, finish="MAX_TOKENS"),
    ],
}  # fmt: skip
CASES = [
    pytest.param(speaks, answer, id=f"{speaks}-{number}")
    for speaks, answers in ANSWERS.items()
    for number, answer in enumerate(answers)
]


@pytest.mark.parametrize(("speaks", "answer"), CASES)
def test_a_client_reads_the_recorded_answer_out_of_the_stream(speaks: Any, answer: dict[str, Any]) -> None:
    body = {"stream": True, "stream_options": {"include_usage": True}}
    reader = READERS[speaks]()
    reader.keep_complete = True
    splitter = SseSplitter()
    for data in splitter.feed(INTERFACES[speaks].stream(answer, body)):
        for event in decode_events(data)[0]:
            reader.take(event)
    read = reader.answer()
    assert read is not None
    assert read.native == answer
