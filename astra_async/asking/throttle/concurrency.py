"""Rules 6 and 7: how many requests of a pool may be in flight."""

from __future__ import annotations

from collections import deque

from astra_async.asking.throttle.bucket import Spacing

START = 8
RATE_CUT = 0.7
OVERLOAD_CUT = 0.85
_SATURATED = 0.8
_GROWTH = 0.05
_OVERLOADS, _OVERLOAD_WINDOW_S = 3, 10.0
_OUTCOMES, _FAILED_SHARE = 50, 0.2
_SENDS_PER_LIMIT = 8.0
_SHORTEST_ROUND_S = 1e-3


class Concurrency:
    """The limit L: grows while it is used and answers come, and is cut once for a burst of signals.

    Growth comes with every accepted request and not in steps: L is doubled after L of them until the
    first cut, then raised by max(1, 5 %), so that a round never ends in a burst of sends.

    Attributes:
        limit: L, a fraction while it grows.
        maximum: the hard maximum from the configuration.
    """

    def __init__(self, maximum: int) -> None:
        self.maximum = max(1, maximum)
        self.limit = float(min(START, self.maximum))
        self._steep = True
        self._overloads: deque[float] = deque(maxlen=_OVERLOADS)
        self._outcomes: deque[bool] = deque(maxlen=_OUTCOMES)
        self._failures = 0

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
        if len(self._outcomes) == _OUTCOMES and not self._outcomes[0]:
            self._failures -= 1
        self._outcomes.append(well)
        if well:
            return False
        self._failures += 1
        if self._failures <= _FAILED_SHARE * _OUTCOMES:
            return False
        self._outcomes.clear()
        self._failures = 0
        self.cut(OVERLOAD_CUT)
        return True


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
