from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from multidict import CIMultiDict
from provider_calls import Watch, settings

from astra_async.asking.providers.chat_reader import ChatReader
from astra_async.asking.providers.error_body import parse_body
from astra_async.asking.providers.error_meaning import Failure, classify
from astra_async.asking.providers.reception import Reception
from astra_async.errors import (
    Overloaded,
    PoolUnusable,
    ProviderError,
    RateLimited,
    RequestRejected,
    TransientError,
)
from astra_async.redaction import register_secret
from astra_async.types import FinishReason, RateLimits, RateWindow

NOW = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)


def meant(
    status: int | None, body: Any, headers: dict[str, str] | None = None, **fields: Any
) -> ProviderError | FinishReason:
    return classify(Failure(body=body, status=status, headers=headers or {}), settings(**fields), now=NOW)


def raised(
    status: int | None, body: Any, headers: dict[str, str] | None = None, **fields: Any
) -> ProviderError:
    error = meant(status, body, headers, **fields)
    assert isinstance(error, ProviderError)
    return error


def openai(message: str = "no", **error: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "x", "param": None, "code": None, **error}}


def anthropic(kind: str, message: str = "no", **error: Any) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message, **error}, "request_id": "r"}


def google(code: int, status: str, message: str = "no", details: list[Any] | None = None) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": details or []}}


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (429, "rate_limit_exceeded", RateLimited),
        (429, "slow_down", RateLimited),
        (429, None, RateLimited),
        (429, "insufficient_quota", PoolUnusable),
        (429, "credit_balance_exhausted", PoolUnusable),
        (429, "project_spend_limit_exceeded", PoolUnusable),
        (429, "organization_usage_limit_exceeded", PoolUnusable),
        (503, "server_is_overloaded", Overloaded),
        (503, None, Overloaded),
        (408, None, TransientError),
        (409, None, TransientError),
        (500, "server_error", TransientError),
        (502, None, TransientError),
        (504, None, TransientError),
        (520, None, TransientError),
        (400, "invalid_value", RequestRejected),
        (401, "invalid_api_key", PoolUnusable),
        (403, "unsupported_country_region_territory", PoolUnusable),
        (403, None, RequestRejected),
        (403, "permission-denied", RequestRejected),
        (429, "exceeded_current_quota_error", PoolUnusable),
        (403, "AccountOverdueError", PoolUnusable),
        (404, "model_not_found", PoolUnusable),
        (404, None, RequestRejected),
        (302, None, PoolUnusable),
        (405, None, PoolUnusable),
        (404, "DeploymentNotFound", PoolUnusable),
        (422, None, RequestRejected),
        (402, None, PoolUnusable),
        (498, None, Overloaded),
    ],
)
def test_every_error_of_openai_and_its_relatives(
    status: int, code: str | None, expected: type[Exception]
) -> None:
    error = raised(status, openai(code=code))
    assert type(error) is expected
    assert error.status == status
    assert "no" in str(error)


@pytest.mark.parametrize(
    ("status", "body", "headers", "expected"),
    [
        (429, anthropic("rate_limit_error"), {"retry-after": "7"}, RateLimited),
        (429, anthropic("rate_limit_error"), {}, RateLimited),
        (
            429,
            anthropic("rate_limit_error", details={"error_code": "enforced_spend_limit_reached"}),
            {},
            PoolUnusable,
        ),
        (529, anthropic("overloaded_error"), {}, Overloaded),
        (500, anthropic("api_error"), {}, TransientError),
        (504, anthropic("timeout_error"), {}, TransientError),
        (409, anthropic("conflict_error"), {}, TransientError),
        (400, anthropic("invalid_request_error"), {}, RequestRejected),
        (400, anthropic("invalid_request_error", "Your credit balance is too low to"), {}, PoolUnusable),
        (401, anthropic("authentication_error"), {}, PoolUnusable),
        (402, anthropic("billing_error"), {}, PoolUnusable),
        (403, anthropic("permission_error"), {}, PoolUnusable),
        (404, anthropic("not_found_error", "model: claude-x"), {}, PoolUnusable),
        (413, anthropic("request_too_large"), {}, RequestRejected),
        (None, anthropic("overloaded_error"), {}, Overloaded),
        (None, anthropic("rate_limit_error"), {}, RateLimited),
        (None, anthropic("api_error"), {}, TransientError),
        (None, anthropic("invalid_request_error"), {}, RequestRejected),
        (None, anthropic("something_new"), {}, TransientError),
    ],
)
def test_every_error_of_anthropic(
    status: int | None, body: Any, headers: dict[str, str], expected: type[Exception]
) -> None:
    assert type(raised(status, body, headers)) is expected


def quota(quota_id: str, value: str = "10") -> dict[str, Any]:
    return {
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{"quotaId": quota_id, "quotaValue": value}],
    }


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "45.837906927s"}


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (429, google(429, "RESOURCE_EXHAUSTED", details=[quota("RequestsPerMinute"), RETRY]), RateLimited),
        (
            429,
            google(429, "RESOURCE_EXHAUSTED", details=[quota("RequestsPerDayPerProject"), RETRY]),
            PoolUnusable,
        ),
        (429, google(429, "RESOURCE_EXHAUSTED", details=[quota("InputTokensPerMinute", "0")]), PoolUnusable),
        (429, [google(429, "RESOURCE_EXHAUSTED")], RateLimited),
        (503, google(503, "UNAVAILABLE"), Overloaded),
        (500, google(500, "INTERNAL"), TransientError),
        (504, google(504, "DEADLINE_EXCEEDED"), TransientError),
        (499, google(499, "CANCELLED"), TransientError),
        (400, google(400, "INVALID_ARGUMENT"), RequestRejected),
        (400, google(400, "INVALID_ARGUMENT", "API key not valid. Please pass"), PoolUnusable),
        (400, google(400, "INVALID_ARGUMENT", details=[{"reason": "API_KEY_INVALID"}]), PoolUnusable),
        (403, google(403, "PERMISSION_DENIED"), PoolUnusable),
        (404, google(404, "NOT_FOUND", "models/x is not found"), PoolUnusable),
        (None, google(503, "UNAVAILABLE"), Overloaded),
        (None, google(429, "RESOURCE_EXHAUSTED", details=[RETRY]), RateLimited),
    ],
)
def test_every_error_of_gemini(status: int | None, body: Any, expected: type[Exception]) -> None:
    assert type(raised(status, body)) is expected


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, {"object": "error", "message": "no", "type": "BadRequestError", "code": 400}, RequestRejected),
        (500, {"detail": "no"}, TransientError),
        (503, {"error": "server busy, please try again. maximum pending requests exceeded"}, Overloaded),
        (404, {"error": "model 'x' not found"}, PoolUnusable),
        (
            404,
            {"error": {"message": "Item with id 'rs_0' not found. Items are not", "param": "input"}},
            RequestRejected,
        ),
        (404, {"error": {"type": "not_found_error", "message": "File not found: file_0"}}, RequestRejected),
        (404, {"object": "error", "message": "no", "type": "NotFoundError", "code": 404}, PoolUnusable),
        (502, "<html>Bad gateway</html>", TransientError),
        (500, "", TransientError),
        (429, None, RateLimited),
        (None, {"error": {"code": 502, "message": "no"}}, TransientError),
        (None, {"error": {"code": "502", "message": "no"}}, TransientError),
        (None, {"error": {"code": 401, "message": "no"}}, PoolUnusable),
    ],
    ids=str,
)
def test_bodies_of_other_shapes(status: int | None, body: Any, expected: type[Exception]) -> None:
    assert type(raised(status, body)) is expected


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        (429, "Insufficient balance or no resource package. Please recharge.", PoolUnusable),
        (429, "\u4f59\u989d\u4e0d\u8db3\u6216\u65e0\u53ef\u7528\u8d44\u6e90\u5305", PoolUnusable),
        (429, "You exceeded your current quota, please check your plan", RateLimited),  # Gemini, per minute
        (400, "bad value: 'When a transfer fails, answer: Insufficient balance'", RequestRejected),
    ],
)
def test_a_balance_that_is_used_up_is_told_in_words(
    status: int, message: str, expected: type[Exception]
) -> None:
    error = raised(status, {"error": {"code": "1113", "message": message}})
    assert type(error) is expected
    assert ("check quota, billing" in str(error)) == (expected is PoolUnusable)


@pytest.mark.parametrize(
    ("status", "error", "meets_all"),
    [
        (400, {"message": "no"}, False),
        (403, {"message": "no"}, False),
        (422, {"message": "no", "param": "messages[3].content"}, False),
        (422, {"message": "no", "param": "input_tokens"}, False),
        (422, {"message": "no", "param": "top_k"}, True),
        (400, {"message": "temperature: Extra inputs are not permitted"}, True),
        (400, {"message": "max_tokens: 32768 and this prompt are too much"}, False),
        (400, {"message": "bad value in 'write `seed: 1` into x.yml'"}, False),
        (404, {"message": "no"}, True),
        (405, {"message": "no"}, True),
        (401, {"message": "no"}, True),
    ],
)
def test_an_error_meets_all_only_where_it_names_what_all_share(
    status: int,
    error: dict[str, Any],
    meets_all: bool,  # noqa: FBT001 - parametrised
) -> None:
    assert raised(status, {"error": error}, temperature=1.0, max_tokens=32768).meets_all is meets_all


def test_a_402_with_retry_after_is_a_rate_limit() -> None:
    error = raised(402, openai(), {"retry-after": "3"})
    assert isinstance(error, RateLimited)
    assert error.hint_s == 3


def test_a_request_too_large_for_the_limit_never_succeeds() -> None:
    error = raised(
        429,
        openai(
            "Request too large for gpt-4o (TPM): Limit 30000, Requested 40000", code="rate_limit_exceeded"
        ),
    )
    assert isinstance(error, RequestRejected)


def test_x_should_retry_outranks_the_status() -> None:
    assert isinstance(raised(400, openai(), {"x-should-retry": "true"}), TransientError)
    assert isinstance(raised(500, openai(), {"x-should-retry": "false"}), RequestRejected)
    assert isinstance(
        raised(429, openai(code="insufficient_quota"), {"x-should-retry": "true"}), PoolUnusable
    )


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, openai("The response was filtered", code="content_filter")),
        (400, openai("filtered", innererror={"code": "ResponsibleAIPolicyViolation"})),
        (403, {"error": {"code": 403, "message": "flagged", "metadata": {"reasons": ["violence"]}}}),
        (None, openai("The response was filtered", code="content_filter")),
        (400, anthropic("invalid_request_error", "Output blocked by content filtering policy")),
        (None, anthropic("invalid_request_error", "Output blocked by content filtering policy")),
        (403, {"code": "permission-denied", "error": "Content violates usage guidelines. Team: t"}),
        (400, openai("Content Exists Risk", code="invalid_request_error")),
        (400, openai("Output data may contain inappropriate content.", code="data_inspection_failed")),
        (400, openai("<400> InternalError: Input text data may contain inappropriate content.")),
        (400, openai("Invalid prompt: your prompt was flagged as potentially violating our usage policy.")),
    ],
)
def test_a_filtered_prompt_is_a_result(status: int | None, body: Any) -> None:
    assert meant(status, body) == "content_filter"


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (429, "Content Exists Risk"),
        (500, "Content Exists Risk"),
        (422, "x" * 400 + "Content Exists Risk"),  # a prompt that is quoted
    ],
)
def test_a_filters_words_elsewhere_are_no_result(status: int, message: str) -> None:
    raised(status, openai(message))


TOO_LONG = [
    openai("too long", code="context_length_exceeded"),
    openai(
        "This model's maximum context length is 128000 tokens. However, your messages resulted in "
        "131000 tokens. Please reduce the length of the messages.",
        code="context_length_exceeded",
    ),
    openai(
        "This model's maximum context length is 8192 tokens. However, you requested 9100 tokens "
        "(9000 in the messages, 100 in the completion). Please reduce"
    ),
    openai("This model's maximum context length is 8192 tokens. However, you requested 41000 tokens. Please"),
    openai(
        "This model's maximum context length is 8192 tokens. However, you requested 4096 output tokens and "
        "your prompt contains at least 9000 input tokens, for a total of at least 13096 tokens."
    ),
    openai(
        "This model's maximum context length is 8192 tokens. However, your request has 41000 input tokens."
    ),
    openai("the request exceeds", type="exceed_context_size_error"),
    openai(
        "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it", code=400
    ),
    openai("The input (9000 tokens) is longer than the model's context length (4096 tokens)."),
    openai("This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
    openai("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context"),
    anthropic("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"),
    anthropic(
        "invalid_request_error", "input length and `max_tokens` exceed context limit: 201000 + 9 > 200000"
    ),
    google(
        400,
        "INVALID_ARGUMENT",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ),
    google(
        400,
        "INVALID_ARGUMENT",
        "The input token count 1200000 exceeds the maximum number of tokens allowed 1048576.",
    ),
    {"error": {"code": "ValidationException", "message": "Input is too long for requested model."}},
]


@pytest.mark.parametrize("body", TOO_LONG, ids=lambda body: str(body["error"]["message"])[:40])
def test_a_prompt_longer_than_the_context_window_is_a_result(body: Any) -> None:
    assert meant(400, body, max_tokens=32768) == "context_exceeded"


@pytest.mark.parametrize(
    "body",
    [
        openai(
            "This model's maximum context length is 8192 tokens. However, you requested 33768 tokens "
            "(1000 in the messages, 32768 in the completion).",
            code="context_length_exceeded",
        ),
        openai(
            "This model's maximum context length is 32768 tokens. However, you requested 33768 tokens. Please"
        ),
        anthropic(
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 190000 + 32768 > 200000",
        ),
    ],
)
def test_a_prompt_that_fits_without_max_tokens_is_our_setting_and_no_result(body: Any) -> None:
    error = raised(400, body, max_tokens=32768)
    assert isinstance(error, RequestRejected)
    assert "set a lower max_tokens in [[models]]" in str(error)


@pytest.mark.parametrize(
    ("body", "fields", "line"),
    [
        (
            openai("Unsupported value", param="temperature"),
            {"temperature": 1.0},
            "rejects `temperature`: unset it",
        ),
        (
            anthropic("invalid_request_error", "temperature: Extra inputs are not permitted"),
            {"temperature": 1.0},
            "rejects `temperature`: unset it",
        ),
        (
            google(
                400, "INVALID_ARGUMENT", "Invalid value at 'generation_config.thinking_config.thinking_level'"
            ),
            {"reasoning_effort": "x"},
            "rejects `reasoning_effort`: unset it",
        ),
        (
            openai("max_tokens is too large: 32768", param="max_tokens"),
            {"max_tokens": 32768},
            "max_tokens = 32768",
        ),
        (openai("Unknown parameter: 'seed'.", param="seed"), {}, "run without --seed"),
        (
            anthropic("invalid_request_error", "max_tokens: 99999 > 8192, which is the maximum allowed"),
            {"max_tokens": 99999},
            "max_tokens = 99999",
        ),
    ],
)
def test_a_rejected_parameter_is_named_with_its_remedy(body: Any, fields: dict[str, Any], line: str) -> None:
    error = raised(400, body, **fields)
    assert isinstance(error, RequestRejected)
    assert line in str(error)


@pytest.mark.parametrize("off", [timedelta(), timedelta(days=1), timedelta(days=-1)])
def test_a_date_to_retry_after_is_counted_by_the_providers_clock_whatever_ours_says(off: timedelta) -> None:
    headers = {"Date": format_datetime(NOW, usegmt=True)}
    headers["Retry-After"] = format_datetime(NOW + timedelta(seconds=7), usegmt=True)
    failure = Failure(status=429, body={}, headers=CIMultiDict(headers))
    error = classify(failure, settings(), now=NOW + off)
    assert isinstance(error, RateLimited)
    assert error.hint_s == 7


@pytest.mark.parametrize(
    ("body", "headers", "hint_s"),
    [
        (openai(), {"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        (openai("Please try again in 3.89s."), {"retry-after": "9"}, 9),
        (openai(), {"retry-after": "Fri, 20 Nov 2026 12:00:30 GMT"}, 30),
        (openai(), {"retry-after": "Fri, 20 Nov 2026 11:00:00 GMT"}, 0),
        (openai("Rate limit reached. Please try again in 3.89s. Visit"), {}, 3.89),
        (openai("Please try again in 174ms."), {}, 0.174),
        (openai("Please try again in 1m30.5s."), {}, 90.5),
        (openai("Please retry after 26 seconds."), {}, 26),
        (openai("Please try again in 2 minutes."), {}, 120),
        (google(429, "RESOURCE_EXHAUSTED", details=[RETRY]), {}, 45.837906927),
        (openai("Please try again in 1 day."), {}, 86400),
        (openai("try again in 5 min"), {}, 300),
        (openai("Try again in about 1 hour and 5 mins."), {}, 3900),
        (openai("try again in 1d2h, please"), {}, 93600),
        (openai("retry 3 times, then try again in 2 hrs"), {}, 7200),
        (openai("try again in 3 fortnights"), {}, None),
        (openai("try again in 5 to 10 minutes"), {}, None),
        (openai("try again after 2026-11-21T00:00:00Z"), {}, None),
        (openai("try again at 12:30"), {}, None),
        (openai("try again in 1,000 seconds"), {}, None),
        (openai("retry after 7."), {}, 7),
        (openai("Please try again later."), {}, None),
        (openai(), {"retry-after": "soon"}, None),
        (openai(), {"x-ratelimit-reset": "1795176030000"}, 30),  # milliseconds: OpenRouter
        (openai(), {"x-ratelimit-reset": "1795176030"}, 30),
        (openai(), {"x-ratelimit-reset": "60"}, None),  # its unit is unknown
        (openai(), {"x-ratelimit-reset": "1795176030", "retry-after": "9"}, 9),
        (openai("Please wait 5631 seconds before retrying."), {}, 5631),
        (openai("Weekly usage limit reached. Resets in 6hr 29min."), {}, 23340),
        (openai(), {"retry-after": "-5"}, None),
        (openai(), {"retry-after": "nan"}, None),
        (openai("Please retry after 5 s"), {"retry-after": "inf"}, 5),
    ],
)
def test_hints_are_read_in_the_order_of_the_rule(
    body: Any, headers: dict[str, str], hint_s: float | None
) -> None:
    error = raised(429, body, headers)
    assert isinstance(error, RateLimited)
    assert error.hint_s == pytest.approx(hint_s) if hint_s is not None else error.hint_s is None


def test_without_another_hint_the_reset_of_what_is_used_up_counts() -> None:
    limits = RateLimits(
        requests=RateWindow(limit=60, remaining=9, reset_s=50),
        tokens=RateWindow(limit=9, remaining=0, reset_s=7),
    )
    error = classify(Failure(body=openai(), status=429, limits=limits), settings(), now=NOW)
    assert isinstance(error, RateLimited)
    assert error.hint_s == 7


def test_a_message_is_one_line_without_control_characters_or_keys() -> None:
    secret = "my-own-secret"
    body = openai(f"a\nb\x1b[31m\x00c {secret} Bearer abcdefgh1 sk-proj-aaaaaaaaaaaa " + "x" * 9000)
    register_secret(secret)
    error = classify(Failure(body=body, status=500), settings())
    line = str(error)
    assert len(line) < 2100
    assert line.isprintable()
    assert secret not in line
    assert "abcdefgh" not in line
    assert "aaaaaaaa" not in line


def test_a_body_that_is_no_json_is_text() -> None:
    assert parse_body(b"<html>\xff") == "<html>\ufffd"
    assert parse_body(b"[" * 99_999) == "[" * 99_999
    assert parse_body(b'{"a": "\\ud800"}') == {"a": "\ud800"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["error", "message", "code", "type", "status", "details", "violations", "metadata", "param"]
            )
            | st.text(max_size=5),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(JSON, st.sampled_from([None, 200, 302, 400, 403, 404, 413, 429, 500, 503, 999]))
@hypothesis_settings(deadline=None)
def test_no_body_breaks_the_classifier(body: Any, status: int | None) -> None:
    error = meant(status, body)
    assert isinstance(error, ProviderError) or error in {"content_filter", "context_exceeded"}


def test_a_body_that_a_format_cannot_put_into_usual_words_is_read_as_it_came() -> None:
    reception = Reception(settings(), Watch(), ChatReader(), normalize=lambda said: said.body["wrong"])
    with pytest.raises(RateLimited, match="a proxy's page"):
        reception.refused(Failure(body="a proxy's page", status=429))
