"""What OpenAI's two APIs have in common: error bodies and rate-limit headers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.simulate.wires.wire import Detail, Failure, Trouble, gateway_failure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from astra_async.simulate.limits import Window

# trouble: status, error type, error code, message
_TABLE: dict[Trouble, tuple[int, str, str | None, str]] = {
    "rate_limit": (429, "requests", "rate_limit_exceeded", ""),
    "too_large": (429, "tokens", "rate_limit_exceeded", ""),
    "server_error": (
        500,
        "server_error",
        None,
        "The server had an error while processing your request. Sorry about that!",
    ),
    "overloaded": (
        503,
        "service_unavailable_error",
        "server_is_overloaded",
        "That model is currently overloaded with other requests.",
    ),
    "stream_error": (500, "server_error", "server_error", "The server had an error during generation."),
    "bad_request": (400, "invalid_request_error", None, ""),
    "context": (400, "invalid_request_error", "context_length_exceeded", ""),
    "unknown_model": (404, "invalid_request_error", "model_not_found", ""),
    "key": (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    "quota": (
        429,
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
}


def openai_failure(trouble: Trouble, detail: Detail) -> Failure:
    """An error response: `{"error": {message, type, param, code}}`."""
    if trouble == "unavailable":
        return gateway_failure()
    error = openai_error(trouble, detail)
    headers = _retry_headers(detail.wait_s) if trouble == "rate_limit" else {}
    return Failure(status=_TABLE[trouble][0], body=orjson.dumps({"error": error}), headers=headers)


def openai_error(trouble: Trouble, detail: Detail) -> dict[str, Any]:
    """The error object alone."""
    _, kind, code, message = _TABLE[trouble]
    if trouble == "rate_limit" and detail.rejected:
        kind = detail.rejected.dimension
    return {"message": message or _message(trouble, detail), "type": kind, "param": None, "code": code}


def openai_limit_headers(windows: Iterable[Window], *, plain_seconds: bool = False) -> dict[str, str]:
    """`x-ratelimit-{limit,remaining,reset}-{requests,tokens}`; Azure sends whole seconds."""
    headers = {}
    for window in windows:
        reset = str(math.ceil(window.reset_s)) if plain_seconds else go_duration(window.reset_s)
        headers[f"x-ratelimit-limit-{window.dimension}"] = f"{window.limit:.0f}"
        headers[f"x-ratelimit-remaining-{window.dimension}"] = f"{window.remaining:.0f}"
        headers[f"x-ratelimit-reset-{window.dimension}"] = reset
    return headers


def go_duration(seconds: float) -> str:
    """Seconds as Go's time.Duration prints them: `20ms`, `1.5s`, `6m0s`, `1h2m3s`."""
    seconds = math.ceil(seconds * 1000) / 1000
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    parts = [f"{hours}h"] if hours else []
    if hours or minutes:
        parts.append(f"{minutes}m")
    return "".join((*parts, f"{rest:.3f}".rstrip("0").rstrip("."), "s"))


def _retry_headers(wait_s: float) -> dict[str, str]:
    # Rounded up: a client that waits as told must not come too early.
    return {
        "retry-after": str(math.ceil(wait_s)),
        "retry-after-ms": str(math.ceil(wait_s * 1000)),
    }


def _message(trouble: Trouble, detail: Detail) -> str:
    if trouble == "unknown_model":
        return f"The model `{detail.model}` does not exist or you do not have access to it."
    if trouble == "context":
        return (
            f"This model's maximum context length is {detail.most_tokens} tokens. However, your messages"
            f" resulted in {detail.tokens} tokens. Please reduce the length of the messages."
        )
    if trouble in ("rate_limit", "too_large"):
        return _limit_message(detail)
    return detail.message


def _limit_message(detail: Detail) -> str:
    again = f"Please try again in {go_duration(detail.wait_s)}."
    rejected = detail.rejected
    if rejected is None:
        return f"Rate limit reached for {detail.model}. {again}"
    unit = "requests per min (RPM)" if rejected.dimension == "requests" else "tokens per min (TPM)"
    figures = f"{detail.model} on {unit}: Limit {rejected.limit:.0f}, Requested {rejected.requested:.0f}."
    if rejected.never:
        return f"Request too large for {figures} The input or output tokens must be reduced."
    return f"Rate limit reached for {figures} {again}"
