from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from astra_async.prepare import prepare
from astra_async.testing.expected import Expectations
from astra_async.testing.validation import REFERENCE, UNTOUCHED, Candidate, Validation, Validator
from astra_async.types import Execution, ExpectedTest, Job, Limits, Project, ProjectFile, Solution
from fakes import CountingSandbox, MemorySource, a_problem, a_project

if TYPE_CHECKING:
    from pathlib import Path

NAMES = tuple(ExpectedTest(name=f"test {n}") for n in range(4))


@dataclass
class FlakySandbox(CountingSandbox):
    """Every second run of a whole solution fails its last test."""

    async def run(self, job: Job) -> Execution:
        done = await super().run(job)
        if self.runs % 2:
            return done
        spoilt = done.reports["junit.xml"].replace(b'"test 3" classname="answer">', b'"test 3"><failure/>')
        return replace(done, reports={"junit.xml": spoilt})


def labelled(name: str, answer: str, passed: int) -> Candidate:
    solution = Solution(files={"src/answer.txt": answer})
    return Candidate(name=name, solution=solution, expected_passed=passed)


HALF = labelled("half", "2", 2)


def check(
    path: Path,
    sandbox: CountingSandbox,
    *,
    untouched: str | Project = "1",
    reference: str = "",
    repeat: int = 1,
    faulty: tuple[Candidate, ...] = (HALF,),
    **fields: Any,
) -> Validation:
    async def ask() -> Validation:
        source = MemorySource(
            {"p1": a_project(untouched) if isinstance(untouched, str) else untouched},
            {"ref": Solution(files={"src/answer.txt": reference})},
        )
        problem = a_problem(reference="ref" if reference else "", **fields)
        prepared = await prepare(problem, source, ("xml",))
        learned = Expectations(path / "expected.json", path / "cache", sandbox, Limits())
        validator = Validator(sandbox=sandbox, expectations=learned, limits=Limits(), repeat=repeat)
        return await validator.check(prepared, "any", faulty)

    return asyncio.run(ask())


def test_a_problem_whose_reference_passes_everything_is_fit(tmp_path: Path) -> None:
    found = check(tmp_path, CountingSandbox(), reference="4")
    assert (found.verdict, found.reasons, found.total, found.learned_from) == ("fit", (), 4, "reference")
    assert [(trial.name, trial.passed) for trial in found.tried] == [
        (UNTOUCHED, (1,)),
        (REFERENCE, (4,)),
        ("half", (2,)),
    ]
    assert [trial.failures for trial in found.tried] == [("tests_failed",), (None,), ("tests_failed",)]


def test_a_problem_without_a_reference_is_unverified(tmp_path: Path) -> None:
    assert check(tmp_path, CountingSandbox()).verdict == "unverified"


def test_a_reference_below_full_marks_is_unfit(tmp_path: Path) -> None:
    found = check(tmp_path, CountingSandbox(), reference="3")
    assert (found.verdict, found.reasons) == ("unfit", ("the reference passes 3 of 4",))


def test_flaky_tests_are_named(tmp_path: Path) -> None:
    found = check(tmp_path, FlakySandbox(), reference="4", repeat=4)
    assert found.verdict == "unfit"
    assert "reference: flaky tests: test 3" in found.reasons
    assert "the reference passes 3 to 4 of 4" in found.reasons


def test_tests_that_ran_and_are_not_expected_are_named(tmp_path: Path) -> None:
    for folder, reference in (("with", "4"), ("without", "")):
        found = check(tmp_path / folder, CountingSandbox(), reference=reference, tests=NAMES[:2])
        assert found.reasons == ("4 tests ran and 2 are expected; not expected: test 2 | test 3",)


def test_expected_tests_that_never_ran_are_named(tmp_path: Path) -> None:
    found = check(tmp_path, CountingSandbox(), reference="4", tests=(*NAMES, ExpectedTest(name="test 9")))
    assert "1 of 5 expected tests never ran: test 9" in found.reasons
    assert found.verdict == "unfit"


def test_an_untouched_project_that_passes_everything_measures_nothing(tmp_path: Path) -> None:
    found = check(tmp_path, CountingSandbox(), untouched="4", reference="4")
    assert found.reasons == ("the untouched project already passes all 4 tests",)


def test_a_known_answer_with_another_score_is_a_reason(tmp_path: Path) -> None:
    found = check(tmp_path, CountingSandbox(), reference="4", faulty=(labelled("mine", "3", 1),))
    assert found.reasons == ("mine: passes 3 of 4, expected 1",)


def test_a_problem_whose_tests_report_nothing_is_unfit_with_the_reason(tmp_path: Path) -> None:
    found = check(tmp_path, CountingSandbox(), untouched="crash")
    assert found.verdict == "unfit"
    assert "report no cases" in found.reasons[0]


def test_a_problem_whose_tests_an_answer_could_replace_is_unfit_and_a_run_warns_of_it(tmp_path: Path) -> None:
    files = {"src/answer.txt": b"1", "shop_spec.lua": b"it('test 0')\n"}
    open_project = Project(
        files=tuple(ProjectFile(path=path, content=text) for path, text in files.items()), sha256="0"
    )
    found = check(tmp_path, CountingSandbox(), untouched=open_project, reference="4")
    assert found.verdict == "unfit"
    assert len(found.reasons) == 1
    assert "could replace the tests; list" in found.reasons[0]
    source = MemorySource({"p1": open_project})
    assert asyncio.run(prepare(a_problem(), source, ("xml",))).warnings == found.reasons
    told = asyncio.run(prepare(a_problem(readonly_paths=("shop_spec.lua",)), source, ("xml",)))
    assert told.warnings == ()
