"""Rule 17: the pace that rejections teach, where no limit is announced or the limit is wrong.

Servers limit in many shapes (buckets with and without a burst, fixed and sliding windows, tokens that
nobody announces, limits that change, a key that another process uses as well), and none of them is assumed
here. What is known after a rejection, whatever the shape, is what the server has let in until then: that
much it can do.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from statistics import mean, median
from typing import Literal, NamedTuple

from astra_async.asking.throttle.bucket import CAPACITY_S, Spacing

_AIM = 0.985  # a pace that was measured may cost a rejection now and then, so it aims closer
_SLOWEST = 1 / 60
_HORIZON_S = 120.0
_SHORT_HINT_S, _NEARLY = 5.0, 1.02  # requests may arrive closer together than they were sent
_LOWER, _MOST_LOWERING = 0.93, 0.65
_NEAR_SENDS, _FEW_SENDS, _SOME_SENDS, _MANY_SENDS = 6, 10, 20, 50
_SIGNALS_TO_DOUBT, _FEWEST_TO_MEASURE, _ENOUGH_TO_BE_SURE = 2, 2, 5

Lesson = Literal["noise", "pace", "nothing"]


class Pace:
    """How fast to send, as far as rejections have taught it.

    The first rate signal sets the best rate that was let in until the reopening, measured over all moments t:
    requests let in since t, divided by the time from t to the reopening; or, for a hint of a few seconds
    (windows of a second are common), those within a hint's length before the rejection, divided by the hint.
    From then on sends are spaced by the rate, and `_Search` tries higher ones. A signal that answers a higher
    rate takes it back. One that answers a rate which had held lowers it: by 7 %, or where it came within a
    few sends to what was really let in since the last pause, by a third at the most. A lone signal after
    fifty sends is taken for a stray, and so are signals that lowering does not make rarer (`_Strays`).

    Attributes:
        per_second: requests per second that the provider is held to accept, None while unknown.
    """

    def __init__(self) -> None:
        self.per_second: float | None = None
        # No credit for timers that came late: after a pause it would shorten the first distance.
        self._spacing = Spacing(1.0, 0.0, credit_s=0.0)
        self._let_in: dict[int, float] = {}  # when requests were sent, rejected ones taken out
        self._rejected: deque[float] = deque(maxlen=64)  # when those were sent
        self._signal_at = self._closed_at = 0.0
        self._hint_s: float | None = None
        self._opened_at = self._cycle_at = -math.inf
        self._sends = 0  # since the last signal
        self._near = self._soon = 0  # signals in a row that came within _NEAR_SENDS, _SOME_SENDS
        self._waited = False
        self._search = _Search()
        self._strays = _Strays()

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
        closed_still = self._count_signal()
        # A cycle reaches from one opening that let something in to the next: however often we knocked in
        # vain at its end, what it let in and how long it took are what the server can do.
        cycle = [at for at in self._let_in.values() if at >= self._cycle_at]
        sends, self._sends = min(self._sends, max(self._search.clean_sends, 1)), 0
        self._opened_at = now
        if self._strays.ignored(now, self._near):
            return "noise"
        self._search.begin_clean(now)
        if not cycle:
            return "nothing"
        if self.per_second is None:
            return self._first(cycle, now, announced=announced)
        achieved = len(cycle) / max(now - max(self._cycle_at, cycle[0]), 1e-3)
        if closed_still and self._near > 1:
            self._search.forget()
            return self._set(min(self.per_second, max(achieved, self.per_second * _MOST_LOWERING)), now)
        return self._further(self.per_second, achieved, now, sends=sends)

    def _count_signal(self) -> bool:
        """Take note of a signal; whether nothing was let in since the last one."""
        self._near = self._near + 1 if self._sends < _NEAR_SENDS else 0
        self._soon = self._soon + 1 if self._sends <= _SOME_SENDS else 0
        if not any(at >= self._opened_at for at in self._let_in.values()):
            return True
        self._cycle_at, self._closed_at = self._opened_at, self._signal_at
        return False

    def _first(self, cycle: list[float], now: float, *, announced: bool) -> Lesson:
        """No rate is known yet: one rejection of one request may be a stray."""
        if announced and self._soon < _SIGNALS_TO_DOUBT:
            return "noise"
        if max(len(cycle), sum(1 for at in self._rejected if at >= self._cycle_at)) < _FEWEST_TO_MEASURE:
            return "noise"
        self._search.restart(sure=len(cycle) >= _ENOUGH_TO_BE_SURE)
        return self._set(self._measured(cycle, now), now)

    def _further(self, rate: float, achieved: float, now: float, *, sends: int) -> Lesson:
        """A signal in spite of a rate: it is too high, was raised too far, or the signal is a stray."""
        vain = self._strays.vain_at(_Signal(rate, sends, achieved), now)
        if vain is not None:
            self._search.restart(sure=False)
            self._set(vain, now)
            return "noise"
        if self.trying:
            if self._search.excuses(sends):
                return "noise"
            return self._set(self._search.taken_back(rate, now - self._closed_at), now)
        self._search.forget()
        if not self._soon and sends > _MANY_SENDS:
            return "noise"
        lowest = rate * (_MOST_LOWERING if sends < _FEW_SENDS else _LOWER)
        return self._set(min(rate * _LOWER, max(achieved, lowest)), now)

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


_STEP, _SURE_STEP = 1.0, 0.2
_CLOSE = 1.1
_FEWEST_SENDS, _SENDS_PER_STEP = 3, 10.0
_CLEAN_S, _SHORTEST_S, _LONGEST_S = 10.0, 2.0, 120.0
_COST_FACTOR = 8.0
_MOST_PATIENCE = 4
_MOST_ABOVE_USE = 2.0
_SENDS_TO_EXCUSE = 20


@dataclass(slots=True)
class _Search:
    """Higher rates, tried one after the other: up while they hold, then between what held and what failed.

    `good` is the rate below the one that is tried, `bad` the lowest that was rejected; `good` < rate means
    that the rate has not held yet. A rate has held after 10 sends for a doubling, 40 for a quarter more, or
    ten seconds; a failure near the limit doubles that, and what it cost in time is waited out eightfold, so
    that tries cost a tenth of the time at the most, be it a second's window or a minute's.
    """

    good: float | None = None
    bad: float | None = None
    step: float = _STEP
    patience: int = 1
    cost_s: float = 0.0
    excused: bool = False
    clean_since: float = 0.0
    clean_sends: int = 0

    def restart(self, *, sure: bool) -> None:
        """A first rate; one that was measured on few requests (not `sure`) may be far too low."""
        self.good = self.bad = None
        self.step, self.patience, self.cost_s = _SURE_STEP if sure else _STEP, 1, 0.0

    def forget(self) -> None:
        """What held does so no longer."""
        self.good = self.bad = None
        self.step = _SURE_STEP

    def begin_clean(self, now: float) -> None:
        """Whatever came before does not count for the rate."""
        self.clean_since, self.clean_sends = now, 0

    def held(self, rate: float, now: float) -> bool:
        """Whether the rate was used for long enough without a signal to try the next one."""
        if self.clean_sends < _FEWEST_SENDS:
            return False
        step, clean_s = self._next(rate) / rate - 1, now - self.clean_since
        if clean_s < _SHORTEST_S or (step < 1 and clean_s < min(_COST_FACTOR * self.cost_s, _LONGEST_S)):
            return False
        enough = self.clean_sends >= self.patience * _SENDS_PER_STEP / step
        return enough or clean_s >= self.patience * _CLEAN_S

    def raised(self, rate: float, now: float) -> float:
        """The next rate to try; this one has held, and is tried on where sends do not come up to it."""
        if self.bad is not None and self.bad <= _CLOSE * rate:
            self.bad, self.step = None, _SURE_STEP  # known closely enough: see whether it has changed
        elif self.bad is None and self.good is not None:
            self.patience, self.cost_s = 1, 0.0
            self.step = min(_STEP, 2 * self.step)
        # Never raised above twice what was really sent meanwhile: where answers or calls are what limits the
        # pool the rate would run away, and be far too high when the limit is there again. It holds while
        # strays are ignored as well (not to raise then would double what they cost). One send need not wait.
        used = (1 + self.clean_sends) / (now - self.clean_since)
        after = max(rate, min(self._next(rate), _MOST_ABOVE_USE * used))
        self.good = rate
        self.excused = False
        self.begin_clean(now)
        return after

    def excuses(self, sends: int) -> bool:
        """Whether a signal after so many sends at a rate that is tried is taken for a stray: one may be."""
        excused, self.excused = self.excused, True
        return not excused and sends >= _SENDS_TO_EXCUSE

    def taken_back(self, rate: float, cost_s: float) -> float:
        """The rate that held before this one."""
        self.bad, self.cost_s = rate, cost_s
        self.excused = False
        good = rate if self.good is None else self.good
        if rate <= _CLOSE * good:
            self.patience = min(2 * self.patience, _MOST_PATIENCE)
        return good

    def _next(self, rate: float) -> float:
        if self.bad is not None and self.bad > _CLOSE * rate:
            return math.sqrt(rate * self.bad)
        return rate * (1 + self.step)


_SIGNALS_KEPT, _FEWEST_SIGNALS = 24, 3
_DEAF_S, _LONGEST_DEAF_S = 60.0, 960.0
_MORE = 1.25


class _Signal(NamedTuple):
    """At which rate it came, after how many sends, and how much a second was let in until then."""

    rate: float
    sends: int
    achieved: float


class _Strays:
    """Rejections that have nothing to do with the rate: they come as often, in sends, at half of it.

    At one in a hundred a pool that slows down for each would be twenty times slower than one that only
    waits. Once they are recognised, signals teach nothing for a minute, then for two, and so on, unless three
    in a row come within a few sends: that is a limit.
    """

    def __init__(self) -> None:
        self._signals: deque[_Signal] = deque(maxlen=_SIGNALS_KEPT)
        self._deaf_until = -math.inf
        self._deaf_s = _DEAF_S

    def ignored(self, now: float, near: int) -> bool:
        """Whether a signal teaches nothing now; `near` is how many in a row came within a few sends."""
        if now < self._deaf_until and near >= _FEWEST_SIGNALS:
            self._deaf_until = -math.inf
        return now < self._deaf_until

    def vain_at(self, signal: _Signal, now: float) -> float | None:
        """The highest rate of late, if lowering it did not make signals rarer."""
        self._signals.append(signal)
        signals = sorted(self._signals)
        low, high = signals[: len(signals) // 2], signals[len(signals) // 2 :]
        if len(low) < _FEWEST_SIGNALS or low[len(low) // 2].rate > high[len(high) // 2].rate / 2:
            return None
        # Medians, because a first burst, out of a full bucket, is no measure of the others.
        usual = median(each.sends for each in high)
        if median(each.sends for each in low) < _NEAR_SENDS or mean(each.sends for each in low) >= 2 * usual:
            return None
        # Never deaf to a limit far below either rate: it lets in the same at both, what each pause refills.
        if median(each.achieved for each in high) < _MORE * median(each.achieved for each in low):
            return None
        self._signals.clear()
        self._deaf_until = now + self._deaf_s
        self._deaf_s = min(2 * self._deaf_s, _LONGEST_DEAF_S)
        return high[-1].rate
