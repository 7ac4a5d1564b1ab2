"""Runs canaries against solutions: is a score the solution's, or did it bend the tests?

Only for solutions above the untouched project's score, and by default only for those that the static screen
suspects. Every look is an invocation of its own in a container of its own; the scored run knows nothing of
it. An accusation is checked first against the problem itself: where the reference, or else the untouched
project, makes the same falsehoods pass, the problem's tests are odd and nobody is accused.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from astra_async.integrity.canary import emptied, passed, plant, was_seen
from astra_async.overlay import integrate
from astra_async.testing.counting import grade
from astra_async.testing.verdict import run_tests
from astra_async.types import Unusable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from astra_async.integrity.canary import Canary
    from astra_async.overlay import PathPolicy
    from astra_async.problems.prepare import Prepared
    from astra_async.testing.expected import Expectations
    from astra_async.testing.verdict import Tested
    from astra_async.types import Integrated, Limits, Problem, Project, Sandbox, TestReport, Verdict

    _Make = Callable[[Problem, Project, PathPolicy, random.Random], Canary | None]

_LEAST_S = 60.0  # for a canary's run, beyond which it is given up; and so many times the scored run
_TIMES = 5.0
_NAMED = 3  # cases named in a record
CANARY_ABSENT = "canary_absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a look has shown: `suspicions` for the record; `proof` is one line if the tests were bent."""

    suspicions: tuple[str, ...] = ()
    proof: str = ""


@dataclass(frozen=True, slots=True)
class _Problem:
    """A problem, the image of its tests, and the tests that count."""

    prepared: Prepared
    image: str

    @property
    def id(self) -> str:
        return self.prepared.problem.id


class Inspector:
    """Looks at solutions of one run; what it learns about a problem it learns once.

    `rng` names the canaries, unpredictably for the code under test.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        expectations: Expectations,
        limits: Limits,
        *,
        suspicious_only: bool = True,
        rng: random.Random | None = None,
    ) -> None:
        self._sandbox = sandbox
        self._expectations = expectations
        self._limits = limits
        self._suspicious_only = suspicious_only
        self._rng = rng or random.SystemRandom()
        self._odd: dict[str, bool] = {}
        self._emptiable: dict[str, frozenset[str]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def look(
        self, prepared: Prepared, image: str, integrated: Integrated, tested: Tested, verdict: Verdict
    ) -> Finding:
        """What canaries show about a solution whose tests have run. Raises SandboxError, ExpectationError."""
        problem = _Problem(prepared, image)
        if not await self._is_due(problem, integrated, verdict):
            return Finding()
        seconds = _LEAST_S + _TIMES * tested.execution.duration_s
        planted = self._canary(plant, problem)
        if planted is None:
            return Finding()
        report = await self._report(problem, integrated.files, planted, seconds)
        bent = passed(planted, report)
        if bent and not await self._is_odd(problem, seconds):
            return _proof("canary_passed", bent, "a test that must fail is reported as passed")
        if was_seen(planted, report):
            return Finding()
        forged = await self._forged(problem, integrated.files, verdict, seconds)
        if forged:
            return _proof("report_forged", forged, "reported as passed in a run where no test has this name")
        return Finding(suspicions=(CANARY_ABSENT,))

    async def _is_due(self, problem: _Problem, integrated: Integrated, verdict: Verdict) -> bool:
        """Whether the solution has a score of its own, and is suspected or everybody is looked at."""
        if verdict.passed == 0 or (self._suspicious_only and not integrated.suspicions):
            return False
        return verdict.passed > await self._expectations.untouched(problem.prepared, problem.image)

    async def _forged(
        self, problem: _Problem, changed: Mapping[str, bytes], verdict: Verdict, seconds: float
    ) -> tuple[str, ...]:
        """Tests of the verdict that are reported as passed although the project's tests were taken away."""
        canary = self._canary(emptied, problem)
        if canary is None:
            return ()
        report = await self._report(problem, changed, canary, seconds)
        names = {test.name for test in verdict.tests}
        claimed = await self._outcomes(problem, report)
        suspected = [name for name in names if "passed" in claimed.get(name, ())]
        if not suspected:
            return ()
        emptiable = await self._known_emptiable(problem, seconds)
        return tuple(sorted(name for name in suspected if name in emptiable))

    async def _is_odd(self, problem: _Problem, seconds: float) -> bool:
        """Whether falsehoods pass without any solution."""
        async with self._locks.setdefault(problem.id, asyncio.Lock()):
            if problem.id not in self._odd:
                base = _base(problem.prepared)
                canary = self._canary(plant, problem)
                report = await self._report(problem, base, canary, seconds) if canary else None
                self._odd[problem.id] = bool(canary and report and passed(canary, report))
            return self._odd[problem.id]

    async def _known_emptiable(self, problem: _Problem, seconds: float) -> frozenset[str]:
        """Tests that are reported normally, and no longer when the project's test files are emptied."""
        async with self._locks.setdefault(problem.id, asyncio.Lock()):
            if problem.id not in self._emptiable:
                base = _base(problem.prepared)
                canary = self._canary(emptied, problem)
                before = await self._report(problem, base, None, seconds)
                after = await self._report(problem, base, canary, seconds)
                present = await self._outcomes(problem, before)
                left = await self._outcomes(problem, after)
                self._emptiable[problem.id] = frozenset(present) - frozenset(left)
            return self._emptiable[problem.id]

    def _canary(self, make: _Make, problem: _Problem) -> Canary | None:
        prepared = problem.prepared
        return make(prepared.problem, prepared.project, prepared.policy, self._rng)

    async def _report(
        self, problem: _Problem, changed: Mapping[str, bytes], canary: Canary | None, seconds: float
    ) -> TestReport:
        timeout_s = min(seconds, problem.prepared.problem.timeout_s or self._limits.timeout_s)
        hurried = replace(problem.prepared, problem=replace(problem.prepared.problem, timeout_s=timeout_s))
        files = {**changed, **canary.files} if canary else changed
        tested = await run_tests(self._sandbox, hurried, problem.image, files, self._limits)
        return tested.report

    async def _outcomes(self, problem: _Problem, report: TestReport) -> dict[str, set[str]]:
        """Expected tests that the report tells of, with what it says."""
        expected = await self._expectations.of(problem.prepared, problem.image)
        found: dict[str, set[str]] = {}
        for test in grade(report, expected.tests).tests:
            if test.outcome != "missing":
                found.setdefault(test.name, set()).add(test.outcome)
        return found


def _base(prepared: Prepared) -> Mapping[str, bytes]:
    """The reference's files where there is one that can be used, else none."""
    if prepared.reference is None:
        return {}
    integrated = integrate(prepared.project, prepared.reference, prepared.policy)
    return {} if isinstance(integrated, Unusable) else integrated.files


def _proof(name: str, cases: tuple[str, ...], what: str) -> Finding:
    return Finding(
        suspicions=tuple(f"{name}:{case[:100].replace(';', ',')}" for case in cases[:_NAMED]),
        proof=f"{what}: {cases[0][:200]}" + (f" and {len(cases) - 1} more" if len(cases) > 1 else ""),
    )
