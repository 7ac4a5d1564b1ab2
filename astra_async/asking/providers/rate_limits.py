"""Parsing of rate limits in response headers, and of hints how long to wait in headers and bodies.

OpenAI and compatible servers send `x-ratelimit-{limit,remaining,reset}-{requests,tokens}` with the reset as a
Go duration (Azure: whole seconds). Anthropic sends `anthropic-ratelimit-...` with the reset in RFC 3339. Only
windows of one minute are used.

Order of the hints (rule 8 of the throttle): `retry-after-ms`, `retry-after` in seconds or as an HTTP date
(RFC 9110, section 10.2.3), `x-ratelimit-reset` as a Unix time (OpenRouter: in milliseconds),
`RetryInfo.retryDelay` (google.rpc), "try again in 3.89s" in the message. A number in an unknown unit or at
the start of a date is ignored, because it would be far too short if taken as seconds.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from astra_async.types import LONGEST_RESET_S, RateLimits, RateWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PART = re.compile(r"(\d{1,12}(?:\.\d{0,12})?)(ms|us|ns|d|h|m|s)")
_LONGEST_DURATION = 64
_YEAR_2001_S = 1e9
_WORDS_S = {
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
    **dict.fromkeys(("w", "week", "weeks"), 604800.0),
}
_UNITS_S = {**_WORDS_S, "us": 1e-6, "ns": 1e-9}
_AMOUNT = r"(?<![\d.,])\d{1,12}(?:\.\d{1,12})?"
_WORDED = rf"({_AMOUNT})[\s-]{{0,3}}({'|'.join(_WORDS_S)})(?![^\W\d_])"
_BARE = rf"{_AMOUNT}(?![.,:/-]\d|\s{{0,3}}[\w%])"
_SENTENCE = re.compile(
    rf"(?:try again|retry|wait|resets? in)[ a-z]{{0,30}}? ((?:{_WORDED}(?:,? and |,? )?)+|{_BARE})",
    re.IGNORECASE,
)
_WORDED_PART = re.compile(_WORDED, re.IGNORECASE)


def openai_limits(headers: Mapping[str, str], *, daily_requests: bool = False) -> RateLimits | None:
    """Return the limits in OpenAI's headers, or None.

    Args:
        headers: response headers, with case-insensitive names.
        daily_requests: the request headers count per day (Groq), so ignore them.
    """
    requests = None if daily_requests else _window(headers, "x-ratelimit-{}-requests", duration_s)
    tokens = _window(headers, "x-ratelimit-{}-tokens", duration_s)
    return RateLimits(requests=requests, tokens=tokens) if requests or tokens else None


def anthropic_limits(headers: Mapping[str, str], now: datetime) -> RateLimits | None:
    """Return the limits in Anthropic's headers, or None.

    `tokens` repeats the most restrictive limit of tokens. It is used only if the specific limits are missing.
    """
    now = server_time(headers, now)

    def announced(dimension: str) -> RateWindow | None:
        name = f"anthropic-ratelimit-{dimension}-{{}}"
        return _window(headers, name, lambda at: _seconds_until(_moment(at, datetime.fromisoformat), now))

    requests, inputs, outputs = map(announced, ("requests", "input-tokens", "output-tokens"))
    tokens = None if inputs or outputs else announced("tokens")
    if not (requests or inputs or outputs or tokens):
        return None
    return RateLimits(requests=requests, input_tokens=inputs, output_tokens=outputs, tokens=tokens)


def exhausted_reset_s(limits: RateLimits | None) -> float | None:
    """Return the seconds until all exhausted windows have reset; None if no window is exhausted."""
    if limits is None:
        return None
    windows = (limits.requests, limits.tokens, limits.input_tokens, limits.output_tokens)
    resets = [w.reset_s for w in windows if w and w.remaining == 0 and w.reset_s is not None]
    return max(resets, default=None)


def number(text: str | None) -> float | None:
    """Parse a finite, non-negative number. Return None for other text."""
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def duration_s(text: str | None) -> float | None:
    """Return the seconds in a Go duration (`20ms`, `6m0s`, `1h2m3s`) or plain number (Azure), or None."""
    if text is None or len(text) > _LONGEST_DURATION:
        return None
    text = text.strip().replace("\u00b5", "u").replace("\u03bc", "u")  # Go writes `µs` for microseconds
    parts = _PART.findall(text)
    if parts and "".join(n + unit for n, unit in parts) == text:
        return sum(float(n) * _UNITS_S[unit] for n, unit in parts)
    return number(text)


def header_hint_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds to wait by `retry-after-ms`, `retry-after` or `x-ratelimit-reset`, or None.

    A date is compared with the response's `Date` header, or with `now` if that header is missing.
    """
    milliseconds = number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    after = headers.get("retry-after")
    seconds = duration_s(after)
    if seconds is not None:
        return seconds
    at = _moment(after, parsedate_to_datetime) or _moment(headers.get("x-ratelimit-reset"), _unix_time)
    return _seconds_until(at, server_time(headers, now))


def server_time(headers: Mapping[str, str], now: datetime) -> datetime:
    """Return the time in the response's `Date` header, else `now`. The local clock may be wrong."""
    return _moment(headers.get("Date"), parsedate_to_datetime) or now


def body_hint_s(details: Any, message: str) -> float | None:
    """Return the seconds to wait by a google.rpc.RetryInfo in `details` or by the message, or None."""
    for detail in details if isinstance(details, list) else []:
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and (seconds := duration_s(delay)) is not None:
            return seconds
    found = _SENTENCE.search(message[:2000])
    if not found:
        return None
    parts = _WORDED_PART.findall(found[1])
    return sum(float(amount) * _WORDS_S[word.lower()] for amount, word in parts) if parts else float(found[1])


def window(limit: str | None, remaining: str | None, reset_s: float | None) -> RateWindow | None:
    """Return a window, or None if it is unusable: a negative limit (Azure) or a reset in over 90 s."""
    most, left = number(limit), number(remaining)
    if most is not None and most <= 0:
        most = None
    if reset_s is not None and reset_s > LONGEST_RESET_S:
        return None
    return RateWindow(limit=most, remaining=left, reset_s=reset_s) if most or left is not None else None


def _window(
    headers: Mapping[str, str], name: str, reset_s: Callable[[str | None], float | None]
) -> RateWindow | None:
    limit, remaining, reset = (headers.get(name.format(part)) for part in ("limit", "remaining", "reset"))
    return window(limit, remaining, reset_s(reset))


def _moment(text: str | None, parse: Callable[[str], datetime]) -> datetime | None:
    """Parse a time in a header, as UTC if it has no time zone. Return None if it cannot be parsed."""
    if text is None:
        return None
    try:
        moment = parse(text.strip())
    except (ValueError, OverflowError):
        return None
    return moment.replace(tzinfo=moment.tzinfo or UTC)


def _unix_time(text: str) -> datetime:
    """Parse seconds or milliseconds since 1970. A smaller number has an unknown unit: ValueError."""
    value = float(text)
    if not value >= _YEAR_2001_S:
        raise ValueError(text)
    return datetime.fromtimestamp(value / 1000 if value >= 1000 * _YEAR_2001_S else value, UTC)


def _seconds_until(moment: datetime | None, now: datetime) -> float | None:
    return None if moment is None else max(0.0, (moment - now).total_seconds())
