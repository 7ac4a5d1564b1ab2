"""Twins of tests in every form a language has, run by the real runners: all that is certain fails."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from graded_answers import generous

from astra_async.bundled import image_sets
from astra_async.images.build import ensure_image_set
from astra_async.integrity.rewriting import Manner, Settled, blurred, rewrite
from astra_async.overlay import project_archive
from astra_async.testing.reports import read_reports
from astra_async.types import Job, Project, ProjectFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from graded_answers import Await, Courtroom

    from astra_async.integrity.rewriting import Rewritten
    from astra_async.types import TestReport

SAMPLES = Path(__file__).parent / "samples"
# All tests by an assertion after they have run, and each in a manner of its own.
DRAWS = (Settled(Manner(at_once=False, assertion=True), 1), random.Random(2))
PLAIN, DISGUISED = "plain", "disguised"
_JARS = "/usr/share/java/*"
_LAUNCHER = (
    f"javac -Xlint:all,-processing,-path,-classfile -Werror -d classes -cp '{_JARS}' *.java &&"
    f" java -XX:TieredStopAtLevel=1 -cp 'classes:{_JARS}' org.junit.platform.console.ConsoleLauncher"
    " --scan-classpath classes --include-classname '.*' --details none --reports-dir ."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """A runner's command in a folder with the sample; its reports; the image set, or one on top of it."""

    name: str
    image_set: str
    command: str
    report: str = "junit.xml"
    on_top: str = ""
    silent: frozenset[str] = frozenset()  # titles that no report has: of tests that skip themselves
    more: frozenset[str] = frozenset()  # names that only a twin's report has
    passing: frozenset[str] = frozenset()  # left out of a twin, and passed there


RUNNERS = (
    Runner(
        name="jest",
        image_set="angular",
        command="npx jest --ci --reporters=jest-junit",
        passing=frozenset({"js failing", "js planned"}),
    ),
    Runner(
        name="mocha",
        image_set="node-express",
        command="npx mocha --exit -R mocha-junit-reporter -O mochaFile=junit.xml ./*.js",
        silent=frozenset({"skips itself"}),
        more=frozenset({"m skips itself"}),
    ),
    Runner(
        name="vitest",
        image_set="react",
        command="npx vitest run --reporter=junit --outputFile=junit.xml",
        passing=frozenset({"v > fails", "v > fails too"}),
    ),
    Runner(
        name="node",
        image_set="node-express",
        command="node --test --test-reporter=junit --test-reporter-destination=junit.xml ./*.js",
        silent=frozenset({"with subtests"}),  # reported only when it fails before them
        more=frozenset({"with subtests"}),
    ),
    Runner(
        name="jasmine",
        image_set="node-express",
        on_top="jasmine",
        command="npx jasmine --reporter=./reporter.js",
        silent=frozenset({"self"}),
    ),
    Runner(
        name="junit5",
        image_set="java",
        command=_LAUNCHER,
        report="TEST-*.xml",
        silent=frozenset({"A name that is shown"}),  # the launcher's files have method names
    ),
    Runner(name="junit4", image_set="java", command=_LAUNCHER, report="TEST-*.xml"),
    Runner(
        name="testng",
        image_set="java",
        on_top="testng",
        command=f"javac -Xlint:all,-processing,-path -Werror -d classes -cp '{_JARS}' *.java &&"
        f" java -cp 'classes:{_JARS}' org.testng.TestNG -d out"
        " -testclass 'forms.GroupFormTest,forms.GroupFormTest$WholeTest'",
        report="out/junitreports/TEST-*.xml",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a runner reported of the sample itself, as a scored run has it, and of its twins."""

    plain: TestReport
    disguised: TestReport
    twins: tuple[TestReport, ...]
    rewritten: tuple[tuple[Rewritten, ...], ...]  # of each twin, its files


def is_test(path: Path) -> bool:
    return ".test." in path.name or ".spec." in path.name or path.suffix == ".java"


def files_of(runner: Runner) -> Iterator[tuple[str, str, Rewritten | None, str]]:
    """Every file of the project: its folder, its path there, the twin it is of, and its text."""
    root = SAMPLES / runner.name
    for path in sorted(each for each in root.rglob("*") if each.is_file()):
        text, relative = path.read_text(), str(path.relative_to(root))
        yield PLAIN, relative, None, text
        disguise = blurred(relative, text, random.Random(3)) if is_test(path) else text
        yield DISGUISED, relative, None, disguise
        for seed in range(len(DRAWS)):
            twin = rewrite(relative, text, DRAWS[seed]) if is_test(path) else None
            yield f"twin{seed}", relative, twin, twin.text if twin else text


async def run_of(court: Courtroom, runner: Runner) -> Run:
    engine = court.sandbox.engine
    image = await ensure_image_set(engine, image_sets()[runner.image_set], progress=print)
    if runner.on_top:
        image = await ensure_image_set(engine, SAMPLES / "images" / runner.on_top, progress=print, base=image)
    files = list(files_of(runner))
    folders = sorted({folder for folder, *_ in files})
    project = Project(
        files=tuple(
            ProjectFile(path=path, content=text.encode())
            for path, text in sorted((f"{folder}/{path}", text) for folder, path, _, text in files)
        ),
        sha256=f"every form for {runner.name}",
    )
    job = Job(
        image=image,
        archive=project_archive(project, {}),
        command=f"for folder in {' '.join(folders)}; do (cd $folder; {runner.command}); done",
        result_files=tuple(f"{folder}/{runner.report}" for folder in folders),
        limits=replace(generous(), timeout_s=generous().timeout_s * len(folders)),
    )
    done = await court.sandbox.run(job)
    reports = {folder: read(done.reports, folder) for folder in folders}
    assert not done.timed_out, f"all runs lasted {done.duration_s:.0f} s: {done.output[-4000:]}"
    assert all(report.cases for report in reports.values()), done.output[-4000:]
    twins = [folder for folder in folders if folder not in {PLAIN, DISGUISED}]
    return Run(
        plain=reports[PLAIN],
        disguised=reports[DISGUISED],
        twins=tuple(reports[folder] for folder in twins),
        rewritten=tuple(
            tuple(twin for where, _, twin, _ in files if where == folder and twin) for folder in twins
        ),
    )


def read(reports: Mapping[str, bytes], folder: str) -> TestReport:
    own = {path: content for path, content in reports.items() if path.startswith(f"{folder}/")}
    return read_reports(own, "", result_files=tuple(own))


def outcomes(report: TestReport) -> Counter[tuple[str, str]]:
    return Counter((case.name, case.outcome) for case in report.cases)


@pytest.mark.first(name=lambda runner: runner.name)
@pytest.mark.docker
@pytest.mark.parametrize("runner", RUNNERS, ids=lambda runner: runner.name)
def test_all_that_is_certain_fails_under_its_name_and_nothing_else_passes(
    runner: Runner, wait: Await, court: Courtroom
) -> None:
    run: Run = wait(run_of(court, runner))
    assert all(case.outcome in {"passed", "skipped"} for case in run.plain.cases)
    assert outcomes(run.disguised) == outcomes(run.plain)
    ordinary = Counter(case.name for case in run.plain.cases)
    for report, rewritten in zip(run.twins, run.rewritten, strict=True):
        found = Counter(case.name for case in report.cases)
        assert set(found - ordinary) <= runner.more
        assert {case.name for case in report.cases if case.outcome == "passed"} <= runner.passing
        names = {case.name for case in report.cases if case.outcome in {"failed", "error", "skipped"}}
        for titles in {each for twin in rewritten for each in twin.certain}:
            if titles[-1] not in runner.silent:
                assert any(titles[-1].removesuffix("()") in name for name in names), titles
