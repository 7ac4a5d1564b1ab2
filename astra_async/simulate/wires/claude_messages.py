"""Anthropic Messages: POST /v1/messages."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.simulate.wires.wire import Detail, Error, Reply, Tokens, Trouble, Wire, event

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from astra_async.simulate.limits import Window
    from astra_async.types.agents import ToolCall

_STOP = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal", "content_filter": "refusal"}

_LIMITED = Error(
    429, "rate_limit_error", "This request would exceed your organization's rate limit{0.limit}."
)
_TOO_LONG = "prompt is too long: {0.tokens} tokens > {0.most_tokens} maximum"
_ERRORS: dict[Trouble, Error] = {
    "rate_limit": _LIMITED,
    "too_large": _LIMITED,
    "server_error": Error(500, "api_error", "Internal server error"),
    "overloaded": Error(529, "overloaded_error", "Overloaded"),
    "stream_error": Error(529, "overloaded_error", "Overloaded"),
    "bad_request": Error(400, "invalid_request_error", "{0.message}"),
    "context": Error(400, "invalid_request_error", _TOO_LONG),
    "unknown_model": Error(404, "not_found_error", "model: {0.model}"),
    "key": Error(401, "authentication_error", "invalid x-api-key"),
    "quota": Error(429, "rate_limit_error", "You have reached your enforced spend limit."),
}


class Messages(Wire):
    """`input_tokens` is the uncached rest; a prompt is cached only where `cache_control` asks for it."""

    schema, call = "input_schema", "tool_use"
    finishes = _STOP
    cache_mark = "cache_control"
    cached_is_exempt = True
    needs_max_tokens = True
    errors = _ERRORS

    def opening(self, reply: Reply) -> bytes:
        """The message begins with the usage of its input; its one block begins; a ping follows."""
        message = _message(reply) | {"content": [], "stop_reason": None, "stop_sequence": None}
        message["usage"] = _input_usage(reply.tokens) | {"output_tokens": 1}
        block = {"index": 0, "content_block": {"type": "text", "text": ""}}
        return (
            _event("message_start", {"message": message})
            + _event("content_block_start", block)
            + _event("ping", {})
        )

    def piece(self, reply: Reply, text: str) -> bytes:
        """A text delta."""
        del reply
        return _event("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": text}})

    def closing(self, reply: Reply) -> bytes:
        """The stop reason with the whole usage, then message_stop."""
        usage = _input_usage(reply.tokens) | {"output_tokens": reply.tokens.output}
        delta = {"stop_reason": self.finish(reply), "stop_sequence": None}
        return (
            _event("content_block_stop", {"index": 0})
            + _calls(reply)
            + _event("message_delta", {"delta": delta, "usage": usage})
            + _event("message_stop", {})
        )

    def whole(self, reply: Reply) -> bytes:
        """A message object."""
        content: list[Any] = [{"type": "text", "text": reply.text}] if reply.text else []
        content += [_call(call) | {"input": orjson.loads(call.arguments)} for call in reply.calls]
        stop = {"stop_reason": self.finish(reply), "stop_sequence": None}
        usage = _input_usage(reply.tokens) | {"output_tokens": reply.tokens.output}
        return orjson.dumps(_message(reply) | {"content": content, "usage": usage} | stop)

    def error(self, trouble: Trouble, detail: Detail) -> dict[str, Any]:
        """`{"type": "error", "error": {type, message}}`."""
        error: dict[str, Any] = {"type": self.errors[trouble].kind, "message": self.message(trouble, detail)}
        if trouble == "quota":
            error["details"] = {"error_code": "enforced_spend_limit_reached"}
        return {"type": "error", "error": error}

    def error_headers(self, trouble: Trouble, detail: Detail) -> dict[str, str]:
        """Only a rate limit has a retry-after."""
        return {"retry-after": str(math.ceil(detail.wait_s))} if trouble == "rate_limit" else {}

    def stream_error(self, detail: Detail) -> bytes:
        """The `error` event: an overload that struck after HTTP 200."""
        return event(self.error("stream_error", detail), "error")

    def limit_headers(self, windows: Iterable[Window]) -> dict[str, str]:
        """anthropic-ratelimit-* with RFC 3339 times."""
        headers = {}
        for window in windows:
            reset = datetime.fromtimestamp(math.ceil(window.reset_at), UTC)
            name = f"anthropic-ratelimit-{window.dimension}"
            headers[f"{name}-limit"] = f"{window.limit:.0f}"
            headers[f"{name}-remaining"] = f"{window.remaining:.0f}"
            headers[f"{name}-reset"] = reset.strftime("%Y-%m-%dT%H:%M:%SZ")
        return headers


def _event(kind: str, fields: Mapping[str, Any]) -> bytes:
    return event({"type": kind, **fields}, kind)


def _call(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}


def _calls(reply: Reply) -> bytes:
    """Each call is a block, its input JSON in two pieces."""
    made = b""
    for at, call in enumerate(reply.calls, 1):
        made += _event("content_block_start", {"index": at, "content_block": _call(call)})
        half = len(call.arguments) // 2
        for piece in (call.arguments[:half], call.arguments[half:]):
            delta = {"type": "input_json_delta", "partial_json": piece}
            made += _event("content_block_delta", {"index": at, "delta": delta})
        made += _event("content_block_stop", {"index": at})
    return made


def _message(reply: Reply) -> dict[str, Any]:
    return {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "model": reply.model}


def _input_usage(tokens: Tokens) -> dict[str, int]:
    return {
        "input_tokens": tokens.prompt - tokens.cached - tokens.written,
        "cache_creation_input_tokens": tokens.written,
        "cache_read_input_tokens": tokens.cached,
    }
