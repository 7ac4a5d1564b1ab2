"""Grade a solution: run its tests, repeat a run that timed out, give the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.testing.examined import Examined
from astra_async.testing.timeouts import TIMEOUT_REPEATED
from astra_async.testing.verdict import run_tests, verdict_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.testing.examined import Entry
    from astra_async.testing.timeouts import Timeouts
    from astra_async.testing.verdict import Tested
    from astra_async.types import ExpectedTest, Limits, Sandbox

DISK_WATCHED = "the disk was watched, not bounded"  # in the note of samples; see docs/sandbox.md


@dataclass(frozen=True, slots=True, kw_only=True)
class Examiner:
    """Grades solutions. Without `timeouts`, a run that timed out is not repeated."""

    sandbox: Sandbox
    limits: Limits
    timeouts: Timeouts | None = None

    async def examine(self, entry: Entry, expected: Sequence[ExpectedTest]) -> Examined:
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

    async def _tested(self, entry: Entry) -> tuple[Tested, tuple[str, ...]]:
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
