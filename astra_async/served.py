"""How an answer looks in the interfaces of OpenAI (two), Anthropic and Gemini: whole, and as a stream.

The gateway serves agents so, and the simulated providers serve everybody. Nothing of `asking.providers` is
imported: it reads what is written here, and each side checks the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

if TYPE_CHECKING:
    from astra_async.types import Completion, ToolCall, Usage

Json = dict[str, Any]
Cut = Callable[[str], Iterable[str]]  # a text -> the pieces in which a stream carries it

_CUT_SHORT = {"length": "max_output_tokens", "content_filter": "content_filter"}
_CHAT_FINISH = {"length": "length", "content_filter": "content_filter"}
_MESSAGES_STOP = {"length": "max_tokens", "refusal": "refusal", "content_filter": "refusal"}
_GEMINI_FINISH = {"length": "MAX_TOKENS", "content_filter": "SAFETY", "refusal": "PROHIBITED_CONTENT"}
# Where the text of a block of Messages streams to: the delta's type and the field.
_BLOCK_TEXTS = {
    "text": (("text_delta", "text"),),
    "thinking": (("thinking_delta", "thinking"), ("signature_delta", "signature")),
}
# The field of an item of Responses that streams, and its events.
_ITEM_TEXTS = {
    "function_call": ("arguments", "response.function_call_arguments"),
    "custom_tool_call": ("input", "response.custom_tool_call_input"),
}


class Served:
    """One interface.

    Attributes:
        done: what ends a stream, where its last event is not enough.
        tells_refusals: whether the text of a refusal has a place of its own.
    """

    done: ClassVar[bytes] = b""
    tells_refusals: ClassVar[bool] = False

    def whole(self, completion: Completion, model: str, name: str, created: int) -> Json:
        """The answer to a request without streaming, at the Unix time `created`; `name` is unique."""
        raise NotImplementedError

    def events(self, whole: Json, cut: Cut) -> Iterator[Json]:
        """The same as the events of a stream; `whole` may be a provider's own."""
        raise NotImplementedError

    def encoded(self, event: Mapping[str, Any]) -> bytes:
        """A server-sent event, named by its type."""
        head = b"event: %b\n" % event["type"].encode() if "type" in event else b""
        return b"%bdata: %b\n\n" % (head, orjson.dumps(event))

    def _refuses(self, completion: Completion) -> bool:
        return self.tells_refusals and completion.finish_reason == "refusal"


class ServedChat(Served):
    """OpenAI's chat completions; a stream tells the usage where `whole` has it."""

    done = b"data: [DONE]\n\n"

    def whole(self, completion: Completion, model: str, name: str, created: int) -> Json:
        """A chat.completion."""
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
        """The message begins without its texts, which follow in pieces; then calls, its end and usage."""
        choice, told = whole["choices"][0], "usage" in whole
        head = {**whole, "object": "chat.completion.chunk", **({"usage": None} if told else {})}
        for delta in _chat_deltas(choice["message"], cut):
            yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
        if told:
            yield {**head, "choices": [], "usage": whole["usage"]}


class ServedResponses(Served):
    """OpenAI's Responses."""

    def whole(self, completion: Completion, model: str, name: str, created: int) -> Json:
        """A response."""
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
        """Each item begins and is done; the last event has the whole response."""
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        made = [("response.created", {"response": begun}), ("response.in_progress", {"response": begun})]
        for at, item in enumerate(whole.get("output") or ()):
            made += _item_events(at, item, cut)
        made.append((f"response.{whole.get('status') or 'completed'}", {"response": whole}))
        for number, (kind, fields) in enumerate(made):
            yield {"type": kind, "sequence_number": number, **fields}


class ServedMessages(Served):
    """Anthropic's Messages."""

    def whole(self, completion: Completion, model: str, name: str, created: int) -> Json:
        """A message, which has no time."""
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
        """Each block begins, streams and ends; the reason and the usage come last."""
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


class ServedGemini(Served):
    """Gemini's generateContent, whose lines end with CR LF."""

    def whole(self, completion: Completion, model: str, name: str, created: int) -> Json:
        """A GenerateContentResponse, which has no time."""
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
        """One chunk."""
        del cut
        yield whole

    def encoded(self, event: Mapping[str, Any]) -> bytes:
        """A server-sent event."""
        return b"data: %b\r\n\r\n" % orjson.dumps(event)


# --- the parts of a stream --------------------------------------------------------------------------------


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
    """An item's begin, its text or arguments in pieces, its end."""
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
    """A block of Messages as it begins, and what it streams."""
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
    """A call's arguments, or their text where they were cut off."""
    try:
        return orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        return arguments


# --- the usage --------------------------------------------------------------------------------------------


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
    """Without the zeros that Gemini leaves out."""
    inputs, output, thoughts = usage.input_tokens or 0, usage.output_tokens or 0, usage.reasoning_tokens or 0
    told = {"thoughtsTokenCount": thoughts, "cachedContentTokenCount": usage.cached_tokens or 0}
    return {
        "promptTokenCount": inputs,
        "candidatesTokenCount": max(0, output - thoughts),
        "totalTokenCount": inputs + output,
        **{name: count for name, count in told.items() if count},
    }
