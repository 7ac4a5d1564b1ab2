"""Errors that providers sent: each has its class, and each rule of the table has its evidence."""

from __future__ import annotations

import tomllib
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from multidict import CIMultiDict
from provider_calls import settings

from astra_async.asking.providers.bedrock import Bedrock
from astra_async.asking.providers.error_body import ErrorBody, parse_body
from astra_async.asking.providers.error_meaning import Failure, classify
from astra_async.asking.providers.error_rules import RULES, first_rule
from astra_async.errors import ProviderError, RateLimited

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
