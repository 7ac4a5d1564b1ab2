"""Count the samples of a run by outcome, and check the counts when the run ends.

Invariant at the end: planned = final lines + missing, and no key is in both (InvariantError otherwise), so a
child task that disappears from its task group is detected. Each follow-up turn that is due also needs a
final line or is missing; a missing follow-up turn does not change the result of its sample.
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
    """Outcomes of a plan's samples.

    Attributes:
        tally: live counts for the display.
        metrics: scores computed from the final lines.
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
        """True if a sample or a follow-up turn is missing."""
        return bool(self._missing)

    def count_recorded(self) -> None:
        """Count the answers and final lines that earlier invocations recorded."""
        directory = self._setup.directory
        for model in self._plan.models:
            for sample in self._plan.keys(model):
                for turn in range(self._setup.turns.most + 1):
                    key = sample.at(turn)
                    counts, is_final = self.tally.of(key), key in directory.graded
                    counts.final += is_final
                    counts.answered += is_final or key in directory.answered

    def plan_up_to(self, end: int, going: Sequence[str]) -> None:
        """Plan the samples with numbers below `end` for the models in `going`.

        Invariant: the planned samples are those of the rounds begun so far, here and in run.json.
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
            reward=None if result.rewards is None else result.score,
            status=result.status,
            failure=result.failure,
        )

    def add_missing(self, key: AnswerKey, error: AstraError) -> None:
        """Count a key that gets no final line in this invocation.

        Invariant: a key with a final line is never in `_missing`.
        """
        if key in self._setup.directory.graded:
            return
        self._missing.add(key)
        counts = self.tally.of(key)
        counts.missing[kind_of(error)] += 1
        counts.reasons[reason_of(error)] += 1

    def check(self, *, stopped: bool) -> None:
        """Raise InvariantError unless every planned sample is either final or missing.

        If the run was `stopped`, samples may be unfinished.
        """
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
                " please report this bug; the recorded results are valid"
            )
