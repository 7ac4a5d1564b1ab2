"""Anthropic Messages: POST /v1/messages."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.simulate.wires.wire import (
    Ask,
    BadAsk,
    Detail,
    Failure,
    Reply,
    Tokens,
    Trouble,
    conversation,
    event,
    gateway_failure,
    messages_of,
    name_of,
    of_conversation,
    text_of,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from astra_async.simulate.limits import Window

_STOP = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal", "content_filter": "refusal"}
_MARK = "@@"

# trouble: status, error type, message
_TABLE: dict[Trouble, tuple[int, str, str]] = {
    "rate_limit": (429, "rate_limit_error", ""),
    "too_large": (429, "rate_limit_error", ""),
    "server_error": (500, "api_error", "Internal server error"),
    "overloaded": (529, "overloaded_error", "Overloaded"),
    "stream_error": (529, "overloaded_error", "Overloaded"),
    "bad_request": (400, "invalid_request_error", ""),
    "context": (400, "invalid_request_error", ""),
    "unknown_model": (404, "not_found_error", ""),
    "key": (401, "authentication_error", "invalid x-api-key"),
    "quota": (429, "rate_limit_error", "You have reached your enforced spend limit."),
}


class Messages:
    """`input_tokens` is the uncached rest; a prompt is cached only where `cache_control` asks for it."""

    stream_type = "text/event-stream; charset=utf-8"
    charges_max_tokens = False
    marks_cache = True
    cached_is_exempt = True

    def read(self, body: Mapping[str, Any], path: Mapping[str, str]) -> Ask:
        """Understand a request body."""
        messages = messages_of(body, "messages")
        max_tokens = whole_number(body, "max_tokens")
        if max_tokens is None:
            raise BadAsk("max_tokens: Field required")
        said, system = conversation(messages, "messages", "content"), body.get("system")
        return Ask(
            model=name_of(body, path),
            **of_conversation(said, text_of(system, "system") if system else ""),
            stream=bool(body.get("stream")),
            max_tokens=max_tokens,
            cache_marked=_is_marked(body, messages, system),
        )

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

    def events(self, reply: Reply) -> list[bytes]:
        """One text delta for each piece; only the text is encoded anew."""
        delta = {"index": 0, "delta": {"type": "text_delta", "text": _MARK}}
        head, tail = _event("content_block_delta", delta).split(orjson.dumps(_MARK))
        return [head + orjson.dumps(piece) + tail for piece in reply.pieces]

    def closing(self, reply: Reply) -> bytes:
        """The stop reason with the whole usage, then message_stop."""
        usage = _input_usage(reply.tokens) | {"output_tokens": reply.tokens.output}
        delta = {"stop_reason": _STOP[reply.finish], "stop_sequence": None}
        return (
            _event("content_block_stop", {"index": 0})
            + _event("message_delta", {"delta": delta, "usage": usage})
            + _event("message_stop", {})
        )

    def whole(self, reply: Reply) -> bytes:
        """A message object."""
        content = [{"type": "text", "text": reply.text}] if reply.text else []
        stop = {"stop_reason": _STOP[reply.finish], "stop_sequence": None}
        usage = _input_usage(reply.tokens) | {"output_tokens": reply.tokens.output}
        return orjson.dumps(_message(reply) | {"content": content, "usage": usage} | stop)

    def failure(self, trouble: Trouble, detail: Detail) -> Failure:
        """`{"type": "error", "error": {type, message}}`; only a rate limit has a retry-after."""
        if trouble == "unavailable":
            return gateway_failure()
        waits = trouble == "rate_limit"
        return Failure(
            status=_TABLE[trouble][0],
            body=orjson.dumps(_error(trouble, detail)),
            headers={"retry-after": str(math.ceil(detail.wait_s))} if waits else {},
        )

    def stream_error(self, detail: Detail) -> bytes:
        """The `error` event: an overload that struck after HTTP 200."""
        return event(_error("stream_error", detail), "error")

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


def _is_marked(body: Mapping[str, Any], messages: list[Mapping[str, Any]], system: object) -> bool:
    contents = [message.get("content") for message in messages] + [system]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    return any(isinstance(part, dict) and bool(part.get("cache_control")) for part in (body, *blocks))


def _event(kind: str, fields: Mapping[str, Any]) -> bytes:
    return event({"type": kind, **fields}, kind)


def _message(reply: Reply) -> dict[str, Any]:
    return {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "model": reply.model}


def _input_usage(tokens: Tokens) -> dict[str, int]:
    return {
        "input_tokens": tokens.prompt - tokens.cached - tokens.written,
        "cache_creation_input_tokens": tokens.written,
        "cache_read_input_tokens": tokens.cached,
    }


def _error(trouble: Trouble, detail: Detail) -> dict[str, Any]:
    _, kind, message = _TABLE[trouble]
    error: dict[str, Any] = {"type": kind, "message": message or _text(trouble, detail)}
    if trouble == "quota":
        error["details"] = {"error_code": "enforced_spend_limit_reached"}
    return {"type": "error", "error": error}


def _text(trouble: Trouble, detail: Detail) -> str:
    if trouble == "unknown_model":
        return f"model: {detail.model}"
    if trouble == "context":
        return f"prompt is too long: {detail.tokens} tokens > {detail.most_tokens} maximum"
    if trouble in ("rate_limit", "too_large"):
        rejected = detail.rejected
        limit = f" of {rejected.limit:.0f} {rejected.dimension} per minute" if rejected else ""
        return f"This request would exceed your organization's rate limit{limit}."
    return detail.message
