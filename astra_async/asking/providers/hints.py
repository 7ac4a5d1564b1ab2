"""How long a provider asks to wait: its headers, its bodies, its sentences.

Order (the throttle's rule 8): `retry-after-ms`, `retry-after` in seconds or as an HTTP date (RFC 9110,
section 10.2.3), `RetryInfo.retryDelay` (google.rpc), "try again in 3.89s" in the message.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNITS_S = {
    "h": 3600.0,
    "m": 60.0,
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ns": 1e-9,
    "d": 86400.0,
}
_PART = re.compile(r"(\d{1,12}(?:\.\d{0,12})?)(ms|us|µs|μs|ns|d|h|m|s)")
_LONGEST_DURATION = 64
_SENTENCE = re.compile(
    r"(?:try again|retry)[ a-z]{0,30}? (?:in |after |for )?"
    r"((?:\d{1,12}(?:\.\d{1,12})?(?:ms|h|m|s))+|\d{1,12}(?:\.\d{1,12})?)"
    r" ?(milliseconds?|seconds?|minutes?|hours?)?",
    re.IGNORECASE,
)
_WORDS_S = {"millisecond": 1e-3, "second": 1.0, "minute": 60.0, "hour": 3600.0}


def number(text: str | None) -> float | None:
    """A finite number that is not negative, or None."""
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def duration_s(text: str | None) -> float | None:
    """Seconds in a Go duration (`20ms`, `6m0s`, `1h2m3s`), or in a bare number of seconds (Azure)."""
    if text is None or len(text) > _LONGEST_DURATION:
        return None
    text = text.strip().replace("\u00b5", "u").replace("\u03bc", "u")  # Go writes microseconds with a mu
    parts = _PART.findall(text)
    if parts and "".join(n + unit for n, unit in parts) == text:
        return sum(float(n) * _UNITS_S[unit] for n, unit in parts)
    return number(text)


def header_hint_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait as `retry-after-ms` or `retry-after` say; None where they say nothing.

    A date is compared with the response's own `Date`; `now` serves where it has none.
    """
    milliseconds = number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    after = headers.get("retry-after")
    seconds = duration_s(after)
    return seconds if seconds is not None or after is None else _until_date(after, server_time(headers, now))


def server_time(headers: Mapping[str, str], now: datetime) -> datetime:
    """The provider's own clock, where the response names it: ours may be wrong, or be set meanwhile."""
    date = headers.get("Date")
    if date is None:
        return now
    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, OverflowError):
        return now
    return moment.replace(tzinfo=UTC)


def body_hint_s(details: Any, message: str) -> float | None:
    """Seconds to wait as a google.rpc.RetryInfo among `details`, or else the message, says."""
    for detail in details if isinstance(details, list) else []:
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and (seconds := duration_s(delay)) is not None:
            return seconds
    found = _SENTENCE.search(message[:2000])
    if not found:
        return None
    amount, word = found.groups()
    scale = _WORDS_S[word.lower().rstrip("s")] if word else 1.0
    seconds = duration_s(amount)
    return seconds * scale if seconds is not None else None


def _until_date(text: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds())
