"""What becomes of any exception of any package: one sample's trouble, named and recorded."""

from __future__ import annotations

import asyncio
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from astra_async.errors import ProjectError, ProviderError, SandboxError, StorageError
from astra_async.redaction import one_line

_RunnerEvent = Literal["budget", "contradicted", "output_lost", "publish_failed", "sandbox_retry", "spent"]

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.errors import AstraError
    from astra_async.types import Trouble
    from astra_async.types.pools import EventKind

    RecordedKind = EventKind | Trouble | _RunnerEvent
    Stage = Literal["asking", "grading"]

# What a line of events.jsonl tells, by its kind.
EVENTS: Mapping[RecordedKind, str] = {
    "provider_error": "a sample is missing: its call got no answer",
    "project_error": "a problem's samples are missing: its project, image or tests cannot be used",
    "sandbox_error": "a sample is missing: its tests could not be run",
    "rate_limited": "a request was rejected; `seconds` is the provider's hint",
    "overloaded": "the provider is short of capacity; `seconds` is its hint",
    "retry": "a connection, a time-out or a 5xx; `seconds` is the back-off",
    "gave_up": "a call was refused, or has used up its attempts or its time",
    "paused": "a model's calls wait, all of them; `seconds` is how long",
    "parked": "the same for over ten minutes",
    "resumed": "a pause has ended",
    "cut": "fewer calls at once",
    "paced": "a rate of sending was learned or lowered",
    "leader_failed": "a prompt's first call, which was to warm the cache, got no answer",
    "pool_failed": "no call of this model can succeed; nothing more is asked of it",
    "budget": "a model's money is spent; nothing more is asked of it",
    "stopped": "of a model: no more calls begin; of a sample: what a stop ended, and its cost",
    "spent": "the cost of a model's calls that ended without any other record",
    "batch": "a batch was submitted, has ended, was refused, or waits for room at the provider",
    "sandbox_retry": "the container or the engine failed; the tests are tried again after `seconds`",
    "contradicted": "a sample contradicts the expected tests of its problem; recorded once for a problem",
    "publish_failed": "problems.csv could not be written; it is tried again",
    "output_lost": "outputs.jsonl could not be written; recorded once in each call of the command",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why samples are missing: the error in full, its cause, and where it was met: problems may share one."""

    text: str
    cause: str
    where: str = ""


def reason_of(error: AstraError) -> Reason:
    """The reason that an error gives."""
    if isinstance(error, ProjectError):
        return Reason(str(error), error.cause, error.where or error.problem_id)
    return Reason(str(error), str(error))


def is_cancelled() -> bool:
    """Whether somebody wants the current task to end (a second signal, a task group)."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def kind_of(error: AstraError) -> Trouble:
    """What the record calls a trouble that is not the model's."""
    if isinstance(error, ProviderError):
        return "provider_error"
    return "sandbox_error" if isinstance(error, SandboxError) else "project_error"


def spent(error: AstraError) -> dict[str, object]:
    """What a call that gave no answer has cost: the budget counts it after a resume too."""
    if not isinstance(error, ProviderError):
        return {}
    return {
        "attempts": error.attempts,
        "cost_usd": error.cost_usd,
        "cost_estimated": error.cost_estimated,
        "status": error.status,
    }


def to_astra_error(raised: BaseException, stage: Stage) -> AstraError:
    """What a sample's record says of any exception; one that no package should raise becomes its stage's."""
    error = raised
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ProviderError | ProjectError | SandboxError | StorageError):
        return error
    text = f"unexpected {described(error)}; please report this, the same command repeats the sample"
    return ProviderError(text) if stage == "asking" else SandboxError(text)


def described(error: BaseException) -> str:
    """An unexpected exception in one line, with the place of ours where it came through."""
    text = one_line(f"{type(error).__name__}: {error}")
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "astra_async" in frame.filename]
    if not ours:
        return text
    return f"{text} (at {ours[-1].filename.rpartition('astra_async/')[2]}:{ours[-1].lineno})"
