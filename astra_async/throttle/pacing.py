"""Rules 8, 9 and 17: when a pool pauses, how it opens again, and the pace it learns from rejections."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from astra_async.throttle.bucket import CAPACITY_S, Spacing

if TYPE_CHECKING:
    import random

PARKED_S = 600.0
LONGEST_BACKOFF_S = 60.0
_JITTER, _MOST_JITTER_S = 0.02, 1.0
_EPISODES_BEFORE_DOUBT = 8

_FIRST_SENDS = 4
_OPEN_AFTER_S = 10

_AIM = 0.985  # a pace that was measured may cost a rejection now and then, so it aims closer
_RAISE, _MOST_RAISE = 0.05, 0.8
_LOWER, _MOST_LOWERING = 0.93, 3.0
_CLEAN_S, _LONGEST_PATIENCE_S = 10.0, 160.0
_HORIZON_S = 60.0
_FEWEST_ACCEPTED = 2
_SHORT_HINT_S, _NEARLY = 5.0, 1.02  # requests may arrive closer together than they were sent


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

        After eight episodes without an answer in between a hint alone is no longer believed: some
        servers say `retry-after: 0` for ever.
        """
        if hint_s is None or not math.isfinite(hint_s):
            return backoff_s(self._episodes, self._rng)
        doubt = self._episodes - _EPISODES_BEFORE_DOUBT
        return max(0.0, hint_s, backoff_s(doubt, self._rng) if doubt > 0 else 0.0)

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

    A new pool begins with 4 sends and goes on with one a second until the provider shows a sign of life:
    its first headers may announce limits.
    """

    def __init__(self, now: float) -> None:
        self._first = True
        self._open = False
        self._began_at = now
        self._second = 0
        self._left = _FIRST_SENDS

    def reopen(self, now: float) -> None:
        """The pause is over."""
        self._first = self._open = False
        self._began_at = now
        self._second = 0
        self._left = _FIRST_SENDS

    def alive(self) -> None:
        """The provider has answered, whatever it said."""
        if self._first:
            self._open = True

    def ready_at(self, now: float) -> float:
        """When the next send is allowed; `now` if at once."""
        if self._open:
            return now
        second = int(now - self._began_at)
        if second > self._second:
            self._open = second >= _OPEN_AFTER_S
            self._second = second
            self._left = 1 if self._first else _FIRST_SENDS << min(second, _OPEN_AFTER_S)
        return now if self._left > 0 or self._open else self._began_at + second + 1

    def sent(self) -> None:
        """A request goes out."""
        self._left -= 1


class SendRate:
    """Rule 17: where no limit is announced, the first rate signal sets a rate for sending.

    The rate is the best that was accepted until the rejection: over all moments t, the requests accepted
    since t divided by the time from t to the reopening; or, for a hint of a few seconds (windows of a
    second are common), those accepted within a hint's length before it, divided by the hint.

    A further signal lowers the rate by 7 %; one within ten seconds of the reopening measures again, and
    may divide it by three. Ten clean seconds raise it by 5 %, the next ten by 10 %, and so on: a rejection
    that was no sign of a limit must not slow a whole run down. A raise that fails is taken back, and the
    next one waits twice as long.

    Attributes:
        per_second: requests per second that the provider is held to accept, None while unknown.
        measuring: whether the pause that ends next should teach a rate.
    """

    def __init__(self) -> None:
        self.per_second: float | None = None
        self.measuring = False
        self._spacing = Spacing(1.0, 0.0)
        self._sent: dict[int, float] = {}
        self._signal_at = 0.0
        self._hint_s: float | None = None
        self._reopened_at = -math.inf
        self._changed_at = 0.0
        self._before_raise: float | None = None
        self._step = _RAISE
        self._patience_s = _CLEAN_S

    def sent(self, number: int, now: float) -> None:
        """Request `number` goes out."""
        if self.per_second is not None:
            self._spacing.take(1.0, now)
        self._sent[number] = now
        oldest = next(iter(self._sent))
        if now - self._sent[oldest] > _HORIZON_S:
            del self._sent[oldest]

    def recent(self, now: float) -> list[float]:
        """When the requests of the last ten seconds were sent, as far as they were not rejected."""
        return [at for at in self._sent.values() if now - at <= CAPACITY_S]

    def rejected(self, number: int) -> None:
        """Request `number` was not accepted."""
        self._sent.pop(number, None)

    def signal(self, hint_s: float | None, sent_at: float) -> None:
        """The first rejection of a burst, of a request that was sent at `sent_at`."""
        self.measuring = True
        self._signal_at, self._hint_s = sent_at, hint_s

    def reopened(self, now: float) -> bool:
        """The pause that a signal began is over (`now` without jitter); whether a rate is known."""
        self.measuring = False
        if self.per_second is None:
            rate = self._measured(now, _FEWEST_ACCEPTED)
        else:
            rate = self._lowered(self.per_second, now)
        self._reopened_at = now
        self._step = _RAISE
        if rate is not None:
            self._set(rate, now)
        return rate is not None

    def ready_at(self, now: float) -> float:
        """When the next send is allowed; `now` if at once."""
        if self.per_second is None:
            return now
        if now - self._changed_at >= self._patience_s:
            if self._before_raise is not None:  # the last raise held
                self._step, self._patience_s = min(2 * self._step, _MOST_RAISE), _CLEAN_S
            before = self.per_second
            self._set(before * (1 + self._step), now)
            self._before_raise = before
        return self._spacing.ready_at(now)

    def _set(self, per_second: float, now: float) -> None:
        self.per_second = per_second
        self._spacing.set_rate(per_second * _AIM, now)
        self._changed_at = now
        self._before_raise = None

    def _lowered(self, rate: float, now: float) -> float:
        if self._before_raise is not None:
            self._patience_s = min(2 * self._patience_s, _LONGEST_PATIENCE_S)
            return self._before_raise
        lower = rate * _LOWER
        if self._signal_at - self._reopened_at < _CLEAN_S:
            lower = min(lower, max(rate / _MOST_LOWERING, self._measured(now, 1) or 0.0))
        return lower

    def _measured(self, reopened_at: float, fewest: int) -> float | None:
        """The best rate accepted since the last reopening; None if too little was sent to tell."""
        since = max(self._reopened_at, self._signal_at - _HORIZON_S)
        sent = [at for at in self._sent.values() if at >= since]
        if len(sent) < fewest:
            return None
        starts = sent[: len(sent) - fewest + 1]
        rate = max((len(sent) - i) / max(reopened_at - at, 1e-3) for i, at in enumerate(starts))
        hint_s = self._hint_s
        if hint_s is None or not (0 < hint_s <= _SHORT_HINT_S):
            return rate
        return max(rate, sum(1 for at in sent if self._signal_at - at <= _NEARLY * hint_s) / hint_s)
