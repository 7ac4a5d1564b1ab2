"""Gemini: POST /v1beta/models/{model}:streamGenerateContent?alt=sse and :generateContent."""

from __future__ import annotations

import math
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

_FINISH = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
_MARK = "@@"

# trouble: status code, status name, message
_TABLE: dict[Trouble, tuple[int, str, str]] = {
    "rate_limit": (429, "RESOURCE_EXHAUSTED", ""),
    "too_large": (429, "RESOURCE_EXHAUSTED", ""),
    "quota": (429, "RESOURCE_EXHAUSTED", ""),
    "server_error": (500, "INTERNAL", "An internal error has occurred. Please retry."),
    "stream_error": (503, "UNAVAILABLE", "The service is currently unavailable."),
    "overloaded": (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    "bad_request": (400, "INVALID_ARGUMENT", ""),
    "context": (400, "INVALID_ARGUMENT", ""),
    "unknown_model": (404, "NOT_FOUND", ""),
    "key": (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
}


class GenerateContent:
    """Whether the answer is streamed stands in the URL; a refusal is a blocked prompt, without candidates.

    Limits are announced in error bodies only, and lines end with CR LF.
    """

    stream_type = "text/event-stream"
    charges_max_tokens = False
    marks_cache = False
    cached_is_exempt = False

    def __init__(self, *, stream: bool) -> None:
        self._stream = stream

    def read(self, body: Mapping[str, Any], path: Mapping[str, str]) -> Ask:
        """Understand a request body."""
        said = conversation(messages_of(body, "contents"), "contents", "parts")
        system = body.get("systemInstruction")
        instructed = (
            text_of(system.get("parts"), "systemInstruction.parts") if isinstance(system, dict) else ""
        )
        settings = body.get("generationConfig") or {}
        if not isinstance(settings, dict):
            raise BadAsk("generationConfig must be an object")
        return Ask(
            model=name_of(body, path),
            **of_conversation(said, instructed),
            stream=self._stream,
            max_tokens=whole_number(settings, "maxOutputTokens"),
            seed=whole_number(settings, "seed", least=-(2**31)),
        )

    def opening(self, reply: Reply) -> bytes:
        """Nothing comes before the first piece."""
        del reply
        return b""

    def events(self, reply: Reply) -> list[bytes]:
        """One chunk for each piece; only the text is encoded anew."""
        if reply.finish == "refusal":
            return []
        head, tail = _event(_chunk(reply, _MARK)).split(orjson.dumps(_MARK))
        return [head + orjson.dumps(piece) + tail for piece in reply.pieces]

    def closing(self, reply: Reply) -> bytes:
        """The chunk with the finish reason and the usage is the terminal marker."""
        return _event(_last(reply, ""))

    def whole(self, reply: Reply) -> bytes:
        """A GenerateContentResponse."""
        return orjson.dumps(_last(reply, reply.text))

    def failure(self, trouble: Trouble, detail: Detail) -> Failure:
        """`{"error": {code, message, status, details}}`; the delay stands in the details."""
        if trouble == "unavailable":
            return gateway_failure()
        return Failure(status=_TABLE[trouble][0], body=orjson.dumps(_error(trouble, detail)))

    def stream_error(self, detail: Detail) -> bytes:
        """A bare JSON line, without `data:`."""
        return orjson.dumps(_error("stream_error", detail)) + b"\r\n"

    def limit_headers(self, windows: Iterable[Window]) -> dict[str, str]:
        """Gemini announces nothing in headers."""
        del windows
        return {}


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
    return _chunk(reply, text, _FINISH[reply.finish]) | {"usageMetadata": _usage(reply.tokens)}


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


def _error(trouble: Trouble, detail: Detail) -> dict[str, Any]:
    code, status, message = _TABLE[trouble]
    error: dict[str, Any] = {"code": code, "message": message or _text(trouble, detail), "status": status}
    if details := _details(trouble, detail):
        error["details"] = details
    return {"error": error}


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


def _text(trouble: Trouble, detail: Detail) -> str:
    if trouble == "unknown_model":
        return f"models/{detail.model} is not found for API version v1beta."
    if trouble == "context":
        return (
            f"The input token count ({detail.tokens}) exceeds the maximum number of tokens allowed"
            f" ({detail.most_tokens})."
        )
    if trouble in ("rate_limit", "too_large", "quota"):
        return "You exceeded your current quota, please check your plan and billing details."
    return detail.message
