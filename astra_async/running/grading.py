"""The parts that grade a solution, and the graded run: repeated once if it timed out on a busy machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.testing.timeouts import TIMEOUT_REPEATED
from astra_async.testing.verdict import Examined, run_tests, verdict_on

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from astra_async.answers.lenient import LenientParser
    from astra_async.images.resolve import ProblemImages
    from astra_async.options import KeepOutput
    from astra_async.running.reuse import EarlierVerdicts
    from astra_async.testing.expected import Expectations
    from astra_async.testing.timeouts import Timeouts
    from astra_async.testing.verdict import Submission, Tested
    from astra_async.types import AnswerKey, ExpectedTest, Limits, Sandbox


DISK_WATCHED = "the disk was watched, not bounded"  # in the note of samples; see docs/sandbox.md


@dataclass(frozen=True, slots=True, kw_only=True)
class Examiner:
    """Grades solutions. Without `timeouts`, a run that timed out is not repeated."""

    sandbox: Sandbox
    limits: Limits
    timeouts: Timeouts | None = None

    async def examine(self, entry: Submission, expected: Sequence[ExpectedTest]) -> Examined:
        """Run the tests and give the verdict. Raises SandboxError, ExpectationError."""
        tested, repairs = await self._tested(entry)
        verdict, failure, note = verdict_on(tested, expected)
        return Examined(
            tested=tested,
            verdict=verdict,
            failure=failure,
            note=note or (DISK_WATCHED if tested.execution.disk_watched else ""),
            suspicions=entry.integrated.suspicions,
            repairs=repairs,
        )

    async def _tested(self, entry: Submission) -> tuple[Tested, tuple[str, ...]]:
        """The scored run, and `timeout_repeated` if it is the second one."""
        what = entry.prepared, entry.image, entry.integrated.files, self.limits
        tested = await run_tests(self.sandbox, *what)
        execution = tested.execution
        if not execution.timed_out or self.timeouts is None:
            return tested, ()
        if not self.timeouts.take_repetition(
            *entry.solved, execution.duration_s, strained=execution.strained
        ):
            return tested, ()
        async with self.timeouts.exclusive.alone() as sandbox:
            return await run_tests(sandbox, *what), (TIMEOUT_REPEATED,)


# A restarted or overloaded engine is back within a minute or so.
SANDBOX_RETRY_DELAYS_S = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """The parts and settings that grade answers.

    `images` maps a problem's id to its image, for images that exist; `making` builds the others. At most
    `at_once` gradings run at a time. After a sandbox error a grading is repeated once for each of
    `retry_delays_s`. `timeouts` decides which time-outs are repeated; follow-up turns have their own
    allowance (`turn_timeouts`). `earlier` holds verdicts to reuse, `keep_output` selects the
    outputs to record. With `strict_tests` no sample of a problem is recorded from the first one on that
    contradicts its expected tests.
    """

    sandbox: Sandbox
    images: Mapping[str, str]
    making: ProblemImages | None = None
    expectations: Expectations
    lenient: LenientParser
    limits: Limits
    at_once: int = 4
    retry_delays_s: tuple[float, ...] = SANDBOX_RETRY_DELAYS_S
    timeouts: Timeouts | None = None
    turn_timeouts: Timeouts | None = None
    earlier: EarlierVerdicts | None = None
    keep_output: KeepOutput = "failed"
    strict_tests: bool = False

    def examiner(self, key: AnswerKey) -> Examiner:
        """What runs the tests and judges."""
        timeouts = self.turn_timeouts if key.turn else self.timeouts
        return Examiner(sandbox=self.sandbox, limits=self.limits, timeouts=timeouts)
