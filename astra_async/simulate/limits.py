"""State of a simulated provider: rate limits, prompt cache, and their clocks.

Limits are exact token buckets with continuous refill, one pair per model. A prompt is cached from the first
token of its first answer.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from astra_async.types.simulation import SimulationSettings

Dimension = Literal["requests", "tokens"]
# Requests sent before their client received the rejection do not count as violations of the pause.
GRACE_S = 0.1
_ROUNDING = 1e-6
SMALLEST_TOKENS = 1024  # shorter prompts are never cached (at OpenAI and Anthropic)
_KEPT = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Clocks: monotonic seconds for limits and cache, Unix time for response headers."""

    monotonic: Callable[[], float] = time.monotonic
    unix: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitWindow:
    """One limit as announced in a response.

    `reset_s` is the number of seconds until the bucket is full, `reset_at` the Unix time of that moment.
    """

    dimension: Dimension
    limit: float
    remaining: float
    reset_s: float
    reset_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A rejected request. It would fit after `wait_s` seconds, or `never` if it exceeds the limit."""

    dimension: Dimension
    limit: float
    requested: float
    wait_s: float
    never: bool = False
    announced: bool = False  # the request ignored the pause announced by an earlier rejection


class _Bucket:
    def __init__(self, dimension: Dimension, per_minute: float, burst_s: float, now: float) -> None:
        self.dimension: Dimension = dimension
        self.per_minute = per_minute
        self.rate = per_minute / 60
        self.capacity = max(1.0, self.rate * burst_s)
        self.level = self.capacity
        self.at = now

    def refill(self, now: float) -> None:
        self.level = min(self.capacity, self.level + (now - self.at) * self.rate)
        self.at = now

    def wait_s(self, amount: float) -> float:
        # A request larger than the bucket is admitted when the bucket is full; the level becomes negative.
        missing = min(amount, self.capacity) - self.level
        return missing / self.rate if missing > _ROUNDING else 0.0

    def rejected(self, amount: float, wait_s: float = 0.0, **about: bool) -> Rejected:
        limit = self.per_minute
        return Rejected(dimension=self.dimension, limit=limit, requested=amount, wait_s=wait_s, **about)

    def window(self, unix: float) -> LimitWindow:
        reset_s = (self.capacity - self.level) / self.rate
        return LimitWindow(
            dimension=self.dimension,
            limit=self.per_minute,
            remaining=max(0.0, math.floor(self.level + _ROUNDING)),
            reset_s=reset_s,
            reset_at=unix + reset_s,
        )


class RateLimiter:
    """Admits or rejects requests. A rejected request uses no tokens of the buckets."""

    def __init__(self, settings: SimulationSettings, clocks: Clocks) -> None:
        self._settings = settings
        self._clocks = clocks
        self._buckets: dict[str, tuple[_Bucket, ...]] = {}
        self._pauses: dict[str, tuple[float, float]] = {}

    def admit(self, model: str, tokens: float) -> Rejected | None:
        """Take one request and its tokens from the buckets, or return the rejection."""
        now = self._clocks.monotonic()
        amounts = {"requests": 1.0, "tokens": tokens}
        wanted = [(bucket, amounts[bucket.dimension]) for bucket in self._refilled(model, now)]
        for bucket, amount in wanted:
            if amount > bucket.per_minute and bucket.dimension == "tokens":
                return bucket.rejected(amount, never=True)
        tightest = max(wanted, key=lambda pair: pair[0].wait_s(pair[1]), default=None)
        if tightest and (wait_s := tightest[0].wait_s(tightest[1])) > 0:
            bucket, amount = tightest
            return bucket.rejected(amount, wait_s, announced=self._was_announced(model, now, wait_s))
        for bucket, amount in wanted:
            bucket.level -= amount
        return None

    def charge(self, model: str, tokens: float) -> None:
        """Take tokens known only after the answer (if max_tokens was not charged)."""
        for bucket in self._refilled(model, self._clocks.monotonic()):
            if bucket.dimension == "tokens":
                bucket.level -= tokens

    def windows(self, model: str) -> tuple[LimitWindow, ...]:
        """Return the limits for response headers; empty without limits."""
        unix = self._clocks.unix()
        return tuple(bucket.window(unix) for bucket in self._refilled(model, self._clocks.monotonic()))

    def _refilled(self, model: str, now: float) -> tuple[_Bucket, ...]:
        if model not in self._buckets:
            self._buckets[model] = self._new_buckets(now)
        for bucket in self._buckets[model]:
            bucket.refill(now)
        return self._buckets[model]

    def _new_buckets(self, now: float) -> tuple[_Bucket, ...]:
        limits: tuple[tuple[Dimension, float | None], ...] = (
            ("requests", self._settings.requests_per_minute),
            ("tokens", self._settings.tokens_per_minute),
        )
        burst_s = self._settings.burst_s
        return tuple(_Bucket(name, limit, burst_s, now) for name, limit in limits if limit is not None)

    def _was_announced(self, model: str, now: float, wait_s: float) -> bool:
        begin, end = self._pauses.get(model, (math.inf, -math.inf))
        if now >= end:
            self._pauses[model] = (now + GRACE_S, now + wait_s)
        return begin <= now < end


class SimulatedCache:
    """Remembers prompts by (model, digest) for `ttl_s` seconds after their last use."""

    def __init__(self, ttl_s: float, clock: Callable[[], float]) -> None:
        self._ttl_s = ttl_s
        self._clock = clock
        self._used: dict[tuple[str, str], float] = {}

    def cached_tokens(self, model: str, prompt: str, tokens: int) -> int:
        """Return the number of cached tokens of a prompt, in steps of 128."""
        used = self._used.get((model, prompt))
        if used is None or self._clock() - used >= self._ttl_s or tokens < SMALLEST_TOKENS:
            return 0
        self.warm(model, prompt)
        return tokens // 128 * 128

    def warm(self, model: str, prompt: str) -> None:
        """Store a prompt in the cache, when its answer begins to stream."""
        now = self._clock()
        if len(self._used) >= _KEPT:
            self._used = {key: at for key, at in self._used.items() if now - at < self._ttl_s}
        if len(self._used) < _KEPT or (model, prompt) in self._used:
            self._used[model, prompt] = now
