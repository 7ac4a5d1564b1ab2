"""Run recorded solutions against mutated test suites and record the outcomes."""

from __future__ import annotations

import asyncio
import fcntl
from collections import defaultdict
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from astra_async.answers.lenient import LenientParser, read_answer
from astra_async.audit.mutants import TestSuites
from astra_async.errors import ConflictError, EngineUnavailable, ExpectationError, SandboxError
from astra_async.files import read_at
from astra_async.images.failed_images import FailedImages
from astra_async.images.resolve import ProblemImages
from astra_async.log import AppendLog, now_utc
from astra_async.overlay import anchored, integrate
from astra_async.report.audited import AUDIT_LOG, AuditEvidence, AuditLine, SolutionKey, read_audit
from astra_async.running.problem_set import cache_root, chosen_problems, ready_problems
from astra_async.running.recorded import completion_from, valid_records
from astra_async.testing.counting import grade
from astra_async.testing.expected import Expectations
from astra_async.testing.installed_modules import InstalledModules
from astra_async.testing.sandbox.docker_sandbox import DockerSandbox
from astra_async.testing.validation import together
from astra_async.testing.verdict import run_tests
from astra_async.types import Integrated, SampleKey, Unusable
from astra_async.types.records import check_result, read_record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence

    from astra_async.audit.mutants import Suite
    from astra_async.config import RunConfig
    from astra_async.prepare import Prepared
    from astra_async.running.recorded import ByteRange
    from astra_async.testing.sandbox.engine import Engine
    from astra_async.types import Changed, ExpectedTest, Limits, NamedOutcome, Sandbox

_MOST_SUITES = 3
_ENOUGH = 0.5  # share of mutable tests; once more are covered, no further suite is made
_NO_TESTS = "no test of this problem can be mutated"
_NO_COVER = "the reference solution passes all mutated tests"
_NOT_PASSED = "the solution passes no test that a mutation covers"
_CHANGED = "the answer now gives different files than when it was graded; run: astra regrade"


@dataclass(frozen=True, slots=True)
class Covered:
    """A mutated suite and the tests that it covers.

    A test is covered if the reference passes the original test and fails the mutated one.
    """

    suite: Suite
    tests: frozenset[str]


@dataclass(frozen=True, slots=True)
class Suites:
    """Mutated suites of a problem, seconds in containers for them, and the reason if there is no suite."""

    covered: tuple[Covered, ...]
    seconds: float
    reason: str

    @property
    def tests(self) -> frozenset[str]:
        """Tests covered by any of the suites."""
        return frozenset().union(*(each.tests for each in self.covered))


@dataclass(frozen=True, slots=True, kw_only=True)
class Auditor:
    """Runs mutated suites in a sandbox."""

    sandbox: Sandbox
    limits: Limits
    expectations: Expectations

    async def suites(self, prepared: Prepared, image: str) -> Suites:
        """Find the mutated suites that cover at least one test of a problem.

        The reference solution decides; without one, the untouched project does. Raises SandboxError and
        ExpectationError.
        """
        expected = (await self.expectations.of(prepared, image)).tests
        reference = prepared.integrated_reference()
        changed = reference.files if reference else {}
        tests = await TestSuites.of(prepared)
        if not tests.tests:
            return Suites((), 0.0, _NO_TESTS)
        _, passing, spent_s = await self.run(prepared, image, changed, expected)
        found: list[Covered] = []
        titles: set[str] = set()
        for number in range(_MOST_SUITES):
            suite = tests.suite(number, titles)
            if suite is None or len(titles) > _ENOUGH * len(tests.tests):
                break
            failing, _, took_s = await self.run(prepared, image, changed, expected, suite)
            spent_s += took_s
            mutated = {each.title for each in suite.mutations}
            covered = {name for name in passing & failing if any(title in name for title in mutated)}
            titles |= {title for title in mutated if any(title in name for name in covered)}
            if covered:
                found.append(Covered(suite, frozenset(covered)))
        return Suites(tuple(found), spent_s, "" if found else _NO_COVER)

    async def examine(
        self, prepared: Prepared, image: str, suites: Suites, solution: RecordedSolution, changed: Changed
    ) -> AuditLine:
        """Run a solution against the suites until a test passes in both forms twice. Raises SandboxError."""
        expected = (await self.expectations.of(prepared, image)).tests
        seconds, runs, flagged = 0.0, 0, list[AuditEvidence]()
        for covered in suites.covered:
            suspects = covered.tests & solution.passed
            for _ in range(2):  # flag a test only if it passes twice
                if suspects:
                    _, passing, took_s = await self.run(prepared, image, changed, expected, covered.suite)
                    suspects, seconds, runs = suspects & passing, seconds + took_s, runs + 1
            if suspects:
                flagged = _evidence(covered.suite, suspects)
                break
        return solution.line(
            outcome="flagged" if flagged else "clean" if runs else "not_applicable",
            reason="" if runs else _NOT_PASSED,
            mutants_run=runs,
            tests=len(solution.passed & suites.tests),
            flagged=tuple(flagged),
            seconds=round(seconds, 3),
            image_id=await self.sandbox.image_id(image),
        )

    async def run(
        self,
        prepared: Prepared,
        image: str,
        changed: Changed,
        expected: Sequence[ExpectedTest],
        suite: Suite | None = None,
    ) -> tuple[set[str], set[str], float]:
        """Return the names of failing tests, those of passing tests, and the container time in seconds."""
        if suite:
            prepared, changed = replace(prepared, project=suite.project), suite.applied(changed)
        tested = await run_tests(self.sandbox, prepared, image, changed, self.limits)
        tests = grade(tested.report, expected).tests
        failing = {test.name for test in tests if test.outcome in {"failed", "error"}}
        return failing, passed_names(tests), tested.execution.duration_s


@dataclass(slots=True, kw_only=True)
class RecordedSolution:
    """A distinct solution of a run, the samples that gave it, and the tests that it passed when graded."""

    key: SolutionKey
    passed: frozenset[str]
    answer: ByteRange
    samples: list[SampleKey] = field(default_factory=list)

    def line(self, **fields: Any) -> AuditLine:
        """Return the line of this solution in audit.jsonl."""
        return AuditLine(
            problem_id=self.key.problem_id,
            solution_sha256=self.key.sha256,
            samples=tuple((each.model, each.format, each.sample) for each in self.samples),
            finished_at=now_utc(),
            **fields,
        )


@dataclass(slots=True)
class AuditTally:
    """Numbers of solutions by outcome, and by infrastructure error if there is no outcome."""

    outcomes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    errors: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    seconds: float = 0.0


def passed_names(tests: Iterable[NamedOutcome]) -> set[str]:
    """Return the names of tests that passed in every occurrence."""
    outcomes = defaultdict(set)
    for test in tests:
        outcomes[test.name].add(test.outcome)
    return {name for name, found in outcomes.items() if found == {"passed"}}


def recorded_solutions(directory: Path, chosen: Callable[[SampleKey], bool]) -> list[RecordedSolution]:
    """Return the distinct graded solutions of the chosen samples."""
    answers = {key: place for key, place, _ in valid_records(directory / "completions.jsonl")}
    found: dict[SolutionKey, RecordedSolution] = {}
    for key, place, record in valid_records(directory / "results.jsonl", check_result):
        is_task = record.get("rewards") is not None  # without tests that could be mutated
        if is_task or record["status"] != "scored" or key not in answers or not chosen(key.first):
            continue
        solved = SolutionKey(key.problem_id, str(record.get("solution_sha256", "")))
        if solved not in found:
            tests = read_record(read_at(directory / "results.jsonl", *place))["tests"]
            failed = {test["name"] for test in tests if test["outcome"] != "passed"}
            passed = frozenset(test["name"] for test in tests) - failed
            found[solved] = RecordedSolution(key=solved, passed=passed, answer=answers[key])
        found[solved].samples.append(key.first)
    return list(found.values())


async def audit(
    directory: Path, config: RunConfig, solutions: Sequence[RecordedSolution], say: Callable[[str], None]
) -> AuditTally:
    """Audit solutions and append one line for each to audit.jsonl.

    Raises:
        EngineUnavailable: Docker Engine cannot be reached.
        ConflictError: another audit of this run is in progress.
        StorageError: a file cannot be read or written.
    """
    tally = AuditTally()
    by_problem: dict[str, list[RecordedSolution]] = defaultdict(list)
    for each in solutions:
        by_problem[each.key.problem_id].append(each)
    problems = [each for each in await chosen_problems(config, say) if each.id in by_problem]
    prepared, failed = await ready_problems(config, problems, say)
    for problem_id, error in failed.items():
        tally.errors[f"{problem_id}: {error}"] += len(by_problem[problem_id])
    with _alone(directory) as log:
        async with open_auditor(config) as (auditor, engine), LenientParser() as lenient:
            failures = FailedImages(cache_root(), retry=config.retry_images)
            images = await ProblemImages.open(engine, prepared, config.image, say, failures=failures)
            work = _Work(directory, auditor, lenient, log, tally, asyncio.Semaphore(2 * config.sandboxes))
            try:
                await together(
                    work.problem(item, images, by_problem[name]) for name, item in prepared.items()
                )
            finally:
                await images.close()
    return tally


@contextmanager
def _alone(directory: Path) -> Iterator[AppendLog]:
    """Open the log while no other audit of the run has it. Raises ConflictError, StorageError."""
    with (directory / AUDIT_LOG).open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            message = f"{directory}: another audit of this run is in progress; wait for it to end"
            raise ConflictError(message) from error
        # Opened under the lock, because opening truncates an incomplete last line.
        with closing(AppendLog.open(directory / AUDIT_LOG)) as log:
            yield log


@asynccontextmanager
async def open_auditor(config: RunConfig) -> AsyncIterator[tuple[Auditor, Engine]]:
    """Open an auditor with its own sandbox. Expected tests are stored in the cache, not in the run."""
    with TemporaryDirectory(prefix="astra-audit-") as folder:
        sandbox = await DockerSandbox.open(run_id="audit", slots=config.sandboxes)
        try:
            cache, limits, path = cache_root() / "expected", config.limits, Path(folder) / "expected.json"
            installed = InstalledModules(cache, sandbox, limits)
            learned = Expectations(path, cache, sandbox, limits, installed=installed)
            yield Auditor(sandbox=sandbox, limits=limits, expectations=learned), sandbox.engine
        finally:
            await sandbox.close()


@dataclass(frozen=True, slots=True)
class _Work:
    """Shared state of an audit in progress."""

    directory: Path
    auditor: Auditor
    lenient: LenientParser
    log: AppendLog
    tally: AuditTally
    at_once: asyncio.Semaphore

    async def problem(
        self, prepared: Prepared, images: ProblemImages, solutions: Sequence[RecordedSolution]
    ) -> None:
        try:
            image = await images.of(prepared.problem.id)
            prepared = await self.auditor.expectations.fitted(prepared, image)
            suites = await self.auditor.suites(prepared, image)
        except EngineUnavailable:
            raise
        except (SandboxError, ExpectationError) as error:
            self.tally.errors[str(error)] += len(solutions)
            return
        self.tally.seconds += suites.seconds
        if not suites.covered:
            for each in solutions:
                self._record(each.line(outcome="not_applicable", reason=suites.reason))
            return
        await together(self._solution(prepared, image, suites, each) for each in solutions)

    async def _solution(
        self, prepared: Prepared, image: str, suites: Suites, solution: RecordedSolution
    ) -> None:
        async with self.at_once:
            integrated = await self._integrated(prepared, solution)
            if not isinstance(integrated, Integrated) or integrated.sha256 != solution.key.sha256:
                self._record(solution.line(outcome="not_applicable", reason=_CHANGED))
                return
            try:
                self._record(await self.auditor.examine(prepared, image, suites, solution, integrated.files))
            except EngineUnavailable:
                raise
            except SandboxError as error:
                self.tally.errors[str(error)] += 1

    async def _integrated(self, prepared: Prepared, solution: RecordedSolution) -> Integrated | Unusable:
        record = read_record(read_at(self.directory / "completions.jsonl", *solution.answer))
        completion = completion_from(record)
        first = solution.samples[0]
        read = await read_answer(completion.text, first.format, completion.finish_reason, self.lenient)
        if isinstance(read, Unusable):
            return read
        return integrate(prepared.project, anchored(read, prepared.project), prepared.policy)

    def _record(self, line: AuditLine) -> None:
        self.log.append(line)
        self.tally.outcomes[line.outcome] += 1
        self.tally.seconds += line.seconds


def not_audited(directory: Path, solutions: Iterable[RecordedSolution]) -> list[RecordedSolution]:
    """Return the solutions that have no line in audit.jsonl yet."""
    done: Mapping[SolutionKey, AuditLine] = read_audit(directory)
    return [each for each in solutions if each.key not in done]


def _evidence(suite: Suite, names: Iterable[str]) -> list[AuditEvidence]:
    found = []
    for name in sorted(names):
        titles = [each for each in suite.mutations if each.title in name]
        mutation = max(titles, key=lambda each: len(each.title))
        found.append(
            AuditEvidence(
                test=name,
                path=mutation.path,
                line=mutation.line,
                before=mutation.before,
                after=mutation.after,
            )
        )
    return found
