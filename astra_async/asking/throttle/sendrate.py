"""Rule 17: the pace that rejections teach, where no limit is announced or the limit is wrong."""

from __future__ import annotations

import math
from collections import deque
from statistics import mean, median
from typing import Literal

from astra_async.asking.throttle.bucket import CAPACITY_S, Spacing

_AIM = 0.985  # a pace that was measured may cost a rejection now and then, so it aims closer
_SLOWEST = 1 / 60
_HORIZON_S = 60.0
_FEWEST_ACCEPTED = 2
_SHORT_HINT_S, _NEARLY = 5.0, 1.02  # requests may arrive closer together than they were sent
_LOWER, _MOST_LOWERING = 0.93, 3.0
_RAISE, _MOST_RAISE = 0.05, 0.8
_CLEAN_S, _CLEAN_SENDS, _CLEAN_SENDS_AT_FIRST = 10.0, 200, 50
_MOST_PATIENCE = 16
_FEW_SENDS = 20
_REJECTIONS = 3
_SIGNALS_TO_DOUBT = 2
_SIGNALS_KEPT = 24
_DEAF_S, _LONGEST_DEAF_S = 60.0, 960.0

Lesson = Literal["noise", "pace", "nothing"]


class SendRate:
    """Rule 17: rejections teach a rate for sending, where no limit is announced or the limit is wrong.

    The first rate signal sets the best rate that was accepted since the last reopening: over all moments
    t, the requests accepted since t divided by the time from t to the next reopening; or, for a hint of a
    few seconds (windows of a second are common), those accepted within a hint's length before the
    rejection, divided by the hint. A further signal lowers it by 7 %, a second one within twenty sends to
    what was accepted meanwhile. Ten clean seconds, or 200 clean sends, raise it by 5 %, the next ten by
    10 %, and so on; a raise that fails is taken back, and the next one waits twice as long.

    But rejections may be strays. At one in a hundred, a pool that slows down for each is twenty times
    slower than one that only waits. So the first rate is let go after ten clean seconds or 50 clean sends,
    and taken up again if that is answered by a rejection within twenty sends. And where half the rate did
    not double the sends between signals, lowering does not help: signals then teach nothing for a minute.

    Attributes:
        per_second: requests per second that the provider is held to accept, None while unknown.
        measuring: whether a rate signal began the pause.
    """

    def __init__(self) -> None:
        self.per_second: float | None = None
        self.measuring = False
        self._spacing = Spacing(1.0, 0.0)
        self._sends = 0
        self._sent: dict[int, float] = {}
        self._rejections: deque[int] = deque(maxlen=_REJECTIONS)
        self._signal_at = 0.0
        self._hint_s: float | None = None
        self._reopened_at = -math.inf
        self._clean_since = 0.0
        self._clean_sends = 0
        self._proven = False
        self._soon = 0  # signals in a row that came within a few sends
        self._fallback: float | None = None  # the rate before a raise, or before it was let go
        self._step = _RAISE
        self._patience = 1
        self._history: deque[tuple[float, int]] = deque(maxlen=_SIGNALS_KEPT)  # rate, sends until a signal
        self._deaf_until = -math.inf
        self._deaf_s = _DEAF_S

    def sent(self, number: int, now: float) -> None:
        """Request `number` goes out."""
        self._sends += 1
        self._clean_sends += 1
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
        self._rejections.append(self._sends)

    def unsent(self, number: int) -> None:
        """Request `number` never went out."""
        self._sent.pop(number, None)

    def signal(self, hint_s: float | None, sent_at: float) -> None:
        """The first rejection of a burst, of a request that was sent at `sent_at`."""
        self.measuring = True
        self._signal_at, self._hint_s = sent_at, hint_s

    def reopened(self, now: float, *, announced: bool) -> Lesson:
        """The pause that a signal began is over (`now` without jitter); what was learned from it.

        Where limits are `announced` and kept, it takes two signals within twenty sends to doubt them.
        """
        self.measuring = False
        measured, fallback, sends = self._measured(now), self._fallback, self._clean_sends
        at_first, self._reopened_at = self._reopened_at == -math.inf, now
        self._begin_clean(now)
        self._fallback, self._step = None, _RAISE
        self._soon = self._soon + 1 if sends <= _FEW_SENDS else 0
        if measured is None and self.per_second is None:
            return "nothing" if self._many_rejections() else "noise"
        if at_first:  # of the very first sends only the latest were made at the rate that they taught
            sends = sum(1 for at in self._sent.values() if self._signal_at - at < 1.0)
        self._history.append((self.per_second or measured or 0.0, sends))
        if now < self._deaf_until or self._lowering_is_vain(now):
            return "noise"
        if announced and self.per_second is None and self._soon < _SIGNALS_TO_DOUBT:
            return "noise"
        if self.per_second is not None:
            return self._signalled(self.per_second, measured or 0.0, fallback, now, sends=sends)
        if fallback is not None and self._soon:
            self._proven, self._patience = True, 2
            return self._set(fallback, now)
        return self._set(measured or 0.0, now)

    def ready_at(self, now: float) -> float:
        """When the next send is allowed; `now` if at once."""
        if self.per_second is None:
            return now
        clean = max((now - self._clean_since) / _CLEAN_S, self._clean_sends / _CLEAN_SENDS)
        if not self._proven and (clean >= 1 or self._clean_sends >= _CLEAN_SENDS_AT_FIRST):
            self._fallback, self.per_second = self.per_second, None
            self._begin_clean(now)
            return now
        if clean >= self._patience:
            self._raise(self.per_second, now)
        return self._spacing.ready_at(now)

    def _signalled(
        self, rate: float, measured: float, fallback: float | None, now: float, *, sends: int
    ) -> Lesson:
        """A further signal: a raise that failed, a rate that is too high, or a stray rejection."""
        if fallback is not None:
            if sends <= 2 * _FEW_SENDS:
                self._patience = min(2 * self._patience, _MOST_PATIENCE)
            return self._set(fallback, now)
        if self._soon > 1:
            self._proven = True
            return self._set(min(rate * _LOWER, max(measured, rate / _MOST_LOWERING)), now)
        return self._set(rate * _LOWER, now) if self._proven else "noise"

    def _lowering_is_vain(self, now: float) -> bool:
        """Whether signals come as often, counted in sends, at half the rate."""
        history = sorted(self._history)
        low, high = history[: len(history) // 2], history[len(history) // 2 :]
        if len(low) < _REJECTIONS or low[len(low) // 2][0] > high[len(high) // 2][0] / 2:
            return False
        # The median, because a first burst, out of a full bucket, is no measure of the others.
        if mean(sends for _, sends in low) >= 2 * median(sends for _, sends in high):
            return False
        self.per_second, self._proven, self._patience = None, False, 1
        self._history.clear()
        self._deaf_until = now + self._deaf_s
        self._deaf_s = min(2 * self._deaf_s, _LONGEST_DEAF_S)
        return True

    def _many_rejections(self) -> bool:
        full = len(self._rejections) == _REJECTIONS
        return full and self._sends - self._rejections[0] < _FEW_SENDS

    def _raise(self, rate: float, now: float) -> None:
        if self._fallback is not None:  # the last raise held
            self._step, self._patience = min(2 * self._step, _MOST_RAISE), 1
        self._set(rate * (1 + self._step), now)
        self._fallback = rate
        self._begin_clean(now)

    def _begin_clean(self, now: float) -> None:
        self._clean_since, self._clean_sends = now, 0

    def _set(self, per_second: float, now: float) -> Lesson:
        self.per_second = max(per_second, _SLOWEST)
        self._spacing.set_rate(self.per_second * _AIM, now)
        return "pace"

    def _measured(self, reopened_at: float) -> float | None:
        """The best rate accepted since the last reopening; None if too little was sent to tell."""
        since = max(self._reopened_at, self._signal_at - _HORIZON_S)
        sent = [at for at in self._sent.values() if at >= since]
        fewest = 1 if self.per_second is not None else _FEWEST_ACCEPTED
        if len(sent) < fewest:
            return None
        starts = sent[: len(sent) - fewest + 1]
        rate = max((len(sent) - i) / max(reopened_at - at, 1e-3) for i, at in enumerate(starts))
        hint_s = self._hint_s
        if hint_s is None or not (0 < hint_s <= _SHORT_HINT_S):
            return rate
        return max(rate, sum(1 for at in sent if self._signal_at - at <= _NEARLY * hint_s) / hint_s)
