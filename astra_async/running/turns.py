"""Further turns of a sample: what goes on, what was said until now, and which files stay.

A sample goes on after a graded answer that did not pass all tests, for at most so many turns. Its answers are
cumulative: files that a turn leaves out stay as the earlier turns made them. A turn whose answer cannot be
used changes none of them; it has used its turn. A conversation that no longer fits into the model's context
ends, and so does one with a solution that bent its tests: nobody is told how near that came.

Everything that is said follows from the record, so that a resumed conversation is the same to the byte.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from astra_async.answers.lenient import read_answer
from astra_async.asking.feedback import Secrets, answer_text, build_feedback, conversation_sha256
from astra_async.overlay import anchored
from astra_async.running.evidence import stderr_last
from astra_async.types import Exchange, Solution, is_last

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from astra_async.answers.lenient import LenientParser
    from astra_async.asking.feedback import Feedback
    from astra_async.options import FeedbackMode
    from astra_async.prepare import Prepared
    from astra_async.running.directory import RunDirectory
    from astra_async.running.grading import Grading
    from astra_async.types import AnswerKey, Failure, SampleKey, TurnKey


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPlan:
    """How samples of a run go on.

    `most` turns each, with what is said by problem. `ended` are lines, of samples and of turns, after which
    nothing more is said. With `recorded_only` (a regrade) all that was answered is graded, and nothing more.
    """

    most: int = 0
    feedback: Mapping[str, FeedbackMode] = field(default_factory=dict)
    ended: set[AnswerKey] = field(default_factory=set)
    recorded_only: bool = False

    def add(self, key: AnswerKey, failure: Failure | None) -> None:
        """Take notice of a final line."""
        if self.most and is_last(failure):
            self.ended.add(key)

    def next(self, sample: SampleKey, directory: RunDirectory) -> AnswerKey | None:
        """The first turn of a graded sample that has no final line yet; None where it has come to its end."""
        key: AnswerKey = sample
        for turn in range(1, self.most + 1):
            if key in self.ended and not self.recorded_only:
                return None
            key = sample.at(turn)
            if key not in directory.graded:
                return None if self.recorded_only and key not in directory.answered else key
        return None


async def conversation(
    key: TurnKey, prepared: Prepared, directory: RunDirectory, grading: Grading, mode: FeedbackMode
) -> tuple[tuple[Exchange, ...], Feedback]:
    """The conversation that this turn goes on with, and what is said to the last answer now."""
    last = key.at(key.turn - 1)
    now = await _feedback(last, prepared, directory, grading, mode)
    earlier: list[Exchange] = []
    sha256 = prepared.prompts[key.format].sha256
    for answer, feedback in _exchanges(key, directory, now.text):
        sha256 = conversation_sha256(sha256, answer, feedback)
        earlier.append(Exchange(answer=answer, feedback=feedback, sha256=sha256))
    return tuple(earlier), now


def characters_before(key: AnswerKey, directory: RunDirectory) -> int:
    """Characters of a turn's input beyond the prompt."""
    if not key.turn:
        return 0
    exchanges = _exchanges(key, directory, directory.feedback(key))
    return sum(len(answer) + len(feedback) for answer, feedback in exchanges)


async def standing_files(
    key: AnswerKey, prepared: Prepared, directory: RunDirectory, lenient: LenientParser
) -> dict[str, str]:
    """The files that earlier answers of the sample gave, the latest of each; those that could be used."""
    files: dict[str, str] = {}
    for turn in range(key.turn):
        earlier = key.at(turn)
        if directory.result(earlier)["status"] == "scored":
            answer, _ = directory.completion(earlier)
            solution = await read_answer(answer.text, key.format, answer.finish_reason, lenient)
            if isinstance(solution, Solution):
                files |= anchored(solution, prepared.project).files
    return files


def _exchanges(key: AnswerKey, directory: RunDirectory, now: str) -> Iterator[tuple[str, str]]:
    """Each earlier answer with what was said to it; `now` is said to the last one."""
    for turn in range(key.turn):
        answer, _ = directory.completion(key.at(turn))
        following = key.at(turn + 1)
        feedback = now if following == key else directory.feedback(following)
        yield answer_text(answer.text), feedback


async def _feedback(
    last: AnswerKey, prepared: Prepared, directory: RunDirectory, grading: Grading, mode: FeedbackMode
) -> Feedback:
    """What is said to a graded answer. Raises SandboxError, ExpectationError."""
    result = directory.result(last)
    expected = await grading.expectations.of(prepared, grading.images[prepared.problem.id])
    secrets = await asyncio.to_thread(Secrets.of, prepared.policy, expected.tests)  # not to be said
    output = stderr_last(*directory.output(result, last)) if mode == "full" else ""
    standing = _standing(last, directory)
    return await asyncio.to_thread(build_feedback, result, output, secrets, mode=mode, standing=standing)


def _standing(last: AnswerKey, directory: RunDirectory) -> Mapping[str, Any] | None:
    """The final line of the answer whose files stay when the last one could not be used."""
    for turn in range(last.turn, -1, -1):
        result = directory.result(last.at(turn))
        if result["status"] == "scored":
            return result
    return None
