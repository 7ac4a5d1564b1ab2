"""Rules 8, 9 and 17: when a pool pauses, how it opens again, and the pace it learns from rejections."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from astra_async.throttle.bucket import AIM, Spacing

if TYPE_CHECKING:
    import random

PARKED_S = 600.0
LONGEST_BACKOFF_S = 60.0
_JITTER, _MOST_JITTER_S = 0.05, 1.0
_EPISODES_BEFORE_DOUBT = 3

_FIRST_SENDS = 4
_OPEN_AFTER_S = 10.0

_RAISE = 1.05
_LOWER = 0.93
_CLEAN_S = 10.0
_HORIZON_S = 60.0
_FEWEST_ACCEPTED = 3
_SHORT_HINT_S = 5.0


def backoff_s(failures: int, rng: random.Random) -> float:
    """Full jitter over min(60 s, 2^failures)."""
    return rng.uniform(0.0, min(LONGEST_BACKOFF_S, 2.0 ** min(failures, 10)))


class Pause:
    """The pool's shared pause (rule 8).

    Attributes:
        until: when it ends, in the pool's clock.
        reason: what began it, in one line.
        told_until: the same without our jitter: when the provider expects us.
    """

    def __init__(self, rng: random.Random) -> None:
        self.until = self.told_until = -math.inf
        self.reason = ""
        self._rng = rng
        self._episodes = 0

    def length_s(self, hint_s: float | None) -> float:
        """How long to pause after a signal: the hint, else full jitter that doubles with each episode.

        From the third episode without an answer in between a hint alone is no longer believed: some
        servers say `retry-after: 0` for ever.
        """
        own = backoff_s(self._episodes, self._rng)
        if hint_s is None or not math.isfinite(hint_s):
            return own
        return max(hint_s, own) if self._episodes >= _EPISODES_BEFORE_DOUBT else max(0.0, hint_s)

    def begin_episode(self) -> None:
        """A burst of signals begins."""
        self._episodes += 1

    def answered(self) -> None:
        """A request sent after the last burst was let in."""
        self._episodes = 0

    def extend(self, seconds: float, reason: str, now: float) -> bool:
        """Pause until max(old end, now + seconds + a small jitter); whether the pool was not paused yet."""
        begins = self.until <= now
        until = now + seconds + self._rng.uniform(0.0, min(_MOST_JITTER_S, _JITTER * seconds))
        if until > self.until:
            self.until, self.reason = until, reason
            self.told_until = now + seconds
        return begins


class Opening:
    """Rule 9: at most 4 sends in the first second after a pause, 8 in the next, and so on.

    A new pool begins with 4 sends and opens on the provider's first sign of life, or after a second.
    """

    def __init__(self, now: float) -> None:
        self._first = True
        self._began_at = now
        self._second = 0
        self._sent = 0
        self._open = False

    def reopen(self, now: float) -> None:
        """The pause is over."""
        self._first = False
        self._began_at = now
        self._second = 0
        self._sent = 0
        self._open = False

    def alive(self) -> None:
        """The provider has answered, whatever it said."""
        if self._first:
            self._open = True

    def ready_at(self, now: float) -> float:
        """When the next send is allowed; `now` if at once."""
        if self._open:
            return now
        elapsed = now - self._began_at
        if elapsed >= (1.0 if self._first else _OPEN_AFTER_S):
            self._open = True
            return now
        second = int(elapsed)
        if second > self._second:
            self._second, self._sent = second, 0
        if self._sent < _FIRST_SENDS << second:
            return now
        return self._began_at + second + 1

    def sent(self) -> None:
        """A request goes out."""
        self._sent += 1


class SendRate:
    """Rule 17: where no limit is announced, the first rate signal sets a rate for sending.

    The rate is the best that was accepted: over all moments t of the last minute, the requests accepted
    since t divided by the time from t to the reopening; or, for a hint of a few seconds (windows of a
    second are common), those accepted within a hint's length before the rejection, divided by the hint.
    A further signal lowers it by 7 %, one soon after by more; ten clean seconds raise it by 5 %, the next
    ten by 10 %, and so on: a rejection that was no sign of a limit must not slow a whole run down.

    Attributes:
        spacing: spaces the sends once a rate is known, else None.
    """

    def __init__(self) -> None:
        self.spacing: Spacing | None = None
        self._sent: dict[int, float] = {}
        self._signal_at: float | None = None
        self._hint_s: float | None = None
        self._changed_at = 0.0
        self._raises = 0
        self._strikes = 0

    @property
    def per_second(self) -> float | None:
        """Requests per second that the provider is held to accept, None while unknown."""
        return None if self.spacing is None else self.spacing.per_second / AIM

    @property
    def measuring(self) -> bool:
        """Whether the pause that ends next should teach a rate."""
        return self._signal_at is not None

    def sent(self, number: int, now: float) -> None:
        """Request `number` goes out."""
        if self.spacing is not None:
            self.spacing.take(1.0, now)
            return
        self._sent[number] = now
        oldest = next(iter(self._sent))
        if now - self._sent[oldest] > _HORIZON_S:
            del self._sent[oldest]

    def rejected(self, number: int) -> None:
        """Request `number` was not accepted."""
        self._sent.pop(number, None)

    def signal(self, hint_s: float | None, now: float) -> None:
        """The first rejection of a burst."""
        if self.spacing is None:
            self._signal_at, self._hint_s = now, hint_s
            return
        self._strikes += 1
        self._set(self.spacing.per_second * _LOWER ** (1 << min(self._strikes - 1, 3)), now)
        self._raises = 0

    def reopened(self, now: float) -> bool:
        """The pause that a signal began is over (`now` without jitter); whether a rate was learned."""
        if self._signal_at is None:
            return False
        rate = self._measured(self._signal_at, now)
        self._signal_at = None
        if rate is None:
            return False
        self.spacing = Spacing(rate * AIM, now)
        self._changed_at = now
        self._sent.clear()
        return True

    def ready_at(self, now: float) -> float:
        """When the next send is allowed; `now` if at once."""
        if self.spacing is None:
            return now
        if now - self._changed_at >= _CLEAN_S:
            self._strikes = 0
            self._set(self.spacing.per_second * (1 + (_RAISE - 1) * (1 << min(self._raises, 4))), now)
            self._raises += 1
        return self.spacing.ready_at(now)

    def _set(self, per_second: float, now: float) -> None:
        if self.spacing is not None:
            self.spacing.set_rate(per_second, now)
            self._changed_at = now

    def _measured(self, signal_at: float, reopened_at: float) -> float | None:
        sent = [at for at in self._sent.values() if signal_at - at <= _HORIZON_S]
        if len(sent) < _FEWEST_ACCEPTED:
            return None
        earliest = sent[: len(sent) - _FEWEST_ACCEPTED + 1]
        rate = max((len(sent) - i) / max(reopened_at - at, 1e-3) for i, at in enumerate(earliest))
        hint = self._hint_s
        if hint is not None and 0 < hint <= _SHORT_HINT_S:
            recent = sum(1 for at in sent if signal_at - at <= hint)
            rate = max(rate, recent / hint) if recent >= _FEWEST_ACCEPTED else rate
        return rate
