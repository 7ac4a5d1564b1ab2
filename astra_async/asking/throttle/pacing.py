"""Rules 8, 9 and 10: when a whole pool pauses, how it opens again, and when nobody is answered any more."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

PARKED_S = 600.0
LONGEST_BACKOFF_S = 60.0
GIVE_UP_S = 1800.0
_JITTER, _MOST_JITTER_S = 0.02, 1.0
_EPISODES_BEFORE_DOUBT = 2

ERRORS_ALIKE, PROMPTS = 10, 3
_YIELDS_AFTER = 5
PROBES = 8  # one by one, with pauses that double from 2 s to a minute: four minutes in all

_FIRST_SENDS = 4
_OPEN_AFTER_S = 10


def backoff_s(failures: int, rng: random.Random) -> float:
    """Full jitter over min(60 s, 2^failures)."""
    return rng.uniform(0.0, min(LONGEST_BACKOFF_S, 2.0 ** min(failures, 10)))


class Pause:
    """The pool's shared pause (rule 8).

    Attributes:
        until: when it ends, in the pool's clock.
        reason: what began it, in one line.
        announced_until: the same without our jitter: when the provider expects us.
    """

    def __init__(self, rng: random.Random) -> None:
        self.until = self.announced_until = -math.inf
        self.reason = ""
        self._rng = rng
        self._episodes = 0

    def length_s(self, hint_s: float | None) -> float:
        """How long to pause after a signal: the hint, else half more with each episode, and jitter.

        After two episodes without an answer in between a hint alone is no longer believed: some servers say
        `retry-after: 0` or `1` until a window of a minute ends.
        """
        if hint_s is None or not math.isfinite(hint_s):
            return self._unhinted_s(self._episodes)
        doubt = self._episodes - _EPISODES_BEFORE_DOUBT
        return max(0.0, hint_s, self._unhinted_s(doubt) if doubt > 0 else 0.0)

    def _unhinted_s(self, episodes: int) -> float:
        """Never close to nothing: what is asked too soon costs a rejection."""
        return min(LONGEST_BACKOFF_S, 1.5 ** min(episodes, 14)) * self._rng.uniform(0.5, 1.0)

    def begin_episode(self) -> None:
        """A burst of signals begins."""
        self._episodes += 1

    def answered(self, episodes_since: int) -> None:
        """A request was let in; so many bursts have begun since it was sent."""
        self._episodes = min(self._episodes, episodes_since)

    def extend(self, seconds: float, reason: str, now: float) -> bool:
        """Pause until max(old end, now + seconds + a small jitter); whether the pool was not paused yet."""
        begins = self.until <= now
        until = now + seconds + self._rng.uniform(0.0, min(_MOST_JITTER_S, _JITTER * seconds))
        if until > self.until:
            self.until, self.reason = until, reason
            self.announced_until = now + seconds
        return begins


class Opening:
    """Rule 9: at most 4 sends in the first second after a pause, 8 in the next, and so on.

    A new pool begins with 4 sends and goes on with one a second until the provider shows a sign of life:
    its first headers may announce limits.
    """

    def __init__(self, now: float) -> None:
        self.reopen(now)
        self._first = True

    def reopen(self, now: float) -> None:
        """The pause is over."""
        self._first = self._open = False
        self._began_at = now
        self._last = (0, 0)  # the second of the last send, and how many went in it

    def alive(self) -> None:
        """The provider has answered, whatever it said."""
        if self._first:
            self._open = True

    def ready_at(self, now: float) -> float:
        """When the next send is allowed; `now` if at once."""
        second = self._second(now)
        if self._open or second >= _OPEN_AFTER_S or self._sent_in(second) < self._allowed_in(second):
            return now
        return self._began_at + second + 1

    def sent(self, now: float) -> None:
        """A request goes out."""
        second = self._second(now)
        self._last = (second, self._sent_in(second) + 1)

    def _second(self, now: float) -> int:
        return max(0, int(now - self._began_at))

    def _sent_in(self, second: int) -> int:
        return self._last[1] if second == self._last[0] else 0

    def _allowed_in(self, second: int) -> int:
        return 1 if self._first and second else _FIRST_SENDS << second


class InVain:
    """Rejections in a row, of one call, one prompt or all, with nobody let in between.

    Two that are further apart than the longest pause are two matters: nothing was asked between them.

    Attributes:
        count: how many.
    """

    __slots__ = ("_latest", "_since", "count")

    def __init__(self) -> None:
        self.count = 0
        self._since, self._latest = math.inf, -math.inf

    def another(self, now: float) -> None:
        """One more."""
        if now - self._latest > GIVE_UP_S + LONGEST_BACKOFF_S:
            self.count, self._since = 0, now
        self.count += 1
        self._latest = now

    def too_long(self, now: float) -> bool:
        """Whether they have gone on for as long as anybody waits."""
        return now - self._since >= GIVE_UP_S


class Rejections:
    """Rule 10: a provider that lets nobody in, and says no more than that its rate or its load is too high.

    One prompt may never be let in by itself, as one that passes a limit alone: it takes three, and a prompt's
    calls let others go first before that. A hint excuses nothing: each call anew would wait for one that says
    a minute thirty times over, for days. Invariant: only a request that was let in ends it; connections may
    be lost meanwhile, but not as many.
    """

    def __init__(self) -> None:
        self._of: dict[str, InVain] = {}
        self._begin()

    def let_in(self, prompt_sha256: str) -> None:
        """A request was let in."""
        self._of.pop(prompt_sha256, None)
        self._begin()

    def rejected(self, prompt_sha256: str, now: float) -> None:
        """A request was rejected."""
        self._of.setdefault(prompt_sha256, InVain()).another(now)
        self._all.another(now)
        self._prompts.add(prompt_sha256)

    def interrupted(self) -> None:
        """An attempt failed, which says nothing."""
        self._failed += 1

    def yields(self, prompt_sha256: str) -> bool:
        """Whether a prompt's calls should let others go first: they may be what holds them up."""
        return self._count(prompt_sha256) >= _YIELDS_AFTER

    def of_prompt(self, prompt_sha256: str, now: float) -> bool:
        """Whether a prompt was rejected for so long that one more rejection is enough for each call."""
        return self._count(prompt_sha256) >= ERRORS_ALIKE and self._of[prompt_sha256].too_long(now)

    def of_all(self, now: float) -> bool:
        """Whether nobody has been let in for as long as a call may wait."""
        alike = self._all.count > self._failed and len(self._prompts) >= PROMPTS
        return alike and self._all.too_long(now)

    def _count(self, prompt_sha256: str) -> int:
        known = self._of.get(prompt_sha256)
        return known.count if known else 0

    def _begin(self) -> None:
        self._all = InVain()
        self._failed = 0
        self._prompts: set[str] = set()


class Outage:
    """Rule 10: a provider that answers nobody. One prompt may break a server by itself: it takes three.

    Invariant: it is known here and nowhere else, and whatever shows that the provider answers (an answer, a
    rejection for its rate, a refusal) begins the count anew. A first token ends the tries one by one and no
    more: where every stream breaks each call would pay for two. An overload ends nothing, for gateways send
    it in front of a dead server.

    Attributes:
        one_by_one: one request at a time, until the provider is heard of.
    """

    def __init__(self) -> None:
        self.over()

    def over(self) -> None:
        """The provider has answered, whatever it said."""
        self.one_by_one = False
        self._failures = self._probes = 0
        self._began_at = math.inf
        self._prompts: set[str] = set()

    def begun(self) -> None:
        """An answer has begun."""
        self.one_by_one = False

    def interrupted(self, prompt_sha256: str, sent_at: float, now: float) -> int:
        """An attempt failed, sent at `sent_at`; how many tries one by one have failed since the outage began.

        0: no outage. Of requests that were in flight when it began nothing more is learned.
        """
        self._failures += 1
        self._prompts.add(prompt_sha256)
        if self._failures < ERRORS_ALIKE or len(self._prompts) < PROMPTS:
            return 0
        self.one_by_one = True
        if self._probes == 0 or sent_at >= self._began_at:
            self._probes += 1
            self._began_at = now
        return self._probes
