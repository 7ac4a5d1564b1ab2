"""Anthropic Messages: POST /v1/messages."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from astra_async.served import Cut, Json, ServedMessages
from astra_async.simulate.wires.wire import Detail, Error, Trouble, Wire

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from astra_async.simulate.limits import LimitWindow

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


class Messages(ServedMessages, Wire):
    """`input_tokens` is the uncached rest; a prompt is cached only where `cache_control` asks for it."""

    schema, call = "input_schema", "tool_use"
    opening = 3
    cache_mark = "cache_control"
    cached_is_exempt = True
    needs_max_tokens = True
    errors = _ERRORS

    def events(self, whole: Json, cut: Cut) -> Iterator[Json]:
        """A ping follows the begin of the first block."""
        for number, event in enumerate(super().events(whole, cut), 1):
            yield event
            if number == self.opening - 1:
                yield {"type": "ping"}

    def error(self, trouble: Trouble, detail: Detail) -> dict[str, Any]:
        """`{"type": "error", "error": {type, message}}`."""
        error: dict[str, Any] = {"type": self.errors[trouble].kind, "message": self.message(trouble, detail)}
        if trouble == "quota":
            error["details"] = {"error_code": "enforced_spend_limit_reached"}
        return {"type": "error", "error": error}

    def error_headers(self, trouble: Trouble, detail: Detail) -> dict[str, str]:
        """Only a rate limit has a retry-after."""
        return {"retry-after": str(math.ceil(detail.wait_s))} if trouble == "rate_limit" else {}

    def limit_headers(self, windows: Iterable[LimitWindow]) -> dict[str, str]:
        """anthropic-ratelimit-* with RFC 3339 times."""
        headers = {}
        for window in windows:
            reset = datetime.fromtimestamp(math.ceil(window.reset_at), UTC)
            name = f"anthropic-ratelimit-{window.dimension}"
            headers[f"{name}-limit"] = f"{window.limit:.0f}"
            headers[f"{name}-remaining"] = f"{window.remaining:.0f}"
            headers[f"{name}-reset"] = reset.strftime("%Y-%m-%dT%H:%M:%SZ")
        return headers
