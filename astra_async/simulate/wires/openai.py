"""What OpenAI's two APIs have in common: error bodies and rate-limit headers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from astra_async.simulate.wires.wire import Told, Wire

if TYPE_CHECKING:
    from collections.abc import Iterable

    from astra_async.simulate.limits import Window
    from astra_async.simulate.wires.wire import Detail, Trouble

_TOO_LONG = (
    "This model's maximum context length is {0.most_tokens} tokens. However, your messages resulted in"
    " {0.tokens} tokens. Please reduce the length of the messages."
)
_UNKNOWN = "The model `{0.model}` does not exist or you do not have access to it."
_SORRY = "The server had an error while processing your request. Sorry about that!"
_BUSY = "That model is currently overloaded with other requests."
_EXHAUSTED = "You exceeded your current quota, please check your plan and billing details."
_TOLD: dict[Trouble, Told] = {
    "rate_limit": Told(429, "requests", "", "rate_limit_exceeded"),
    "too_large": Told(429, "tokens", "", "rate_limit_exceeded"),
    "server_error": Told(500, "server_error", _SORRY),
    "overloaded": Told(503, "service_unavailable_error", _BUSY, "server_is_overloaded"),
    "stream_error": Told(500, "server_error", "The server had an error during generation.", "server_error"),
    "bad_request": Told(400, "invalid_request_error", "{0.message}"),
    "context": Told(400, "invalid_request_error", _TOO_LONG, "context_length_exceeded"),
    "unknown_model": Told(404, "invalid_request_error", _UNKNOWN, "model_not_found"),
    "key": Told(401, "invalid_request_error", "Incorrect API key provided.", "invalid_api_key"),
    "quota": Told(429, "insufficient_quota", _EXHAUSTED, "insufficient_quota"),
}


class OpenAI(Wire):
    """Errors are `{"error": {message, type, param, code}}`; max_tokens is charged ahead."""

    charges_max_tokens = True
    told = _TOLD

    def error(self, trouble: Trouble, detail: Detail) -> dict[str, Any]:
        """The error object, in an object."""
        told, kind = _TOLD[trouble], _TOLD[trouble].kind
        if trouble == "rate_limit" and detail.rejected:
            kind = detail.rejected.dimension
        message = self.message(trouble, detail)
        return {"error": {"message": message, "type": kind, "param": None, "code": told.code}}

    def error_headers(self, trouble: Trouble, detail: Detail) -> dict[str, str]:
        """Only a rate limit tells how long to wait."""
        if trouble != "rate_limit":
            return {}
        # Rounded up: a client that waits as told must not come too early.
        return {
            "retry-after": str(math.ceil(detail.wait_s)),
            "retry-after-ms": str(math.ceil(detail.wait_s * 1000)),
        }

    def message(self, trouble: Trouble, detail: Detail) -> str:
        """The words of an error; those of a limit depend on which one it is."""
        if trouble in ("rate_limit", "too_large"):
            return _limit_message(detail)
        return super().message(trouble, detail)

    def limit_headers(self, windows: Iterable[Window]) -> dict[str, str]:
        """`x-ratelimit-{limit,remaining,reset}-{requests,tokens}`, the reset as a Go duration."""
        headers = {}
        for window in windows:
            headers[f"x-ratelimit-limit-{window.dimension}"] = f"{window.limit:.0f}"
            headers[f"x-ratelimit-remaining-{window.dimension}"] = f"{window.remaining:.0f}"
            headers[f"x-ratelimit-reset-{window.dimension}"] = self.duration(window.reset_s)
        return headers

    def duration(self, seconds: float) -> str:
        """How long until a limit is whole again."""
        return go_duration(seconds)


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
