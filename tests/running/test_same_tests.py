"""All samples of a problem are graded against the same tests, whatever is learned by a later call."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from astra_async.config import RunConfig
from astra_async.errors import ConflictError
from astra_async.fingerprint import Parts
from astra_async.prepare import prepare_all
from astra_async.running.description import grading_parts
from astra_async.running.directory import RunDirectory
from astra_async.types import Solution
from fakes import CountingSandbox, MemorySource, ScriptedPool, a_problem, a_project, completion, xml_answer
from in_memory import run_in_memory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.running.runner import Runner
    from astra_async.types import Completion, Execution, Job, ModelRequest


class Suite(CountingSandbox):
    """Reports these tests, all passed."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names = names

    async def run(self, job: Job) -> Execution:
        cases = "".join(f'<testcase name="{name}"/>' for name in self.names)
        report = f"<testsuite>{cases}</testsuite>".encode()
        return replace(await super().run(job), reports={"junit.xml": report})


async def after_a_while(_: ModelRequest) -> Completion:
    await asyncio.sleep(0.02)
    return completion(xml_answer(1))


def run(path: Path, suite: Suite, samples: int) -> tuple[Runner, ScriptedPool]:
    """A call on a machine that knows nothing of what an earlier one learned."""
    shutil.rmtree(path / "cache", ignore_errors=True)
    (path / "expected.json").unlink(missing_ok=True)
    pool = ScriptedPool(after_a_while)
    pools = {"m": pool}
    runner = run_in_memory(path, pools, suite, problem_ids=["p1", "p2"], samples=samples, max_in_flight=1)
    return asyncio.run(runner), pool


def lines(path: Path, name: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (path / name).read_bytes().splitlines()]


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (Suite("a", "b", "c"), "expected tests: 3 now, 2 in the samples already graded ('c' is in"),
        (Suite("a"), "expected tests: 1 now, 2 in the samples already graded ('b' is in"),
        (Suite("a", "renamed"), "expected tests: 2 now, 2 in the samples already graded ('b' is in"),
    ],
)
def test_nothing_is_recorded_against_other_tests_and_nothing_more_is_paid_for(
    tmp_path: Path, now: Suite, told: str
) -> None:
    path = tmp_path / "run"
    assert run(path, Suite("a", "b"), samples=2)[0].tally.final == 4
    graded = (path / "results.jsonl").read_bytes()
    for _ in range(2):
        runner, pool = run(path, now, samples=8)
        assert runner.tally.missing == {"project_error": 12}
        assert (path / "results.jsonl").read_bytes() == graded
        assert len(pool.asked) < 12, "nothing is asked once it is known that it cannot be graded"
        reasons = [reason.text for reason in runner.tally.reasons]
        assert all(told in text and f"astra regrade {path}" in text for text in reasons), reasons
    runner, _ = run(path, Suite("b", "a"), samples=8)
    assert runner.tally.final == 16
    assert {line["total"] for line in lines(path, "results.jsonl")} == {2}


def parts_of(reference: Mapping[str, str] | None) -> Parts:
    source = MemorySource({"p1": a_project()}, {"ref": Solution(files=dict(reference or {}))})
    problem = a_problem(reference="ref" if reference is not None else "")
    prepared, _ = asyncio.run(prepare_all([problem], source, ("xml",)))
    config = RunConfig(out=Path("run"), models=(), problems="any")
    return Parts(grading=grading_parts(config, prepared, {"p1": "any"}, {"any": "sha256:0"}))


@pytest.mark.parametrize("repaired", [{"a": "2"}, {"b": "1"}, {}, None])
def test_a_repaired_reference_is_refused_with_the_remedy_once_something_is_graded(
    tmp_path: Path, repaired: Mapping[str, str] | None
) -> None:
    run(tmp_path, Suite("a"), samples=1)
    with closing(RunDirectory.open(tmp_path)) as directory:
        directory.extend(parts_of({"a": "1"}), {}, samples=1)
        directory.extend(parts_of({"a": "1"}), {}, samples=1)
        with pytest.raises(ConflictError, match=r"reference_sha256: .* -> .*astra regrade "):
            directory.extend(parts_of(repaired), {}, samples=1)


def test_a_directory_that_does_not_know_the_reference_goes_on_and_knows_it_then(tmp_path: Path) -> None:
    run(tmp_path, Suite("a"), samples=1)
    part = dict(parts_of({"a": "1"}).grading["p1"])
    del part["reference_sha256"]
    with closing(RunDirectory.open(tmp_path)) as directory:
        directory.extend(Parts(grading={"p1": part}), {}, samples=1)
        directory.extend(parts_of({"a": "2"}), {}, samples=1)
        with pytest.raises(ConflictError, match="reference_sha256"):
            directory.extend(parts_of({"a": "3"}), {}, samples=1)
