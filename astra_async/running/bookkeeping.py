"""What becomes of the samples of a run: counted while it runs, and checked in the end.

End invariant: planned = final lines + missing, each key once (InvariantError otherwise): a child task
that vanishes from the task group cannot go unnoticed. A turn that has to come is final or missing as well;
one that is missing leaves its sample as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astra_async.errors import InvariantError
from astra_async.running.plan import Tally
from astra_async.running.trouble import kind_of, reason_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.errors import AstraError
    from astra_async.metrics import Metrics
    from astra_async.running.plan import Plan
    from astra_async.running.sample import Setup
    from astra_async.types import AnswerKey, Result


class Bookkeeping:
    """A plan's samples by what became of them.

    Attributes:
        tally: counts for the display, current at every moment.
        metrics: of the final lines.
    """

    def __init__(self, plan: Plan, setup: Setup, metrics: Metrics) -> None:
        self.tally = Tally(planned=plan.size)
        self.metrics = metrics
        self._plan = plan
        self._setup = setup
        self._asked = dict.fromkeys(plan.models, plan.samples)
        self._missing: set[AnswerKey] = set()

    @property
    def has_missing(self) -> bool:
        """Whether a sample or a turn is missing."""
        return bool(self._missing)

    def count_recorded(self) -> None:
        """Take in what earlier calls have recorded."""
        directory = self._setup.directory
        for model in self._plan.models:
            for sample in self._plan.keys(model):
                for turn in range(self._setup.turns.most + 1):
                    key = sample.at(turn)
                    counts, is_final = self.tally.of(key), key in directory.graded
                    counts.final += is_final
                    counts.answered += is_final or key in directory.answered

    def plan_up_to(self, end: int, going: Sequence[str]) -> None:
        """Plan the samples below `end` of the models that go on.

        Invariant: what is planned is what has been asked for in the rounds begun, here and in run.json.
        """
        for model in going:
            self._asked[model] = end
        for (model, _), planned in self.metrics.planned.items():
            if model in going:
                planned |= {problem: max(end, k) for problem, k in planned.items()}
        cells = len(self._plan.formats) * len(self._plan.problem_ids)
        self.tally.planned = cells * sum(self._asked.values())

    def add_final(self, result: Result) -> None:
        """Count a recorded final line."""
        self._setup.turns.add(result.key, result.failure)
        self.tally.of(result.key).final += 1
        if result.key.turn:
            return
        self.metrics.add(
            *(result.model, result.format, result.problem_id, result.passed, result.total),
            status=result.status,
            failure=result.failure,
        )

    def add_missing(self, key: AnswerKey, error: AstraError) -> None:
        """The key has no final line, and gets none in this call.

        Invariant: a key is in `_missing` once, and never if it has its final line.
        """
        if key in self._setup.directory.graded:
            return
        self._missing.add(key)
        counts = self.tally.of(key)
        counts.missing[kind_of(error)] += 1
        counts.reasons[reason_of(error)] += 1

    def check(self, *, stopped: bool) -> None:
        """No planned sample is final and missing, and none is neither, those apart that a stop left out."""
        directory = self._setup.directory
        done = directory.graded if self._setup.grading else directory.answered | directory.graded
        lost: list[AnswerKey] = []
        twice: list[AnswerKey] = []
        for model in self._plan.models:
            for key in self._plan.keys(model):
                if key.sample >= self._asked[model]:
                    continue
                if key in done and key in self._missing:
                    twice.append(key)
                elif not stopped and key not in done and key not in self._missing:
                    lost.append(key)
                following = self._setup.turns.next(key, directory) if not stopped and key in done else None
                if following is not None and following not in self._missing:
                    lost.append(following)
        if lost or twice:
            named = ", ".join(str(key) for key in (lost + twice)[:5])
            raise InvariantError(
                f"{len(lost)} samples are neither recorded nor missing, {len(twice)} are both: {named};"
                " please report this, the recorded lines are sound"
            )
