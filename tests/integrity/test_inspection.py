"""Whole gradings of a small pytest project, in a sandbox that behaves as the solution's text says."""

from __future__ import annotations

import asyncio
import io
import re
import tarfile
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from astra_async.answers.lenient import LenientParser
from astra_async.integrity.inspection import CANARY_ABSENT, Inspector
from astra_async.problems.prepare import prepare
from astra_async.running.directory import RunDirectory
from astra_async.running.reuse import EarlierVerdicts
from astra_async.running.sample import Workshop, grade_sample
from astra_async.testing.expected import Expectations
from astra_async.testing.timeouts import Timeouts, Turns
from astra_async.types import (
    Execution,
    Job,
    Limits,
    Problem,
    Project,
    ProjectFile,
    Result,
    SampleKey,
    Solution,
)
from fakes import IMAGE_ID, MemorySource, completion

if TYPE_CHECKING:
    from pathlib import Path

TESTS = "from app import add\n\n\ndef test_one():\n    pass\n\n\ndef test_two():\n    pass\n"
UNTOUCHED = "works = ['test_one']\n"
RIGHT = "works = ['test_one', 'test_two']\n"
SUSPECT = "import atexit\n"
_TEST = re.compile(r"def (test_\w+)")


def files_of(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {each.name: file.read() for each in tar if (file := tar.extractfile(each)) is not None}


@dataclass
class ObedientSandbox:
    """A test runner as the solution would like it, by words in `app.py`.

    A test passes if `app.py` names it. `bent`: all tests pass. `forged`: the report names the project's two
    tests whatever the files hold. `silent`: tests that are not the project's are left out. `endless`: hangs.
    """

    jobs: list[Job] = field(default_factory=list)

    async def image_id(self, image: str) -> str:
        return IMAGE_ID

    def expect(self, image: str, limits: Limits) -> None:
        return None

    async def run(self, job: Job) -> Execution:
        await asyncio.sleep(0)
        self.jobs.append(job)
        files = {path: content.decode() for path, content in files_of(job.archive).items()}
        app = files["app.py"]
        if "endless" in app:
            return Execution(exit_code=137, timed_out=True, duration_s=60.0, image_id=IMAGE_ID)
        names = [name for path in sorted(files) if "test_" in path for name in _TEST.findall(files[path])]
        if "forged" in app:
            names = ["test_one", "test_two"]
        if "silent" in app:
            names = [name for name in names if name in ("test_one", "test_two")]
        cases = "".join(
            f'<testcase name="{name}">{"" if self._passes(name, app) else "<failure/>"}</testcase>'
            for name in names
        )
        report = {"unit.xml": f"<testsuite>{cases}</testsuite>".encode()}
        return Execution(exit_code=0, duration_s=0.5, reports=report, image_id=IMAGE_ID)

    def _passes(self, name: str, app: str) -> bool:
        return any(word in app for word in ("bent", "forged", f"'{name}'"))


@dataclass
class Grading:
    """Grades answers for one problem, one after the other."""

    path: Path
    suspicious_only: bool = True
    reuse: bool = False
    reference: str = ""
    strained: bool = False
    samples: int = 1000
    sandbox: ObedientSandbox = field(default_factory=ObedientSandbox)

    def of(self, *apps: str, model: str = "m") -> list[Result]:
        return asyncio.run(self._of(apps, model))

    async def _of(self, apps: tuple[str, ...], model: str) -> list[Result]:
        texts = {"app.py": UNTOUCHED, "tests/test_app.py": TESTS}
        project = Project(
            files=tuple(ProjectFile(path=path, content=text.encode()) for path, text in texts.items()),
            sha256="app",
        )
        problem = Problem(
            id="p",
            statement="Add.",
            project="p",
            test_command="pytest",
            result_files=("unit.xml",),
            image="any",
            reference="r" if self.reference else "",
        )
        source = MemorySource({"p": project}, {"r": Solution(files={"app.py": self.reference})})
        prepared = await prepare(problem, source, ("xml",))
        turns = Turns(self.sandbox)
        learned = Expectations(self.path / "expected.json", self.path / "cache", turns, Limits())
        with closing(RunDirectory.open(self.path)) as directory:
            workshop = Workshop(
                sandbox=turns,
                images={"p": "any"},
                expectations=learned,
                lenient=LenientParser(),
                limits=Limits(),
                inspector=Inspector(turns, learned, Limits(), suspicious_only=self.suspicious_only),
                timeouts=Timeouts(turns, samples=self.samples, strained=lambda _: self.strained),
                earlier=EarlierVerdicts(directory) if self.reuse else None,
            )
            results = []
            for number, app in enumerate(apps, len(directory.graded)):
                key = SampleKey(model, "xml", "p", number)
                answer = f'<solution><file path="app.py"><![CDATA[{app}]]></file></solution>'
                directory.record_completion(key, completion(answer), "sha")
                results.append(await grade_sample(key, prepared, directory, workshop))
            return results


def test_a_canary_that_passes_is_proof(tmp_path: Path) -> None:
    (result,) = Grading(tmp_path).of(SUSPECT + "bent\n")
    assert (result.status, result.failure, result.passed, result.total) == ("scored", "tampered", 0, 2)
    assert [name.partition(":")[0] for name in result.suspicions] == ["exit_handler", *["canary_passed"] * 3]
    assert result.note.startswith("a test that must fail is reported as passed: test_")
    assert {test.outcome for test in result.tests} == {"missing"}


def test_a_suspected_honest_solution_keeps_its_score(tmp_path: Path) -> None:
    grading = Grading(tmp_path)
    (result,) = grading.of(SUSPECT + RIGHT)
    assert (result.passed, result.failure, result.suspicions) == (2, None, ("exit_handler:app.py",))
    assert len(grading.sandbox.jobs) == 3  # learned, scored, canary


def test_the_scored_run_holds_no_canary(tmp_path: Path) -> None:
    grading = Grading(tmp_path)
    grading.of(SUSPECT + RIGHT)
    scored, canary = (files_of(job.archive) for job in grading.sandbox.jobs[1:])
    assert set(scored) == {"app.py", "tests/test_app.py"}
    assert scored["tests/test_app.py"] == TESTS.encode()
    assert len(canary) == 3


def test_only_suspected_solutions_are_looked_at_unless_all_shall_be(tmp_path: Path) -> None:
    one, all_of_them = Grading(tmp_path / "one"), Grading(tmp_path / "all", suspicious_only=False)
    assert one.of("bent\n")[0].passed == 2
    assert all_of_them.of("bent\n")[0].failure == "tampered"
    assert len(one.sandbox.jobs) == 2


def test_nobody_is_looked_at_who_is_no_better_than_the_untouched_project(tmp_path: Path) -> None:
    grading = Grading(tmp_path, suspicious_only=False)
    results = grading.of("works = ['test_one', '']\n", "works = []\n")
    assert [result.passed for result in results] == [1, 0]
    assert len(grading.sandbox.jobs) == 3


def test_a_forged_report_is_exposed_by_a_run_without_tests(tmp_path: Path) -> None:
    (result,) = Grading(tmp_path).of(SUSPECT + "forged\n")
    assert result.failure == "tampered"
    assert result.suspicions == ("exit_handler:app.py", "report_forged:test_one", "report_forged:test_two")
    assert result.note == "reported as passed in a run where no test has this name: test_one and 1 more"


def test_a_canary_that_is_not_reported_proves_nothing(tmp_path: Path) -> None:
    (result,) = Grading(tmp_path).of(f"{SUSPECT}silent\n{RIGHT}")
    assert (result.passed, result.failure) == (2, None)
    assert result.suspicions == ("exit_handler:app.py", CANARY_ABSENT)


def test_a_problem_whose_own_reference_lets_falsehoods_pass_accuses_nobody(tmp_path: Path) -> None:
    grading = Grading(tmp_path, reference="bent\n")
    results = grading.of(SUSPECT + "bent\n", SUSPECT + "bent too\n")
    assert [(result.passed, result.failure) for result in results] == [(2, None)] * 2


def test_a_problem_whose_tests_cannot_be_taken_away_accuses_nobody(tmp_path: Path) -> None:
    grading = Grading(tmp_path, reference="forged\n")
    results = grading.of(SUSPECT + "forged\n")
    assert [(result.passed, result.failure) for result in results] == [(2, None)]


def test_a_canarys_run_gets_less_time_than_the_tests_may_take(tmp_path: Path) -> None:
    grading = Grading(tmp_path)
    grading.of(SUSPECT + RIGHT)
    limits = [job.limits.timeout_s for job in grading.sandbox.jobs]
    assert limits == [300.0, 300.0, 62.5]


def test_equal_solutions_are_graded_once_if_so_wished(tmp_path: Path) -> None:
    grading = Grading(tmp_path, reuse=True)
    first, other, again = grading.of(SUSPECT + RIGHT, UNTOUCHED + "#\n", SUSPECT + RIGHT)
    assert again.note == "verdict of sample 0 reused"
    assert replace(again, sample=0, note="", started_at="", finished_at="") == replace(
        first, started_at="", finished_at=""
    )
    assert other.note == ""
    assert len(grading.sandbox.jobs) == 4


def test_a_later_call_and_another_model_reuse_the_first_verdict(tmp_path: Path) -> None:
    Grading(tmp_path, reuse=True).of(RIGHT, RIGHT)
    grading = Grading(tmp_path, reuse=True)
    (result,) = grading.of(RIGHT, model="n")
    assert result.note == "verdict of sample 0 reused (m, xml)"
    assert (result.passed, len(grading.sandbox.jobs)) == (2, 0)


def test_equal_solutions_are_graded_each_by_default(tmp_path: Path) -> None:
    grading = Grading(tmp_path)
    results = grading.of(RIGHT, RIGHT)
    assert [result.note for result in results] == ["", ""]
    assert len(grading.sandbox.jobs) == 3


def test_a_time_out_is_never_reused(tmp_path: Path) -> None:
    grading = Grading(tmp_path, reuse=True)
    results = grading.of("endless\n", "endless\n")
    assert [(result.failure, result.note) for result in results] == [("timeout", "stopped after 60 s")] * 2


def test_a_time_out_on_a_strained_machine_is_repeated_once_and_says_so(tmp_path: Path) -> None:
    grading = Grading(tmp_path, strained=True)
    results = grading.of("endless\n", "endless\n", "endless, too\n")
    assert [result.failure for result in results] == ["timeout"] * 3
    assert [result.repairs for result in results] == [("timeout_repeated",), (), ("timeout_repeated",)]
    assert len(grading.sandbox.jobs) == 1 + 2 + 1 + 2


def test_a_time_out_on_an_idle_machine_is_not_repeated(tmp_path: Path) -> None:
    grading = Grading(tmp_path)
    assert grading.of("endless\n")[0].repairs == ()
    assert len(grading.sandbox.jobs) == 2
