"""A solution from its files to its verdict: the tests, a time-out's repetition, the trial by a twin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.integrity.docket import Solved
from astra_async.integrity.trials import Accused
from astra_async.testing.timeouts import TIMEOUT_REPEATED
from astra_async.testing.verdict import judge, none_passed, run_tests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.integrity.trials import Finding, Trials
    from astra_async.problems.prepare import Prepared
    from astra_async.testing.timeouts import Timeouts
    from astra_async.testing.verdict import Tested
    from astra_async.types import ExpectedTest, Failure, Integrated, Limits, Sandbox, Verdict

DISK_WATCHED = "the disk was watched, not bounded"  # in the note of samples; see docs/integrity.md


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What the scored run was, what it is worth, and what else there is to say about it."""

    tested: Tested
    verdict: Verdict
    failure: Failure | None
    note: str = ""
    suspicions: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    trial: Finding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Examiner:
    """Examines solutions; without `trials` nobody is tried, without `timeouts` nothing is repeated."""

    sandbox: Sandbox
    limits: Limits
    trials: Trials | None = None
    timeouts: Timeouts | None = None

    async def examine(
        self,
        prepared: Prepared,
        image: str,
        integrated: Integrated,
        expected: Sequence[ExpectedTest],
        *,
        model: str = "",
    ) -> Examined:
        """Run the tests and judge. Raises SandboxError, ExpectationError."""
        solved = Solved(prepared.problem.id, integrated.sha256)
        scored = prepared
        if self.trials is not None:
            scored = await self.trials.disguised(prepared, image, solved)
        tested, repairs = await self._tested(scored, image, integrated)
        verdict, failure, note = judge(tested, expected)
        if tested.execution.disk_watched:
            note = note or DISK_WATCHED
        suspicions, found = integrated.suspicions, None
        if self.trials is not None:
            accused = Accused(
                solved=solved,
                model=model,
                integrated=integrated,
                verdict=verdict,
                seconds=tested.execution.duration_s,
            )
            found = await self.trials.of(accused, prepared, image)
            suspicions += found.suspicions
            if proof := found.decision.note:
                verdict, failure, note = none_passed(verdict), "tampered", proof
        return Examined(
            tested=tested,
            verdict=verdict,
            failure=failure,
            note=note,
            suspicions=suspicions,
            repairs=repairs,
            trial=found,
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
        if not self.timeouts.take_repetition(
            problem_id, integrated.sha256, execution.duration_s, strained=execution.strained
        ):
            return tested, ()
        async with self.timeouts.exclusive.alone() as sandbox:
            return await run_tests(sandbox, prepared, image, files, self.limits), (TIMEOUT_REPEATED,)
