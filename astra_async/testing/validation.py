"""Check whether a problem can measure a model, with repeated runs of several candidates.

A problem is unfit if its reference fails a test, if repetitions differ, if its tests are not the expected
ones, if the untouched project already passes all tests, if a known faulty answer does not get its known
score, or if an answer could replace the tests. Without a reference a problem is unverified, not unfit.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from astra_async.errors import EngineUnavailable, ProjectError, SandboxError
from astra_async.listing import some
from astra_async.overlay import integrate, replaceable_tests
from astra_async.testing.verdict import limits_for, run_tests, verdict_on
from astra_async.types import Unusable
from astra_async.types.task_work import ORACLE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence

    from astra_async.prepare import Prepared
    from astra_async.testing.expected import Expectations, Expected
    from astra_async.types import Changed, Failure, Limits, NamedOutcome, Sandbox, Solution, Verdict

T = TypeVar("T")
UNTOUCHED = "untouched"
REFERENCE = "reference"
_NAMED = 5  # tests named in a reason
_NEAR = 0.5  # share of the time limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A solution to test. `solution` is None for the untouched project; `expected_passed` may be unknown."""

    name: str
    solution: Solution | None
    expected_passed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetitions:
    """Repeated runs of a candidate: passed tests and seconds of each run, and tests with changing outcomes.

    For a task `passed` holds its scores.

    `failures` are the failures of each run. `unreported` are expected tests that no run reported.
    `unexpected` are unexpected tests that ran. `failed` are the expected tests that did not pass in the first
    run.
    """

    name: str
    passed: tuple[float, ...]
    total: int
    seconds: tuple[float, ...]
    failures: tuple[Failure | None, ...] = ()
    flaky: tuple[str, ...] = ()
    unreported: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    failed: tuple[NamedOutcome, ...] = ()
    dropped: tuple[str, ...] = ()
    expected_passed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """Result for one problem; `reasons` is empty if the problem is fit or unverified.

    `image_bytes` is the image's size on disk, including layers shared with other images. `remarks` are risks
    of a problem that is otherwise fit.
    """

    problem_id: str
    image: str = ""
    image_bytes: int | None = None
    total: int | None = None
    learned_from: str = ""
    tried: tuple[Repetitions, ...] = ()
    reasons: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """`fit`, `unverified` (no reference) or `unfit`."""
        if self.reasons:
            return "unfit"
        confirmed = any(each.name in (REFERENCE, ORACLE.name) for each in self.tried)
        return "fit" if confirmed else "unverified"


async def together(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Await all coroutines and return their results in order.

    If a coroutine fails, the others are cancelled and its exception is raised.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in coroutines]
    except BaseExceptionGroup as failed:
        first: BaseException = failed
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None
    return [task.result() for task in tasks]


@dataclass(frozen=True, slots=True, kw_only=True)
class Validator:
    """Tests candidates on problems in a sandbox."""

    sandbox: Sandbox
    expectations: Expectations
    limits: Limits
    repeat: int
    on_tried: Callable[[str, Repetitions], None] = lambda *_: None

    async def check(self, prepared: Prepared, image: str, faulty: Sequence[Candidate] = ()) -> Validation:
        """Check one problem; an error becomes a reason of this problem. Raises EngineUnavailable."""
        try:
            return await self._check(prepared, image, faulty)
        except EngineUnavailable:
            raise
        except (ProjectError, SandboxError) as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - other problems must still be checked
            reason = f"unexpected {type(error).__name__}: {error}; please report this"
        return Validation(problem_id=prepared.problem.id, image=image, reasons=(reason,))

    async def _check(self, prepared: Prepared, image: str, faulty: Sequence[Candidate]) -> Validation:
        problem_id = prepared.problem.id
        expected = await self.expectations.of(prepared, image)
        prepared = await self.expectations.fitted(prepared, image)
        candidates = [Candidate(name=UNTOUCHED, solution=None)]
        if prepared.reference is not None:
            candidates.append(Candidate(name=REFERENCE, solution=prepared.reference))
        tried = []
        for candidate in (*candidates, *faulty):
            each = await self._try(prepared, image, expected, candidate)
            tried.append(each)
            self.on_tried(problem_id, each)
        reasons = [reason for each in tried for reason in _reasons(each)]
        reasons += _count(tried[0] if prepared.reference is None else tried[1])
        reasons += replaceable_tests(prepared.policy, expected.tests)
        return Validation(
            problem_id=problem_id,
            image=image,
            total=len(expected.tests),
            learned_from=expected.source,
            tried=tuple(tried),
            reasons=tuple(reasons),
            remarks=(
                *([f"T is provisional: {expected.provisional}"] if expected.provisional else []),
                *_near_the_limit(tried, limits_for(prepared, self.limits).timeout_s),
            ),
        )

    async def _try(
        self, prepared: Prepared, image: str, expected: Expected, candidate: Candidate
    ) -> Repetitions:
        changed: Changed = {}
        dropped: tuple[str, ...] = ()
        if candidate.solution is not None:
            integrated = integrate(prepared.project, candidate.solution, prepared.policy)
            if isinstance(integrated, Unusable):
                dropped = (integrated.reason,)
            else:
                changed = integrated.files
                dropped = tuple(f"{item.path} ({item.reason})" for item in integrated.dropped)
        runs = await together(
            run_tests(self.sandbox, prepared, image, changed, self.limits) for _ in range(self.repeat)
        )
        judged = [verdict_on(tested, expected.tests) for tested in runs]
        verdicts = [verdict for verdict, _, _ in judged]
        return Repetitions(
            name=candidate.name,
            passed=tuple(verdict.passed for verdict in verdicts),
            total=len(expected.tests),
            seconds=tuple(tested.execution.duration_s for tested in runs),
            failures=tuple(failure for _, failure, _ in judged),
            flaky=_flaky(verdicts),
            unreported=_unreported(verdicts),
            unexpected=_unexpected(verdicts),
            failed=tuple(test for test in verdicts[0].tests if test.outcome != "passed"),
            dropped=dropped,
            expected_passed=candidate.expected_passed,
        )


def _flaky(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """Return the names of tests whose outcomes differ between repetitions."""
    # All verdicts list the expected tests in the same order.
    repeated = zip(*(verdict.tests for verdict in verdicts), strict=True)
    differing = (tests[0].name for tests in repeated if len({test.outcome for test in tests}) > 1)
    return tuple(dict.fromkeys(differing))


def _unreported(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    reported = {test.name for verdict in verdicts for test in verdict.tests if test.outcome != "missing"}
    names = dict.fromkeys(test.name for verdict in verdicts for test in verdict.tests)
    return tuple(name for name in names if name not in reported)


def _unexpected(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """Return the names of extra tests that ran, without skipped tests and failed hooks."""
    extra = (test for verdict in verdicts for test in verdict.extra_tests)
    return tuple(dict.fromkeys(test.name for test in extra if test.outcome in ("passed", "failed")))


def _count(each: Repetitions) -> list[str]:
    """Return reasons if the tests that ran differ from the expected tests.

    Missing tests count only for the reference, because the untouched project may not reach all tests.
    """
    reasons = []
    if each.unreported and each.name == REFERENCE:
        missing = some(each.unreported, _NAMED, " | ")
        reasons.append(f"{len(each.unreported)} of {each.total} expected tests never ran: {missing}")
    if each.unexpected:
        count = each.total + len(each.unexpected) - len(each.unreported)
        others = some(each.unexpected, _NAMED, " | ")
        reasons.append(f"{count} tests ran and {each.total} are expected; not expected: {others}")
    return reasons


def _near_the_limit(tried: Sequence[Repetitions], limit_s: float) -> tuple[str, ...]:
    """Return a remark if a busier machine could turn a pass into a timeout."""
    slowest = max(tried, key=lambda each: max(each.seconds, default=0.0))
    seconds = max(slowest.seconds, default=0.0)
    if seconds < _NEAR * limit_s or "timeout" in slowest.failures:
        return ()
    remark = (
        f"{slowest.name}: the tests take {seconds:.0f} s of the allowed {limit_s:.0f} s and may time out on a"
        " busier machine; raise timeout_s"
    )
    return (remark,)


def _reasons(each: Repetitions) -> list[str]:
    reasons = []
    if each.flaky:
        reasons.append(f"{each.name}: flaky tests: {' | '.join(each.flaky)}")
    low, high = min(each.passed), max(each.passed)
    passed = str(low) if low == high else f"{low} to {high}"
    if each.name == REFERENCE:
        if low < each.total:
            reasons.append(f"the reference passes {passed} of {each.total}")
        if each.dropped:
            reasons.append(
                f"the reference changes files that an answer may not change: {', '.join(each.dropped)}"
            )
    elif each.name == UNTOUCHED and high == each.total:
        reasons.append(f"the untouched project already passes all {each.total} tests")
    elif each.expected_passed is not None and set(each.passed) != {each.expected_passed}:
        reasons.append(f"{each.name}: passes {passed} of {each.total}, expected {each.expected_passed}")
    return reasons
