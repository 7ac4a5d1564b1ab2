"""Conversion of exceptions into recorded failures of samples, and the kinds of events."""

from __future__ import annotations

import asyncio
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from astra_async.errors import BudgetExhausted, ProjectError, ProviderError, SandboxError, StorageError
from astra_async.redaction import one_line

_RunnerEvent = Literal["budget", "contradicted", "output_lost", "publish_failed", "sandbox_retry", "spent"]

if TYPE_CHECKING:
    from collections.abc import Mapping

    from astra_async.errors import AstraError
    from astra_async.types import Trouble
    from astra_async.types.pools import EventKind

    RecordedKind = EventKind | Trouble | _RunnerEvent
    Stage = Literal["asking", "grading"]

# Meaning of each event kind in events.jsonl.
EVENTS: Mapping[RecordedKind, str] = {
    "provider_error": "a sample is missing: its request failed",
    "project_error": "a sample is missing: its problem's project, image or tests are unusable",
    "sandbox_error": "a sample is missing: its tests could not run",
    "over_budget": "a sample is missing: the budget is spent",
    "rate_limited": "a request was rejected by a rate limit; `seconds` is the provider's hint",
    "overloaded": "the provider is overloaded; `seconds` is its hint",
    "retry": "a connection error, a timeout or HTTP 5xx; `seconds` is the backoff",
    "gave_up": "a request was rejected permanently, or its attempts or time are used up",
    "paused": "all requests of a model wait for `seconds`",
    "parked": "all requests of a model wait for more than ten minutes",
    "resumed": "a pause has ended",
    "cut": "the number of concurrent requests was reduced",
    "paced": "the request rate was limited or reduced",
    "leader_failed": "the first request of a prompt, meant to fill the cache, failed",
    "pool_failed": "the model is disabled because every request would fail",
    "budget": "the model is disabled because the budget is spent; `raise_to_usd` is a sufficient budget",
    "stopped": "a stop: a model sends no more requests, or a sample was left unfinished, with its cost",
    "spent": "the cost of requests that have no other record",
    "batch": "a batch was submitted, has ended, was rejected, or waits for the provider's quota",
    "sandbox_retry": "the container or Docker failed; the tests are retried after `seconds`",
    "contradicted": "a sample contradicts its problem's expected tests; once for each problem",
    "publish_failed": "problems.csv could not be written; the write is retried",
    "output_lost": "outputs.jsonl could not be written; once for each invocation",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """Reason for missing samples, which several problems may share.

    Attributes:
        text: the full error message.
        cause: the message without the place.
        where: the place or problem of the error.
    """

    text: str
    cause: str
    where: str = ""


def reason_of(error: AstraError) -> Reason:
    """Return the reason that an error describes."""
    if isinstance(error, ProjectError):
        return Reason(str(error), error.cause, error.where or error.problem_id)
    return Reason(str(error), str(error))


def is_cancelled() -> bool:
    """Return True if the current task was cancelled, for example by a second signal or its task group."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def kind_of(error: AstraError) -> Trouble:
    """Return the event kind for an error that makes a sample missing."""
    if isinstance(error, BudgetExhausted):
        return "over_budget"
    if isinstance(error, ProviderError):
        return "provider_error"
    return "sandbox_error" if isinstance(error, SandboxError) else "project_error"


def spent(error: AstraError) -> dict[str, object]:
    """Return the event fields with the cost of a failed request, which a resume adds to the spent budget."""
    if not isinstance(error, ProviderError):
        return {}
    return {
        "attempts": error.attempts,
        "cost_usd": error.cost_usd,
        "cost_estimated": error.cost_estimated,
        "status": error.status,
    }


def to_astra_error(raised: BaseException, stage: Stage) -> AstraError:
    """Convert any exception into an AstraError.

    An unexpected exception becomes ProviderError in the stage "asking", else SandboxError.
    """
    error = raised
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ProviderError | ProjectError | SandboxError | StorageError):
        return error
    text = f"unexpected {described(error)}; please report this bug; run the same command to retry the sample"
    return ProviderError(text) if stage == "asking" else SandboxError(text)


def described(error: BaseException) -> str:
    """Format an exception in one line, with the innermost file and line of astra_async in its traceback."""
    text = one_line(f"{type(error).__name__}: {error}")
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "astra_async" in frame.filename]
    if not ours:
        return text
    return f"{text} (at {ours[-1].filename.rpartition('astra_async/')[2]}:{ours[-1].lineno})"
