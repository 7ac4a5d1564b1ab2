"""Shared pause of a pool and slow start after the pause (rules 8 and 9)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from astra_async.asking.throttle.retry import LONGEST_BACKOFF_S

if TYPE_CHECKING:
    import random

PARKED_S = 600.0
_JITTER, _MOST_JITTER_S = 0.02, 1.0
_EPISODES_BEFORE_DOUBT = 2

_FIRST_SENDS = 4
_OPEN_AFTER_S = 10


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
