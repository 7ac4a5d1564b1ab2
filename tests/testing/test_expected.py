from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from astra_async.errors import ExpectationError
from astra_async.problems.prepare import prepare
from astra_async.testing.expected import Expectations, Expected
from astra_async.types import Execution, ExpectedTest, Job, Limits, Solution
from fakes import CountingSandbox, MemorySource, a_problem, a_project

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [f"test {n}" for n in range(4)]


SILENT = Execution(exit_code=1, duration_s=1.0)


@dataclass
class SilentSandbox(CountingSandbox):
    """Runs that end as told and report nothing."""

    outcome: Execution = SILENT

    async def run(self, job: Job) -> Execution:
        self.runs += 1
        return self.outcome


def learn(
    path: Path, sandbox: CountingSandbox, *, answer: str = "1", reference: str = "", **fields: Any
) -> Expected:
    async def ask() -> Expected:
        source = MemorySource(
            {"p1": a_project(answer)}, {"ref": Solution(files={"src/answer.txt": reference})}
        )
        problem = a_problem(reference="ref" if reference else "", **fields)
        prepared = await prepare(problem, source, ("xml",))
        expectations = Expectations(path / "expected.json", path / "cache", sandbox, Limits())
        await asyncio.gather(*(expectations.of(prepared, "any") for _ in range(3)))
        return await expectations.of(prepared, "any")

    return asyncio.run(ask())


def names(expected: Expected) -> list[str]:
    return [test.name for test in expected.tests]


def test_names_come_from_one_run_of_the_untouched_project(tmp_path: Path) -> None:
    sandbox = CountingSandbox()
    found = learn(tmp_path, sandbox)
    assert (names(found), found.source, found.untouched) == (NAMES, "project", 1)
    assert sandbox.runs == 1
    stored = orjson.loads((tmp_path / "expected.json").read_bytes())
    assert stored["p1"]["untouched_tests"] == list(found.untouched_tests) == NAMES[:1]


def test_what_is_known_already_is_not_written_again(tmp_path: Path) -> None:
    learn(tmp_path, CountingSandbox())
    written = (tmp_path / "expected.json").stat()
    learn(tmp_path, CountingSandbox())
    assert (tmp_path / "expected.json").stat().st_ino == written.st_ino


def test_a_reference_is_asked_before_the_untouched_project(tmp_path: Path) -> None:
    sandbox = CountingSandbox()
    found = learn(tmp_path, sandbox, answer="crash", reference="4")
    assert (names(found), found.source) == (NAMES, "reference")
    assert sandbox.runs == 1


def test_a_reference_that_crashes_gives_way_to_the_untouched_project(tmp_path: Path) -> None:
    found = learn(tmp_path, CountingSandbox(), answer="0", reference="crash")
    assert (names(found), found.source) == (NAMES, "project")


def test_the_csvs_names_count_and_are_checked_by_a_run(tmp_path: Path) -> None:
    tests = tuple(ExpectedTest(name=name, weight=0.5) for name in NAMES[:2])
    found = learn(tmp_path, CountingSandbox(), tests=tests)
    assert (found.tests, found.source, found.checked) == (tests, "csv", True)


def test_names_that_match_nothing_are_an_error_with_both_lists(tmp_path: Path) -> None:
    with pytest.raises(ExpectationError, match=r"(?s)adds two.*test 0|test 0.*adds two"):
        learn(tmp_path, CountingSandbox(), tests=(ExpectedTest(name="adds two"),))


def test_a_run_that_reports_nothing_is_an_error_and_no_silent_zero(tmp_path: Path) -> None:
    with pytest.raises(ExpectationError, match=r"report nothing \(exit code 0; .*check test_command"):
        learn(tmp_path, CountingSandbox(), answer="crash")
    with pytest.raises(ExpectationError, match="report nothing"):
        learn(tmp_path, CountingSandbox(), answer="crash", tests=(ExpectedTest(name="test 0"),))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"timed_out": True}, "did not end within 1 s"),
        ({"out_of_memory": True}, "hit the container's memory limit"),
        ({"failed_limit": "disk"}, "hit the container's disk limit"),
    ],
)
def test_a_run_that_was_cut_short_teaches_nothing(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    sandbox = SilentSandbox(outcome=replace(SILENT, **changes))
    with pytest.raises(ExpectationError, match=said):
        learn(tmp_path, sandbox, tests=(ExpectedTest(name="test 0"),))


def test_names_of_a_project_that_does_not_build_untouched_are_taken_unchecked(tmp_path: Path) -> None:
    output = "src/test/AppTest.java:9: error: cannot find symbol\n"
    sandbox = SilentSandbox(outcome=Execution(exit_code=1, duration_s=1.0, output=output))
    tests = (ExpectedTest(name="test 0"),)
    found = learn(tmp_path, sandbox, tests=tests)
    assert (found.tests, found.checked, found.untouched) == (tests, False, 0)
    with pytest.raises(ExpectationError, match="report nothing"):
        learn(tmp_path / "without", sandbox)


def test_what_was_learned_is_kept_for_the_run_and_for_other_runs(tmp_path: Path) -> None:
    first = learn(tmp_path, CountingSandbox())
    again = CountingSandbox()
    assert learn(tmp_path, again) == first
    (tmp_path / "expected.json").write_text("{torn")
    assert learn(tmp_path, again) == first
    assert again.runs == 0
    kept = orjson.loads((tmp_path / "expected.json").read_bytes())
    assert [test["name"] for test in kept["p1"]["tests"]] == NAMES


def test_a_changed_project_or_command_is_learned_anew(tmp_path: Path) -> None:
    sandbox = CountingSandbox()
    learn(tmp_path, sandbox)
    learn(tmp_path, sandbox, answer="2")
    learn(tmp_path, sandbox, test_command="other")
    assert sandbox.runs == 3


def test_a_failure_is_remembered_and_not_tried_for_every_sample(tmp_path: Path) -> None:
    sandbox = CountingSandbox()
    with pytest.raises(ExpectationError):
        learn(tmp_path, sandbox, answer="crash")
    assert sandbox.runs == 1
