"""What a pool shows of itself: a snapshot for the display, events for the record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from astra_async.asking.throttle.bucket import BucketState
    from astra_async.types import AnswerKey

# What each tells stands in `running.trouble.EVENTS`.
EventKind = Literal[
    "rate_limited",
    "overloaded",
    "retry",
    "gave_up",
    "paused",
    "parked",
    "resumed",
    "cut",
    "paced",
    "leader_failed",
    "pool_failed",
    "stopped",
    "batch",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolEvent:
    """Why something waited, was repeated or is missing; a line of events.jsonl."""

    kind: EventKind
    model: str
    key: AnswerKey | None = None
    detail: str = ""
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchState:
    """A batch that is with its provider: its id (empty while it is not known), `done` of `requests`."""

    id: str
    state: str
    requests: int
    done: int
    age_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """One pool at one moment.

    `limit` is the concurrency limit L; `send_rate` the requests per second learned from rejections, None
    while nothing was learned; `held_by` what the first call in line waits for; `dead` why no request can
    succeed; `batches` what is with the provider where calls are sent as batches. Tokens and cost are sums
    over all attempts; what a provider left out is estimated.
    """

    model: str
    waiting: int
    held_by: str | None
    calls_ok: int
    rate_limited: int
    retries: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    dead: str | None
    in_flight: int = 0
    limit: int = 0
    buckets: tuple[BucketState, ...] = ()
    send_rate: float | None = None
    paused_for_s: float = 0.0
    pause_reason: str = ""
    tokens_per_minute: float = 0.0
    batches: tuple[BatchState, ...] = ()
