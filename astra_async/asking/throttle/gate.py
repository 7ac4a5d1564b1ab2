"""When the next request may be sent: every rule that holds requests back, in one place without asyncio.

Order of the checks: the shared pause (8), our concurrency limit and the provider's ceiling (6), the opening
(9), the spread of a round (6), the learned pace (17), the buckets (2, 5). The first that is not open gives
the reason.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from astra_async.asking.throttle.account import Account
from astra_async.asking.throttle.bucket import Bucket, Dimension, announced_bucket
from astra_async.asking.throttle.concurrency import Ceiling, Concurrency, Smoothing
from astra_async.asking.throttle.estimate import Estimator
from astra_async.asking.throttle.pace import Pace
from astra_async.asking.throttle.pause import PARKED_S, Opening, Pause
from astra_async.asking.throttle.retry import Attempt
from astra_async.errors import ConfigError, RateLimited

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from astra_async.asking.throttle.estimate import Demand
    from astra_async.asking.throttle.state import EventKind
    from astra_async.errors import Overloaded
    from astra_async.types import ModelRequest, ModelSettings, Provider, RateLimits, RateWindow


# What a pause is for: a rejection that teaches a pace, one that the ceiling explains, or anything else.
Cause = Literal["rate", "ceiling", "trouble"]

SILENCE_S = 2.5
_REFUSED_WITHIN_S = 2.0  # connections above a limit are lost at once
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
MOST_IN_SILENCE = 256  # beyond it only a provider that says something is asked for more


class Emit(Protocol):
    """Records an event."""

    def __call__(
        self, kind: EventKind, attempt: Attempt | None, detail: str, seconds: float | None = None
    ) -> None:
        """`attempt` is the request that it is about, if one."""


class Gate:
    """Everything that decides when a pool's next request goes, and what its answers change in that.

    `in_flight` counts the slots that are taken; `buckets` are the limits that are known.
    """

    def __init__(
        self,
        settings: ModelSettings,
        provider: Provider,
        rng: random.Random,
        emit: Emit,
        now: float,
        *,
        account: Account | None = None,
    ) -> None:
        self.in_flight = 0
        self._account = account or Account()
        self.estimator = Estimator(
            max_tokens=settings.max_tokens,
            charges_max_tokens=provider.charges_max_tokens,
            cached_input_is_exempt=provider.cached_input_is_exempt,
        )
        self.buckets = _configured(settings, now)
        self._concurrency = Concurrency(settings.max_in_flight)
        self._ceiling = Ceiling()
        self._smoothing = Smoothing()
        self._opening = Opening(now)
        if self.buckets:
            self._opening.alive()  # there is nothing to wait for: the limits are known
        self.pause = Pause(rng)
        self.pace = Pace()
        self._emit = emit
        self._silent: deque[Attempt] = deque()
        self._epoch = 0
        self._sends = 0
        self._refused_until = 0  # lost connections of what was sent until then are one burst
        self._paused_by: Cause | None = None
        self._reported: set[str] = set()

    # --- admission ----------------------------------------------------------------------------------

    def opens_at(self, request: ModelRequest, now: float, *, warm: bool) -> tuple[float, str]:
        """When the request may go (`now` if at once; never, if only an ending request can tell) and why."""
        if self.pause.until > now:
            return self.pause.until, "pause"
        self._believe_silence(now)
        if self._concurrency.full(self.in_flight):
            return self._silent_at(), "concurrency"
        rules = (
            (self._ceiling.ready_at(self.in_flight, now), "concurrency"),
            (self._opening.ready_at(now), "opening"),
            (self._smoothing.ready_at(now), "opening"),
            (self.pace.advance(now), "send rate"),
            (self._account.ready_at(self.pace, now), "send rate"),
        )
        for at, reason in rules:
            if at > now:
                return at, reason
        return self._buckets_open_at(request, now, warm=warm) if self.buckets else (now, "")

    def admit(
        self,
        request: ModelRequest,
        now: float,
        on_limits: Callable[[Attempt, RateLimits], None],
        on_first_token: Callable[[Attempt], None],
        *,
        warm: bool,
    ) -> Attempt:
        """Take a slot and the reservations; the request is sent now."""
        self._sends += 1
        self.in_flight += 1  # admitted, and neither ended nor taken back: each attempt leaves it exactly once
        attempt = Attempt(
            request=request,
            on_limits=on_limits,
            on_first_token=on_first_token,
            number=self._sends,
            epoch=self._epoch,
            sent_at=now,
            crowd=self.in_flight,
        )
        self._ceiling.sent(attempt)
        self._silent.append(attempt)  # in the order of sending; whoever is heard of goes when it is in front
        self._opening.sent(now)
        self._smoothing.sent(now)
        self.pace.sent(attempt.number, now)
        self._account.sent(self.pace, now)
        if self.buckets:
            demand = self.estimator.demand(request, warm=warm)
            attempt.reserved = [
                bucket.reserve(demand.of(dimension), now, guessed=demand.guessed)
                for dimension, bucket in self.buckets.items()
            ]
        return attempt

    def resume(self, now: float) -> None:
        """End the pause if its time has come, and act on the rate signal that began it.

        It teaches a pace and cuts nothing, under announced limits too: a rejection in spite of them says
        that they are not the whole truth, and a cut costs several times as long where answers take long
        (5 at once and 20 s each are 0.25 a second, whatever the limit is).
        """
        if self._paused_by is None or self.pause.until > now:
            return
        # Once for a pause: what its signal taught is acted on here and nowhere else.
        cause, self._paused_by = self._paused_by, None
        self._emit("resumed", None, self.pause.reason)
        if cause == "ceiling":
            # Nothing is cut and no pace learned: the ceiling has been lowered where the signal came.
            self.pace.excused(self.pause.announced_until)
            return
        if cause == "rate":
            lesson = self.pace.reopened(self.pause.announced_until, announced=bool(self.buckets))
            if lesson == "noise":
                return
            if lesson == "pace":
                self._concurrency.leave_it_to_the_pace()
        if self.pace.per_second is None:
            self._opening.reopen(now)
        else:
            self._emit("paced", None, f"{self.pace.per_second:.3g} requests/s")

    # --- what a request brings back -----------------------------------------------------------------

    def announced(self, attempt: Attempt, limits: RateLimits, now: float) -> None:
        """Headers of a response (rule 5)."""
        self._opening.alive()
        for dimension in DIMENSIONS:
            window: RateWindow | None = getattr(limits, dimension)
            bucket = self.buckets.get(dimension)
            if window is not None and bucket is None:
                amount = self.estimator.demand(attempt.request, warm=False).of(dimension)
                bucket = announced_bucket(dimension, window, now, self.pace.recent(now), amount)
            if window is not None and bucket is not None:
                self.buckets[dimension] = bucket
                reserved = next((each for each in attempt.reserved if each.bucket is bucket), None)
                bucket.announce(window, attempt.sent_at, reserved, now)

    def accepted(self, attempt: Attempt, now: float) -> None:
        """The provider has let a request in: its answer has begun, or is there."""
        if attempt.accepted:
            return
        attempt.accepted = True
        self._ceiling.let_in(attempt, now)
        self._opening.alive()
        self.pause.answered(self._epoch - attempt.epoch)
        if attempt.epoch == self._epoch and not attempt.counted:
            self._concurrency.accepted(self.in_flight)
        attempt.counted = True
        self._smoothing.accepted(now - attempt.sent_at, self._concurrency.limit, now)

    def record_refusal(self) -> None:
        """Record a refused request: the provider is available."""
        self._opening.alive()

    def record_success(self) -> None:
        """Record a request that ended with an answer."""
        self._concurrency.ended(well=True)

    def rate_limited(self, attempt: Attempt, error: RateLimited, now: float) -> None:
        """A rate signal (rules 7, 8, 17): one pause for all, and one new pace or cut for a burst."""
        self._opening.alive()
        self.pace.rejected(attempt.number)
        fresh = attempt.epoch == self._epoch
        explained = self._ceiling.rejected(attempt, now, begins_burst=fresh, of_a_try=self.pace.trying)
        if fresh:
            self._paused_by = "ceiling" if explained else "rate"  # whatever else the pause is for
            # One burst, one epoch: what was sent before it neither cuts nor raises anything any more.
            self._epoch += 1
            self.pause.begin_episode()
            self.pace.signal(error.hint_s, attempt.sent_at)
        if fresh or error.hint_s is not None:
            self.pause_for(self.pause.length_s(error.hint_s), str(error), now)

    def overloaded(self, attempt: Attempt, error: Overloaded, now: float) -> None:
        """Short of capacity (rule 7): a single one is noise unless the provider says how long to wait."""
        self._ceiling.ended(attempt)
        self._opening.alive()
        burst = attempt.epoch == self._epoch and self._concurrency.overloaded(now)
        if burst:
            self._epoch += 1  # as after a rate signal
            self.pause.begin_episode()
            self._report_cut()
        if burst or error.hint_s:
            self.pause_for(self.pause.length_s(error.hint_s), str(error), now)

    def too_many_connections(self, attempt: Attempt, now: float) -> bool:
        """Whether a connection was lost because as many as the provider keeps were open (rule 6).

        Then it is no failure: the request waits until one of them ends.
        """
        if attempt.accepted or attempt.crowd == 1 or now - attempt.sent_at > _REFUSED_WITHIN_S:
            return False
        fresh = attempt.number > self._refused_until
        if fresh:
            self._refused_until = self._sends
        return self._ceiling.lost(attempt, now, begins_burst=fresh)

    def record_failure(self) -> None:
        """Record a network error or a 5xx (rule 7)."""
        if self._concurrency.ended(well=False):
            self._report_cut()

    def oldest_sent_at(self) -> float:
        """Return when the oldest request in flight was sent, infinity if none is in flight."""
        return self._ceiling.oldest_sent_at()

    def pause_for(self, seconds: float, reason: str, now: float) -> None:
        """Pause all calls of the pool, or extend the pause (rule 8)."""
        begins = self.pause.extend(seconds, reason, now)
        self._paused_by = self._paused_by or "trouble"
        if begins:
            self._emit("parked" if seconds > PARKED_S else "paused", None, reason, seconds)

    # --- slots and reservations ---------------------------------------------------------------------

    def release(self, attempt: Attempt) -> None:
        """A slot is free again."""
        self.in_flight -= 1
        self._ceiling.ended(attempt)
        attempt.counted = True

    def settle(self, attempt: Attempt, used: Demand | None, now: float) -> None:
        """Tokens really used; None keeps what was reserved. A request that was sent stays counted."""
        if used is not None:
            for each in attempt.reserved:
                each.bucket.settle(each, used.of(each.bucket.dimension), now)

    def unsend(self, attempt: Attempt, now: float) -> None:
        """The slot was given but never used."""
        self.release(attempt)
        self.pace.unsent(attempt.number)
        for each in attempt.reserved:
            each.bucket.cancel(each, now)

    # --- for the display ----------------------------------------------------------------------------

    @property
    def limit(self) -> int:
        """L, the concurrency limit."""
        return int(self._concurrency.limit)

    def paused_for_s(self, now: float) -> float:
        """Seconds until the pause ends, 0 without one."""
        return max(0.0, self.pause.until - now)

    # --- helpers ------------------------------------------------------------------------------------

    def _believe_silence(self, now: float) -> None:
        """Take a request that was not rejected in `SILENCE_S` for one that was let in.

        Rejections come at once, answers may begin after minutes: without this, models that think before
        their first token would be asked eight at a time for the first minutes.
        """
        while self._silent and (self._silent[0].counted or self._silent_at() <= now):
            attempt = self._silent.popleft()
            if not attempt.counted:
                self._ceiling.let_in(attempt, now)
            if not attempt.counted and attempt.epoch == self._epoch and self.limit < MOST_IN_SILENCE:
                attempt.counted = True
                self._opening.alive()
                self._concurrency.accepted(self.limit)  # a call waits: the limit is in use

    def _silent_at(self) -> float:
        """When the oldest request that says nothing will have said nothing for long enough."""
        return self._silent[0].sent_at + SILENCE_S if self._silent else math.inf

    def _buckets_open_at(self, request: ModelRequest, now: float, *, warm: bool) -> tuple[float, str]:
        demand = self.estimator.demand(request, warm=warm)
        at, reason = now, ""
        for dimension, bucket in self.buckets.items():
            amount, name = demand.of(dimension), dimension.replace("_", " ")
            ready = bucket.ready_at(amount, now)
            if ready > now and bucket.is_below(amount) and not self.in_flight:
                # Not meant as it stands, or never to be kept: one at a time, and rejections teach the rest.
                detail = f"one at a time: {bucket.per_minute:g} {name} a minute are announced"
                if detail not in self._reported:
                    self._reported.add(detail)
                    self._emit("cut", None, detail)
            elif ready > at:
                at, reason = ready, name
        return at, reason

    def _report_cut(self) -> None:
        self._emit("cut", None, f"at most {self.limit} in flight")


def _configured(settings: ModelSettings, now: float) -> dict[Dimension, Bucket]:
    buckets = {}
    for dimension in DIMENSIONS:
        per_minute: float | None = getattr(settings, f"{dimension}_per_minute", None)
        if per_minute is not None:
            if not (0 < per_minute < math.inf):
                raise ConfigError(
                    f"[[models]] {settings.name}: {dimension}_per_minute must be above 0, not {per_minute:g}"
                )
            buckets[dimension] = Bucket(dimension, per_minute, now, configured=True)
    return buckets
