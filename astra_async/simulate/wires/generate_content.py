"""Gemini: POST /v1beta/models/{model}:streamGenerateContent?alt=sse and :generateContent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.simulate.wires.asked import entries_of, object_in, offered, text_of
from astra_async.simulate.wires.wire import Detail, Error, Reply, Tokens, Trouble, Wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from astra_async.types.agents import Tool

_FINISH = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}

_LIMITED = Error(
    429,
    "RESOURCE_EXHAUSTED",
    "You exceeded your current quota, please check your plan and billing details.",
)
_TOO_LONG = (
    "The input token count ({0.tokens}) exceeds the maximum number of tokens allowed ({0.most_tokens})."
)
_ERRORS: dict[Trouble, Error] = {
    "rate_limit": _LIMITED,
    "too_large": _LIMITED,
    "quota": _LIMITED,
    "server_error": Error(500, "INTERNAL", "An internal error has occurred. Please retry."),
    "stream_error": Error(503, "UNAVAILABLE", "The service is currently unavailable."),
    "overloaded": Error(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    "bad_request": Error(400, "INVALID_ARGUMENT", "{0.message}"),
    "context": Error(400, "INVALID_ARGUMENT", _TOO_LONG),
    "unknown_model": Error(404, "NOT_FOUND", "models/{0.model} is not found for API version v1beta."),
    "key": Error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
}


class GenerateContent(Wire):
    """Whether the answer is streamed stands in the URL; a refusal is a blocked prompt, without candidates.

    Limits are announced in error bodies only, and lines end with CR LF.
    """

    messages, text, call = "contents", "parts", "functionCall"
    limits, most_tokens = "generationConfig", ("maxOutputTokens",)
    seeds, least_seed = ("seed",), -(2**31)
    stream_type = "text/event-stream"
    errors = _ERRORS

    def system_of(self, body: Mapping[str, Any]) -> str:
        """The text of `systemInstruction`."""
        system = body.get("systemInstruction")
        return text_of(system.get("parts"), "systemInstruction.parts") if isinstance(system, dict) else ""

    def tools_of(self, body: Mapping[str, Any]) -> Iterator[Tool]:
        """Declarations of functions, with a schema of JSON or of Gemini's own spelling."""
        for entry in entries_of(body):
            for tool in entries_of(entry, "functionDeclarations"):
                schema = object_in(tool, "parametersJsonSchema") or object_in(tool, "parameters")
                yield offered(tool, schema)

    def events(self, reply: Reply) -> list[bytes]:
        """One chunk for each piece; a blocked prompt has none."""
        return [] if reply.finish == "refusal" else super().events(reply)

    def piece(self, reply: Reply, text: str) -> bytes:
        """A chunk."""
        return _event(_chunk(reply, text))

    def closing(self, reply: Reply) -> bytes:
        """The chunk with the finish reason and the usage is the terminal marker."""
        return _event(_last(reply, ""))

    def whole(self, reply: Reply) -> bytes:
        """A GenerateContentResponse."""
        return orjson.dumps(_last(reply, reply.text))

    def error(self, trouble: Trouble, detail: Detail) -> dict[str, Any]:
        """`{"error": {code, message, status, details}}`; the delay stands in the details."""
        reply = _ERRORS[trouble]
        error: dict[str, Any] = {"code": reply.status, "message": self.message(trouble, detail)}
        error["status"] = reply.kind
        if details := _details(trouble, detail):
            error["details"] = details
        return {"error": error}

    def stream_error(self, detail: Detail) -> bytes:
        """A bare JSON line, without `data:`."""
        return orjson.dumps(self.error("stream_error", detail)) + b"\r\n"


def _event(data: Mapping[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(data) + b"\r\n\r\n"


def _chunk(reply: Reply, text: str, finish: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    prompt = {"promptTokenCount": reply.tokens.prompt, "totalTokenCount": reply.tokens.prompt}
    return {"candidates": [candidate], "usageMetadata": prompt} | _tail(reply)


def _last(reply: Reply, text: str) -> dict[str, Any]:
    if reply.finish == "refusal":
        usage = {"promptTokenCount": reply.tokens.prompt, "totalTokenCount": reply.tokens.prompt}
        blocked = {"blockReason": "PROHIBITED_CONTENT"}
        return {"promptFeedback": blocked, "usageMetadata": usage} | _tail(reply)
    last = _chunk(reply, text, _FINISH[reply.finish]) | {"usageMetadata": _usage(reply.tokens)}
    last["candidates"][0]["content"]["parts"] += [
        {"functionCall": {"id": call.id, "name": call.name, "args": orjson.loads(call.arguments)}}
        for call in reply.calls
    ]
    return last


def _tail(reply: Reply) -> dict[str, str]:
    return {"modelVersion": reply.model, "responseId": reply.id}


def _usage(tokens: Tokens) -> dict[str, int]:
    usage = {
        "promptTokenCount": tokens.prompt,
        "candidatesTokenCount": tokens.output - tokens.reasoning,
        "totalTokenCount": tokens.prompt + tokens.output,
    }
    if tokens.reasoning:
        usage["thoughtsTokenCount"] = tokens.reasoning
    if tokens.cached:
        usage["cachedContentTokenCount"] = tokens.cached
    return usage


def _details(trouble: Trouble, detail: Detail) -> list[dict[str, Any]]:
    if trouble == "key":
        info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
        return [info | {"domain": "googleapis.com"}]
    if trouble not in ("rate_limit", "too_large", "quota"):
        return []
    window = "PerDay" if trouble == "quota" else "PerMinute"
    rejected = detail.rejected
    unit = "InputTokens" if rejected and rejected.dimension == "tokens" else "Requests"
    violation = {"quotaId": f"GenerateContent{unit}{window}PerProjectPerModel"}
    violation["quotaValue"] = f"{rejected.limit:.0f}" if rejected else "60"
    details: list[dict[str, Any]] = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]}
    ]
    if trouble == "rate_limit":
        # Rounded up to a millisecond: a client that waits as told must not come too early.
        delay = f"{math.ceil(detail.wait_s * 1000) / 1000}s"
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
    return details
