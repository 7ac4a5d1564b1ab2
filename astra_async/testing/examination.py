"""A solution from its files to its verdict: the tests, a time-out's repetition, the look for tampering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.testing.timeouts import TIMEOUT_REPEATED
from astra_async.testing.verdict import judge, none_passed, run_tests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.integrity.inspection import Inspector
    from astra_async.problems.prepare import Prepared
    from astra_async.testing.timeouts import Timeouts
    from astra_async.testing.verdict import Tested
    from astra_async.types import ExpectedTest, Failure, Integrated, Limits, Sandbox, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What the scored run was, what it is worth, and what else there is to say about it."""

    tested: Tested
    verdict: Verdict
    failure: Failure | None
    note: str = ""
    suspicions: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Examiner:
    """Examines solutions; without `inspector` no canary runs, without `timeouts` nothing is repeated."""

    sandbox: Sandbox
    limits: Limits
    inspector: Inspector | None = None
    timeouts: Timeouts | None = None

    async def examine(
        self, prepared: Prepared, image: str, integrated: Integrated, expected: Sequence[ExpectedTest]
    ) -> Examined:
        """Run the tests and judge. Raises SandboxError, ExpectationError."""
        tested, repairs = await self._tested(prepared, image, integrated)
        verdict, failure, note = judge(tested, expected)
        suspicions = integrated.suspicions
        if self.inspector is not None:
            found = await self.inspector.look(prepared, image, integrated, tested, verdict)
            suspicions += found.suspicions
            if found.proof:
                verdict, failure, note = none_passed(verdict), "tampered", found.proof
        return Examined(
            tested=tested,
            verdict=verdict,
            failure=failure,
            note=note,
            suspicions=suspicions,
            repairs=repairs,
        )

    async def _tested(
        self, prepared: Prepared, image: str, integrated: Integrated
    ) -> tuple[Tested, tuple[str, ...]]:
        """The scored run, and `timeout_repeated` if it is the second one."""
        files = integrated.files
        tested = await run_tests(self.sandbox, prepared, image, files, self.limits)
        execution, problem_id = tested.execution, prepared.problem.id
        if not execution.timed_out or self.timeouts is None:
            return tested, ()
        if not self.timeouts.may_repeat(problem_id, integrated.sha256, execution.duration_s):
            return tested, ()
        async with self.timeouts.turns.alone() as sandbox:
            return await run_tests(sandbox, prepared, image, files, self.limits), (TIMEOUT_REPEATED,)
