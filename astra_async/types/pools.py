"""State and events of a model's pool, for the display and for events.jsonl."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from astra_async.types.samples import AnswerKey

# Described in `running.trouble.EVENTS`.
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
    """Reason why requests of a model wait, are retried or are missing: a line of events.jsonl."""

    kind: EventKind
    model: str
    key: AnswerKey | None = None
    detail: str = ""
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchState:
    """Batch at a provider; its id is empty until the provider has confirmed it."""

    id: str
    state: str
    requests: int
    done: int
    age_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketState:
    """Limit per minute of requests or tokens; a negative level was sent in advance."""

    dimension: str
    limit_per_minute: float
    level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """State of one pool. Tokens and cost cover all attempts and include estimates of unreported tokens.

    Attributes:
        held_by: reason why the first request in the queue waits; None if no request waits.
        dead: reason why the model is disabled, else None.
        limit: the concurrency limit.
        send_rate: requests per second learned from rejections, None while unknown.
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
