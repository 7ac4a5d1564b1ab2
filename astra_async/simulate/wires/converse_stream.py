"""Bedrock Converse: POST /model/{model}/converse-stream and /model/{model}/converse.

A stream is application/vnd.amazon.eventstream: each message has a prelude (total length, length of the
headers, both big-endian, and their CRC 32), headers, a JSON payload, and a CRC 32 of everything before.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.simulate.wires.asked import entries_of, object_in, offered
from astra_async.simulate.wires.wire import Detail, Error, Reply, Tokens, Trouble, Wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from astra_async.types.agents import Tool

_STOP = {
    "stop": "end_turn",
    "length": "max_tokens",
    "refusal": "guardrail_intervened",
    "content_filter": "content_filtered",
}
_STRING = 7  # type of a header's value

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
    """Whether the answer is streamed stands in the URL; `inputTokens` is the uncached rest."""

    stream_type = "application/vnd.amazon.eventstream"
    charges_max_tokens = True
    limits, most_tokens, call = "inferenceConfig", ("maxTokens",), "toolUse"
    finishes = _STOP
    cache_mark = "cachePoint"
    cached_is_exempt = True
    errors = _ERRORS

    def tools_of(self, body: Mapping[str, Any]) -> Iterator[Tool]:
        """Specifications of tools."""
        for entry in entries_of(object_in(body, "toolConfig")):
            tool = object_in(entry, "toolSpec")
            schema = object_in(object_in(tool, "inputSchema"), "json")
            yield offered(tool, schema)

    def opening(self, reply: Reply) -> bytes:
        """The message begins."""
        del reply
        return _event("messageStart", {"role": "assistant"})

    def events(self, reply: Reply) -> list[bytes]:
        """One delta for each piece."""
        return [
            _event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": piece}})
            for piece in reply.pieces
        ]

    def closing(self, reply: Reply) -> bytes:
        """The stop reason, and the usage last."""
        metadata = {"usage": _usage(reply.tokens), "metrics": {"latencyMs": 0}}
        return (
            _event("contentBlockStop", {"contentBlockIndex": 0})
            + _calls(reply)
            + _event("messageStop", {"stopReason": self.finish(reply)})
            + _event("metadata", metadata)
        )

    def whole(self, reply: Reply) -> bytes:
        """A Converse response."""
        content: list[Any] = [{"text": reply.text}]
        content += [
            {"toolUse": {"toolUseId": call.id, "name": call.name, "input": orjson.loads(call.arguments)}}
            for call in reply.calls
        ]
        message = {"role": "assistant", "content": content}
        return orjson.dumps(
            {
                "output": {"message": message},
                "stopReason": self.finish(reply),
                "usage": _usage(reply.tokens),
                "metrics": {"latencyMs": 0},
            }
        )

    def error(self, trouble: Trouble, detail: Detail) -> dict[str, str]:
        """The exception's message; there is no retry-after."""
        return {"message": self.message(trouble, detail)}

    def error_headers(self, trouble: Trouble, detail: Detail) -> dict[str, str]:
        """The exception's name."""
        del detail
        return {"x-amzn-errortype": _ERRORS[trouble].kind}

    def stream_error(self, detail: Detail) -> bytes:
        """An exception in place of an event."""
        del detail
        reply = _ERRORS["stream_error"]
        payload = {"message": reply.message, "originalStatusCode": 500, "originalMessage": reply.message}
        return _message({":exception-type": reply.kind, ":message-type": "exception"}, payload)


def _calls(reply: Reply) -> bytes:
    """Each call is a block, its input JSON in one piece."""
    made = b""
    for at, call in enumerate(reply.calls, 1):
        where = {"contentBlockIndex": at}
        start = {"toolUse": {"toolUseId": call.id, "name": call.name}}
        made += _event("contentBlockStart", {**where, "start": start})
        made += _event("contentBlockDelta", {**where, "delta": {"toolUse": {"input": call.arguments}}})
        made += _event("contentBlockStop", where)
    return made


def _event(kind: str, payload: Mapping[str, Any]) -> bytes:
    return _message({":event-type": kind, ":message-type": "event"}, payload)


def _message(names: Mapping[str, str], payload: Mapping[str, Any]) -> bytes:
    named = {**names, ":content-type": "application/json"}
    headers = b"".join(_header(name.encode(), value.encode()) for name, value in named.items())
    body = orjson.dumps(payload)
    prelude = struct.pack("!II", 16 + len(headers) + len(body), len(headers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + body
    return message + struct.pack("!I", zlib.crc32(message))


def _header(name: bytes, value: bytes) -> bytes:
    return struct.pack("!B", len(name)) + name + struct.pack("!BH", _STRING, len(value)) + value


def _usage(tokens: Tokens) -> dict[str, int]:
    return {
        "inputTokens": tokens.prompt - tokens.cached - tokens.written,
        "outputTokens": tokens.output,
        "totalTokens": tokens.prompt + tokens.output,
        "cacheReadInputTokens": tokens.cached,
        "cacheWriteInputTokens": tokens.written,
    }
