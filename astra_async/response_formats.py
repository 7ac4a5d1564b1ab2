"""Response formats of OpenAI (Chat Completions, Responses), Anthropic and Gemini, complete and streamed.

The gateway uses these formats for agents, and the simulated providers use them for all clients. Nothing of
`asking.providers` is imported: that package parses this output, so each side checks the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

if TYPE_CHECKING:
    from astra_async.types import Completion, ToolCall, Usage

Json = dict[str, Any]
Cut = Callable[[str], Iterable[str]]  # splits a text into the pieces of a stream

_CUT_SHORT = {"length": "max_output_tokens", "content_filter": "content_filter"}
_CHAT_FINISH = {"length": "length", "content_filter": "content_filter"}
_MESSAGES_STOP = {"length": "max_tokens", "refusal": "refusal", "content_filter": "refusal"}
_GEMINI_FINISH = {"length": "MAX_TOKENS", "content_filter": "SAFETY", "refusal": "PROHIBITED_CONTENT"}
# Delta type and field of each streamed text in a Messages block.
_BLOCK_TEXTS = {
    "text": (("text_delta", "text"),),
    "thinking": (("thinking_delta", "thinking"), ("signature_delta", "signature")),
}
# The streamed field of a Responses item, and the prefix of its events.
_ITEM_TEXTS = {
    "function_call": ("arguments", "response.function_call_arguments"),
    "custom_tool_call": ("input", "response.custom_tool_call_input"),
}


class ResponseFormat:
    """Base class of one response format.

    Attributes:
        done: bytes that terminate a stream, if the last event does not.
        tells_refusals: True if a refusal's text has its own field.
    """

    done: ClassVar[bytes] = b""
    tells_refusals: ClassVar[bool] = False

    def whole(self, completion: Completion, model: str, name: str, created: int) -> Json:
        """Return a complete response with Unix time `created` and unique `name`."""
        raise NotImplementedError

    def events(self, whole: Json, cut: Cut) -> Iterator[Json]:
        """Yield the stream events of a complete response, which may be from a provider."""
        raise NotImplementedError

    def encoded(self, event: Mapping[str, Any]) -> bytes:
        """Encode a server-sent event, named by its type."""
        head = b"event: %b\n" % event["type"].encode() if "type" in event else b""
        return b"%bdata: %b\n\n" % (head, orjson.dumps(event))

    def _refuses(self, completion: Completion) -> bool:
        return self.tells_refusals and completion.finish_reason == "refusal"


class ChatCompletionFormat(ResponseFormat):
    """OpenAI's Chat Completions; a stream includes usage if `whole` does."""

    done = b"data: [DONE]\n\n"

    def whole(self, completion: Completion, model: str, name: str, created: int) -> Json:
        """Return a chat.completion."""
        text = completion.text or None
        refused = {"content": None, "refusal": text} if self._refuses(completion) else {"content": text}
        message: Json = {"role": "assistant", **refused}
        if completion.calls:
            message["tool_calls"] = [_chat_call(call) for call in completion.calls]
        finish = _CHAT_FINISH.get(completion.finish_reason, "tool_calls" if completion.calls else "stop")
        return {
            "id": f"chatcmpl-{name}",
            "object": "chat.completion",
            "created": created,
            "model": model,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
            "usage": _chat_usage(completion.usage),
        }

    def events(self, whole: Json, cut: Cut) -> Iterator[Json]:
        """Yield the message head, text pieces, tool calls, finish reason and usage."""
        choice, told = whole["choices"][0], "usage" in whole
        head = {**whole, "object": "chat.completion.chunk", **({"usage": None} if told else {})}
        for delta in _chat_deltas(choice["message"], cut):
            yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
        if told:
            yield {**head, "choices": [], "usage": whole["usage"]}


class ResponsesFormat(ResponseFormat):
    """OpenAI's Responses."""

    def whole(self, completion: Completion, model: str, name: str, created: int) -> Json:
        """Return a response."""
        cut = _CUT_SHORT.get(completion.finish_reason)
        status = "incomplete" if cut else "completed"
        output: list[Json] = []
        if completion.text or not completion.calls:
            part: Json = {"type": "output_text", "text": completion.text, "annotations": []}
            if self._refuses(completion):
                part = {"type": "refusal", "refusal": completion.text}
            head = {"type": "message", "id": f"msg_{name}", "role": "assistant", "status": status}
            output.append({**head, "content": [part]})
        for at, call in enumerate(completion.calls):
            head = {"type": "function_call", "id": f"fc_{name}_{at}", "call_id": call.id}
            output.append({**head, "status": "completed", "name": call.name, "arguments": call.arguments})
        return {
            "id": f"resp_{name}",
            "object": "response",
            "created_at": created,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": cut} if cut else None,
            "model": model,
            "output": output,
            "usage": _responses_usage(completion.usage),
        }

    def events(self, whole: Json, cut: Cut) -> Iterator[Json]:
        """Yield added and done events of each item; the last event has the complete response."""
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        made = [("response.created", {"response": begun}), ("response.in_progress", {"response": begun})]
        for at, item in enumerate(whole.get("output") or ()):
            made += _item_events(at, item, cut)
        made.append((f"response.{whole.get('status') or 'completed'}", {"response": whole}))
        for number, (kind, fields) in enumerate(made):
            yield {"type": kind, "sequence_number": number, **fields}


class MessagesFormat(ResponseFormat):
    """Anthropic's Messages."""

    def whole(self, completion: Completion, model: str, name: str, created: int) -> Json:
        """Return a message; the format has no time."""
        del created
        content: list[Json] = [{"type": "text", "text": completion.text}] if completion.text else []
        content += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": _read(call.arguments)}
            for call in completion.calls
        ]
        stop = _MESSAGES_STOP.get(completion.finish_reason, "tool_use" if completion.calls else "end_turn")
        return {
            "id": f"msg_{name}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": _messages_usage(completion.usage),
        }

    def events(self, whole: Json, cut: Cut) -> Iterator[Json]:
        """Yield start, deltas and stop of each block, then stop reason and usage."""
        usage = whole.get("usage") or {}
        begun = {**whole, "content": [], "stop_reason": None, "stop_sequence": None}
        yield {"type": "message_start", "message": {**begun, "usage": {**usage, "output_tokens": 1}}}
        for at, block in enumerate(whole.get("content") or ()):
            bare, deltas = _block(block, cut)
            yield {"type": "content_block_start", "index": at, "content_block": bare}
            for delta in deltas:
                yield {"type": "content_block_delta", "index": at, "delta": delta}
            yield {"type": "content_block_stop", "index": at}
        end = {"stop_reason": whole.get("stop_reason"), "stop_sequence": whole.get("stop_sequence")}
        yield {"type": "message_delta", "delta": end, "usage": usage}
        yield {"type": "message_stop"}


class GeminiFormat(ResponseFormat):
    """Gemini's generateContent, whose lines end with CR LF."""

    def whole(self, completion: Completion, model: str, name: str, created: int) -> Json:
        """Return a GenerateContentResponse, which has no field for a time."""
        del created
        parts: list[Json] = [{"text": completion.text}] if completion.text else []
        for call in completion.calls:
            arguments = _read(call.arguments)
            fields = arguments if isinstance(arguments, dict) else {}
            parts.append({"functionCall": {"id": call.id, "name": call.name, "args": fields}})
        finish = _GEMINI_FINISH.get(completion.finish_reason, "STOP")
        return {
            "candidates": [
                {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": finish}
            ],
            "usageMetadata": _gemini_usage(completion.usage),
            "modelVersion": model,
            "responseId": name,
        }

    def events(self, whole: Json, cut: Cut) -> Iterator[Json]:
        """Yield the response as one chunk."""
        del cut
        yield whole

    def encoded(self, event: Mapping[str, Any]) -> bytes:
        """Encode a server-sent event."""
        return b"data: %b\r\n\r\n" % orjson.dumps(event)


# --- parts of a stream ------------------------------------------------------------------------------------


def _chat_call(call: ToolCall) -> Json:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _chat_deltas(message: Json, cut: Cut) -> Iterator[Json]:
    texts = {name: message[name] for name in ("content", "refusal") if message.get(name)}
    yield {name: value for name, value in message.items() if name != "tool_calls"} | dict.fromkeys(texts, "")
    yield from ({name: piece} for name, text in texts.items() for piece in cut(text))
    for at, call in enumerate(message.get("tool_calls") or ()):
        function = call.get("function")
        if function is None:
            yield {"tool_calls": [{"index": at, **call}]}
            continue
        yield {"tool_calls": [{"index": at, **call, "function": {**function, "arguments": ""}}]}
        for piece in cut(function.get("arguments") or ""):
            yield {"tool_calls": [{"index": at, "function": {"arguments": piece}}]}


def _item_events(at: int, item: Json, cut: Cut) -> Iterator[tuple[str, Json]]:
    """Yield the start of an item, the pieces of its text or arguments, and its end."""
    where = {"output_index": at, "item_id": item.get("id") or f"item_{at}"}
    bare = {**item, "status": "in_progress"}
    field, written = _ITEM_TEXTS.get(str(item.get("type")), ("", ""))
    parts: Iterable[Json] = ()
    if item.get("type") == "message":
        parts, bare["content"] = item.get("content") or (), []
    if field:
        bare[field] = ""
    yield "response.output_item.added", {"output_index": at, "item": bare}
    for number, part in enumerate(parts):
        yield from _part_events({**where, "content_index": number}, part, cut)
    if field:
        yield from _text_events(written, where, field, item.get(field) or "", cut)
    yield "response.output_item.done", {"output_index": at, "item": item}


def _part_events(where: Json, part: Json, cut: Cut) -> Iterator[tuple[str, Json]]:
    field, name = ("refusal",) * 2 if part.get("type") == "refusal" else ("text", "output_text")
    yield "response.content_part.added", {**where, "part": {**part, field: ""}}
    yield from _text_events(f"response.{name}", where, field, part.get(field) or "", cut)
    yield "response.content_part.done", {**where, "part": part}


def _text_events(kind: str, where: Json, field: str, text: str, cut: Cut) -> Iterator[tuple[str, Json]]:
    yield from ((f"{kind}.delta", {**where, "delta": piece}) for piece in cut(text))
    yield f"{kind}.done", {**where, field: text}


def _block(block: Json, cut: Cut) -> tuple[Json, list[Json]]:
    """Return the initial form of a Messages block, and its deltas."""
    bare, deltas = dict(block), []
    for kind, field in _BLOCK_TEXTS.get(str(block.get("type")), ()):
        if field in block:
            deltas += [{"type": kind, field: piece} for piece in cut(block[field] or "")]
            bare[field] = ""
    if "input" in block:
        written = block["input"]
        text = written if isinstance(written, str) else orjson.dumps(written).decode()
        deltas += [{"type": "input_json_delta", "partial_json": piece} for piece in cut(text)]
        bare["input"] = {}
    citations = bare.pop("citations", None) or ()
    return bare, deltas + [{"type": "citations_delta", "citation": citation} for citation in citations]


def _read(arguments: str) -> object:
    """Parse a call's arguments; return the text if it is truncated."""
    try:
        return orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        return arguments


# --- usage ------------------------------------------------------------------------------------------------


def _chat_usage(usage: Usage) -> Json:
    inputs, output = usage.input_tokens or 0, usage.output_tokens or 0
    details: Json = {"prompt_tokens_details": {"cached_tokens": usage.cached_tokens or 0}}
    if usage.reasoning_tokens is not None:
        details["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return {"prompt_tokens": inputs, "completion_tokens": output, "total_tokens": inputs + output, **details}


def _responses_usage(usage: Usage) -> Json:
    inputs, output = usage.input_tokens or 0, usage.output_tokens or 0
    return {
        "input_tokens": inputs,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens or 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": inputs + output,
    }


def _messages_usage(usage: Usage) -> Json:
    read, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
    return {
        "input_tokens": max(0, (usage.input_tokens or 0) - read - written),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": usage.output_tokens or 0,
    }


def _gemini_usage(usage: Usage) -> Json:
    """Return usage without zero counts, which Gemini omits."""
    inputs, output, thoughts = usage.input_tokens or 0, usage.output_tokens or 0, usage.reasoning_tokens or 0
    told = {"thoughtsTokenCount": thoughts, "cachedContentTokenCount": usage.cached_tokens or 0}
    return {
        "promptTokenCount": inputs,
        "candidatesTokenCount": max(0, output - thoughts),
        "totalTokenCount": inputs + output,
        **{name: count for name, count in told.items() if count},
    }
