from __future__ import annotations

import json

import pytest

from astra_async.harbor.verified import Verified, answer_of, outcome, read_verified
from astra_async.types.records import Flaw

PLAIN = (0.0, 1.0)


@pytest.mark.parametrize(
    ("files", "score"),
    [
        ({"reward.txt": b"1\n"}, 1.0),
        ({"reward.txt": b"0.5", "reward.json": b'{"reward": 0.25, "speed": 9}'}, 0.25),
        ({"reward.json": b'{"share": 0.3333333333}'}, 0.333333),
        ({"reward.txt": b"0.99999999"}, 0.999999),
        ({"reward.txt": b"0.00000001"}, 0.0),
    ],
)
def test_the_reward_is_the_score_with_six_decimals(files: dict[str, bytes], score: float) -> None:
    """Only the full reward is rounded to 1."""
    found = outcome(files, PLAIN)
    assert isinstance(found, Verified)
    assert found.score == score


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "neither reward.json nor reward.txt"),
        ({"reward.txt": b""}, "reward.txt is empty"),
        ({"reward.txt": b"7"}, "not within 0 to 1: add --reward-range"),
        ({"reward.json": b'{"a": 1, "b": 0}'}, "several rewards and none is named `reward`: a, b"),
    ],
)
def test_what_is_no_reward_is_told_and_never_a_score(files: dict[str, bytes], why: str) -> None:
    found = outcome(files, PLAIN)
    assert isinstance(found, str)
    assert why in found


def test_a_range_maps_rewards_to_scores() -> None:
    found = outcome({"reward.txt": b"0"}, (-1.0, 1.0))
    assert isinstance(found, Verified)
    assert (found.score, found.rewards) == (0.5, {"reward": 0.0})


def test_tests_of_reports_are_read_by_name() -> None:
    tests = [{"name": "a", "status": "passed"}, {"name": "b", "status": "failed", "message": "no"}]
    files = {
        "reward.txt": b"0",
        "ctrf.json": json.dumps({"results": {"tests": tests}}).encode(),
        "other.json": b"[]",
        "junit.xml": b'<testsuite><testcase classname="x" name="c"/></testsuite>',
    }
    found = outcome(files, PLAIN)
    assert isinstance(found, Verified)
    assert [(test.name, test.outcome, test.message) for test in found.tests] == [
        ("a", "passed", ""),
        ("b", "failed", "no"),
        ("c", "passed", ""),
    ]
    assert found.has_report


def test_an_outcome_is_read_back_from_the_answer_that_is_recorded() -> None:
    found = outcome({"reward.json": b'{"reward": 0.5}'}, PLAIN, exit_code=3, seconds=1.5, output="ü")
    assert isinstance(found, Verified)
    assert read_verified(answer_of(found)) == found
    with pytest.raises(Flaw):
        read_verified('{"files": {}}')
