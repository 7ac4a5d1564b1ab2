"""Rule 17: the pace that rejections teach, where no limit is announced or the limit is wrong.

Servers limit in many shapes (buckets with and without a burst, fixed and sliding windows, tokens that
are not announced, limits that change, a key that another process uses as well), and none of them is assumed
here. What is known after a rejection, whatever the shape, is what the server has let in until then: that
much it can do.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Literal

from astra_async.asking.throttle.bucket import CAPACITY_S, Spacing

_AIM = 0.985  # a pace that was measured may cost a rejection now and then, so it aims closer
_SLOWEST = 1 / 60
_HORIZON_S = 120.0
_SHORT_HINT_S, _NEARLY = 5.0, 1.02  # requests may arrive closer together than they were sent
_LOWER, _MOST_LOWERING, _FAR_ABOVE = 0.97, 0.7, 3.0
_NEAR_SENDS, _SOME_SENDS = 6, 20
_SIGNALS_TO_DOUBT, _FEWEST_TO_MEASURE, _ENOUGH_TO_BE_SURE = 2, 2, 5

Lesson = Literal["noise", "pace", "nothing"]


class Pace:
    """How fast to send, as far as rejections have taught it.

    The first rate signal sets the best rate that was let in until the reopening, measured over all moments t:
    requests let in since t, divided by the time from t to the reopening; or, for a hint of a few seconds
    (windows of a second are common), those within a hint's length before the rejection, divided by the hint.
    From then on sends are spaced by the rate, and `_Search` tries higher ones. A signal that answers a higher
    rate takes it back; one that answers a rate which had held lowers it by 3 %, however soon it came: where
    others share the limit it comes soon at any rate, the pause yields to them, and whoever yields more than
    that starves. Only a rate of over three times what was let in of late is lowered by more.

    Attributes:
        per_second: requests per second that the provider is held to accept, None while unknown.
    """

    def __init__(self) -> None:
        self.per_second: float | None = None
        # No credit for timers that came late: after a pause it would shorten the first distance.
        self._spacing = Spacing(1.0, 0.0, credit_s=0.0)
        self._let_in: dict[int, float] = {}  # when requests were sent, rejected ones taken out
        self._rejected: deque[float] = deque(maxlen=64)  # when those were sent
        self._signal_at = 0.0
        self._hint_s: float | None = None
        self._opened_at = self._cycle_at = -math.inf
        self._sends = 0  # since the last signal
        self._soon = 0  # signals in a row that came within _SOME_SENDS
        self._waited = False
        self._search = _Search()

    # --- what is sent and what comes of it ------------------------------------------------------------

    def sent(self, number: int, now: float) -> None:
        """Request `number` goes out."""
        self._sends += 1
        if self.per_second is not None:
            self._spacing.take(1.0, now)
            # A rate is only tried by sends that waited for it.
            self._search.clean_sends += self._waited
        self._waited = False
        self._let_in[number] = now
        oldest = next(iter(self._let_in))
        if now - self._let_in[oldest] > _HORIZON_S:
            del self._let_in[oldest]

    def recent(self, now: float) -> list[float]:
        """When the requests of the last ten seconds were sent, as far as they were not rejected."""
        return [at for at in self._let_in.values() if now - at <= CAPACITY_S]

    def rejected(self, number: int) -> None:
        """Request `number` was not accepted."""
        at = self._let_in.pop(number, None)
        if at is not None:
            self._rejected.append(at)

    def unsent(self, number: int) -> None:
        """Request `number` never went out."""
        self._let_in.pop(number, None)

    def advance(self, now: float) -> float:
        """Raise a rate that has held; when the next send is allowed then, `now` if at once."""
        if self.per_second is None:
            return now
        if self._search.held(self.per_second, now):
            self._set(self._search.raised(self.per_second, now), now)
        at = self._spacing.ready_at(now)
        self._waited |= at > now
        return at

    @property
    def trying(self) -> bool:
        """Whether the rate is higher than what has held."""
        good = self._search.good
        return self.per_second is not None and good is not None and self.per_second > good

    # --- what signals teach ---------------------------------------------------------------------------

    def signal(self, hint_s: float | None, sent_at: float) -> None:
        """The first rejection of a burst, of a request that was sent at `sent_at`."""
        self._signal_at, self._hint_s = sent_at, hint_s

    def excused(self, now: float) -> None:
        """The pause is over, and something else than the pace explains the signal that began it."""
        self._opened_at = now

    def reopened(self, now: float, *, announced: bool) -> Lesson:
        """The pause that a signal began is over (`now` without jitter); what was learned from it.

        Where limits are `announced` and kept, it takes two signals within twenty sends to doubt them.
        """
        self._soon = self._soon + 1 if self._sends <= _SOME_SENDS else 0
        near, self._sends = self._sends <= _NEAR_SENDS, 0
        # A cycle reaches from one opening that let something in to the next: however often we knocked in
        # vain at its end, what it let in and how long it took are what the server can do.
        opened = any(at >= self._opened_at for at in self._let_in.values())
        self._cycle_at = self._opened_at if opened else self._cycle_at
        self._opened_at = now
        self._search.begin_clean(now)
        if self.per_second is None:
            return self._first(now, announced=announced)
        if self.trying:
            return self._set(self._search.taken_back(self.per_second), now)
        self._search.restart(_STEP if near else _SMALL_STEP)
        return self._set(self.per_second * (self._lowering(now) if opened else _LOWER), now)

    def _first(self, now: float, *, announced: bool) -> Lesson:
        """No rate is known yet: one rejection of one request may be a stray."""
        cycle = [at for at in self._let_in.values() if at >= self._cycle_at]
        if not cycle:
            return "nothing"
        if announced and self._soon < _SIGNALS_TO_DOUBT:
            return "noise"
        if max(len(cycle), sum(1 for at in self._rejected if at >= self._cycle_at)) < _FEWEST_TO_MEASURE:
            return "noise"
        self._search.restart(_SMALL_STEP if len(cycle) >= _ENOUGH_TO_BE_SURE else _STEP)
        return self._set(self._measured(cycle, now), now)

    def _lowering(self, now: float) -> float:
        """By what a rate that holds no longer is multiplied: by little, unless far less is let in."""
        recent = self.recent(now)
        share = len(recent) / max(1.0, now - recent[0]) / (self.per_second or 1.0) if recent else 0.0
        return _LOWER if share * _FAR_ABOVE >= 1 else max(_MOST_LOWERING, math.sqrt(share))

    def _set(self, per_second: float, now: float) -> Lesson:
        self.per_second = max(per_second, _SLOWEST)
        self._spacing.set_rate(self.per_second * _AIM, now)
        return "pace"

    def _measured(self, cycle: list[float], reopened_at: float) -> float:
        """The best rate that was let in before the signal."""
        starts = cycle[:-1] or cycle
        rate = max((len(cycle) - i) / max(reopened_at - at, 1e-3) for i, at in enumerate(starts))
        hint_s = self._hint_s
        if hint_s is None or not (0 < hint_s <= _SHORT_HINT_S):
            return rate
        return max(rate, sum(1 for at in cycle if self._signal_at - at <= _NEARLY * hint_s) / hint_s)


_STEP, _SMALL_STEP, _CLOSE = 2.0, 1.2, 1.1
_FEWEST_SENDS, _SENDS_PER_STEP = 3, 10.0
_CLEAN_S, _SHORTEST_S = 5.0, 2.0
_MOST_PATIENCE = 16
_MOST_ABOVE_USE = 2.0


@dataclass(slots=True)
class _Search:
    """Higher rates, one after the other: doubled while they hold, then between what held and what failed.

    `good` is the rate below the one that is tried, `bad` the lowest that was rejected; `good` < rate means
    that the rate has not held yet. A rate has held after 10 sends for a doubling, 50 for a fifth more, or
    five seconds; each failure near the limit doubles that.
    """

    good: float | None = None
    bad: float | None = None
    patience: int = 1
    step: float = _STEP
    clean_since: float = 0.0
    clean_sends: int = 0

    def restart(self, step: float) -> None:
        """What held does so no longer; `step` is the first that is tried."""
        self.good = self.bad = None
        self.step = step

    def begin_clean(self, now: float) -> None:
        """Whatever came before does not count for the rate."""
        self.clean_since, self.clean_sends = now, 0

    def held(self, rate: float, now: float) -> bool:
        """Whether the rate was used for long enough without a signal to try the next one."""
        if self.clean_sends < _FEWEST_SENDS:
            return False
        step, clean_s = self._next(rate) / rate - 1, now - self.clean_since
        enough = self.clean_sends >= self.patience * _SENDS_PER_STEP / step
        return clean_s >= _SHORTEST_S and (enough or clean_s >= self.patience * _CLEAN_S)

    def raised(self, rate: float, now: float) -> float:
        """The next rate to try; this one has held, and is tried on where sends do not come up to it."""
        if self.bad is not None and self.bad <= _CLOSE * rate:
            self.bad, self.step = None, _SMALL_STEP  # known closely enough: see whether it has changed
        elif self.bad is None and self.good is not None:
            self.patience, self.step = 1, _STEP
        # Never raised above twice what was really sent meanwhile: where answers or calls are what limits the
        # pool the rate would run away, and be far too high when the limit is back. One send need not wait.
        used = (1 + self.clean_sends) / (now - self.clean_since)
        after = max(rate, min(self._next(rate), _MOST_ABOVE_USE * used))
        self.good = rate
        self.begin_clean(now)
        return after

    def taken_back(self, rate: float) -> float:
        """The rate that held before this one."""
        self.bad = rate
        good = rate if self.good is None else self.good
        if rate <= _CLOSE * good:
            self.patience = min(2 * self.patience, _MOST_PATIENCE)
        return good

    def _next(self, rate: float) -> float:
        if self.bad is not None and self.bad > _CLOSE * rate:
            return math.sqrt(rate * self.bad)
        return self.step * rate
