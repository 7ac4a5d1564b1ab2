"""Rate-limit headers of a response -> RateLimits, per-minute windows only.

OpenAI and its relatives: `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`, the reset as a Go
duration, at Azure as whole seconds. Anthropic: `anthropic-ratelimit-...`, the reset in RFC 3339.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from astra_async.asking.providers.hints import duration_s, number, server_time
from astra_async.types import RateLimits, RateWindow

if TYPE_CHECKING:
    from collections.abc import Mapping

# A per-minute window never needs longer to refill; one that does is per hour or per day.
_LONGEST_RESET_S = 90.0


def openai_limits(headers: Mapping[str, str], *, daily_requests: bool = False) -> RateLimits | None:
    """Limits in OpenAI's headers, or None where there are none.

    Args:
        headers: of a response; names compare without case.
        daily_requests: the request headers count per day (Groq): leave them out.
    """
    requests = None if daily_requests else _openai_window(headers, "requests")
    tokens = _openai_window(headers, "tokens")
    return RateLimits(requests=requests, tokens=tokens) if requests or tokens else None


def anthropic_limits(headers: Mapping[str, str], now: datetime) -> RateLimits | None:
    """Limits in Anthropic's headers, or None.

    `tokens` repeats the most restrictive of the others, so it is used only where they are missing.
    """
    now = server_time(headers, now)
    requests = _anthropic_window(headers, "requests", now)
    inputs = _anthropic_window(headers, "input-tokens", now)
    outputs = _anthropic_window(headers, "output-tokens", now)
    tokens = None if inputs or outputs else _anthropic_window(headers, "tokens", now)
    if not (requests or inputs or outputs or tokens):
        return None
    return RateLimits(requests=requests, input_tokens=inputs, output_tokens=outputs, tokens=tokens)


def exhausted_reset_s(limits: RateLimits | None) -> float | None:
    """Seconds until the dimension that is used up is open again; None when none is."""
    if limits is None:
        return None
    windows = (limits.requests, limits.tokens, limits.input_tokens, limits.output_tokens)
    resets = [w.reset_s for w in windows if w and w.remaining == 0 and w.reset_s is not None]
    return max(resets, default=None)


def _openai_window(headers: Mapping[str, str], dimension: str) -> RateWindow | None:
    limit = headers.get(f"x-ratelimit-limit-{dimension}")
    remaining = headers.get(f"x-ratelimit-remaining-{dimension}")
    if limit is None and remaining is None:
        return None
    return _window(limit, remaining, duration_s(headers.get(f"x-ratelimit-reset-{dimension}")))


def _anthropic_window(headers: Mapping[str, str], dimension: str, now: datetime) -> RateWindow | None:
    limit = headers.get(f"anthropic-ratelimit-{dimension}-limit")
    remaining = headers.get(f"anthropic-ratelimit-{dimension}-remaining")
    if limit is None and remaining is None:
        return None
    return _window(limit, remaining, _until(headers.get(f"anthropic-ratelimit-{dimension}-reset"), now))


def _window(limit: str | None, remaining: str | None, reset_s: float | None) -> RateWindow | None:
    """A window, or None when it says nothing: negative limits (Azure) and longer windows are ignored."""
    most, left = number(limit), number(remaining)
    if most is not None and most <= 0:
        most = None
    if reset_s is not None and reset_s > _LONGEST_RESET_S:
        return None
    return RateWindow(limit=most, remaining=left, reset_s=reset_s) if most or left is not None else None


def _until(moment: str | None, now: datetime) -> float | None:
    if moment is None:
        return None
    try:
        reset = datetime.fromisoformat(moment.strip())
    except ValueError:
        return None
    return max(0.0, (reset.replace(tzinfo=reset.tzinfo or UTC) - now).total_seconds())
