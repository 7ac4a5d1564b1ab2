"""Errors that providers sent: each has its class, and each rule of the table has its evidence."""

from __future__ import annotations

import tomllib
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from multidict import CIMultiDict
from provider_calls import Watch, settings

from astra_async.asking.providers.answer import Reader, StreamFault
from astra_async.asking.providers.bedrock import Bedrock
from astra_async.asking.providers.chat_reader import ChatReader
from astra_async.asking.providers.error_body import ErrorBody, parse_body
from astra_async.asking.providers.error_meaning import Failure, classify
from astra_async.asking.providers.error_rules import RULES, first_rule
from astra_async.asking.providers.openai_responses import ResponsesReader
from astra_async.asking.providers.reception import Reception
from astra_async.errors import PoolUnusable, ProviderError, RateLimited, TruncatedStream
from astra_async.redaction import register_secret

NOW = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)
RECORDED: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "recorded_errors.toml").read_text(encoding="utf-8")
)["error"]
MODEL = "openai-compatible/toy"


def failure_of(error: dict[str, Any]) -> Failure:
    body = parse_body(error["body"].encode())
    failure = Failure(body=body, status=error.get("status"), headers=CIMultiDict(error.get("headers", {})))
    return Bedrock.failure(object.__new__(Bedrock), failure) if error["provider"] == "Bedrock" else failure


@pytest.mark.parametrize("error", RECORDED, ids=lambda each: f"{each['provider']} {each['source'][-24:]}")
def test_a_recorded_error_has_its_class(error: dict[str, Any]) -> None:
    chosen = settings(MODEL, max_tokens=error.get("max_tokens", 1024))
    meant = classify(failure_of(error), chosen, now=NOW)
    if not isinstance(meant, ProviderError):
        assert meant == error["means"]
        return
    assert type(meant).__name__ == error["means"], meant
    assert error.get("says", "") in str(meant)
    assert "<" not in str(meant).removeprefix(MODEL)[:60], "no HTML"
    assert "None:" not in str(meant)
    if isinstance(meant, RateLimited):
        assert meant.hint_s == pytest.approx(error["hint_s"]) if "hint_s" in error else meant.hint_s is None


def test_the_recorded_errors_are_of_many_providers() -> None:
    providers = Counter(each["provider"] for each in RECORDED)
    assert len(RECORDED) >= 120
    assert len(providers) >= 25


def test_every_rule_has_evidence() -> None:
    used = set()
    for error in RECORDED:
        failure = failure_of(error)
        body = ErrorBody.read(failure.body)
        used.add(RULES.index(first_rule(body, failure.status or body.status)[0]))
    unused = [rule for number, rule in enumerate(RULES) if number not in used and (rule.text or rule.code)]
    assert not unused


FLAGGED = {"code": "cyber_policy", "message": "This content was flagged for possible cybersecurity risk."}


@pytest.mark.parametrize(
    ("reader", "event"),
    [
        (ResponsesReader, {"type": "response.failed", "response": {"status": "failed", "error": FLAGGED}}),
        (ResponsesReader, {"type": "error", "code": "bio_policy", "message": "flagged", "param": None}),
        (ChatReader, {"error": {**FLAGGED, "type": "invalid_request", "param": None}}),
    ],
)
def test_a_safety_policy_in_mid_stream_is_a_result(reader: type[Reader], event: dict[str, Any]) -> None:
    reception = Reception(settings(MODEL), Watch(), reader())
    with pytest.raises(StreamFault) as caught:
        reception.take([orjson.dumps(event)])
    assert reception.broken(caught.value).finish_reason == "content_filter"


def test_an_empty_account_is_found_in_a_response_of_http_200() -> None:
    reception = Reception(settings(MODEL), Watch(), ChatReader())
    said = {"status_code": 1008, "status_msg": "insufficient balance (1008)"}
    with pytest.raises(StreamFault) as caught:
        reception.take([orjson.dumps({"choices": None, "base_resp": said})])
    with pytest.raises(PoolUnusable, match="check quota, billing"):
        reception.broken(caught.value)


def test_a_response_without_choices_says_so() -> None:
    reception = Reception(settings(MODEL), Watch(), ChatReader())
    reception.take([b'{"id":"c","object":"chat.completion","choices":[],"usage":{"prompt_tokens":3}}'])
    with pytest.raises(TruncatedStream, match=r"without any choice \(`choices: \[\]`\)"):
        reception.ended("its end mark")


def test_an_unknown_body_is_shown_whole_without_keys() -> None:
    register_secret("my-own-secret")
    body = {"fault": {"faultstring": "new wording my-own-secret", "detail": {"a": "b" * 500}}}
    error = classify(Failure(body=body, status=400), settings(MODEL))
    assert "unrecognized: {" in str(error)
    assert "b" * 500 in str(error)
    assert "my-own-secret" not in str(error)
    assert len(str(classify(Failure(body={"fault": "c" * 9000}, status=500), settings(MODEL)))) < 2100


@pytest.mark.parametrize("status", [400, 413, 429, 500])
def test_a_quoted_prompt_decides_nothing(status: int) -> None:
    words = "Insufficient balance. prepayment credits are depleted. API key not valid. prompt is too long"
    body = {"error": {"message": "x" * 400 + words}}
    error = classify(Failure(body=body, status=status), settings(MODEL))
    assert isinstance(error, ProviderError)
    assert not isinstance(error, PoolUnusable)


@pytest.mark.parametrize(("status", "may_be"), [(504, True), (524, True), (500, False), (502, False)])
def test_a_gateways_time_out_may_be_billed(status: int, *, may_be: bool) -> None:
    error = classify(Failure(status=status, body="<html><title>x</title></html>"), settings(MODEL))
    assert isinstance(error, ProviderError)
    assert error.may_be_billed == may_be
