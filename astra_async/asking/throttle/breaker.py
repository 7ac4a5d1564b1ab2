"""Circuit breaker of one pool: detects outages, endless rejections and refusals (rules 10 and 12)."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from astra_async.asking.throttle.pause import LONGEST_BACKOFF_S

if TYPE_CHECKING:
    from astra_async.errors import ProviderError

ATTEMPTS = 6
GIVE_UP_S = 1800.0
_SIMILAR_ERRORS, _PROMPTS = 10, 3
_YIELD_AFTER = 5


class RejectionStreak:
    """Count and duration of consecutive rejections.

    A gap longer than the longest pause begins a new streak, because nothing was sent meanwhile.
    """

    __slots__ = ("_latest", "_since", "count")

    def __init__(self) -> None:
        self.count = 0
        self._since, self._latest = math.inf, -math.inf

    def add(self, now: float) -> None:
        """Add a rejection."""
        if now - self._latest > GIVE_UP_S + LONGEST_BACKOFF_S:
            self.count, self._since = 0, now
        self.count += 1
        self._latest = now

    def too_long(self, now: float) -> bool:
        """Return True if rejections have lasted at least `GIVE_UP_S`."""
        return now - self._since >= GIVE_UP_S


class CircuitBreaker:
    """Circuit breaker of one pool: detects outages, endless rejections and refusals of every request.

    Every conclusion about the pool needs errors of three prompts, because one prompt may be the cause.
    An accepted request ends a streak of rejections. Any response except an overload ends an outage,
    because routers report an overload when the server behind them is down. A first token ends only the
    probing: a server that cuts every stream would otherwise bill each call twice.

    Attributes:
        half_open: probe with one request at a time until the provider responds.
    """

    def __init__(self) -> None:
        self._rejections_by_prompt: dict[str, RejectionStreak] = {}
        self.record_accepted("")
        self.record_response()
        self.record_answer()

    def record_accepted(self, prompt_sha256: str) -> None:
        """Record that the provider accepted a request."""
        self.half_open = False
        self._rejections_by_prompt.pop(prompt_sha256, None)
        self._rejections, self._rejected_prompts = RejectionStreak(), set[str]()
        self._failures_between = 0

    def record_response(self) -> None:
        """Record any response that shows that the provider is available."""
        self.half_open = False
        self._failures: Counter[str] = Counter()  # Keys of all counters are prompt hashes.
        self._probes, self._outage_at = 0, math.inf

    def record_answer(self) -> None:
        """Record a complete answer."""
        self._likeness, self._refusals = "", Counter[str]()
        self._failures_since_answer: Counter[str] = Counter()

    def record_rejection(self, prompt_sha256: str, now: float) -> None:
        """Record a rate limit or an overload."""
        self._rejections_by_prompt.setdefault(prompt_sha256, RejectionStreak()).add(now)
        self._rejections.add(now)
        self._rejected_prompts.add(prompt_sha256)

    def record_failure(self, prompt_sha256: str, sent_at: float, now: float) -> int:
        """Record a network error or a 5xx. Return the number of failed probes, 0 without an outage.

        Requests that were in flight when the outage began are not probes.
        """
        self._failures_between += 1
        self._failures_since_answer[prompt_sha256] += 1
        self._failures[prompt_sha256] += 1
        if self._failures.total() < _SIMILAR_ERRORS or len(self._failures) < _PROMPTS:
            return 0
        self.half_open = True
        if self._probes == 0 or sent_at >= self._outage_at:
            self._probes += 1
            self._outage_at = now
        return self._probes

    def record_refusal(self, prompt_sha256: str, error: ProviderError) -> bool:
        """Record a permanent refusal. Return True if every other request would be refused, too."""
        likeness = error.likeness or str(error)
        if likeness != self._likeness:
            self._likeness, self._refusals = likeness, Counter()
        self._refusals[prompt_sha256] += 1
        shared_cause = error.meets_all or len(self._refusals) >= _PROMPTS
        return shared_cause and self._refusals.total() >= _SIMILAR_ERRORS

    def prompt_yields(self, prompt_sha256: str) -> bool:
        """Return True if calls of this prompt must let other calls go first."""
        streak = self._rejections_by_prompt.get(prompt_sha256)
        return streak is not None and streak.count >= _YIELD_AFTER

    def prompt_is_rejected(self, prompt_sha256: str, now: float) -> bool:
        """Return True if calls of this prompt have one attempt each after long rejections.

        A hint of the provider does not prolong this: each call would otherwise wait for half an hour anew.
        """
        streak = self._rejections_by_prompt.get(prompt_sha256)
        return streak is not None and streak.count >= _SIMILAR_ERRORS and streak.too_long(now)

    def prompt_breaks_servers(self, prompt_sha256: str) -> bool:
        """Return True if calls of this prompt have one attempt each after many failures."""
        return self._failures_since_answer[prompt_sha256] >= _SIMILAR_ERRORS * ATTEMPTS

    def rejects_all(self, now: float) -> bool:
        """Return True if no request was accepted for `GIVE_UP_S`."""
        mostly = self._rejections.count > self._failures_between and len(self._rejected_prompts) >= _PROMPTS
        return mostly and self._rejections.too_long(now)
