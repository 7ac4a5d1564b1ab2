"""Rewards and test reports that a verifier writes."""

from __future__ import annotations

import pytest

from astra_async.harbor.reward import ctrf_tests, reward_in, rewards_of


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"reward.txt": b"1\n"}, {"reward": 1.0}),
        ({"reward.txt": b" 0.25 "}, {"reward": 0.25}),
        ({"reward.json": b'{"a": 1, "b": 0.5}'}, {"a": 1.0, "b": 0.5}),
        ({"reward.json": b'{"reward": 1}', "reward.txt": b"0"}, {"reward": 1.0}),
        ({}, "neither reward.json nor reward.txt was written"),
        ({"reward.txt": b" \n"}, "reward.txt is empty"),
        ({"reward.txt": b"one"}, "reward.txt is not a number"),
        ({"reward.txt": b"\xff"}, "reward.txt is not a number"),
        ({"reward.txt": b"nan"}, "reward.txt: reward is not a finite number"),
        ({"reward.txt": b"1" * 70_000}, "reward.txt is larger than 65,536 bytes"),
        ({"reward.json": b"[1]"}, "reward.json is not an object of numbers"),
        ({"reward.json": b"{}"}, "reward.json is not an object of numbers"),
        ({"reward.json": b'{"reward": true}'}, {"reward": 1.0}),
        ({"reward.json": b'{"reward": "1"}'}, "reward.json is not an object of numbers"),
        ({"reward.json": b'{"reward": {"a": 1}}'}, "reward.json is not an object of numbers"),
        ({"reward.json": b"{", "reward.txt": b"1"}, "reward.json is not JSON"),
    ],
)
def test_rewards_or_the_reason_why_there_are_none(
    files: dict[str, bytes], expected: dict[str, float] | str
) -> None:
    assert rewards_of(files) == expected


def test_the_score_is_named_reward_or_the_only_one() -> None:
    assert reward_in({"style": 0.0, "reward": 1.0}) == 1.0
    assert reward_in({"style": 0.5}) == 0.5
    assert reward_in({"style": 0.5, "speed": 1.0}) is None


def test_a_ctrf_report_is_read() -> None:
    report = b"""{"results": {"tool": {"name": "pytest"}, "tests": [
        {"name": "a", "status": "passed"}, {"name": "b", "status": "failed", "message": "1 != 2"},
        {"name": "c", "status": "pending"}, {"name": "d", "status": "other", "trace": "Boom"}, 7, {}
    ]}}"""
    found = ctrf_tests(report)
    assert found is not None
    assert [(each.name, each.outcome, each.message) for each in found] == [
        ("a", "passed", ""),
        ("b", "failed", "1 != 2"),
        ("c", "skipped", ""),
        ("d", "error", "Boom"),
    ]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b'{"results": []}', b'{"results": {"tests": 3}}', b"\xff"]
)
def test_other_files_are_no_ctrf_report(content: bytes) -> None:
    assert ctrf_tests(content) is None
