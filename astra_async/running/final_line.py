"""The final line (result record) of an answer: fields of all outcomes, and of each outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import convert

from astra_async.log import now_utc
from astra_async.running.reuse import note_of_reuse
from astra_async.testing.verdict import tail
from astra_async.types import NamedOutcome, Result
from astra_async.types.records import SCHEMA, read_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.harbor.verified import Verified
    from astra_async.running.evidence import Evidence
    from astra_async.testing.verdict import Examined
    from astra_async.types import AnswerKey, Completion, ExpectedTest, Integrated, Prompt, Solution, Unusable

# Fields of the completion that are copied into its final line.
_OF_THE_COMPLETION = (
    *("finish_reason", "usage", "cost_usd", "cost_estimated", "attempts", "ttft_s", "latency_s"),
    *("returned_model", "agent"),
)


@dataclass(frozen=True, slots=True)
class FinalLine:
    """Builder of an answer's final line.

    Attributes:
        characters_before: characters in the earlier conversation of a follow-up turn.
        provisional: True if no complete test run has confirmed the expected tests (T).
    """

    key: AnswerKey
    completion: Completion
    started_at: str
    prompt: Prompt
    characters_before: int
    provisional: bool = False

    def without_solution(self, outcome: Unusable, expected: tuple[ExpectedTest, ...]) -> Result:
        """Return the line for an answer without a usable solution: 0 of the expected tests pass."""
        return self._final(
            status="no_solution",
            failure=outcome.failure,
            passed=0,
            total=len(expected),
            tests=tuple(NamedOutcome(name=test.name, outcome="missing") for test in expected),
            repairs=outcome.repairs,
            note=outcome.reason,
        )

    def scored(
        self, solution: Solution, integrated: Integrated, examined: Examined, evidence: Evidence
    ) -> Result:
        """Return the line for a solution whose tests ran."""
        execution, verdict, failure = examined.tested.execution, examined.verdict, examined.failure
        return self._final(
            status="scored",
            failure=failure,
            passed=verdict.passed,
            total=verdict.total,
            tests=evidence.tests,
            extra_tests=verdict.extra_tests,
            exit_code=execution.exit_code,
            timed_out=execution.timed_out,
            test_s=round(execution.duration_s, 3),
            image_id=execution.image_id,
            node=execution.node,
            output_tail=tail(evidence.output) if failure else "",
            note=examined.note,
            repairs=(*solution.repairs, *examined.repairs),
            suspicions=examined.suspicions,
            **_applied(integrated),
        )

    def reused(self, solution: Solution, integrated: Integrated, equal: Mapping[str, Any]) -> Result:
        """Return the line with the verdict of a sample with the same solution; `equal` is its final line."""
        return self._final(
            status="scored",
            note=note_of_reuse(self.key, read_key(equal)),
            repairs=solution.repairs,
            **_same_verdict(equal),
            **_applied(integrated),
        )

    def verified(self, verified: Verified) -> Result:
        """Return the line of a task's sample: the verifier's rewards, and its tests as `extra_tests`."""
        is_full = verified.score == 1
        return self._final(
            status="scored",
            failure=None if is_full else "tests_failed",
            passed=int(is_full),
            total=1,
            score=verified.score,
            rewards=verified.rewards,
            extra_tests=verified.tests,
            exit_code=verified.exit_code,
            test_s=round(verified.seconds, 3),
            image_id=verified.image_id,
            output_tail="" if is_full else tail(verified.output),
            repairs=(),
        )

    def _final(self, *, repairs: tuple[str, ...], passed: int, total: int, **fields: Any) -> Result:
        key, completion = self.key, self.completion
        fields |= {name: getattr(completion, name) for name in _OF_THE_COMPLETION}
        fields |= {"turn": key.turn} if key.turn else {}
        fields.setdefault("score", passed / total)
        return Result(
            schema=SCHEMA,
            model=key.model,
            format=key.format,
            problem_id=key.problem_id,
            sample=key.sample,
            passed=passed,
            total=total,
            provisional=self.provisional,
            repairs=(*completion.repairs, *repairs),
            input_characters=len(self.prompt.text) + self.characters_before,
            output_characters=len(completion.text),
            prompt_sha256=self.prompt.sha256,
            started_at=self.started_at,
            finished_at=now_utc(),
            **fields,
        )


def _same_verdict(equal: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a final line that depend only on the solution."""
    names = ("failure", "passed", "total", "exit_code", "timed_out", "test_s", "image_id", "output_tail")
    fields = {name: equal[name] for name in names}
    tests = {name: convert(equal[name], tuple[NamedOutcome, ...]) for name in ("tests", "extra_tests")}
    return fields | tests | {"suspicions": tuple(equal["suspicions"])}


def _applied(integrated: Integrated) -> dict[str, Any]:
    names = ("dropped", "changes", "files_changed", "lines_written")
    return {name: getattr(integrated, name) for name in names} | {"solution_sha256": integrated.sha256}
