"""Streams in the shapes that providers send, and what must be read out of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bedrock_server import frame
from wire_server import named, sse

from astra_async.asking.providers.anthropic import MessageReader
from astra_async.asking.providers.aws import EventStreamSplitter, Splitter
from astra_async.asking.providers.bedrock import ConverseReader
from astra_async.asking.providers.chat_reader import ChatReader
from astra_async.asking.providers.gemini import GeminiReader
from astra_async.asking.providers.openai_responses import ResponsesReader
from astra_async.asking.providers.sse import SseSplitter
from astra_async.types import Completion, Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from astra_async.asking.providers.answer import Reader

Events = tuple[dict[str, Any], ...]

TEXT = "<solution>é😀\u2028 a\r\nb</solution>"
USAGE = Usage(input_tokens=120, cached_tokens=100, output_tokens=48, reasoning_tokens=8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One stream: its bytes, its reader, its answer; `cut` is the stream without its terminal marker."""

    spec: str
    stream: bytes
    cut: bytes
    reader: type[Reader]
    answer: Completion
    splitter: Callable[[], Splitter] = SseSplitter


def chat_chunk(delta: dict[str, Any], finish: str | None = None, **fields: Any) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "model": "toy-1",
        "choices": choices,
        **fields,
    }


CHAT_USAGE = {
    "prompt_tokens": 120,
    "completion_tokens": 48,
    "total_tokens": 168,
    "prompt_tokens_details": {"cached_tokens": 100, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 8},
}
CHAT_EVENTS: Events = (
    chat_chunk({"role": "assistant", "content": "", "refusal": None}),
    *(chat_chunk({"content": c}, usage=None) for c in TEXT),
    chat_chunk({}, "stop"),
    {"object": "chat.completion.chunk", "model": "toy-1", "choices": [], "usage": CHAT_USAGE},
)
COMPATIBLE_EVENTS: tuple[str | dict[str, Any], ...] = (
    ": OPENROUTER PROCESSING",
    chat_chunk({"role": "assistant", "reasoning_content": "thinking"}),
    *(chat_chunk({"content": c}) for c in TEXT),
    chat_chunk({"content": ""}, "stop", usage=CHAT_USAGE),
)
AZURE_EVENTS: Events = (
    {
        "choices": [],
        "model": "",
        "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}],
    },
    *CHAT_EVENTS,
)

RESPONSE = {
    "object": "response",
    "model": "toy-1",
    "status": "completed",
    "error": None,
    "output": [
        {"type": "reasoning", "summary": []},
        {"type": "message", "content": [{"type": "output_text", "text": TEXT, "annotations": []}]},
    ],
    "usage": {
        "input_tokens": 120,
        "input_tokens_details": {"cached_tokens": 100},
        "output_tokens": 48,
        "output_tokens_details": {"reasoning_tokens": 8},
    },
}
RESPONSES_EVENTS: Events = (
    {"type": "response.created", "response": {"model": "toy-1", "status": "in_progress", "usage": None}},
    {"type": "response.reasoning_summary_text.delta", "delta": "thinking"},
    {"type": "response.some_news", "delta": "?"},
    *({"type": "response.output_text.delta", "delta": c, "output_index": 1} for c in TEXT),
    {"type": "response.output_text.done", "text": TEXT},
    {"type": "response.completed", "response": RESPONSE},
)

MESSAGE_EVENTS: Events = (
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "toy-1",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": 20,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 100,
                "output_tokens": 1,
            },
        },
    },
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "thinking", "thinking": "", "signature": ""},
    },
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "xx"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    *({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": c}} for c in TEXT),
    {"type": "content_block_stop", "index": 1},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 48, "output_tokens_details": {"thinking_tokens": 8}},
    },
    {"type": "message_stop"},
)


def gemini_chunk(*parts: dict[str, Any], finish: str | None = None, **fields: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "toy-1", **fields}


GEMINI_USAGE = {
    "promptTokenCount": 120,
    "cachedContentTokenCount": 100,
    "candidatesTokenCount": 40,
    "thoughtsTokenCount": 8,
    "totalTokenCount": 168,
}
GEMINI_EVENTS: Events = (
    gemini_chunk({"text": "thinking", "thought": True}, usageMetadata={"promptTokenCount": 120}),
    *(gemini_chunk({"text": a}, {"text": b}) for a, b in zip(TEXT[::2], TEXT[1::2] + "", strict=False)),
    *([gemini_chunk({"text": TEXT[-1]})] if len(TEXT) % 2 else []),
    gemini_chunk(finish="STOP", usageMetadata=GEMINI_USAGE),
)


CONVERSE_EVENTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("messageStart", {"role": "assistant"}),
    ("contentBlockStart", {"start": {}, "contentBlockIndex": 0}),  # aimock
    ("contentBlockDelta", {"delta": {"reasoningContent": {"text": "hm"}}, "contentBlockIndex": 0}),
    *(("contentBlockDelta", {"delta": {"text": c}, "contentBlockIndex": 1}) for c in TEXT),
    ("contentBlockStop", {"contentBlockIndex": 1}),
    ("messageStop", {"stopReason": "end_turn"}),
    (
        "metadata",
        {
            "usage": {"inputTokens": 20, "outputTokens": 48, "totalTokens": 168, "cacheReadInputTokens": 100},
            "metrics": {"latencyMs": 5},
        },
    ),
)


def answer(native_finish_reason: str, cache_write_tokens: int | None = None) -> Completion:
    usage = Usage(
        input_tokens=120,
        cached_tokens=100,
        cache_write_tokens=cache_write_tokens,
        output_tokens=48,
        reasoning_tokens=8,
    )
    return Completion(
        text=TEXT,
        finish_reason="stop",
        usage=usage,
        returned_model="toy-1",
        native_finish_reason=native_finish_reason,
    )


RECORDED = (
    Recorded(
        spec="openai/toy",
        stream=sse(*CHAT_EVENTS, "[DONE]"),
        cut=sse(*CHAT_EVENTS[:-2]),
        reader=ChatReader,
        answer=answer("stop"),
    ),
    Recorded(
        spec="openai-compatible/toy",
        stream=sse(*COMPATIBLE_EVENTS, "[DONE]", end="\r\n\r\n").replace(b"data: : ", b": "),
        cut=sse(*COMPATIBLE_EVENTS[1:-1]),
        reader=ChatReader,
        answer=answer("stop"),
    ),
    Recorded(
        spec="azure/toy",
        stream=sse(*AZURE_EVENTS, "[DONE]"),
        cut=sse(*AZURE_EVENTS[:-2]),
        reader=ChatReader,
        answer=answer("stop"),
    ),
    Recorded(
        spec="openai-responses/toy",
        stream=named(*RESPONSES_EVENTS),
        cut=named(*RESPONSES_EVENTS[:-1]),
        reader=ResponsesReader,
        answer=answer("completed"),
    ),
    Recorded(
        spec="anthropic/toy",
        stream=named(*MESSAGE_EVENTS),
        cut=named(*MESSAGE_EVENTS[:-2]),
        reader=MessageReader,
        answer=answer("end_turn", cache_write_tokens=0),
    ),
    Recorded(
        spec="gemini/toy",
        stream=sse(*GEMINI_EVENTS, end="\r\n\r\n"),
        cut=sse(*GEMINI_EVENTS[:-1], end="\r\n\r\n"),
        reader=GeminiReader,
        answer=answer("STOP"),
    ),
    Recorded(
        spec="bedrock/toy",
        stream=b"".join(frame(*event) for event in CONVERSE_EVENTS),
        cut=b"".join(frame(*event) for event in CONVERSE_EVENTS[:-2]),
        reader=ConverseReader,
        answer=Completion(
            text=TEXT,
            finish_reason="stop",
            usage=Usage(input_tokens=120, cached_tokens=100, output_tokens=48),
            returned_model="",
            native_finish_reason="end_turn",
        ),
        splitter=EventStreamSplitter,
    ),
)
