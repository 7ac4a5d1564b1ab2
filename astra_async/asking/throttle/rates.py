"""Rates of one pool: token buckets for announced limits, and a send rate learned from rejections.

Implements rules 1, 2, 4, 5 and 17. Requests are never sent in bursts: providers often enforce a limit per
minute in windows of 1 or 10 seconds (Azure documents this), and a burst on top of the full rate exceeds them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple

from astra_async.types import LONGEST_RESET_S
from astra_async.types.pools import BucketState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.types import RateWindow

Dimension = Literal["requests", "tokens", "input_tokens", "output_tokens"]

# Stay 2.5 % below a limit, and compensate for timers that are up to 5 ms late, so that late timers do not
# reduce the throughput: (1 s + 5 ms) x 0.975 leaves 20 ms of a one-second window for network jitter.
AIM = 0.975
LATENESS_S = 0.005
CAPACITY_S = 10.0  # Unused reservations accumulate up to this many seconds of the limit (rule 2).


class TokenBucket:
    """Token bucket that spaces amounts evenly (generic cell rate algorithm).

    The level rises at `per_second` up to the amount of `credit_s` seconds. While the level is not negative,
    an amount of any size may be taken. A negative level must refill to 0 before the next amount.
    """

    def __init__(self, per_second: float, now: float, credit_s: float = LATENESS_S) -> None:
        self.per_second = per_second
        self._credit_s = credit_s
        self._level = 0.0
        self._at = now

    def set_rate(self, per_second: float, now: float) -> None:
        """Refill at the rate `per_second` from now on."""
        self.level(now)
        self.per_second = per_second

    def level(self, now: float) -> float:
        """Return the amount available now; negative if more was taken than was available."""
        if now > self._at:
            full = self._credit_s * self.per_second
            if self._level < full:
                self._level = min(full, self._level + (now - self._at) * self.per_second)
            self._at = now
        return self._level

    def ready_at(self, now: float) -> float:
        """Return when the next amount may be taken: `now` if at once."""
        level = self.level(now)
        return now if level >= 0 else now - level / self.per_second

    def take(self, amount: float, now: float) -> None:
        """Take an amount, even if the level becomes negative."""
        self._level = self.level(now) - amount

    def put_back(self, amount: float, now: float) -> None:
        """Add an unused amount (negative if more was used), up to the amount of `CAPACITY_S` seconds."""
        level = self.level(now)
        self._level = min(level + amount, max(level, CAPACITY_S * self.per_second))

    def limit_level(self, lowest: float, highest: float, now: float) -> None:
        """Clamp the level to the range from `lowest` to `highest`."""
        self._level = max(lowest, min(highest, self.level(now)))


class Reservation(NamedTuple):
    """Reserved amount of one bucket."""

    bucket: Bucket
    amount: float
    total: float  # reserved by the bucket in all, including this reservation
    guessed: bool  # a first guess with a safety margin


class Bucket:
    """Limit of requests or tokens per minute, configured by the user or announced in headers.

    Headers may lower a `configured` limit but never raise it, because the user may want to leave capacity for
    others. The initial level counts recent requests: `sent` holds their times, `amount` what each one used.
    """

    def __init__(
        self,
        dimension: Dimension,
        per_minute: float,
        now: float,
        *,
        configured: bool = False,
        sent: Sequence[float] = (),
        amount: float = 1.0,
    ) -> None:
        self.dimension: Dimension = dimension
        self.per_minute = per_minute
        self._configured = per_minute if configured else math.inf
        self._tokens = TokenBucket(per_minute / 60 * AIM, sent[0] if sent else now)
        self._made_at = now
        self._reserved = 0.0
        for at in sent:
            self._tokens.take(amount, at)
        self._tokens.limit_level(-CAPACITY_S * self._tokens.per_second, math.inf, now)

    def ready_at(self, now: float) -> float:
        """Return when the next request may be sent: `now` if at once."""
        return self._tokens.ready_at(now)

    def is_below(self, amount: float) -> bool:
        """Return True if headers announce a limit that is lower than the amount of one request."""
        return self.per_minute < min(amount, self._configured)

    def reserve(self, amount: float, now: float, *, guessed: bool = False) -> Reservation:
        """Reserve an amount for a request that is sent now."""
        self._tokens.take(amount, now)
        self._reserved += amount
        return Reservation(self, amount, self._reserved, guessed)

    def settle(self, reserved: Reservation, used: float, now: float) -> None:
        """Correct the level by reserved - used (rule 4).

        The unused margin of a first guess is not put back, because using it later would cause a burst.
        """
        unused = reserved.amount - used
        if unused < 0 or not reserved.guessed:
            self._tokens.put_back(unused, now)

    def announce(self, window: RateWindow, sent_at: float, reserved: Reservation | None, now: float) -> None:
        """Apply the headers of a response to a request that was sent at `sent_at` (rule 5).

        Headers set the limit, but they can only lower the level. They describe the provider's window at the
        time when the request arrived. Since then the window was refilled, and later requests lowered it.
        """
        if not is_per_minute(window):
            return
        if window.limit:
            self.per_minute = min(window.limit, self._configured)
            self._tokens.set_rate(self.per_minute / 60 * AIM, now)
        if window.remaining is not None and window.remaining >= 0:
            refilled = (now - max(sent_at, self._made_at)) * self.per_minute / 60
            sent_after = self._reserved - (reserved.total if reserved else 0.0)
            self._tokens.limit_level(-math.inf, window.remaining + refilled - sent_after, now)

    def state(self, now: float) -> BucketState:
        """Return the state for the display."""
        level = self._tokens.level(now)
        return BucketState(dimension=self.dimension, limit_per_minute=self.per_minute, level=level)


def is_per_minute(window: RateWindow) -> bool:
    """Return False for negative limits (Azure) and for windows of an hour or a day (Groq)."""
    if window.limit is not None and not (0 < window.limit < math.inf):
        return False
    return window.reset_s is None or window.reset_s <= LONGEST_RESET_S


_AIM = 0.984  # Closer to the limit than AIM, because an occasional rejection is acceptable here.
_SLOWEST = 1 / 60
_HORIZON_S = 120.0
_SHORT_HINT_S, _NEARLY = 5.0, 1.02  # tolerance: requests may arrive closer together than they were sent
_DECREASE, _LARGEST_DECREASE, _FAR_ABOVE = 0.97, 0.7, 3.0
_SURE_SENDS, _NEAR_SENDS = 5, 6
_STEP, _SMALL_STEP, _CLOSE = 2.0, 1.2, 1.1
_FEWEST_SENDS, _SENDS_PER_STEP, _CLEAN_S, _SHORTEST_S = 3, 10.0, 5.0, 2.0
_MAX_WAIT_FACTOR = 16
_MOST_ABOVE_USE = 2.0


class SendRate:
    """Send rate learned from rejections (rule 17), without any assumption about the provider's algorithm.

    The first rejection sets the rate to the best rate that was accepted so far. After that, the rate is
    controlled by AIMD with a search. A rate that holds is raised: first by doubling, then to a rate between
    the highest rate that held and the lowest that failed. A rejection right after an increase reverts the
    increase. Any other rejection lowers the rate by 3 %. A larger decrease would let other processes that
    share the limit take the whole limit.

    Attributes:
        per_second: requests per second, None while unknown.
        trying: True while the rate is higher than the last rate that held.
    """

    def __init__(self) -> None:
        self.per_second: float | None = None
        self.trying = False
        # No credit for late timers: after a pause, credit would shorten the first interval.
        self._tokens = TokenBucket(1.0, 0.0, credit_s=0.0)
        self._accepted: dict[int, float] = {}  # send times by number, without rejected requests
        self._rejected_at, self._hint_s = 0.0, 0.0  # send time and hint of the last rejection
        self._reopened_at = -math.inf
        self._sends = 0  # since the last rejection
        # The search: `_held` is the last rate that held, `_failed` the lowest rate that was rejected.
        self._held: float | None = None
        self._failed: float | None = None
        self._step = _STEP
        self._wait_factor = 1
        self._clean_since, self._clean_sends = 0.0, 0

    def ready_at(self, now: float) -> float:
        """Raise the rate if it has held. Return when the next request may be sent: `now` if at once."""
        if self.per_second is None:
            return now
        clean_s, clean_sends = now - self._clean_since, self._clean_sends
        if clean_sends >= _FEWEST_SENDS and clean_s >= _SHORTEST_S:
            # A rate has held after five seconds, or after enough requests: 10 before the rate is doubled, 50
            # before it is raised by a fifth.
            sends = _SENDS_PER_STEP / (self._next(self.per_second) / self.per_second - 1)
            if clean_sends >= self._wait_factor * sends or clean_s >= self._wait_factor * _CLEAN_S:
                self._raise(self.per_second, now)
        return self._tokens.ready_at(now)

    def record_send(self, number: int, now: float) -> None:
        """Record that request `number` is sent."""
        self._sends += 1
        if self.per_second is not None:
            self._tokens.take(1.0, now)
            self._clean_sends += 1
        self._accepted[number] = now
        oldest = next(iter(self._accepted))
        if now - self._accepted[oldest] > _HORIZON_S:
            del self._accepted[oldest]

    def forget(self, number: int) -> None:
        """Forget request `number`, because it was never sent."""
        self._accepted.pop(number, None)

    def record_rejection(self, number: int, sent_at: float, hint_s: float | None, *, first: bool) -> None:
        """Record that request `number` was rejected. Only the first rejection of a burst counts."""
        self._accepted.pop(number, None)
        if first:
            self._rejected_at, self._hint_s = sent_at, hint_s or 0.0

    def recent(self, now: float) -> list[float]:
        """Return the send times of the last ten seconds, without rejected requests."""
        return [at for at in self._accepted.values() if now - at <= CAPACITY_S]

    def learn(self, now: float) -> bool:
        """Update the rate when the pause after a rejection ends. Return True if the rate is known then."""
        near, self._sends = self._sends <= _NEAR_SENDS, 0
        cycle = [at for at in self._accepted.values() if at >= self._reopened_at]
        self._reopened_at = now
        self._clean_since, self._clean_sends = now, 0
        if self.per_second is None:
            if not cycle:
                return False
            self._step = _SMALL_STEP if len(cycle) >= _SURE_SENDS else _STEP
            self._set(self._measure(cycle, now), now)
        elif self.trying:
            self._revert(self.per_second, now)
        else:
            self._held = self._failed = None
            self._step = _STEP if near else _SMALL_STEP
            self._set(self.per_second * (self._decrease(now) if cycle else _DECREASE), now)
        return True

    def _set(self, per_second: float, now: float) -> None:
        self.trying = False
        self.per_second = max(per_second, _SLOWEST)
        self._tokens.set_rate(self.per_second * _AIM, now)

    def _measure(self, cycle: list[float], now: float) -> float:
        """Return the best accepted rate: the maximum over all times t of (requests since t / time since t).

        A hint of a few seconds is taken as the length of the provider's window. The requests within that
        time before the rejection therefore give a second measurement of the rate.
        """
        rate = max((len(cycle) - i) / max(now - at, 1e-3) for i, at in enumerate(cycle[:-1] or cycle))
        if not 0 < self._hint_s <= _SHORT_HINT_S:
            return rate
        inside = sum(1 for at in cycle if self._rejected_at - at <= _NEARLY * self._hint_s)
        return max(rate, inside / self._hint_s)

    def _decrease(self, now: float) -> float:
        """Return the factor by which to lower the rate; smaller if few recent requests were accepted."""
        recent = self.recent(now)
        share = len(recent) / max(1.0, now - recent[0]) / (self.per_second or 1.0) if recent else 0.0
        return _DECREASE if share * _FAR_ABOVE >= 1 else max(_LARGEST_DECREASE, math.sqrt(share))

    def _raise(self, rate: float, now: float) -> None:
        """Try the next rate: at most twice the rate that was used, because an unused rate proves nothing."""
        if self._failed is not None and self._failed <= _CLOSE * rate:
            self._failed, self._step = None, _SMALL_STEP  # the search is complete; later tries detect changes
        elif self._failed is None and self._held is not None:
            self._wait_factor, self._step = 1, _STEP
        used = (1 + self._clean_sends) / max(now - self._clean_since, 1e-3)
        self._held = rate
        self._clean_since, self._clean_sends = now, 0
        self._set(max(rate, min(self._next(rate), _MOST_ABOVE_USE * used)), now)
        self.trying = self.per_second != rate

    def _revert(self, rate: float, now: float) -> None:
        """Go back to the last rate without rejections.

        Each failure near this rate doubles the time until a higher rate is tried.
        """
        held = self._held or rate
        if rate <= _CLOSE * held:
            self._wait_factor = min(2 * self._wait_factor, _MAX_WAIT_FACTOR)
        self._failed = rate
        self._set(held, now)

    def _next(self, rate: float) -> float:
        if self._failed is not None and self._failed > _CLOSE * rate:
            return math.sqrt(rate * self._failed)
        return self._step * rate


_CLOSER = 0.95  # factor that shortens the interval slightly, because the pools' own rates are the limit
_QUIET_S, _QUIET_SENDS = 10.0, 3.0  # a pool is idle after 10 s or 3 of its intervals, whichever is longer


class Account:
    """Spacing of requests between pools that share one API key (rule 1).

    Providers limit a model, an account, or both, and do not say which. If two pools each use half of an
    account's rate but send at the same moment, one is rejected and takes the rejection for its model's limit.
    Pools with a known send rate therefore share one interval between requests: 1 / (sum of their rates). If
    each model has a separate limit, this interval is shorter than any pool's interval and delays no request.

    Attributes:
        sent_at: time of the latest request of each pool, keyed by the pool's send rate.
    """

    def __init__(self) -> None:
        self.sent_at: dict[SendRate, float] = {}

    def ready_at(self, rate: SendRate, now: float) -> float:
        """Return when a pool's next request may be sent: `now` if at once."""
        if rate.per_second is None:
            return now
        rates = [
            other.per_second
            for other, at in self.sent_at.items()
            if other.per_second is not None and now - at < max(_QUIET_S, _QUIET_SENDS / other.per_second)
        ]
        latest = max(self.sent_at.values(), default=now)
        return max(now, latest + _CLOSER / sum(rates)) if len(rates) > 1 else now
