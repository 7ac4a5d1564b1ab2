"""A sample whose tests are not those that are expected contradicts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pytest

from astra_async.errors import ExpectationError
from obedient_sandbox import RIGHT, Grader

if TYPE_CHECKING:
    from pathlib import Path

MORE = RIGHT + "report = lambda told: {**told, 'test_five': True}\n"
WHY = "1 tests ran that are not expected: test_five"


def test_the_first_contradiction_of_a_problem_is_an_event(tmp_path: Path) -> None:
    results = Grader(tmp_path).of(RIGHT, MORE, MORE)
    assert [result.passed for result in results] == [4, 4, 4]
    [event] = map(orjson.loads, (tmp_path / "events.jsonl").read_bytes().splitlines())
    assert (event["kind"], event["sample"], event["detail"]) == ("contradicted", 1, WHY)


def test_with_strict_tests_the_sample_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ExpectationError, match=f"{WHY}.*astra regrade"):
        Grader(tmp_path, strict=True).of(RIGHT, MORE)
    [line] = (tmp_path / "results.jsonl").read_bytes().splitlines()
    assert orjson.loads(line)["sample"] == 0


def test_a_line_says_that_no_complete_run_confirms_its_tests(tmp_path: Path) -> None:
    assert [result.provisional for result in Grader(tmp_path / "with").of(RIGHT)] == [False]
    assert [result.provisional for result in Grader(tmp_path / "without", reference="").of(RIGHT)] == [True]


def test_with_strict_tests_samples_beside_the_first_one_are_missing_too(tmp_path: Path) -> None:
    with pytest.raises(ExpectationError, match=WHY):
        Grader(tmp_path, strict=True, contradicted={"p": WHY}).of(RIGHT)
    assert not (tmp_path / "results.jsonl").read_bytes()
