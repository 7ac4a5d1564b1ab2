"""Gemini: POST /v1beta/models/{model}:streamGenerateContent?alt=sse and :generateContent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.response_formats import Cut, GeminiFormat, Json
from astra_async.simulate.wires.request_parsing import entries_of, object_in, offered, text_of
from astra_async.simulate.wires.wire import Detail, Error, Trouble, Wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from astra_async.types import Completion, Tool

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


class GenerateContent(GeminiFormat, Wire):
    """Gemini's format; the URL determines streaming, and a refusal is a blocked prompt without candidates.

    Limits are announced only in error bodies. Lines end with CR LF.
    """

    messages, text, call = "contents", "parts", "functionCall"
    limits, most_tokens = "generationConfig", ("maxOutputTokens",)
    seeds, least_seed = ("seed",), -(2**31)
    stream_type = "text/event-stream"
    opening = 0
    errors = _ERRORS

    def system_of(self, body: Mapping[str, Any]) -> str:
        """Return the text of `systemInstruction`."""
        system = body.get("systemInstruction")
        return text_of(system.get("parts"), "systemInstruction.parts") if isinstance(system, dict) else ""

    def tools_of(self, body: Mapping[str, Any]) -> Iterator[Tool]:
        """Yield function declarations, with a JSON schema or Gemini's schema."""
        for entry in entries_of(body):
            for tool in entries_of(entry, "functionDeclarations"):
                schema = object_in(tool, "parametersJsonSchema") or object_in(tool, "parameters")
                yield offered(tool, schema)

    def whole(self, completion: Completion, model: str, name: str, created: int) -> Json:
        """Return a GenerateContentResponse."""
        whole = super().whole(completion, model, name, created)
        if completion.finish_reason == "refusal":
            blocked = {"blockReason": "PROHIBITED_CONTENT"}
            del whole["candidates"]
            return {**whole, "promptFeedback": blocked, "usageMetadata": _of_the_prompt(whole)}
        return whole

    def events(self, whole: Json, cut: Cut) -> Iterator[Json]:
        """Yield a chunk per piece; the last one has tool calls, finish reason and usage."""
        last, begun = whole, {**whole, "usageMetadata": _of_the_prompt(whole)}
        for candidate in whole.get("candidates", ()):
            texts = [part["text"] for part in candidate["content"]["parts"] if "text" in part]
            calls = [part for part in candidate["content"]["parts"] if "text" not in part]
            for piece in cut("".join(texts)):
                yield {**begun, "candidates": [{"index": 0, "content": _content({"text": piece})}]}
            last = {**whole, "candidates": [{**candidate, "content": _content({"text": ""}, *calls)}]}
        yield last

    def error(self, trouble: Trouble, detail: Detail) -> dict[str, Any]:
        """Return `{"error": {code, message, status, details}}`; the pause is in the details."""
        reply = _ERRORS[trouble]
        error: dict[str, Any] = {"code": reply.status, "message": self.message(trouble, detail)}
        error["status"] = reply.kind
        if details := _details(trouble, detail):
            error["details"] = details
        return {"error": error}

    def stream_error(self, detail: Detail) -> bytes:
        """Return a bare JSON line, without `data:`."""
        return orjson.dumps(self.error("stream_error", detail)) + b"\r\n"


def _content(*parts: Json) -> Json:
    return {"role": "model", "parts": [*parts]}


def _of_the_prompt(whole: Json) -> Json:
    """Return the usage before the answer."""
    return dict.fromkeys(("promptTokenCount", "totalTokenCount"), whole["usageMetadata"]["promptTokenCount"])


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
        # Rounded up to a millisecond, so that a client that waits for this time is not too early.
        delay = f"{math.ceil(detail.wait_s * 1000) / 1000}s"
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
    return details
