"""Grade changed files: run the tests in a container, parse the reports, and classify failures."""

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
from astra_async.testing.reports.suite_failures import JEST_AFTER, JEST_NO_TESTS, JEST_SUITE
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
    """A solution of a problem, identified by the hash of its applied files."""

    problem_id: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A solution to grade: problem, image and changes."""

    prepared: Prepared
    image: str
    integrated: Integrated

    @property
    def solved(self) -> Solved:
        """Identity of the solution, independent of its author."""
        return Solved(self.prepared.problem.id, self.integrated.sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """Outcome of a scored run: the test run and its verdict."""

    tested: Tested
    verdict: Verdict
    failure: Failure | None
    note: str = ""
    suspicions: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()


OUTPUT_TAIL_BYTES = 2000
_SLOW_REPORT_BYTES = 256 * 1024  # larger reports are parsed in a thread
# Messages of compilers, bundlers and interpreters about code that cannot be loaded. The whole output is
# searched on the event loop, so every repetition needs a bound.
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
    """One run of a problem's tests: the container's outcome and the parsed reports."""

    __test__: ClassVar[bool] = False  # pytest must not collect this class

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
    """Run the problem's tests, or another command, on its project with `changed` applied.

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
    """Return the run's limits, with the problem's own timeout if it has one."""
    timeout_s = prepared.problem.timeout_s
    return limits if timeout_s is None else replace(limits, timeout_s=timeout_s)


def verdict_on(tested: Tested, expected: Sequence[ExpectedTest]) -> tuple[Verdict, Failure | None, str]:
    """Return the verdict, its failure (None if all tests passed) and a note, which may be empty.

    A timeout, an exceeded memory or disk limit and a report without cases score 0 of T, even if a partial
    report exists (docs/formats.md). The same holds for a report of errors instead of tests if the code could
    not be loaded: pytest reports a case for each file that it cannot import.
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
    """Return True if no expected test ran, no case passed, and the output shows code that does not load."""
    ran = any(test.outcome != "missing" for test in verdict.tests)
    passed = any(case.outcome == "passed" for case in tested.report.cases)
    return not ran and not passed and bool(_BUILD_SIGNS.search(tested.execution.output))


def none_passed(verdict: Verdict) -> Verdict:
    """Return the verdict with all passed tests as missing, because the run's report does not count."""
    return replace(
        verdict,
        passed=0,
        tests=tuple(
            NamedOutcome(name=test.name, outcome="missing") if test.outcome == "passed" else test
            for test in verdict.tests
        ),
    )


def not_built(tested: Tested) -> bool:
    """Return True if the run ended by itself without cases, and the output shows code that does not build."""
    silent = not tested.report.cases and cut_short(tested.execution) is None
    return silent and bool(_BUILD_SIGNS.search(tested.execution.output))


def signs_of_missing_tests(tested: Tested) -> tuple[str, ...]:
    """Return the signs that a run's report lacks tests; empty if the report seems complete.

    jest-junit leaves out a suite that does not load, unless `reportTestSuiteErrors` is set. Then only jest's
    output shows the failure, in the same words as for a file without tests and for a failed `afterAll`.
    """
    output = tested.execution.output
    others = output.count(JEST_NO_TESTS) + sum(JEST_AFTER in case.name for case in tested.report.cases)
    left_out = output.count(JEST_SUITE) > others
    return (*tested.report.problems, *(["jest's output: " + JEST_SUITE] if left_out else []))


def tail(output: str) -> str:
    """Return the end of an output, at most OUTPUT_TAIL_BYTES of UTF-8."""
    return output.encode()[-OUTPUT_TAIL_BYTES:].decode(errors="ignore")


def cut_short(execution: Execution) -> tuple[Failure, str] | None:
    """Return the failure and a note if a limit ended the run, else None."""
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
