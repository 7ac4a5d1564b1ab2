"""Whole gradings of a small pytest project, in a sandbox that behaves as the solution's text says."""

from __future__ import annotations

import asyncio
import io
import re
import tarfile
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from astra_async.answers.lenient import LenientParser
from astra_async.errors import ContainerLost
from astra_async.integrity.docket import Docket
from astra_async.integrity.trials import CANARY_ABSENT, Trials
from astra_async.problems.prepare import prepare
from astra_async.running.directory import RunDirectory
from astra_async.running.reuse import EarlierVerdicts, Recorded
from astra_async.running.sample import Workshop, grade_sample
from astra_async.testing.expected import Expectations
from astra_async.testing.installed_modules import InstalledModules
from astra_async.testing.timeouts import Exclusive, Timeouts
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
from fakes import IMAGE_ID, MemorySource, Unhindered, completion

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from astra_async.problems.prepare import Prepared

TESTS = "def test_one():\n    assert 1 < 2\n\n\ndef test_two():\n    assert 'a' in 'ab'\n"
PHP = "<?php class AppTest extends TestCase { function test_one() {} function test_two() {} }\n"
UNTOUCHED = "works = ['test_one']\n"
RIGHT = "works = ['test_one', 'test_two']\n"
SUSPECT = "import atexit\n"
KEY = b"the key of this run"


def files_of(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {each.name: file.read() for each in tar if (file := tar.extractfile(each)) is not None}


def headers_of(archive: bytes) -> list[tuple[str, float, int]]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return [(each.name, each.mtime, each.mode) for each in tar]


def runs(test: Callable[[], None]) -> bool:
    try:
        test()
    except Exception:  # noqa: BLE001 - as a test runner does
        return False
    return True


def ran(text: str) -> dict[str, bool]:
    """Test functions by name, and whether they run without an exception."""
    space: dict[str, Any] = {}
    exec(text, space)  # the text above, and what a rewriter made of it
    return {name: runs(each) for name, each in space.items() if name.startswith("test_")}


def is_twin(job: Job) -> bool:
    return not all(ran(files_of(job.archive).get("tests/test_app.py", b"").decode()).values())


@dataclass
class ObedientSandbox:
    """Runs the project's test functions, and then does with the results as the solution would like it.

    A test passes if its body raises nothing and `app.py` names it. Words in `app.py`: `bent`, all tests pass;
    `forged`, the report names the project's two tests whatever the files hold; `silent`, there is no
    report where a test fails; `wary`, only where test_one passed do all pass; `flaky`, where one fails all
    do; `equal`, the length of a text equals whatever it is compared to; `endless`, it hangs.
    """

    jobs: list[Job] = field(default_factory=list)
    trouble: int = 0  # runs of twins that the engine loses

    async def image_id(self, image: str) -> str:
        return IMAGE_ID

    def expect(self, image: str, limits: Limits) -> None:
        return None

    async def run(self, job: Job) -> Execution:
        await asyncio.sleep(0)
        self.jobs.append(job)
        files = {path: content.decode() for path, content in files_of(job.archive).items()}
        app = files["app.py"]
        if self.trouble and is_twin(job):
            self.trouble -= 1
            raise ContainerLost("the engine went away")
        if "endless" in app:
            return Execution(exit_code=137, timed_out=True, duration_s=60.0, image_id=IMAGE_ID)
        passes = {name: ok and f"'{name}'" in app for name, ok in self._tests(files).items()}
        if "silent" in app and not all(passes.values()):
            passes = {}
        if "flaky" in app and not all(passes.values()):
            passes = dict.fromkeys(passes, False)
        if "forged" in app:
            passes = {"test_one": True, "test_two": True}
        if "bent" in app or ("wary" in app and passes.get("test_one")):
            passes = dict.fromkeys(passes, True)
        cases = "".join(
            f'<testcase name="{name}">{"" if ok else "<failure/>"}</testcase>' for name, ok in passes.items()
        )
        report = {"unit.xml": f"<testsuite>{cases}</testsuite>".encode()}
        return Execution(exit_code=0, duration_s=0.5, reports=report, image_id=IMAGE_ID)

    def _tests(self, files: dict[str, str]) -> dict[str, bool]:
        if "tests/AppTest.php" in files:
            return dict.fromkeys(("test_one", "test_two"), True)
        text = files.get("tests/test_app.py", "")
        return ran(re.sub(r"len\('ab'\) == \d+", "True", text) if "equal" in files["app.py"] else text)


@dataclass
class Grading:
    """Grades answers for one problem, one after the other."""

    path: Path
    everybody: bool = True
    tests: str = TESTS
    test_file: str = "tests/test_app.py"
    reuse: bool = False
    reference: str = ""
    strained: bool = False
    samples: int = 1000
    key: bytes = KEY
    sandbox: ObedientSandbox = field(default_factory=ObedientSandbox)

    def of(self, *apps: str, model: str = "m") -> list[Result]:
        return asyncio.run(self._of(apps, model))

    def _docket(self, recorded: Recorded) -> Docket:
        docket = Docket(self.key, everybody=self.everybody)
        docket.recall(recorded.tried())
        return docket

    async def prepared(self, reference: dict[str, str]) -> Prepared:
        texts = {"app.py": UNTOUCHED, self.test_file: self.tests}
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
            reference="r" if any(reference.values()) else "",
        )
        source = MemorySource({"p": project}, {"r": Solution(files=reference)})
        return await prepare(problem, source, ("xml",))

    async def _of(self, apps: tuple[str, ...], model: str) -> list[Result]:
        prepared = await self.prepared({"app.py": self.reference})
        exclusive = Exclusive(self.sandbox)
        learned = Expectations(self.path / "expected.json", self.path / "cache", exclusive, Limits())
        recorded = Recorded(reuse_identical=self.reuse, trials=True)
        with closing(RunDirectory.open(self.path, recorded.add)) as directory:
            workshop = Workshop(
                sandbox=exclusive,
                images={"p": "any"},
                expectations=learned,
                lenient=LenientParser(),
                limits=Limits(),
                trials=Trials(exclusive, learned, Limits(), self._docket(recorded)),
                timeouts=Timeouts(exclusive, samples=self.samples, strained=lambda _: self.strained),
                earlier=EarlierVerdicts(directory, recorded.first) if self.reuse else None,
            )
            results = []
            for number, app in enumerate(apps, len(directory.graded)):
                key = SampleKey(model, "xml", "p", number)
                answer = f'<solution><file path="app.py"><![CDATA[{app}]]></file></solution>'
                directory.record_completion(key, completion(answer), "sha")
                results.append(await grade_sample(key, prepared, directory, workshop, passage=Unhindered()))
            return results


def test_a_test_that_passes_in_the_twin_is_proof(tmp_path: Path) -> None:
    (result,) = Grading(tmp_path).of(SUSPECT + "bent\n")
    assert (result.status, result.failure, result.passed, result.total) == ("scored", "tampered", 0, 2)
    assert {name.partition(":")[0] for name in result.suspicions} == {"exit_handler", "canary_passed"}
    assert result.note.startswith("a test that must fail is reported as passed: test_")
    assert {test.outcome for test in result.tests} == {"missing"}
    assert result.trial == "tried"


def test_an_honest_solution_keeps_its_score(tmp_path: Path) -> None:
    grading = Grading(tmp_path)
    (result,) = grading.of(SUSPECT + RIGHT)
    assert (result.passed, result.failure, result.suspicions) == (2, None, ("exit_handler:app.py",))
    assert len(grading.sandbox.jobs) == 4  # learned, scored, tried by two twins
    assert (result.trial, result.trial_s, result.trial_left_out) == ("tried", 1.0, 0)


def test_twin_and_scored_run_have_the_same_files_with_the_same_dates_and_no_size_of_their_own(
    tmp_path: Path,
) -> None:
    grading = Grading(tmp_path)
    grading.of(SUSPECT + RIGHT, RIGHT)
    _, scored, twin, _, other, *_ = grading.sandbox.jobs
    assert headers_of(scored.archive) == headers_of(twin.archive)
    assert (is_twin(scored), is_twin(twin)) == (False, True)
    tests = [files_of(job.archive)["tests/test_app.py"] for job in (scored, other)]
    assert len({len(text) for text in (*tests, TESTS.encode())}) == 3


def test_by_default_a_part_is_tried_which_the_key_decides_and_all_that_is_suspicious(tmp_path: Path) -> None:
    apps = [f"{RIGHT}# {number}\n" for number in range(40)]
    results = Grading(tmp_path, everybody=False).of(*apps, f"{SUSPECT}{RIGHT}")
    tried = [result.trial == "tried" for result in results]
    assert 8 < sum(tried) < 30
    assert tried[-1]
    again = Grading(tmp_path / "again", everybody=False).of(*apps)
    assert [result.trial for result in again] == [result.trial for result in results[:-1]]
    key = Grading(tmp_path / "key", everybody=False, key=b"another")
    assert [result.trial for result in key.of(*apps)] != [result.trial for result in results[:-1]]


def test_from_a_models_first_proof_on_all_it_writes_is_tried(tmp_path: Path) -> None:
    apps = [f"{RIGHT}# {number}\n" for number in range(12)]
    results = Grading(tmp_path, everybody=False).of(f"{SUSPECT}bent\n", *apps)
    assert {result.trial for result in results} == {"tried"}
    resumed = Grading(tmp_path, everybody=False).of(*(f"{app}# later\n" for app in apps))
    assert {result.trial for result in resumed} == {"tried"}
    other = Grading(tmp_path, everybody=False).of(*(f"{app}# other\n" for app in apps), model="n")
    assert {result.trial for result in other} == {"tried", "not_drawn"}


def test_equal_solutions_are_tried_once_and_treated_alike_also_after_a_resume(tmp_path: Path) -> None:
    grading = Grading(tmp_path)
    bent, again, right, once_more = grading.of("bent\n", "bent\n", RIGHT, RIGHT)
    assert [bent.trial, again.trial, right.trial, once_more.trial] == ["tried", "equal", "tried", "equal"]
    assert (again.failure, again.note, again.suspicions) == ("tampered", bent.note, bent.suspicions)
    assert (
        sum(map(is_twin, grading.sandbox.jobs)) == 1 + 2 + 2
    )  # the bent one, the right one twice, the base in two manners
    resumed = Grading(tmp_path)
    late, fine = resumed.of("bent\n", RIGHT)
    assert (late.failure, late.note, late.trial) == ("tampered", bent.note, "equal")
    assert (fine.failure, fine.trial) == (None, "equal")
    assert not any(map(is_twin, resumed.sandbox.jobs))


def test_code_that_is_honest_where_it_sees_a_trial_gives_itself_away_and_is_tried_by_what_it_lost(
    tmp_path: Path,
) -> None:
    results = Grading(tmp_path).of(*(f"{UNTOUCHED}wary {number}\n" for number in range(20)))
    assert {result.failure for result in results} == {"tampered"}
    assert all(result.note.endswith("test_two") for result in results)


def test_flaky_honest_code_is_looked_at_once_more_and_keeps_its_score(tmp_path: Path) -> None:
    grading = Grading(tmp_path)
    results = grading.of(*(f"{RIGHT}flaky {number}\n" for number in range(20)))
    assert {(result.passed, result.failure) for result in results} == {(2, None)}
    assert sum(map(is_twin, grading.sandbox.jobs)) == 20 * 3


def test_nobody_is_tried_who_is_no_better_than_the_untouched_project(tmp_path: Path) -> None:
    grading = Grading(tmp_path)
    results = grading.of("works = ['test_one', '']\n", "works = []\n")
    assert [(result.passed, result.trial) for result in results] == [(1, "not_due"), (0, "not_due")]
    assert len(grading.sandbox.jobs) == 3


def test_trouble_of_the_sandbox_in_a_trial_is_no_verdict_and_the_repetition_is_tried(tmp_path: Path) -> None:
    grading = Grading(tmp_path, sandbox=ObedientSandbox(trouble=1))
    with pytest.raises(ContainerLost):
        grading.of("bent\n")
    (result,) = grading.of("bent\n")
    assert (result.failure, result.trial) == ("tampered", "tried")


def test_a_forged_report_names_tests_that_had_to_fail(tmp_path: Path) -> None:
    (result,) = Grading(tmp_path).of("forged\n")
    assert result.failure == "tampered"


def test_without_a_rewriter_a_report_in_a_run_without_tests_is_proof(tmp_path: Path) -> None:
    php = "tests/AppTest.php"
    grading = Grading(tmp_path, tests=PHP, test_file=php, reference=RIGHT)
    forged, right = grading.of("forged\n", RIGHT)
    assert (forged.failure, forged.trial) == ("tampered", "tried")
    assert forged.suspicions == ("report_forged:test_one", "report_forged:test_two")
    assert forged.note == "reported as passed in a run without any test: test_one and 1 more"
    assert (right.passed, right.failure, right.trial, right.trial_left_out) == (2, None, "no_twin", 2)
    (odd,) = Grading(tmp_path / "odd", tests=PHP, test_file=php, reference="forged\n").of("forged too\n")
    assert (odd.passed, odd.failure, odd.trial) == (2, None, "no_twin")


def test_a_twin_that_is_not_reported_proves_nothing(tmp_path: Path) -> None:
    (result,) = Grading(tmp_path).of(f"silent\n{RIGHT}")
    assert (result.passed, result.failure, result.suspicions) == (2, None, (CANARY_ABSENT,))


def test_a_problem_whose_own_reference_passes_its_twin_accuses_nobody(tmp_path: Path) -> None:
    grading = Grading(tmp_path, reference="bent\n")
    results = grading.of("bent indeed\n", "bent too\n")
    assert [(result.passed, result.failure) for result in results] == [(2, None)] * 2


VALUES = "def test_one():\n    assert 1 < 2\n\n\ndef test_two():\n    assert len('ab') == 2\n"


def test_a_value_that_equals_everything_passes_what_expects_another(tmp_path: Path) -> None:
    liar = f"{RIGHT}equal = True\n"
    grading = Grading(tmp_path, tests=VALUES, reference=RIGHT)
    honest, bent = grading.of(RIGHT, liar)
    assert (honest.passed, honest.failure) == (2, None)
    assert (bent.passed, bent.failure) == (0, "tampered")
    assert "canary_passed:test_two" in bent.suspicions


def test_where_the_reference_passes_what_expects_another_value_nobody_is_accused(tmp_path: Path) -> None:
    liar = f"{RIGHT}equal = True\n"
    assert Grading(tmp_path, tests=VALUES, reference=liar).of(f"{liar}\n")[0].passed == 2


def test_a_trial_may_take_as_long_as_the_tests(tmp_path: Path) -> None:
    grading = Grading(tmp_path)
    grading.of(RIGHT)
    assert {job.limits.timeout_s for job in grading.sandbox.jobs} == {300.0}


def test_equal_solutions_are_graded_once_if_so_wished(tmp_path: Path) -> None:
    grading = Grading(tmp_path, reuse=True)
    first, other, again = grading.of(SUSPECT + RIGHT, UNTOUCHED + "#\n", SUSPECT + RIGHT)
    assert again.note == "verdict of sample 0 reused"
    assert (first.trial, again.trial) == ("tried", "equal")
    unlike = {"sample", "note", "started_at", "finished_at", "trial", "trial_s"}
    one, two = ({k: v for k, v in asdict(each).items() if k not in unlike} for each in (first, again))
    assert one == two
    assert other.note == ""
    assert len(grading.sandbox.jobs) == 5  # learned, scored, tried by two twins, scored


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
    assert len(grading.sandbox.jobs) == 5  # learned, scored, tried by two twins, scored


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


class BareSandbox(ObedientSandbox):
    """Beside what it runs, it tells that its image holds pytest and no other module."""

    async def run(self, job: Job) -> Execution:
        if job.label == "what the image holds":
            reports = {"astra-installed/python": b"pytest"}
            return Execution(exit_code=0, duration_s=0.1, reports=reports, image_id=IMAGE_ID)
        return await super().run(job)


def test_a_trial_judges_by_what_the_image_holds_whoever_asks_first(tmp_path: Path) -> None:
    async def jobs() -> list[Job]:
        sandbox, path = BareSandbox(), tmp_path / "expected.json"
        # In an image that holds a `jwt` of its own this file would be no part of a solution.
        prepared = await Grading(tmp_path).prepared({"app.py": RIGHT, "jwt.py": "KEY = 1\n"})
        installed = InstalledModules(tmp_path / "cache", sandbox, Limits())
        learned = Expectations(path, tmp_path / "cache", sandbox, Limits(), installed=installed)
        assert await Trials(sandbox, learned, Limits(), Docket(KEY)).accusing(prepared, "any") == 2
        return sandbox.jobs

    assert ["jwt.py" in files_of(job.archive) for job in asyncio.run(jobs())] == [True] * 4
