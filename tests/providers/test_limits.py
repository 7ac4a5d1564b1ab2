from __future__ import annotations

from datetime import UTC, datetime

import pytest
from multidict import CIMultiDict

from astra_async.asking.providers.rate_limits import (
    anthropic_limits,
    duration_s,
    exhausted_reset_s,
    number,
    openai_limits,
)
from astra_async.types import RateLimits, RateWindow

NOW = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20ms", 0.02),
        ("6m0s", 360),
        ("1h2m3s", 3723),
        ("7.66s", 7.66),
        ("0s", 0),
        ("1d2h", 93600),
        ("15µs", 15e-6),
        ("12", 12),
        (" 3 ", 3),
        ("", None),
        ("soon", None),
        ("5x", None),
        ("-1", None),
        ("1s!", None),
        ("9" * 99, None),
        (None, None),
    ],
)
def test_durations_are_those_of_go_or_bare_seconds(text: str | None, seconds: float | None) -> None:
    assert duration_s(text) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize("text", ["nan", "inf", "-3", "x", "", None])
def test_what_is_no_count_is_no_number(text: str | None) -> None:
    assert number(text) is None


def test_openais_headers_become_windows() -> None:
    headers = CIMultiDict(
        {
            "X-RateLimit-Limit-Requests": "500",
            "X-RateLimit-Remaining-Requests": "499",
            "X-RateLimit-Reset-Requests": "120ms",
            "X-RateLimit-Limit-Tokens": "30000",
            "X-RateLimit-Remaining-Tokens": "0",
            "X-RateLimit-Reset-Tokens": "1m0s",
        }
    )
    assert openai_limits(headers) == RateLimits(
        requests=RateWindow(limit=500, remaining=499, reset_s=0.12),
        tokens=RateWindow(limit=30000, remaining=0, reset_s=60),
    )
    assert openai_limits({}) is None


def test_azures_whole_seconds_are_read_and_its_negative_limits_ignored() -> None:
    headers = {
        "x-ratelimit-limit-requests": "-1",
        "x-ratelimit-remaining-requests": "-1",
        "x-ratelimit-remaining-tokens": "900",
        "x-ratelimit-limit-tokens": "1000",
        "x-ratelimit-reset-tokens": "3",
    }
    assert openai_limits(headers) == RateLimits(tokens=RateWindow(limit=1000, remaining=900, reset_s=3))


def test_windows_of_a_day_are_left_out() -> None:
    requests = {
        "x-ratelimit-limit-requests": "14400",
        "x-ratelimit-remaining-requests": "14370",
        "x-ratelimit-reset-requests": "2m59.56s",
    }
    assert openai_limits(requests) is None
    tokens = {"x-ratelimit-limit-tokens": "18000", "x-ratelimit-remaining-tokens": "17997"}
    limits = openai_limits({**requests, "x-ratelimit-reset-requests": "6s", **tokens}, daily_requests=True)
    assert limits == RateLimits(tokens=RateWindow(limit=18000, remaining=17997))


def test_anthropics_headers_become_windows_with_seconds_from_the_servers_own_clock() -> None:
    headers = {
        "Date": "Fri, 20 Nov 2026 12:05:00 GMT",
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": "2026-11-20T12:05:01Z",
        "anthropic-ratelimit-input-tokens-limit": "30000",
        "anthropic-ratelimit-input-tokens-remaining": "0",
        "anthropic-ratelimit-input-tokens-reset": "2026-11-20T12:05:30Z",
        "anthropic-ratelimit-output-tokens-limit": "8000",
        "anthropic-ratelimit-output-tokens-remaining": "8000",
        "anthropic-ratelimit-output-tokens-reset": "2026-11-20T12:04:00Z",
        "anthropic-ratelimit-tokens-limit": "38000",
        "anthropic-ratelimit-tokens-remaining": "8000",
    }
    limits = anthropic_limits(headers, NOW)
    assert limits == RateLimits(
        requests=RateWindow(limit=50, remaining=49, reset_s=1),
        input_tokens=RateWindow(limit=30000, remaining=0, reset_s=30),
        output_tokens=RateWindow(limit=8000, remaining=8000, reset_s=0),
    )
    assert exhausted_reset_s(limits) == 30


def test_anthropics_sum_of_tokens_counts_where_it_stands_alone() -> None:
    headers = {
        "anthropic-ratelimit-tokens-limit": "100",
        "anthropic-ratelimit-tokens-remaining": "5",
        "anthropic-ratelimit-tokens-reset": "yesterday",
    }
    assert anthropic_limits(headers, NOW) == RateLimits(tokens=RateWindow(limit=100, remaining=5))
    assert anthropic_limits({}, NOW) is None


def test_nothing_used_up_gives_no_hint() -> None:
    assert exhausted_reset_s(None) is None
    assert exhausted_reset_s(RateLimits(requests=RateWindow(limit=1, remaining=1, reset_s=5))) is None
