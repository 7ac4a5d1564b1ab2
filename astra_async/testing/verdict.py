"""From changed files to a verdict: the container's job, its reports, and what its failure is called."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from astra_async.languages import LANGUAGES
from astra_async.overlay import project_archive
from astra_async.testing.counting import grade
from astra_async.testing.reports import read_reports
from astra_async.testing.reports.suspects import JEST_AFTER, JEST_NO_TESTS, JEST_SUITE
from astra_async.types import Job, NamedOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.prepare import Prepared
    from astra_async.types import (
        Changed,
        Execution,
        ExpectedTest,
        Failure,
        Integrated,
        Limits,
        Sandbox,
        TestReport,
        Verdict,
    )


class Solved(NamedTuple):
    """A solution to a problem, identified by the hash of its applied files."""

    problem_id: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A solution to grade: the changes, the problem and the image."""

    prepared: Prepared
    image: str
    integrated: Integrated

    @property
    def solved(self) -> Solved:
        """The solution, whoever wrote it."""
        return Solved(self.prepared.problem.id, self.integrated.sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """The outcome of a scored run: the tests' report and the verdict on it."""

    tested: Tested
    verdict: Verdict
    failure: Failure | None
    note: str = ""
    suspicions: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()


OUTPUT_TAIL_BYTES = 2000
_SLOW_REPORT_BYTES = 256 * 1024  # beyond this a report is read in a thread, not on the loop
# What compilers, bundlers and interpreters print when the code cannot even be loaded. Searched in a whole
# output, on the event loop: no part may repeat without a bound, and the bounds are a compiler's.
_BUILD_SIGNS = re.compile(
    "|".join(
        [
            r"error: .{0,40}?expected|(?<!\d)[1-9]\d{0,5} errors?\n",
            *(language.unbuilt for language in LANGUAGES if language.unbuilt),
        ]
    ),
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """One run of a problem's tests: what the container did and what its reports say."""

    __test__: ClassVar[bool] = False  # not a test for pytest to collect

    execution: Execution
    report: TestReport


async def run_tests(
    sandbox: Sandbox,
    prepared: Prepared,
    image: str,
    changed: Changed,
    limits: Limits,
    *,
    command: str = "",
) -> Tested:
    """Run the problem's tests, or another command, on its project with `changed` laid over.

    Raises SandboxError.
    """
    problem = prepared.problem
    job = Job(
        image=image,
        archive=project_archive(prepared.project, changed),
        command=command or prepared.command,
        result_files=problem.result_files,
        deleted=tuple(path for path, content in changed.items() if content is None),
        environment=prepared.environment,
        limits=limits_for(prepared, limits),
        label=problem.id,
    )
    execution = await sandbox.run(job)
    return Tested(execution=execution, report=await _read(execution, problem.result_files))


def limits_for(prepared: Prepared, limits: Limits) -> Limits:
    """The run's limits with the problem's own time-out where it has one."""
    timeout_s = prepared.problem.timeout_s
    return limits if timeout_s is None else replace(limits, timeout_s=timeout_s)


def verdict_on(tested: Tested, expected: Sequence[ExpectedTest]) -> tuple[Verdict, Failure | None, str]:
    """The verdict, its failure (None: all passed) and one line of explanation where one helps.

    A time-out, the container's memory or disk limit and a report without any case score 0 of T,
    whatever a half-written report says (docs/formats.md). So does a report of errors in place of tests, where
    the code could not be loaded: pytest writes a case for each file that it cannot import.
    """
    verdict = grade(tested.report, expected)
    stopped = cut_short(tested.execution)
    if stopped is None and tested.report.cases:
        if _only_errors_of_loading(tested, verdict):
            return verdict, "build_failure", "the tests could not be loaded, and none of them ran"
        return verdict, None if verdict.passed == verdict.total else "tests_failed", ""
    note = "; ".join(tested.report.problems) or "the test command reported no test case"
    failure, note = stopped or ("build_failure" if not_built(tested) else "no_report", note)
    return none_passed(verdict), failure, note


def _only_errors_of_loading(tested: Tested, verdict: Verdict) -> bool:
    """Whether no expected test ran, nothing else passed, and the output tells of code that does not load."""
    ran = any(test.outcome != "missing" for test in verdict.tests)
    passed = any(case.outcome == "passed" for case in tested.report.cases)
    return not ran and not passed and bool(_BUILD_SIGNS.search(tested.execution.output))


def none_passed(verdict: Verdict) -> Verdict:
    """The verdict without its passed tests: nothing that such a run reports counts."""
    return replace(
        verdict,
        passed=0,
        tests=tuple(
            NamedOutcome(name=test.name, outcome="missing") if test.outcome == "passed" else test
            for test in verdict.tests
        ),
    )


def not_built(tested: Tested) -> bool:
    """Whether the run ended by itself, reported nothing, and its output tells of code that does not build."""
    silent = not tested.report.cases and cut_short(tested.execution) is None
    return silent and bool(_BUILD_SIGNS.search(tested.execution.output))


def untold(tested: Tested) -> tuple[str, ...]:
    """What says that tests are missing from a run's report; empty where it seems to tell of all.

    jest-junit leaves out a suite that does not load, unless `reportTestSuiteErrors` is set: of that only
    jest's output tells, in the words that it also has for a file without tests and for a failed `afterAll`.
    """
    output = tested.execution.output
    others = output.count(JEST_NO_TESTS) + sum(JEST_AFTER in case.name for case in tested.report.cases)
    left_out = output.count(JEST_SUITE) > others
    return (*tested.report.problems, *(["jest's output: " + JEST_SUITE] if left_out else []))


def tail(output: str) -> str:
    """The end of an output, at most OUTPUT_TAIL_BYTES of UTF-8."""
    return output.encode()[-OUTPUT_TAIL_BYTES:].decode(errors="ignore")


def cut_short(execution: Execution) -> tuple[Failure, str] | None:
    """Which limit ended a run, as a failure and in words; None where it came to its end."""
    if execution.timed_out:
        return "timeout", f"stopped after {execution.duration_s:.0f} s"
    if execution.out_of_memory:
        return "out_of_memory", "the container's memory limit was hit"
    if execution.failed_limit:
        return "no_report", f"stopped: the container's {execution.failed_limit} limit was hit"
    return None


async def _read(execution: Execution, result_files: Sequence[str]) -> TestReport:
    read = partial(read_reports, execution.reports, execution.stdout, result_files=result_files)
    size = max(sum(map(len, execution.reports.values())), len(execution.stdout))
    report = read() if size <= _SLOW_REPORT_BYTES else await asyncio.to_thread(read)
    return replace(report, problems=(*execution.report_problems, *report.problems))
