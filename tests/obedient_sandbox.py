"""A small pytest project in a sandbox that runs its test functions in this process."""

from __future__ import annotations

import asyncio
import io
import tarfile
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from astra_async.answers.lenient import LenientParser
from astra_async.prepare import prepare
from astra_async.running.directory import RunDirectory
from astra_async.running.grading import Grading
from astra_async.running.reuse import EarlierVerdicts, Recorded
from astra_async.running.sample import grade_sample
from astra_async.testing.expected import Expectations
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

    from astra_async.prepare import Prepared

TESTS = """\
def test_one():
    assert one() == 1


def test_two():
    assert two() == 22


def test_three():
    assert three() == 'right'


def test_four():
    assert four() == 'left'
"""
UNTOUCHED = "one = lambda: 1\ntwo = three = four = lambda: None\n"
RIGHT = "one = lambda: 1\ntwo = lambda: 22\nthree = lambda: 'right'\nfour = lambda: 'left'\n"


def files_of(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {each.name: file.read() for each in tar if (file := tar.extractfile(each)) is not None}


def passes(test: Callable[[], None]) -> bool:
    try:
        test()
    except Exception:  # noqa: BLE001 - as a test runner does
        return False
    return True


@dataclass
class ObedientSandbox:
    """Runs `app.py` and the project's test functions.

    `app.report`, if there is one, gets whether each test passed and says what is reported. A text
    `endless` in app.py makes the run time out.
    """

    jobs: list[Job] = field(default_factory=list)

    async def image_id(self, image: str) -> str:
        return IMAGE_ID

    def expect(self, image: str, limits: Limits) -> None:
        return None

    async def run(self, job: Job) -> Execution:
        await asyncio.sleep(0)
        if "--collect-only" in job.command:
            return Execution(exit_code=5, duration_s=0.1, image_id=IMAGE_ID)
        self.jobs.append(job)
        files = {path: content.decode() for path, content in files_of(job.archive).items()}
        if "endless" in files["app.py"]:
            return Execution(exit_code=137, timed_out=True, duration_s=60.0, image_id=IMAGE_ID)
        space: dict[str, Any] = {"tests": files.get("tests/test_app.py", "")}
        exec(files["app.py"], space)  # the texts of this file, and their mutations
        exec(space["tests"], space)
        told = {name: passes(each) for name, each in space.items() if name.startswith("test_")}
        told = space["report"](told) if "report" in space else told
        cases = "".join(
            f'<testcase name="{name}" classname="tests">{"" if ok else "<failure/>"}</testcase>'
            for name, ok in told.items()
        )
        report = {"unit.xml": f"<testsuite>{cases}</testsuite>".encode()}
        return Execution(exit_code=0, duration_s=0.5, reports=report, image_id=IMAGE_ID)


@dataclass
class Grader:
    """Grades answers for one problem, one after the other."""

    path: Path
    tests: str = TESTS
    reuse: bool = False
    reference: str = RIGHT
    strained: bool = False
    strict: bool = False
    contradicted: dict[str, str] = field(default_factory=dict)
    sandbox: ObedientSandbox = field(default_factory=ObedientSandbox)

    def of(self, *apps: str, model: str = "m") -> list[Result]:
        return asyncio.run(self._of(apps, model))

    async def prepared(self) -> Prepared:
        texts = {"app.py": UNTOUCHED, "tests/test_app.py": self.tests}
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
        return await prepare(problem, source, ("xml",))

    async def _of(self, apps: tuple[str, ...], model: str) -> list[Result]:
        prepared = await self.prepared()
        exclusive = Exclusive(self.sandbox)
        learned = Expectations(self.path / "expected.json", self.path / "cache", exclusive, Limits())
        learned.contradicted |= self.contradicted
        recorded = Recorded(reuse_identical=self.reuse)
        with closing(RunDirectory.open(self.path, recorded.add)) as directory:
            grading = Grading(
                sandbox=exclusive,
                images={"p": "any"},
                expectations=learned,
                lenient=LenientParser(),
                limits=Limits(),
                timeouts=Timeouts(exclusive, samples=1000, strained=lambda _: self.strained),
                earlier=EarlierVerdicts(directory, recorded.first) if self.reuse else None,
                strict_tests=self.strict,
            )
            results = []
            for number, app in enumerate(apps, len(directory.graded)):
                key = SampleKey(model, "xml", "p", number)
                answer = f'<solution><file path="app.py"><![CDATA[{app}]]></file></solution>'
                directory.record_completion(key, completion(answer), "sha")
                results.append(await grade_sample(key, prepared, directory, grading, passage=Unhindered()))
            return results
