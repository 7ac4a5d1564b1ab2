"""Anthropic's Messages, and Bedrock Converse: POST /model/{model}/converse-stream and /converse.

A Converse stream is application/vnd.amazon.eventstream. Each message has a prelude (total length and length
of the headers, both big-endian, and their CRC 32), headers, a JSON payload, and a CRC 32 of everything
before.
"""

from __future__ import annotations

import math
import struct
import zlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.response_formats import Cut, Json, MessagesFormat
from astra_async.simulate.wires.request_parsing import entries_of, object_in, offered
from astra_async.simulate.wires.wire import Detail, Error, Trouble, Wire

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from astra_async.simulate.limits import LimitWindow
    from astra_async.types import Completion, Tool, Usage


_LIMITED = Error(
    429, "rate_limit_error", "This request would exceed your organization's rate limit{0.limit}."
)
_TOO_LONG = "prompt is too long: {0.tokens} tokens > {0.most_tokens} maximum"
_CLAUDE_ERRORS: dict[Trouble, Error] = {
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


class Messages(MessagesFormat, Wire):
    """Anthropic's Messages; `input_tokens` excludes cached tokens, and caching requires `cache_control`."""

    schema, call = "input_schema", "tool_use"
    opening = 3
    cache_mark = "cache_control"
    cached_is_exempt = True
    needs_max_tokens = True
    errors = _CLAUDE_ERRORS

    def events(self, whole: Json, cut: Cut) -> Iterator[Json]:
        """Yield the events, with a ping after the start of the first block."""
        for number, event in enumerate(super().events(whole, cut), 1):
            yield event
            if number == self.opening - 1:
                yield {"type": "ping"}

    def error(self, trouble: Trouble, detail: Detail) -> dict[str, Any]:
        """Return `{"type": "error", "error": {type, message}}`."""
        error: dict[str, Any] = {"type": self.errors[trouble].kind, "message": self.message(trouble, detail)}
        if trouble == "quota":
            error["details"] = {"error_code": "enforced_spend_limit_reached"}
        return {"type": "error", "error": error}

    def error_headers(self, trouble: Trouble, detail: Detail) -> dict[str, str]:
        """Return retry-after for a rate limit; other errors have no headers."""
        return {"retry-after": str(math.ceil(detail.wait_s))} if trouble == "rate_limit" else {}

    def limit_headers(self, windows: Iterable[LimitWindow]) -> dict[str, str]:
        """Return anthropic-ratelimit-* headers with RFC 3339 times."""
        headers = {}
        for window in windows:
            reset = datetime.fromtimestamp(math.ceil(window.reset_at), UTC)
            name = f"anthropic-ratelimit-{window.dimension}"
            headers[f"{name}-limit"] = f"{window.limit:.0f}"
            headers[f"{name}-remaining"] = f"{window.remaining:.0f}"
            headers[f"{name}-reset"] = reset.strftime("%Y-%m-%dT%H:%M:%SZ")
        return headers


_STOP = {
    "stop": "end_turn",
    "length": "max_tokens",
    "refusal": "guardrail_intervened",
    "content_filter": "content_filtered",
}
_STRING = 7  # type code of a string header

_UNKNOWN = "Could not resolve the foundation model from the model identifier: {0.model}"
_ERRORS: dict[Trouble, Error] = {
    "rate_limit": Error(429, "ThrottlingException", "Too many requests, please wait before trying again."),
    "too_large": Error(429, "ThrottlingException", "Too many tokens, please wait before trying again."),
    "quota": Error(429, "ThrottlingException", "Too many tokens per day, please wait before trying again."),
    "server_error": Error(500, "InternalServerException", "The system encountered an unexpected error."),
    "overloaded": Error(503, "ServiceUnavailableException", "Bedrock is unable to process your request."),
    "stream_error": Error(424, "modelStreamErrorException", "The model stopped in the middle of its answer."),
    "bad_request": Error(400, "ValidationException", "{0.message}"),
    "context": Error(400, "ValidationException", "Input is too long for requested model."),
    "unknown_model": Error(404, "ResourceNotFoundException", _UNKNOWN),
    "key": Error(
        403, "UnrecognizedClientException", "The security token included in the request is invalid."
    ),
}


class Converse(Wire):
    """Bedrock Converse; the URL determines streaming, and `inputTokens` excludes cached tokens."""

    stream_type = "application/vnd.amazon.eventstream"
    charges_max_tokens = True
    limits, most_tokens, call = "inferenceConfig", ("maxTokens",), "toolUse"
    cache_mark = "cachePoint"
    cached_is_exempt = True
    errors = _ERRORS

    def tools_of(self, body: Mapping[str, Any]) -> Iterator[Tool]:
        """Yield the tools in toolConfig."""
        for entry in entries_of(object_in(body, "toolConfig")):
            tool = object_in(entry, "toolSpec")
            schema = object_in(object_in(tool, "inputSchema"), "json")
            yield offered(tool, schema)

    def whole(self, completion: Completion, model: str, name: str, created: int) -> Json:
        """Return a Converse response; the format has no model name."""
        del model, name, created
        content: list[Json] = [{"text": completion.text}]
        content += [
            {"toolUse": {"toolUseId": call.id, "name": call.name, "input": orjson.loads(call.arguments)}}
            for call in completion.calls
        ]
        return {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": "tool_use" if completion.calls else _STOP[completion.finish_reason],
            "usage": _usage(completion.usage),
            "metrics": {"latencyMs": 0},
        }

    def events(self, whole: Json, cut: Cut) -> Iterator[Json]:
        """Yield message start, the pieces of each block, the stop reason and the usage."""
        yield {"messageStart": {"role": "assistant"}}
        for at, block in enumerate(whole["output"]["message"]["content"]):
            where = {"contentBlockIndex": at}
            if "text" in block:
                deltas: list[Json] = [{"text": piece} for piece in cut(block["text"])]
            else:
                start = {name: block["toolUse"][name] for name in ("toolUseId", "name")}
                yield {"contentBlockStart": {**where, "start": {"toolUse": start}}}
                written = orjson.dumps(block["toolUse"]["input"]).decode()
                deltas = [{"toolUse": {"input": piece}} for piece in cut(written)]
            yield from ({"contentBlockDelta": {**where, "delta": delta}} for delta in deltas)
            yield {"contentBlockStop": where}
        yield {"messageStop": {"stopReason": whole["stopReason"]}}
        yield {"metadata": {name: whole[name] for name in ("usage", "metrics")}}

    def encoded(self, event: Mapping[str, Any]) -> bytes:
        """Encode an event; its only key is the event type."""
        ((kind, payload),) = event.items()
        return _message({":event-type": kind, ":message-type": "event"}, payload)

    def error(self, trouble: Trouble, detail: Detail) -> dict[str, str]:
        """Return the exception's message."""
        return {"message": self.message(trouble, detail)}

    def error_headers(self, trouble: Trouble, detail: Detail) -> dict[str, str]:
        """Return the exception's name; Bedrock sends no retry-after."""
        del detail
        return {"x-amzn-errortype": _ERRORS[trouble].kind}

    def stream_error(self, detail: Detail) -> bytes:
        """Return an exception message in place of an event."""
        del detail
        reply = _ERRORS["stream_error"]
        payload = {"message": reply.message, "originalStatusCode": 500, "originalMessage": reply.message}
        return _message({":exception-type": reply.kind, ":message-type": "exception"}, payload)


def _message(names: Mapping[str, str], payload: Mapping[str, Any]) -> bytes:
    named = {**names, ":content-type": "application/json"}
    headers = b"".join(_header(name.encode(), value.encode()) for name, value in named.items())
    body = orjson.dumps(payload)
    prelude = struct.pack("!II", 16 + len(headers) + len(body), len(headers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + body
    return message + struct.pack("!I", zlib.crc32(message))


def _header(name: bytes, value: bytes) -> bytes:
    return struct.pack("!B", len(name)) + name + struct.pack("!BH", _STRING, len(value)) + value


def _usage(usage: Usage) -> dict[str, int]:
    inputs, output = usage.input_tokens or 0, usage.output_tokens or 0
    read, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
    return {
        "inputTokens": inputs - read - written,
        "outputTokens": output,
        "totalTokens": inputs + output,
        "cacheReadInputTokens": read,
        "cacheWriteInputTokens": written,
    }
