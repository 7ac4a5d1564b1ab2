"""Rule 13: one request of a prompt warms the provider's cache, the others follow on its first token.

Conversations that go on are remembered as well, by the hash of all that was said (`ModelRequest.sha256`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from astra_async.asking.throttle.waiting import Ticket
    from astra_async.types import Usage

LEADER_S = 30.0
CACHE_LIFETIME_S = 300.0  # Anthropic's default, the shortest documented; every read renews it
_PROMPTS_KEPT = 4_096

Role = Literal["lead", "follow", "go"]


class Warmth:
    """Which prompts are in the provider's cache, and who waits for one to get there.

    A follower is set aside; it comes back from `warmed`, `failed` or `overdue`.
    """

    def __init__(self) -> None:
        self._warm_until: dict[str, float] = {}
        # When the followers of each leader on its way go without it, and who they are.
        self._groups: dict[str, tuple[float, list[Ticket]]] = {}
        self._useless: set[str] = set()

    def role(self, prompt_sha256: str, now: float) -> Role:
        """What a request of this prompt should do now."""
        if prompt_sha256 in self._groups:
            return "follow"
        return "go" if self.is_warm(prompt_sha256, now) or prompt_sha256 in self._useless else "lead"

    def is_warm(self, prompt_sha256: str, now: float) -> bool:
        """Whether a request sent now would read the cache."""
        return now < self._warm_until.get(prompt_sha256, 0.0)

    def lead(self, prompt_sha256: str, now: float) -> None:
        """A leader is sent."""
        self._groups[prompt_sha256] = now + LEADER_S, []

    def follow(self, prompt_sha256: str, follower: Ticket) -> None:
        """Set a request aside until the leader has warmed the cache."""
        self._groups[prompt_sha256][1].append(follower)

    def warmed(self, prompt_sha256: str, sent_at: float) -> list[Ticket]:
        """An answer to a request sent at `sent_at` has begun to stream: the cache is readable."""
        until = self._warm_until.pop(prompt_sha256, 0.0)  # and in again, as the one used last
        while len(self._warm_until) >= _PROMPTS_KEPT:
            del self._warm_until[next(iter(self._warm_until))]
        self._warm_until[prompt_sha256] = max(until, sent_at + CACHE_LIFETIME_S)
        return self.failed(prompt_sha256)

    def failed(self, prompt_sha256: str) -> list[Ticket]:
        """The leader got no answer: the first of its followers leads next."""
        return self._groups.pop(prompt_sha256, (0.0, []))[1]

    def overdue(self, now: float) -> list[Ticket]:
        """Followers of leaders that have not begun to answer after `LEADER_S`: they go without."""
        released: list[Ticket] = []
        # Groups are in the order of their deadlines, since all wait equally long.
        while self.deadline() <= now:
            prompt_sha256 = next(iter(self._groups))
            self._warm_until[prompt_sha256] = now + LEADER_S
            released += self.failed(prompt_sha256)
        return released

    def deadline(self) -> float:
        """When followers go without their leader; never while none waits for one."""
        return next((deadline for deadline, _ in self._groups.values()), math.inf)

    def learn(self, prompt_sha256: str, usage: Usage) -> None:
        """A leader's usage says whether the prompt was cached at all; a short one is not."""
        if usage.cache_write_tokens == 0 and not usage.cached_tokens and len(self._useless) < _PROMPTS_KEPT:
            self._useless.add(prompt_sha256)
            self._warm_until.pop(prompt_sha256, None)
