"""Anthropic's Messages, as Claude Code speaks them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import orjson

from astra_async.agents.gateway.interface import Interface, Json, Talk, call, event, text_of, tool
from astra_async.types import Completion, Dialogue, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

_STOP = {"length": "max_tokens", "refusal": "refusal", "content_filter": "refusal"}
# Tools of Anthropic's own that the client runs; all others with a type are run by the provider.
_RUN_BY_THE_CLIENT = ("bash_", "text_editor_", "computer_", "memory_", "tool_search_tool_", "custom")
# Where the text of a block streams to: the delta's type and the field.
_STREAMED = {
    "text": (("text_delta", "text"),),
    "thinking": (("thinking_delta", "thinking"), ("signature_delta", "signature")),
}


class Messages(Interface):
    """POST /v1/messages."""

    speaks = "messages"
    ping = b'event: ping\ndata: {"type": "ping"}\n\n'
    dropped_fields = ("mcp_servers", "container")
    passed_on: ClassVar[tuple[str, ...]] = ("anthropic-beta", "anthropic-version")

    def read(self, body: Json) -> Dialogue:
        """Results and text stand in one message."""
        talk = Talk()
        for message in body.get("messages") or ():
            content = message.get("content")
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
            for block in blocks:
                if block.get("type") == "tool_result":
                    failed = bool(block.get("is_error"))
                    talk.gives(block.get("tool_use_id") or "", text_of(block.get("content")), failed=failed)
            uses = [block for block in blocks if block.get("type") == "tool_use"]
            calls = [call(use, use.get("id") or "", use.get("input") or {}) for use in uses]
            text = text_of([block for block in blocks if block.get("type") == "text"])
            talk.says(message.get("role") or "user", text, calls)
        offered = body.get("tools") or ()
        tools = tuple(tool(each, each["input_schema"]) for each in offered if "input_schema" in each)
        return Dialogue(system=text_of(body.get("system") or ""), tools=tools, messages=tuple(talk.messages))

    def whole(self, completion: Completion, model: str, name: str) -> Json:
        """A message."""
        content: list[Json] = [{"type": "text", "text": completion.text}] if completion.text else []
        content += [
            {"type": "tool_use", "id": each.id, "name": each.name, "input": _read(each.arguments)}
            for each in completion.calls
        ]
        stop = _STOP.get(completion.finish_reason, "tool_use" if completion.calls else "end_turn")
        return {
            "id": f"msg_{name}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": _usage(completion.usage),
        }

    def events(self, whole: Json, body: Json) -> Iterator[bytes]:
        """Each block begins, streams in one piece and ends; the reason and the usage come last."""
        del body
        usage = whole.get("usage") or {}
        begun = {**whole, "content": [], "stop_reason": None, "stop_sequence": None}
        begun["usage"] = {**usage, "output_tokens": 1}
        yield event({"type": "message_start", "message": begun}, "message_start")
        for at, block in enumerate(whole.get("content") or ()):
            for kind, fields in _block_events(block):
                yield event({"type": kind, "index": at, **fields}, kind)
        end = {"stop_reason": whole.get("stop_reason"), "stop_sequence": whole.get("stop_sequence")}
        yield event({"type": "message_delta", "delta": end, "usage": usage}, "message_delta")
        yield event({"type": "message_stop"}, "message_stop")

    def error(self, message: str) -> Json:
        """`{"type": "error", "error": {type, message}}`."""
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}

    def error_event(self, message: str) -> bytes:
        """The `error` event."""
        return event(self.error(message), "error")

    def local(self, body: Json) -> Json | None:
        """Whether there is quota: a request for one token."""
        messages = body.get("messages") or [{}]
        if body.get("max_tokens") != 1 or text_of(messages[-1].get("content")) != "quota":
            return None
        usage = Usage(input_tokens=1, output_tokens=1)
        one = Completion(text="#", finish_reason="length", usage=usage, returned_model="")
        return self.whole(one, str(body.get("model") or ""), "probe")

    def _is_kept(self, tool: Json) -> bool:
        kind = tool.get("type")
        return kind is None or str(kind).startswith(_RUN_BY_THE_CLIENT)

    def _remote(self, part: Json) -> str:
        source = part.get("source")
        kind = source.get("type") if isinstance(source, dict) else None
        return str(part.get("type")) if kind in {"url", "file"} else ""


def _block_events(block: Json) -> Iterator[tuple[str, Json]]:
    bare, deltas = dict(block), []
    for kind, field in _STREAMED.get(str(block.get("type")), ()):
        if block.get(field):
            deltas.append({"type": kind, field: block[field]})
        if field in block:
            bare[field] = ""
    if "input" in block:
        written = block["input"]
        text = written if isinstance(written, str) else orjson.dumps(written).decode()
        deltas.append({"type": "input_json_delta", "partial_json": text})
        bare["input"] = {}
    citations = bare.pop("citations", None) or ()
    deltas += [{"type": "citations_delta", "citation": citation} for citation in citations]
    yield "content_block_start", {"content_block": bare}
    for delta in deltas:
        yield "content_block_delta", {"delta": delta}
    yield "content_block_stop", {}


def _read(arguments: str) -> object:
    """A call's arguments, or their text where they were cut off."""
    try:
        return orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        return arguments


def _usage(usage: Usage) -> Json:
    read, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
    return {
        "input_tokens": max(0, (usage.input_tokens or 0) - read - written),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": usage.output_tokens or 0,
    }
