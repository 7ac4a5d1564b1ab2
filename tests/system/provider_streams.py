"""Streams of four real interfaces, written down from the providers' documentation and from recorded answers.

Nothing of astra_async is used, because its own encoders would hide a difference to the real events. A stream
has the parts that agents and gateways tend to lose: reasoning with signatures, empty deltas, pings, usage
that is repeated, and fields that only newer models send.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
Encoder = Callable[["Reply", str, str, "Counts"], Iterator[bytes]]
_PIECES, _LEAST_PIECE = 40, 24
_SIGNED = "EqQBCkYIBRgCKkBzaWduYXR1cmUgb2YgYSB0aGlua2luZyBibG9jaw=="


@dataclass(frozen=True, kw_only=True)
class Call:
    """A tool call. A custom tool's input is text; `arguments` of other tools are an object.

    `invalid` is sent instead of the arguments as JSON.
    """

    name: str
    arguments: Json | str
    invalid: str = ""

    @property
    def text(self) -> str:
        whole = self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)
        return self.invalid or whole


@dataclass(frozen=True, kw_only=True)
class Reply:
    """Content of an answer, or the text of a refusal."""

    text: str
    calls: tuple[Call, ...] = ()
    refused: bool = False


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Billed tokens. `inputs` includes `cached` and `written`; `outputs` includes `reasoning`."""

    inputs: int
    cached: int = 0
    written: int = 0
    outputs: int = 0
    reasoning: int = 0


def _pieces(text: str) -> Iterator[str]:
    size = max(_LEAST_PIECE, len(text) // _PIECES)
    return (text[at : at + size] for at in range(0, len(text), size))


def _data(event: Json) -> bytes:
    return b"data: %b\n\n" % json.dumps(event).encode()


def _named(event: Json) -> bytes:
    return b"event: %b\n%b" % (event["type"].encode(), _data(event))


def chat(reply: Reply, model: str, name: str, counts: Counts) -> Iterator[bytes]:
    """Chat Completions of OpenAI with `stream_options.include_usage`."""
    head: Json = {
        "id": f"chatcmpl-{name}",
        "object": "chat.completion.chunk",
        "created": 1_790_000_000,
        "model": model,
        "service_tier": "default",
        "system_fingerprint": None,
        "usage": None,
    }

    def chunk(delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _data({**head, "choices": [choice], "obfuscation": "xk3"})

    yield chunk({"role": "assistant", "content": None if reply.calls else "", "refusal": None})
    field = "refusal" if reply.refused else "content"
    yield from (chunk({field: piece}) for piece in _pieces(reply.text))
    for at, call in enumerate(reply.calls):
        begun = {"index": at, "id": f"call_{name}_{at}", "type": "function"}
        yield chunk({"tool_calls": [{**begun, "function": {"name": call.name, "arguments": ""}}]})
        for piece in _pieces(call.text):
            yield chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls" if reply.calls else "stop")
    usage = {
        "prompt_tokens": counts.inputs,
        "completion_tokens": counts.outputs,
        "total_tokens": counts.inputs + counts.outputs,
        "prompt_tokens_details": {"cached_tokens": counts.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": counts.reasoning, "audio_tokens": 0},
    }
    yield _data({**head, "choices": [], "usage": usage, "obfuscation": ""})
    yield b"data: [DONE]\n\n"


def responses(reply: Reply, model: str, name: str, counts: Counts) -> Iterator[bytes]:
    """Responses of OpenAI for a reasoning model and `store: false`."""
    items = list(_items(reply, name))
    response: Json = {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": 1_790_000_000,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "reasoning": {"effort": "medium", "summary": None},
        "service_tier": "auto",
        "store": False,
        "usage": None,
    }
    usage = {
        "input_tokens": counts.inputs,
        "input_tokens_details": {"cached_tokens": counts.cached},
        "output_tokens": counts.outputs,
        "output_tokens_details": {"reasoning_tokens": counts.reasoning},
        "total_tokens": counts.inputs + counts.outputs,
    }
    whole = {**response, "status": "completed", "service_tier": "default", "output": items, "usage": usage}
    made = [{"type": f"response.{kind}", "response": response} for kind in ("created", "in_progress")]
    for at, item in enumerate(items):
        made += _item_events(at, item)
    made.append({"type": "response.completed", "response": whole})
    yield from (_named({**event, "sequence_number": number}) for number, event in enumerate(made))


def _items(reply: Reply, name: str) -> Iterator[Json]:
    yield {"id": f"rs_{name}", "type": "reasoning", "encrypted_content": _SIGNED, "summary": []}
    part: Json = {"type": "output_text", "annotations": [], "logprobs": [], "text": reply.text}
    part = {"type": "refusal", "refusal": reply.text} if reply.refused else part
    message = {"id": f"msg_{name}", "type": "message", "status": "completed", "role": "assistant"}
    if reply.text:
        phase = "commentary" if reply.calls else "final_answer"
        yield {**message, "content": [part], "phase": phase}
    for at, call in enumerate(reply.calls):
        custom = isinstance(call.arguments, str)
        kind, field, short = (
            ("custom_tool_call", "input", "ctc") if custom else ("function_call", "arguments", "fc")
        )
        head = {"id": f"{short}_{name}_{at}", "type": kind, "status": "completed"}
        yield {**head, "call_id": f"call_{name}_{at}", "name": call.name, field: call.text}


def _item_events(at: int, item: Json) -> Iterator[Json]:
    place = {"output_index": at, "item_id": item["id"]}
    bare = {**item, "status": "in_progress"} if "status" in item else item
    if item["type"] == "message":
        yield {"type": "response.output_item.added", "output_index": at, "item": {**bare, "content": []}}
        part, place = item["content"][0], {**place, "content_index": 0}
        field, kind = ("refusal", "refusal") if part["type"] == "refusal" else ("text", "output_text")
        yield {"type": "response.content_part.added", **place, "part": {**part, field: ""}}
        for piece in _pieces(part[field]):
            yield {"type": f"response.{kind}.delta", **place, "delta": piece}
        yield {"type": f"response.{kind}.done", **place, field: part[field]}
        yield {"type": "response.content_part.done", **place, "part": part}
    elif item["type"] == "reasoning":
        yield {"type": "response.output_item.added", "output_index": at, "item": bare}
    else:
        field = "input" if "input" in item else "arguments"
        kind = "custom_tool_call_input" if field == "input" else "function_call_arguments"
        yield {"type": "response.output_item.added", "output_index": at, "item": {**bare, field: ""}}
        for piece in _pieces(item[field]):
            yield {"type": f"response.{kind}.delta", **place, "delta": piece, "obfuscation": "q0"}
        yield {"type": f"response.{kind}.done", **place, field: item[field]}
    yield {"type": "response.output_item.done", "output_index": at, "item": item}


def messages(reply: Reply, model: str, name: str, counts: Counts) -> Iterator[bytes]:
    """Messages of Anthropic with a signed thinking block."""
    usage: Json = {
        "input_tokens": counts.inputs - counts.cached - counts.written,
        "cache_creation_input_tokens": counts.written,
        "cache_read_input_tokens": counts.cached,
        "cache_creation": {"ephemeral_5m_input_tokens": counts.written, "ephemeral_1h_input_tokens": 0},
        "service_tier": "standard",
    }
    begun = {"id": f"msg_{name}", "type": "message", "role": "assistant", "model": model, "content": []}
    ends: Json = {"stop_reason": None, "stop_sequence": None}
    yield _named(
        {"type": "message_start", "message": {**begun, **ends, "usage": {**usage, "output_tokens": 3}}}
    )
    blocks: list[tuple[Json, list[Json]]] = [
        (
            {"type": "thinking", "thinking": "", "signature": ""},
            [
                {"type": "thinking_delta", "thinking": "The next step is clear."},
                {"type": "signature_delta", "signature": _SIGNED},
            ],
        )
    ]
    texts = [{"type": "text_delta", "text": piece} for piece in _pieces(reply.text)]
    blocks += [({"type": "text", "text": ""}, texts)] if reply.text else []
    for at, call in enumerate(reply.calls):
        parts = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *_pieces(call.text))]
        bare = {"type": "tool_use", "id": f"toolu_{name}_{at}", "name": call.name, "input": {}}
        blocks.append((bare, parts))
    for at, (block, deltas) in enumerate(blocks):
        yield _named({"type": "content_block_start", "index": at, "content_block": block})
        if at == 0:
            yield _named({"type": "ping"})
        for delta in deltas:
            yield _named({"type": "content_block_delta", "index": at, "delta": delta})
        yield _named({"type": "content_block_stop", "index": at})
    details = {"thinking_tokens": counts.reasoning}
    final = {**usage, "output_tokens": counts.outputs, "output_tokens_details": details}
    reason = "refusal" if reply.refused else "tool_use" if reply.calls else "end_turn"
    yield _named({"type": "message_delta", "delta": {**ends, "stop_reason": reason}, "usage": final})
    yield _named({"type": "message_stop"})


def gemini(reply: Reply, model: str, name: str, counts: Counts) -> Iterator[bytes]:
    """GenerateContent of Gemini 3: signed calls without ids, and an empty text in the last chunk."""
    usage: Json = {
        "promptTokenCount": counts.inputs,
        "candidatesTokenCount": counts.outputs - counts.reasoning,
        "totalTokenCount": counts.inputs + counts.outputs,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": counts.inputs}],
        "thoughtsTokenCount": counts.reasoning,
    }
    usage |= {"cachedContentTokenCount": counts.cached} if counts.cached else {}
    parts: list[Json] = [{"text": "**Next step**\n\nIt is clear.", "thought": True}]
    parts += [{"text": piece} for piece in _pieces(reply.text)]
    for at, call in enumerate(reply.calls):
        signed = {"thoughtSignature": _SIGNED} if at == 0 else {}  # only the first of parallel calls has one
        parts.append({"functionCall": {"name": call.name, "args": call.arguments}, **signed})
    parts.append({"text": ""})
    for number, part in enumerate(parts):
        reason = "PROHIBITED_CONTENT" if reply.refused else "STOP"
        last = {"finishReason": reason} if number == len(parts) - 1 else {}
        candidate = {"content": {"parts": [part], "role": "model"}, **last, "index": 0}
        chunk = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": name}
        yield b"data: %b\r\n\r\n" % json.dumps(chunk).encode()


STREAMS: dict[str, Encoder] = {"chat": chat, "responses": responses, "messages": messages, "gemini": gemini}
