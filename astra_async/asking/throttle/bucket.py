"""Rules 2, 4 and 5: what a provider allows per minute, spent evenly, and corrected by its headers.

Why nothing is sent in bursts: a limit per minute is often enforced per second (Azure documents windows
of 1 and 10 seconds; 600 requests per minute are 10 in any second), and a burst of ten seconds' worth on
top of the full rate passes a fixed window of a minute as well. A backlog gains nothing from a burst.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from astra_async.types import LONGEST_RESET_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.types import RateWindow

Dimension = Literal["requests", "tokens", "input_tokens", "output_tokens"]

# We aim 2.5 % below an announced limit and make up for 5 ms of our own lateness, so that timers cost no
# throughput: (1 s + 5 ms) x 0.975 leaves 20 ms of a window of one second to the jitter of the network.
AIM = 0.975
LATENESS_S = 0.005
# Unused reservations may pile up to ten seconds' worth of the limit (rule 2's capacity).
CAPACITY_S = 10.0


class Spacing:
    """Lets amounts pass evenly at a rate (the generic cell rate algorithm).

    The level rises at the rate, up to `LATENESS_S` worth. An amount may pass while the level is not
    negative, and lowers it by itself; an amount of any size passes in the end and is paid for after.
    """

    def __init__(self, per_second: float, now: float, *, credit_s: float = LATENESS_S) -> None:
        self.per_second = per_second
        self._credit_s = credit_s
        self._level = 0.0
        self._at = now

    def set_rate(self, per_second: float, now: float) -> None:
        """Go on at another rate from now."""
        self.level(now)
        self.per_second = per_second

    def level(self, now: float) -> float:
        """Units in hand; negative is what was sent ahead of the rate."""
        if now > self._at:
            full = self._credit_s * self.per_second
            if self._level < full:
                self._level = min(full, self._level + (now - self._at) * self.per_second)
            self._at = now
        return self._level

    def ready_at(self, now: float) -> float:
        """When the next amount may pass; `now` if at once."""
        level = self.level(now)
        return now if level >= 0 else now - level / self.per_second

    def take(self, amount: float, now: float) -> None:
        """Let an amount pass."""
        self._level = self.level(now) - amount

    def give_back(self, amount: float, now: float) -> None:
        """Return what was taken and not used (negative: more was used); keeps `CAPACITY_S` worth."""
        level = self.level(now)
        most = max(level, CAPACITY_S * self.per_second)
        self._level = min(most, level + amount)


@dataclass(slots=True)
class Reservation:
    """A reservation in one bucket.

    `mark` is what the bucket had handed out when it was made; `guessed`: nothing was counted yet.
    """

    bucket: Bucket
    amount: float
    mark: float
    guessed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketState:
    """One dimension for the display.

    `level` is what may be sent at once (negative: sent ahead), `remaining` what the provider's headers
    leave over, None without such headers.
    """

    dimension: Dimension
    limit_per_minute: float
    level: float
    remaining: float | None


class Bucket:
    """One dimension of the limit: our own even spending, and the room that the provider announced."""

    def __init__(
        self, dimension: Dimension, per_minute: float, now: float, *, configured: bool = False
    ) -> None:
        self.dimension: Dimension = dimension
        self.per_minute = per_minute
        self._configured = per_minute if configured else math.inf
        self._spacing = Spacing(per_minute / 60 * AIM, now)
        self._announced: _Announced | None = None
        self._given = 0.0
        self._made_at = now

    def recall(self, sent: Sequence[float], amount: float, now: float) -> None:
        """Count what was sent before this bucket existed, up to ten seconds' worth of waiting."""
        if sent:
            past = Spacing(self._spacing.per_second, sent[0])
            for at in sent:
                past.take(amount, at)
            self._spacing.take(-max(past.level(now), -CAPACITY_S * past.per_second), now)

    def ready_at(self, amount: float, now: float) -> float:
        """When so much may be sent; `now` if at once."""
        ready = self._spacing.ready_at(now)
        if self._announced is not None:
            ready = max(ready, self._announced.ready_at(amount, now))
        return ready

    def is_below(self, amount: float) -> bool:
        """Whether the announced limit is lower than one request's amount; one of the settings never is."""
        return self.per_minute < min(amount, self._configured)

    def reserve(self, amount: float, now: float, *, guessed: bool = False) -> Reservation:
        """Set an amount aside for a request that is sent now."""
        self._spacing.take(amount, now)
        if self._announced is not None:
            self._announced.take(amount, now)
        self._given += amount
        return Reservation(self, amount, self._given, guessed)

    def settle(self, reserved: Reservation, actual: float, now: float) -> None:
        """The request used `actual`: the level moves by reserved - actual (rule 4).

        What was reserved and not used may be sent later, unless it was the margin of a first guess: that
        had its use, and sending it later would be a burst. The announced room stays: whether a provider
        returns unused tokens its next headers tell.
        """
        unused = reserved.amount - actual
        if unused < 0 or not reserved.guessed:
            self._spacing.give_back(unused, now)

    def cancel(self, reserved: Reservation, now: float) -> None:
        """The request was never sent."""
        self._spacing.give_back(reserved.amount, now)
        self._given -= reserved.amount
        if self._announced is not None:
            self._announced.take(-reserved.amount, now)

    def announce(self, window: RateWindow, sent_at: float, reserved: Reservation | None, now: float) -> None:
        """Headers of the response to a request that was sent at `sent_at` (rule 5).

        The window is as it was when the request arrived: since then it was refilled, and lowered by what
        was sent after. (Without the refill a window shorter than the latency would never open again.)
        A limit from the settings is never raised: the user may want to leave room for others.
        """
        if _is_per_minute(window):
            if window.limit:
                self._set_limit(min(window.limit, self._configured), now)
            if window.remaining is not None and window.remaining >= 0:
                per_second = self.per_minute / 60
                refilled = (now - max(sent_at, self._made_at)) * per_second
                sent_after = self._given - (reserved.mark if reserved else 0.0)
                left = window.remaining + refilled - sent_after
                own = reserved.amount if reserved else 0.0
                self._set_announced(left, window.remaining + own, sent_at, now)

    def state(self, now: float) -> BucketState:
        """The dimension as it stands."""
        return BucketState(
            dimension=self.dimension,
            limit_per_minute=self.per_minute,
            level=self._spacing.level(now),
            remaining=None if self._announced is None else self._announced.level(now),
        )

    def _set_limit(self, per_minute: float, now: float) -> None:
        if per_minute != self.per_minute:
            self.per_minute = per_minute
            self._spacing.set_rate(per_minute / 60 * AIM, now)
            if self._announced is not None:
                self._announced.per_second = per_minute / 60

    def _set_announced(self, left: float, seen: float, sent_at: float, now: float) -> None:
        if self._announced is None:
            self._announced = _Announced(self.per_minute / 60, now)
        self._announced.capacity = max(self._announced.capacity, seen)
        if sent_at < self._announced.known_from:
            # The headers of an older request may only make us more careful.
            left, sent_at = min(left, self._announced.level(now)), self._announced.known_from
        self._announced.set(left, sent_at, now)


def announced_bucket(
    dimension: Dimension, window: RateWindow, now: float, sent: Sequence[float] = (), amount: float = 1.0
) -> Bucket | None:
    """A bucket for a limit that was not configured; None if the window is no per-minute limit.

    It begins as if it had been there when the latest requests were `sent`, each of about `amount`: the
    next one keeps its distance from them.
    """
    if not window.limit or not _is_per_minute(window):
        return None
    bucket = Bucket(dimension, window.limit, now)
    bucket.recall(sent, amount, now)
    return bucket


class _Announced:
    """What the provider's own bucket holds, as far as its headers tell.

    Its capacity is the most that they ever left over, which may be a second's worth or a minute's.
    """

    def __init__(self, per_second: float, now: float) -> None:
        self.per_second = per_second
        self.capacity = 0.0
        self.known_from = -math.inf
        self._level = 0.0
        self._at = now

    def level(self, now: float) -> float:
        if now > self._at:
            self._level += (now - self._at) * self.per_second
            self._at = now
        self._level = min(self._level, self.capacity)
        return self._level

    def ready_at(self, amount: float, now: float) -> float:
        # A request above the capacity goes when the room is full: the provider will say what it thinks.
        missing = min(amount, self.capacity) - self.level(now)
        return now if missing <= _ROUNDING * self.capacity else now + missing / self.per_second

    def take(self, amount: float, now: float) -> None:
        self._level = self.level(now) - amount

    def set(self, level: float, sent_at: float, now: float) -> None:
        self._level = level
        self._at = now
        self.known_from = sent_at


_ROUNDING = 1e-9


def _is_per_minute(window: RateWindow) -> bool:
    """Negative limits (Azure) and windows of an hour or a day (Groq) say nothing about a minute."""
    if window.limit is not None and not (0 < window.limit < math.inf):
        return False
    return window.reset_s is None or window.reset_s <= LONGEST_RESET_S
