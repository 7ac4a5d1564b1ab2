"""What grading works with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.testing.examination import Examiner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.answers.lenient import LenientParser
    from astra_async.images.resolve import ProblemImages
    from astra_async.options import KeepOutput
    from astra_async.running.reuse import EarlierVerdicts
    from astra_async.testing.expected import Expectations
    from astra_async.testing.timeouts import Timeouts
    from astra_async.types import AnswerKey, Limits, Sandbox

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
