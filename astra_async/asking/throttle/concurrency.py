"""Rules 6 and 7: how many requests of a pool may be in flight, by our own care and by the provider's."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

from astra_async.asking.throttle.bucket import Spacing

if TYPE_CHECKING:
    from astra_async.asking.throttle.retry import Attempt

START = 8
OVERLOAD_CUT = 0.85
_SATURATED = 0.8
_GROWTH = 0.05
_OVERLOADS, _OVERLOAD_WINDOW_S = 3, 10.0
_OUTCOMES, _FAILED_SHARE = 50, 0.2
_SENDS_PER_LIMIT = 8.0
_SHORTEST_ROUND_S = 1e-3
_REJECTED_WITHIN_S = 0.5
_BURSTS_APART_S = 1.0
_TRY_AFTER_S, _MOST_PATIENCE, _TRIES_TO_DOUBT = 5.0, 16, 4
_FEWEST_LET_IN = 4


class Concurrency:
    """The limit L: grows while it is used and answers come, and is cut once for a burst of signals.

    Growth comes with every accepted request and not in steps: L is doubled after L of them until the
    first cut, then raised by max(1, 5 %), so that a round never ends in a burst of sends. `limit` is L, a
    fraction while it grows.
    """

    def __init__(self, maximum: int) -> None:
        self.maximum = max(1, maximum)
        self.limit = float(min(START, self.maximum))
        self._steep = True
        self._overloads: deque[float] = deque(maxlen=_OVERLOADS)
        self._outcomes: deque[bool] = deque(maxlen=_OUTCOMES)

    def full(self, in_flight: int) -> bool:
        """Whether nothing more may be sent before something ends."""
        return in_flight >= int(self.limit)

    def accepted(self, in_flight: int) -> None:
        """A request sent since the last cut was let in, with so many in flight (itself among them)."""
        if in_flight >= _SATURATED * int(self.limit):
            step = 1.0 if self._steep else max(1.0, _GROWTH * self.limit) / self.limit
            self.limit = min(float(self.maximum), self.limit + step)

    def cut(self, factor: float) -> None:
        """Lower L, to 1 at the least."""
        self._steep = False
        self.limit = max(1.0, self.limit * factor)

    def leave_it_to_the_pace(self) -> None:
        """A rate is known: unless an overload has cut L, only the maximum limits what is in flight."""
        if self._steep:
            self.limit = float(self.maximum)

    def overloaded(self, now: float) -> bool:
        """An overload of the current epoch; whether it is the third in ten seconds and L was cut."""
        self._overloads.append(now)
        if len(self._overloads) < _OVERLOADS or now - self._overloads[0] > _OVERLOAD_WINDOW_S:
            return False
        self._overloads.clear()
        self.cut(OVERLOAD_CUT)
        return True

    def ended(self, *, well: bool) -> bool:
        """A request ended, well or by transport or a 5xx; whether failures were too many and L was cut."""
        self._outcomes.append(well)
        if well or self._outcomes.count(False) <= _FAILED_SHARE * _OUTCOMES:
            return False
        self._outcomes.clear()
        self.cut(OVERLOAD_CUT)
        return True


class Ceiling:
    """A limit of requests in flight that the provider itself enforces, seen in which requests it rejects.

    Under such a limit every request that found fewer in flight is let in and every other one rejected,
    however fast they are sent. Two bursts of rejections, a second or more apart, that never contradicted this
    make a ceiling: the most with which a request was let in. Under a limit of the rate they soon do, because
    after a pause requests are let in with as many in flight. A ceiling is tried with one request more, after
    a while and then more rarely; four tries in a row that were let in end it, and so do rejections below it.

    Attributes:
        limit: the most that may be in flight, None while nothing speaks for a ceiling.
    """

    def __init__(self) -> None:
        self.limit: int | None = None
        self._in_flight: dict[int, Attempt] = {}
        self._most_let_in, self._least_rejected = 0, math.inf
        self._bursts, self._suspected_at = 0, 0.0
        self._shy_until = -math.inf
        self._held = 0  # the limit before tries that were let in
        self._tried_at = 0.0
        self._let_in = 0  # since the last try
        self._tries_let_in = 0
        self._patience = 1

    def ready_at(self, in_flight: int, now: float) -> float:
        """When one more may be sent; never, if only an ending request can tell."""
        if self.limit is None:
            return max(now, self._shy_until) if in_flight + 1 >= self._least_rejected else now
        if in_flight < self.limit:
            return now
        if in_flight > self.limit:
            return math.inf  # a try is under way
        due = self._let_in >= self._patience * (4 + 2 * self.limit)
        return now if due else max(now, self._tried_at + _TRY_AFTER_S * self._patience)

    def sent(self, attempt: Attempt) -> None:
        """A request goes out; `attempt.crowd` in flight, itself among them."""
        self._in_flight[attempt.number] = attempt

    def ended(self, attempt: Attempt) -> None:
        """A request is over, whatever became of it."""
        self._in_flight.pop(attempt.number, None)

    def oldest_sent_at(self) -> float:
        """When the oldest of the requests in flight was sent; never, without any."""
        return next((attempt.sent_at for attempt in self._in_flight.values()), math.inf)

    def let_in(self, attempt: Attempt, now: float) -> None:
        """A request was let in, or was not rejected for so long that it must have been."""
        if attempt.let_in:
            return
        attempt.let_in = True
        self._let_in += 1
        if self.limit is None:
            self._most_let_in = max(self._most_let_in, attempt.crowd)
            if attempt.crowd >= self._least_rejected:
                self._least_rejected, self._bursts = math.inf, 0
        elif attempt.crowd > self.limit:
            self._held = self._held if self._tries_let_in else self.limit
            self._tries_let_in += 1
            self.limit = attempt.crowd + self.limit // 4
            self._next_try(now, patience=1)
            if self._tries_let_in >= _TRIES_TO_DOUBT:
                self._doubt()

    def rejected(self, attempt: Attempt, now: float, *, begins_burst: bool, of_a_try: bool) -> bool:
        """A rate signal; whether the ceiling explains it, so that it says nothing of the rate.

        `of_a_try`: a higher rate was being tried, which explains the signal as well.
        """
        self.ended(attempt)
        for other in tuple(self._in_flight.values()):
            if now - other.sent_at > _REJECTED_WITHIN_S:
                self.let_in(other, now)
        if self.limit is None:
            return self._suspect(attempt.crowd, now, begins_burst=begins_burst and not of_a_try)
        if attempt.crowd < self.limit:
            return False
        if begins_burst and attempt.crowd == self.limit and self._let_in < _FEWEST_LET_IN:
            self._doubt()  # rejected with as few again and again: that is no ceiling
            return False
        if begins_burst:
            # The try failed, or another process takes a share of the ceiling.
            self.limit = max(1, min(self.limit, attempt.crowd - 1))
            self._tries_let_in = 0
            self._next_try(now, patience=min(_MOST_PATIENCE, 2 * self._patience))
        return True

    def lost(self, attempt: Attempt, now: float, *, begins_burst: bool) -> bool:
        """A connection was lost at once; whether the ceiling explains it.

        No pause follows, as one does a rate signal: as many as were too many are not sent again at once.
        """
        self._shy_until = now + _BURSTS_APART_S
        if self.limit is not None and self._tries_let_in and self._held < attempt.crowd < self.limit:
            self.limit = attempt.crowd - 1  # the try before was let in by chance, as another request ended
            self._tries_let_in = 0
            self._next_try(now, patience=min(_MOST_PATIENCE, 2 * self._patience))
            return True
        return self.rejected(attempt, now, begins_burst=begins_burst, of_a_try=False)

    def _suspect(self, crowd: int, now: float, *, begins_burst: bool) -> bool:
        """One rejection more without a ceiling; whether it makes one."""
        if crowd <= self._most_let_in:
            self._doubt()
            self._most_let_in = max(0, crowd - 1)
            return False
        self._least_rejected = min(self._least_rejected, crowd)
        if begins_burst:
            self._bursts += 1
            self._suspected_at = now if self._bursts == 1 else self._suspected_at
        if self._bursts > 1 and self._most_let_in and now - self._suspected_at >= _BURSTS_APART_S:
            self.limit = self._most_let_in
            self._tries_let_in = 0
            self._next_try(now, patience=1)
            return True
        return False

    def _doubt(self) -> None:
        self.limit = None
        self._most_let_in, self._least_rejected = 0, math.inf
        self._bursts, self._suspected_at = 0, 0.0

    def _next_try(self, now: float, *, patience: int) -> None:
        self._let_in, self._tried_at, self._patience = 0, now, patience


class Smoothing:
    """Spreads what could go at once over a sixteenth of a round, so that a rejection stops the rest.

    A round is the time from a send to its acceptance, averaged. At a server that allows 5 a second and
    answers after 2 s this leaves one rejection of the three that a burst of 8 costs; a wider spread
    blurs what the rejection says about the rate (rule 17).
    """

    def __init__(self) -> None:
        self._spacing: Spacing | None = None
        self._round_s = 0.0

    def accepted(self, after_s: float, limit: float, now: float) -> None:
        """A request was let in so long after it was sent."""
        self._round_s = after_s if self._spacing is None else 0.9 * self._round_s + 0.1 * after_s
        per_second = _SENDS_PER_LIMIT * limit / max(self._round_s, _SHORTEST_ROUND_S)
        if self._spacing is None:
            self._spacing = Spacing(per_second, now)
        else:
            self._spacing.set_rate(per_second, now)

    def ready_at(self, now: float) -> float:
        """When the next send is due; `now` if at once."""
        return now if self._spacing is None else self._spacing.ready_at(now)

    def sent(self, now: float) -> None:
        """A request goes out."""
        if self._spacing is not None:
            self._spacing.take(1.0, now)
