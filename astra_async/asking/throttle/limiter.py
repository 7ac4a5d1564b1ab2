"""Rate limiter of one pool: when the next request may be sent, adapted by every response.

`Limiter.ready_at` checks in this order: the shared pause (rule 8), the concurrency limits (6), the reopening
(9), the learned send rate (1, 17), the announced limits (2, 5). This module does not use asyncio.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Any, Literal, get_args

from astra_async.asking.throttle.concurrency import Concurrency, EnforcedLimit, Pause, Reopening
from astra_async.asking.throttle.estimate import Demand
from astra_async.asking.throttle.rates import Account, Bucket, Dimension, SendRate, is_per_minute
from astra_async.errors import ConfigError, Overloaded, RateLimited, TransientError

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from astra_async.asking.throttle.estimate import Estimator
    from astra_async.asking.throttle.retry import Attempt
    from astra_async.errors import ProviderError
    from astra_async.types import ModelRequest, ModelSettings, RateLimits, RateWindow

PARKED_S = 600.0
# A request without a response for this long counts as accepted, because rejections arrive at once while an
# answer may begin after minutes. Otherwise the concurrency of a model that thinks before its first token
# would not grow beyond the initial eight requests.
SILENCE_S = 2.5
_REJECTED_WITHIN_S = 0.5
_NOTHING = Demand(0.0, 0.0)
_CONNECTION_REFUSED_WITHIN_S = 2.0
_DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)


class Limiter:
    """Rate limiter of one pool.

    Attributes:
        in_flight: requests in flight by number, in the order of sending.
        concurrency: the concurrency limit.
        buckets: the known limits per minute.
        pause: the shared pause.
        send_rate: the rate learned from rejections.
    """

    def __init__(
        self,
        settings: ModelSettings,
        estimator: Estimator,
        rng: random.Random,
        emit: Callable[..., None],
        now: float,
        *,
        account: Account | None = None,
    ) -> None:
        self.buckets = _configured_buckets(settings, now)
        self.pause = Pause(rng)
        self.send_rate = SendRate()
        self._account = account or Account()
        self.concurrency = Concurrency(settings.max_in_flight, now)
        self._enforced = EnforcedLimit()
        self._reopening = Reopening(now)
        if self.buckets:
            self._reopening.record_response()  # The limits are configured: do not wait for a first response.
        self._estimator = estimator
        self._emit = emit
        self.in_flight: dict[int, Attempt] = {}
        self._unanswered: deque[Attempt] = deque()  # requests without a response, in the order of sending
        self._sends = 0
        self._epoch = 0
        self._refused_until = 0  # Lost connections of requests up to this number are one burst.
        self._paused_by: Literal["rate", "concurrency", "other"] | None = None
        self._reported: set[str] = set()

    # --- sending --------------------------------------------------------------------------------------

    def ready_at(self, request: ModelRequest, now: float, *, warm: bool) -> tuple[float, str]:
        """Return when the request may be sent, and the name of the limit that delays it.

        The time is `now` if the request may be sent at once, and infinity if another request must end first.
        """
        if self.pause.until > now:
            return self.pause.until, "pause"
        self._assume_accepted(SILENCE_S, now)
        in_flight = len(self.in_flight)
        if in_flight >= int(self.concurrency.limit):
            return self._unanswered[0].sent_at + SILENCE_S if self._unanswered else math.inf, "concurrency"
        rules = (
            (self._enforced.ready_at(in_flight, now), "concurrency"),
            (self._reopening.ready_at(now), "opening"),
            (self.concurrency.ramp.ready_at(now), "opening"),
            (self.send_rate.ready_at(now), "send rate"),
            (self._account.ready_at(self.send_rate, now), "send rate"),
        )
        for at, reason in rules:
            if at > now:
                return at, reason
        return self._buckets_ready_at(request, now, warm=warm) if self.buckets else (now, "")

    def admit(self, attempt: Attempt, *, warm: bool) -> None:
        """Take a slot and reserve tokens for a request that is sent now."""
        now = attempt.sent_at
        self._sends += 1
        attempt.number, attempt.epoch = self._sends, self._epoch
        self.in_flight[attempt.number] = attempt
        attempt.crowd = len(self.in_flight)
        self._unanswered.append(attempt)
        self._reopening.record_send(now)
        self.concurrency.ramp.take(1.0, now)
        self.send_rate.record_send(attempt.number, now)
        self._account.sent_at[self.send_rate] = now
        if self.buckets:
            demand = self._estimator.demand(attempt.request, warm=warm)
            attempt.reserved = [
                bucket.reserve(demand.of(dimension), now, guessed=demand.guessed)
                for dimension, bucket in self.buckets.items()
            ]

    def release(self, attempt: Attempt) -> None:
        """Free the slot of a request that has ended."""
        del self.in_flight[attempt.number]
        attempt.presumed = True

    def withdraw(self, attempt: Attempt, now: float) -> None:
        """Free the slot and the reservations of a request that was never sent."""
        self.release(attempt)
        self.send_rate.forget(attempt.number)
        for each in attempt.reserved:
            each.bucket.settle(each, 0.0, now)

    def settle(self, attempt: Attempt, used: Demand, now: float) -> None:
        """Correct the reservations of a request by the tokens that it used."""
        for each in attempt.reserved:
            each.bucket.settle(each, used.of(each.bucket.dimension), now)

    def resume(self, now: float) -> None:
        """End the pause if its time is over, and adapt the send rate to the rejection that began it.

        A rejection lowers the send rate and not the concurrency, because lower concurrency costs much more
        throughput if answers take long. This also applies if the provider announces limits: the rejection
        shows that the announced limits are incomplete.
        """
        if self._paused_by is None or self.pause.until > now:
            return
        cause, self._paused_by = self._paused_by, None
        self._emit("resumed", None, self.pause.reason)
        if cause == "concurrency":
            return
        if cause == "rate" and self.send_rate.learn(self.pause.expected_until):
            self.concurrency.open_fully()
            self._emit("paced", None, f"{self.send_rate.per_second:.3g} requests/s")
        if self.send_rate.per_second is None:
            self._reopening.restart(now)

    # --- responses ------------------------------------------------------------------------------------

    def record_limits(self, attempt: Attempt, limits: RateLimits, now: float) -> None:
        """Apply the rate-limit headers of a response (rule 5)."""
        self._reopening.record_response()
        for dimension in _DIMENSIONS:
            window: RateWindow | None = getattr(limits, dimension)
            if window is None:
                continue
            if dimension not in self.buckets:
                if not window.limit or not is_per_minute(window):
                    continue
                amount = self._estimator.demand(attempt.request, warm=False).of(dimension)
                sent = self.send_rate.recent(now)
                self.buckets[dimension] = Bucket(dimension, window.limit, now, sent=sent, amount=amount)
            bucket = self.buckets[dimension]
            reserved = next((each for each in attempt.reserved if each.bucket is bucket), None)
            bucket.announce(window, attempt.sent_at, reserved, now)

    def record_accepted(self, attempt: Attempt, now: float) -> None:
        """Record that the provider accepted a request: its answer has begun or is complete."""
        attempt.accepted = True
        self.pause.bursts = min(self.pause.bursts, self._epoch - attempt.epoch)
        if not attempt.presumed:
            self._count_as_accepted(attempt, now)
        self.concurrency.record_round_trip(now - attempt.sent_at, now)

    def record_answer(self) -> None:
        """Record a complete answer."""
        self.concurrency.record_outcome(failed=False)

    def state(self, now: float) -> dict[str, Any]:
        """Return the limiter's fields of `PoolState`."""
        paused_for_s = max(0.0, self.pause.until - now)
        return {
            "in_flight": len(self.in_flight),
            "limit": int(self.concurrency.limit),
            "buckets": tuple(bucket.state(now) for bucket in self.buckets.values()),
            "send_rate": self.send_rate.per_second,
            "paused_for_s": paused_for_s,
            "pause_reason": self.pause.reason if paused_for_s else "",
        }

    def record_error(self, attempt: Attempt, error: ProviderError, now: float) -> None:
        """Slow down after an error. Mark connections that were refused because too many are open."""
        if error.usage is None and not attempt.accepted and not isinstance(error, TransientError):
            # The provider processed no tokens. OpenAI documents that the request itself still counts.
            self.settle(attempt, _NOTHING, now)
        match error:
            case RateLimited():
                self._emit("rate_limited", attempt, str(error), error.hint_s)
                self._slow_down(attempt, error, now)
            case Overloaded():
                self._emit("overloaded", attempt, str(error), error.hint_s)
                self._shed_load(attempt, error, now)
            case TransientError():
                attempt.refused = self._exceeds_connections(attempt, error, now)
                if not attempt.refused and self.concurrency.record_outcome(failed=True):
                    self._report_cut()
                return
        self._reopening.record_response()

    def pause_for(self, seconds: float, reason: str, now: float) -> None:
        """Pause all requests of the pool, or extend the pause (rule 8)."""
        self._paused_by = self._paused_by or "other"
        if self.pause.extend(seconds, reason, now):
            self._emit("parked" if seconds > PARKED_S else "paused", None, reason, seconds)

    # --- helpers --------------------------------------------------------------------------------------

    def _slow_down(self, attempt: Attempt, error: RateLimited, now: float) -> None:
        """React to a rate limit: pause the whole pool, and change the send rate once for a burst."""
        is_first = attempt.epoch == self._epoch
        self._epoch += is_first
        # A rejection right after an increase of the send rate does not suggest an enforced limit.
        new_burst = is_first and not (self.send_rate.trying and self._enforced.limit is None)
        explained = self._explains(attempt, now, new_burst=new_burst)
        self.send_rate.record_rejection(attempt.number, attempt.sent_at, error.hint_s, first=is_first)
        if is_first:
            self._paused_by = "concurrency" if explained else "rate"
            self.pause.bursts += 1
        if is_first or error.hint_s is not None:
            self.pause_for(self.pause.length_s(error.hint_s), str(error), now)

    def _shed_load(self, attempt: Attempt, error: Overloaded, now: float) -> None:
        """React to an overload (rule 7): a single one is ignored unless the provider names a delay."""
        cut = attempt.epoch == self._epoch and self.concurrency.record_overload(now)
        if cut:
            self._epoch += 1
            self.pause.bursts += 1
            self._report_cut()
        if cut or error.hint_s:
            self.pause_for(self.pause.length_s(error.hint_s), str(error), now)

    def _exceeds_connections(self, attempt: Attempt, error: TransientError, now: float) -> bool:
        """Return True if a connection was lost because the provider limits open connections (rule 6)."""
        late = now - attempt.sent_at > _CONNECTION_REFUSED_WITHIN_S
        if error.status is not None or attempt.accepted or attempt.crowd == 1 or late:
            return False
        new_burst = attempt.number > self._refused_until
        if new_burst:
            self._refused_until = self._sends
        return self._explains(attempt, now, new_burst=new_burst, lost=True)

    def _explains(self, attempt: Attempt, now: float, *, new_burst: bool, lost: bool = False) -> bool:
        attempt.presumed = True
        self._assume_accepted(_REJECTED_WITHIN_S, now)
        return self._enforced.explains(attempt.crowd, now, new_burst=new_burst, lost=lost)

    def _assume_accepted(self, silence_s: float, now: float) -> None:
        """Assume that requests without a rejection for `silence_s` seconds were accepted."""
        waiting = self._unanswered
        while waiting and (waiting[0].presumed or waiting[0].sent_at + silence_s <= now):
            attempt = waiting.popleft()
            if not attempt.presumed:
                self._count_as_accepted(attempt, now)

    def _count_as_accepted(self, attempt: Attempt, now: float) -> None:
        attempt.presumed = True
        self._reopening.record_response()
        self._enforced.record_accepted(attempt.crowd, now)
        if attempt.epoch == self._epoch:
            self.concurrency.grow(len(self.in_flight) if attempt.accepted else int(self.concurrency.limit))

    def _buckets_ready_at(self, request: ModelRequest, now: float, *, warm: bool) -> tuple[float, str]:
        demand = self._estimator.demand(request, warm=warm)
        at, reason = now, ""
        for dimension, bucket in self.buckets.items():
            ready, name = bucket.ready_at(now), dimension.replace("_", " ")
            if ready > now and not self.in_flight and bucket.is_below(demand.of(dimension)):
                # One request exceeds the announced limit: send one at a time and adapt to rejections.
                detail = f"one at a time: {bucket.per_minute:g} {name} a minute are announced"
                if detail not in self._reported:
                    self._reported.add(detail)
                    self._emit("cut", None, detail)
            elif ready > at:
                at, reason = ready, name
        return at, reason

    def _report_cut(self) -> None:
        self._emit("cut", None, f"at most {int(self.concurrency.limit)} in flight")


def _configured_buckets(settings: ModelSettings, now: float) -> dict[Dimension, Bucket]:
    """Return the limits that the user configured. Raises ConfigError if a limit is not above 0."""
    buckets = {}
    for dimension in _DIMENSIONS:
        name = f"{dimension}_per_minute"
        per_minute: float | None = getattr(settings, name, None)
        if per_minute is not None:
            if not (0 < per_minute < math.inf):
                raise ConfigError(f"[[models]] {settings.name}: {name} must be above 0, not {per_minute:g}")
            buckets[dimension] = Bucket(dimension, per_minute, now, configured=True)
    return buckets
