"""Requests in flight of one pool: concurrency limits, shared pause and reopening (rules 6 to 9)."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

from astra_async.asking.throttle.rates import TokenBucket
from astra_async.asking.throttle.retry import LONGEST_BACKOFF_S

if TYPE_CHECKING:
    import random

START = 8
OVERLOAD_CUT = 0.85
_SATURATED = 0.8
_GROWTH = 0.05
_OVERLOADS, _OVERLOAD_WINDOW_S = 3, 10.0
_OUTCOMES, _FAILED_SHARE = 50, 0.2
_SENDS_PER_LIMIT, _SHORTEST_ROUND_S = 8.0, 1e-3
_BURSTS_APART_S = 1.0
_TRY_AFTER_S, _MAX_WAIT_FACTOR = 5.0, 16
_FEWEST_ACCEPTED = 4
_JITTER, _MOST_JITTER_S = 0.02, 1.0
_BURSTS_BEFORE_DOUBT = 2
_FIRST_SENDS, _OPEN_AFTER_S = 4, 10


class Concurrency:
    """Limit of requests in flight: AIMD with slow start (rules 6 and 7).

    The limit grows with every accepted request instead of once a round, so that a round never ends in a
    burst: it doubles within a round until the first cut, then grows by max(1, 5 %) a round. Requests that
    could be sent at once are spread over a sixteenth of a round trip, so that a rejection stops later ones.

    Attributes:
        limit: requests that may be in flight; not always a whole number.
        ramp: token bucket that spreads requests over the round trip.
    """

    def __init__(self, maximum: int, now: float) -> None:
        self.maximum = max(1, maximum)
        self.limit = float(min(START, self.maximum))
        self._slow_start = True
        self._overloads: deque[float] = deque(maxlen=_OVERLOADS)
        self._outcomes: deque[bool] = deque(maxlen=_OUTCOMES)
        self.ramp = TokenBucket(math.inf, now)
        self._round_s = 0.0

    def grow(self, in_flight: int) -> None:
        """Raise the limit for an accepted request, if at least 80 % of the limit is in use."""
        if in_flight >= _SATURATED * int(self.limit):
            step = 1.0 if self._slow_start else max(1.0, _GROWTH * self.limit) / self.limit
            self.limit = min(float(self.maximum), self.limit + step)

    def record_round_trip(self, seconds: float, now: float) -> None:
        """Adapt the ramp to the seconds from sending a request to its acceptance."""
        is_first, self._round_s = not self._round_s, 0.9 * (self._round_s or seconds) + 0.1 * seconds
        per_second = _SENDS_PER_LIMIT * self.limit / max(self._round_s, _SHORTEST_ROUND_S)
        if is_first:
            self.ramp = TokenBucket(per_second, now)
        self.ramp.set_rate(per_second, now)

    def cut(self, factor: float) -> None:
        """Multiply the limit by `factor`, down to at least 1, and end the slow start."""
        self._slow_start = False
        self.limit = max(1.0, self.limit * factor)

    def open_fully(self) -> None:
        """Raise the limit to the maximum because the send rate limits now, unless an overload cut it."""
        if self._slow_start:
            self.limit = float(self.maximum)

    def record_overload(self, now: float) -> bool:
        """Cut the limit at the third overload within ten seconds. Return True if it was cut."""
        self._overloads.append(now)
        if len(self._overloads) < _OVERLOADS or now - self._overloads[0] > _OVERLOAD_WINDOW_S:
            return False
        self._overloads.clear()
        self.cut(OVERLOAD_CUT)
        return True

    def record_outcome(self, *, failed: bool) -> bool:
        """Cut the limit if more than a fifth of the last fifty requests failed. Return True if it was cut."""
        self._outcomes.append(failed)
        if not failed or sum(self._outcomes) <= _FAILED_SHARE * _OUTCOMES:
            return False
        self._outcomes.clear()
        self.cut(OVERLOAD_CUT)
        return True


class EnforcedLimit:
    """Limit of requests in flight that the provider enforces, detected from its rejections (rule 6).

    Under such a limit a request is rejected if and only if too many are in flight, at any send rate. Two
    bursts of rejections at least a second apart establish the limit if no accepted request contradicts them.
    After a while one more request than the limit is tried. A failed try doubles the time until the next try.

    Attributes:
        limit: maximum number of requests in flight, None while no limit is known.
    """

    def __init__(self) -> None:
        self.limit: int | None = None
        self._most_accepted, self._least_rejected = 0, math.inf
        self._suspected_at, self._quiet_until = math.inf, -math.inf
        self._confirmed = 0  # the limit without increases since the last rejection
        self._accepted = 0  # since the last try
        self._tried_at, self._wait_factor = 0.0, 1

    def ready_at(self, in_flight: int, now: float) -> float:
        """Return when one more request may be sent: `now`, or infinity if one must end first."""
        if self.limit is None:
            return max(now, self._quiet_until) if in_flight + 1 >= self._least_rejected else now
        if in_flight < self.limit:
            return now
        if in_flight > self.limit:
            return math.inf  # a request above the limit is being tried
        due = self._accepted >= self._wait_factor * (4 + 2 * self.limit)
        return now if due else max(now, self._tried_at + _TRY_AFTER_S * self._wait_factor)

    def record_accepted(self, crowd: int, now: float) -> None:
        """Record that a request was accepted with `crowd` in flight, including itself."""
        self._accepted += 1
        if self.limit is None:
            self._most_accepted = max(self._most_accepted, crowd)
            if crowd >= self._least_rejected:
                self._least_rejected = self._suspected_at = math.inf
        elif crowd > self.limit:
            self.limit = crowd + self.limit // 4
            self._begin_wait(now, wait_factor=1)

    def explains(self, crowd: int, now: float, *, new_burst: bool, lost: bool = False) -> bool:
        """Record a rejection. Return True if the limit explains it, so that the send rate is not to blame.

        Args:
            crowd: requests in flight when the rejected request was sent, including itself.
            now: the time on the pool's clock.
            new_burst: the rejection is the first of a burst and has no other explanation.
            lost: the connection was lost. The send rate cannot cause this: an earlier try succeeded by luck.
        """
        if lost:  # Unlike a rate limit, a lost connection starts no pause: do not send as many at once again.
            self._quiet_until = now + _BURSTS_APART_S
        if self.limit is None:
            return self._suspect(crowd, now, new_burst=new_burst)
        if crowd < (self._confirmed if lost else self.limit):
            return False
        if new_burst and crowd == self.limit and self._accepted < _FEWEST_ACCEPTED:
            # Requests are rejected at the limit again and again, so the provider does not enforce this limit.
            self.limit, self._most_accepted = None, 0
            self._least_rejected = self._suspected_at = math.inf
            return False
        if new_burst:
            # The try failed, an earlier try succeeded by chance, or another process uses part of the limit.
            self.limit = self._confirmed = max(1, min(self.limit, crowd - 1))
            self._begin_wait(now, wait_factor=min(_MAX_WAIT_FACTOR, 2 * self._wait_factor))
        return True

    def _suspect(self, crowd: int, now: float, *, new_burst: bool) -> bool:
        """Record a rejection while no limit is known. Return True if the rejection establishes a limit."""
        if crowd <= self._most_accepted:
            self._most_accepted = crowd - 1
            self._least_rejected = self._suspected_at = math.inf
            return False
        self._least_rejected = min(self._least_rejected, crowd)
        if not new_burst:
            return False
        if self._most_accepted and now - self._suspected_at >= _BURSTS_APART_S:
            self.limit = self._confirmed = self._most_accepted
            self._begin_wait(now, wait_factor=1)
            return True
        self._suspected_at = min(self._suspected_at, now)
        return False

    def _begin_wait(self, now: float, *, wait_factor: int) -> None:
        self._accepted, self._tried_at, self._wait_factor = 0, now, wait_factor


class Pause:
    """Shared pause of all requests of a pool (rule 8).

    Attributes:
        until: end of the pause on the pool's clock.
        expected_until: end of the pause without jitter, when the provider expects requests again.
        reason: text of the error that began the pause.
        bursts: bursts of rejections since a request was accepted.
    """

    def __init__(self, rng: random.Random) -> None:
        self.until = self.expected_until = -math.inf
        self.reason = ""
        self._rng = rng
        self.bursts = 0

    def length_s(self, hint_s: float | None) -> float:
        """Return the seconds to pause: the provider's hint, or else 50 % more with each burst.

        After two bursts without an accepted request, a hint is only a lower bound, because some servers
        ask to retry after 0 or 1 s until their window of one minute ends.
        """
        hinted = hint_s is not None and math.isfinite(hint_s)
        bursts = self.bursts - _BURSTS_BEFORE_DOUBT if hinted else self.bursts
        backoff_s = min(LONGEST_BACKOFF_S, 1.5 ** min(bursts, 14)) * self._rng.uniform(0.5, 1.0)
        if hint_s is None or not hinted:
            return backoff_s
        return max(0.0, hint_s, backoff_s if bursts > 0 else 0.0)

    def extend(self, seconds: float, reason: str, now: float) -> bool:
        """Pause until max(old end, now + seconds + small jitter). Return True if no pause was active."""
        begins = self.until <= now
        until = now + seconds + self._rng.uniform(0.0, min(_MOST_JITTER_S, _JITTER * seconds))
        if until > self.until:
            self.until, self.expected_until, self.reason = until, now + seconds, reason
        return begins


class Reopening:
    """Slow start after a pause: 4 requests in the first second, doubling every second (rule 9).

    A new pool sends 4 requests and then one per second until the provider responds, because the headers of
    the first response may announce limits.
    """

    def __init__(self, now: float) -> None:
        self.restart(now)
        self._is_new = True

    def restart(self, now: float) -> None:
        """Start the slow start now, because a pause has ended."""
        self._is_new = self._is_over = False
        self._began_at = now
        self._second, self._sent = 0, 0  # the second of the last request, and the requests sent in it

    def record_response(self) -> None:
        """Record that the provider responded. This ends the slow start of a new pool."""
        self._is_over |= self._is_new

    def ready_at(self, now: float) -> float:
        """Return when the next request may be sent: `now` if at once."""
        second = max(0, int(now - self._began_at))
        if self._is_over or second >= _OPEN_AFTER_S:
            return now
        allowed = 1 if self._is_new and second else _FIRST_SENDS << second
        sent = self._sent if second == self._second else 0
        return now if sent < allowed else self._began_at + second + 1

    def record_send(self, now: float) -> None:
        """Record that a request is sent."""
        second = max(0, int(now - self._began_at))
        self._second, self._sent = second, self._sent + 1 if second == self._second else 1
