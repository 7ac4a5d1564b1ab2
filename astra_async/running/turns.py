"""Follow-up turns of a sample: when they happen, their conversation, and the files of earlier turns.

After a graded answer that fails tests, the model gets feedback and answers again, up to a maximum number of
turns. Answers are cumulative: files that an answer omits keep their content from earlier turns. An unusable
answer changes no file, but counts as a turn. The conversation ends if it no longer fits into the model's
context. It also ends if a solution manipulated its tests, because feedback would tell the model how well the
manipulation worked.

The conversation is computed from the recorded lines, so it is identical byte for byte after a resume.
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
    """Rules for the follow-up turns of a run.

    Attributes:
        most: maximum number of follow-up turns of a sample.
        feedback: feedback mode by problem.
        ended: keys of samples and turns that no further turn may follow.
        recorded_only: grade all recorded turns and request no new ones (a regrade).
    """

    most: int = 0
    feedback: Mapping[str, FeedbackMode] = field(default_factory=dict)
    ended: set[AnswerKey] = field(default_factory=set)
    recorded_only: bool = False

    def add(self, key: AnswerKey, failure: Failure | None) -> None:
        """Add a final line; its failure decides whether another turn may follow."""
        if self.most and is_last(failure):
            self.ended.add(key)

    def next(self, sample: SampleKey, directory: RunDirectory) -> AnswerKey | None:
        """Return the first turn of a graded sample without a final line, or None if no turn may follow."""
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
    """Return the earlier exchanges of a turn's conversation, and the feedback on its last answer."""
    last = key.at(key.turn - 1)
    now = await _feedback(last, prepared, directory, grading, mode)
    earlier: list[Exchange] = []
    sha256 = prepared.prompts[key.format].sha256
    for answer, feedback in _exchanges(key, directory, now.text):
        sha256 = conversation_sha256(sha256, answer, feedback)
        earlier.append(Exchange(answer=answer, feedback=feedback, sha256=sha256))
    return tuple(earlier), now


def characters_before(key: AnswerKey, directory: RunDirectory) -> int:
    """Return the number of characters in a turn's input beyond the prompt."""
    if not key.turn:
        return 0
    exchanges = _exchanges(key, directory, directory.feedback(key))
    return sum(len(answer) + len(feedback) for answer, feedback in exchanges)


async def standing_files(
    key: AnswerKey, prepared: Prepared, directory: RunDirectory, lenient: LenientParser
) -> dict[str, str]:
    """Return the latest version of each file from the usable earlier answers of the sample."""
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
    """Yield (answer, feedback) for each earlier answer; `now` is the feedback on the last one."""
    for turn in range(key.turn):
        answer, _ = directory.completion(key.at(turn))
        following = key.at(turn + 1)
        feedback = now if following == key else directory.feedback(following)
        yield answer_text(answer.text), feedback


async def _feedback(
    last: AnswerKey, prepared: Prepared, directory: RunDirectory, grading: Grading, mode: FeedbackMode
) -> Feedback:
    """Return the feedback on a graded answer. Raises SandboxError, ExpectationError."""
    result = directory.result(last)
    expected = await grading.expectations.of(prepared, grading.images[prepared.problem.id])
    secrets = await asyncio.to_thread(
        Secrets.of, prepared.policy, expected.tests
    )  # must not appear in the feedback
    output = stderr_last(*directory.output(result, last)) if mode == "full" else ""
    standing = _standing(last, directory)
    return await asyncio.to_thread(build_feedback, result, output, secrets, mode=mode, standing=standing)


def _standing(last: AnswerKey, directory: RunDirectory) -> Mapping[str, Any] | None:
    """Return the final line of the latest usable answer up to `last`, or None."""
    for turn in range(last.turn, -1, -1):
        result = directory.result(last.at(turn))
        if result["status"] == "scored":
            return result
    return None
