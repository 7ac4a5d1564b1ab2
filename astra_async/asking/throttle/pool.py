"""Pool of requests to one model with one API key: queue, slots, retries, prompt-cache warming and costs.

The pool does not poll. Every event (a new call, a finished request, response headers, a timer) runs `_pump`,
which admits calls from the front of the queue and sets one timer if the limiter makes the next call wait.
Invariant: `_grant` takes a slot, reserves tokens and reserves budget; `_end` or `_leave` frees all three.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from contextlib import suppress
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from astra_async.asking.throttle.budget import Budget, Ledger
from astra_async.asking.throttle.estimate import CACHE_LIFETIME_S, Estimator, PromptCache
from astra_async.asking.throttle.limiter import Limiter
from astra_async.asking.throttle.retry import Attempt, Decision, QueuedCall, RetryPolicy
from astra_async.errors import PoolUnusable, ProviderError, RateLimited, TransientError
from astra_async.types.pools import EventKind, PoolEvent, PoolState

if TYPE_CHECKING:
    from collections.abc import Callable

    from astra_async.asking.throttle.rates import Account
    from astra_async.types import Completion, ModelRequest, ModelSettings, Provider, RateLimits, Usage

LEADER_S = 30.0
_PLACES_AHEAD = 1024  # Calls that a call with a cached conversation may overtake. Others must not starve.
_SHORTEST_TIMER_S = 0.001


class Pool:
    """Sends requests within one provider's limits.

    Args:
        settings: the model and its limits.
        provider: makes single attempts; the caller closes it.
        price: returns the cost of a usage in US dollars, None if a price is unknown.
        budget: shared with other pools.
        account: shared with the pools of the same API key.
        on_event: called for every pause, retry and failure of the pool; must not raise.
        clock: returns monotonic seconds; timers use the event loop.

    Raises:
        ConfigError: a limit is not above 0, or a budget is set and the model's price is unknown.
    """

    def __init__(  # noqa: PLR0913 - everything that a test must control is injected here
        self,
        settings: ModelSettings,
        provider: Provider,
        *,
        price: Callable[[Usage], float | None],
        budget: Budget | None = None,
        account: Account | None = None,
        on_event: Callable[[PoolEvent], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        self._settings = settings
        self._provider = provider
        self._on_event = on_event
        self._clock = clock
        rng = rng or random.Random()  # noqa: S311 - jitter needs no secrecy
        self._estimator = Estimator(settings.max_tokens, provider)
        self._limiter = Limiter(settings, self._estimator, rng, self._emit, clock(), account=account)
        self._retries = RetryPolicy(settings.name, rng)
        self._cache = PromptCache()
        self._followers: dict[str, list[QueuedCall]] = {}  # calls by prompt, waiting for the leader
        self._budget = budget or Budget()
        self._ledger = Ledger(settings, self._estimator, price, self._budget, clock())
        self._queue: list[tuple[float, QueuedCall]] = []  # heap; cancelled calls are dropped at the front
        self._places = 0
        self._waiting: set[QueuedCall] = set()
        self._held_by: str | None = None
        self._end_error: PoolUnusable | None = None
        self._ended = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    async def call(self, request: ModelRequest) -> Completion:
        """Return the answer to a request, and retry failed attempts.

        A generation that failed at the provider is repeated once; the second result is final. `attempts` and
        `cost_usd` of the completion or of the error cover all attempts, estimated if needed.

        Raises:
            RequestRejected: this request can never succeed.
            PoolUnusable: no request of this pool can succeed; BudgetExhausted if the ceiling is reached.
            ProviderError: gave up after 6 attempts, 2 that may be billed, or 30 minutes of rejections.
        """
        call, decision = QueuedCall(request=request), Decision(delay_s=0.0, to_tail=True)
        if request.goes_alone and request.cache and self._cache.is_warm(request.begun_sha256, self._clock()):
            call.ahead = _PLACES_AHEAD - 0.5  # Send it before the cached conversation expires.
        while True:
            attempt = await self._wait_for_slot(call, decision)
            call.history.attempts += 1
            try:
                completion = await self._provider.complete(request, attempt)
            except ProviderError as error:
                decision = self._fail(call, attempt, error)
                if decision.delay_s is None:
                    call.history.annotate(error)
                    raise
            except BaseException:
                self._end(call, attempt, None)
                raise
            else:
                answer = self._finish(call, attempt, completion)
                if not answer.is_broken or call.history.attempts > 1:
                    return answer
                decision = Decision(delay_s=0.0)

    def stop(self) -> None:
        """Send no more requests: waiting calls fail at once, requests in flight are completed."""
        reason = f"{self._settings.name}: stopped by the user; run the same command again to resume"
        self._end_pool(PoolUnusable(reason), "stopped")

    @property
    def state(self) -> PoolState:
        """Current state of the pool, for the display."""
        now = self._clock()
        return PoolState(
            model=self._settings.name,
            waiting=len(self._waiting),
            held_by=self._held_by if self._waiting else None,
            **self._limiter.state(now),
            **self._ledger.sums(),
            tokens_per_minute=self._ledger.tokens_per_minute(now),
            dead=None if self._end_error is None else str(self._end_error),
        )

    async def close(self) -> None:
        """Stop the timer. The tasks of waiting calls must be cancelled by their owners."""
        self._waiting.clear()  # `_pump` sets no timer while this is empty.
        if self._timer is not None:
            self._timer.cancel()
        self._budget.forget(self._pump)

    async def _wait_for_slot(self, call: QueuedCall, decision: Decision) -> Attempt:
        """Wait for the retry delay, then in the queue, without holding a slot."""
        self._ledger.retries += call.history.attempts > 0 and self._end_error is None
        self._waiting.add(call)
        try:
            if decision.delay_s:
                with suppress(TimeoutError):
                    async with asyncio.timeout(decision.delay_s):
                        await self._ended.wait()
            self._enqueue(call, to_tail=decision.to_tail)
            self._pump()
            while (attempt := call.attempt) is None:
                if self._end_error:
                    raise call.history.copy_error(self._end_error)  # noqa: TRY301 - `_leave` must follow
                call.wake = asyncio.get_running_loop().create_future()
                await call.wake
        except BaseException:
            self._leave(call)
            raise
        call.wake = call.attempt = None
        return attempt

    def _enqueue(self, call: QueuedCall, *, to_tail: bool = False) -> None:
        """Add a call to the queue: at its earlier place, or behind all other calls."""
        if to_tail:
            self._places += 1
            call.place, call.ahead = self._places - call.ahead, 0.0
        heappush(self._queue, (call.place, call))

    def _leave(self, call: QueuedCall) -> None:
        """Remove a call whose task was cancelled while it waited, perhaps with a slot already granted."""
        call.left = True
        self._waiting.discard(call)
        if attempt := call.attempt:
            self._release_followers(attempt)
            self._limiter.withdraw(attempt, self._clock())
            self._budget.settle(attempt.worst_usd, 0.0)
        self._pump()

    def _pump(self) -> None:
        """Admit calls from the front of the queue, and set a timer if the next call has to wait."""
        if self._end_error is not None or not self._waiting:
            return
        now = self._clock()
        self._limiter.resume(now)
        at = now
        while self._queue and at <= now:
            call = self._queue[0][1]
            if call.left or (call.wake is not None and call.wake.cancelled()):
                heappop(self._queue)  # A cancelled task may not have run `_leave` yet.
            else:
                at = self._admit(call, now)
        if at <= now:  # The queue is empty.
            self._held_by, at = None, math.inf
        if self._timer is not None:
            self._timer.cancel()
        if at < math.inf:
            self._timer = asyncio.get_running_loop().call_later(max(_SHORTEST_TIMER_S, at - now), self._pump)

    def _admit(self, call: QueuedCall, now: float) -> float:
        """Admit the first call and return `now`; otherwise return the time of the next attempt.

        Infinity means to wait for an event.
        """
        request, cache = call.request, self._cache
        if not call.yielded and self._retries.prompt_yields(request.prompt_sha256):
            heappop(self._queue)
            call.yielded = True
            self._enqueue(call, to_tail=True)
            return now
        leads = False
        if request.cache and not request.goes_alone:
            if (followers := self._followers.get(request.prompt_sha256)) is not None:
                heappop(self._queue)
                followers.append(call)
                return now
            leads = cache.needs_leader(request.prompt_sha256, now)
        if self._retries.probes and self._limiter.in_flight:
            self._held_by = "outage"
            return math.inf
        warm = request.cache and cache.is_warm(request.begun_sha256, now)
        at, self._held_by = self._limiter.ready_at(request, now, warm=warm)
        if at > now:
            return at
        worst_usd = self._ledger.worst_usd(request)
        fit = self._budget.fits(worst_usd)
        if fit == "later":
            self._held_by = "budget"
            self._budget.wake_on_settlement(self._pump)
        elif fit == "never":
            self._end_pool(self._ledger.exhausted(worst_usd))
        else:
            heappop(self._queue)
            self._grant(call, now, worst_usd, warm=warm, leads=leads)
            return now
        return math.inf

    def _grant(self, call: QueuedCall, now: float, worst_usd: float, *, warm: bool, leads: bool) -> None:
        attempt = call.attempt = Attempt(call.request, now, self._record_limits, self._record_first_token)
        self._limiter.admit(attempt, warm=warm)
        self._budget.reserve(worst_usd)
        attempt.worst_usd = worst_usd
        if leads:
            attempt.leads = attempt.led = True
            self._followers[call.request.prompt_sha256] = []
            late = partial(self._release_followers, attempt, late=True)
            asyncio.get_running_loop().call_later(LEADER_S, late)
        self._waiting.discard(call)
        if call.wake is not None:
            call.wake.set_result(None)

    def _record_limits(self, attempt: Attempt, limits: RateLimits) -> None:
        self._limiter.record_limits(attempt, limits, self._clock())
        self._pump()

    def _record_first_token(self, attempt: Attempt) -> None:
        self._accept(attempt)
        self._pump()

    def _accept(self, attempt: Attempt) -> None:
        """Record that the provider accepted a request, so that its prompt is now in the cache."""
        request = attempt.request
        if not attempt.accepted:
            self._retries.record_accepted(request.prompt_sha256)
            self._limiter.record_accepted(attempt, self._clock())
        if request.cache:
            warm_until = attempt.sent_at + CACHE_LIFETIME_S
            self._cache.record_warm(request.prompt_sha256, warm_until)
            if request.earlier and request.goes_on:
                self._cache.record_warm(request.sha256, warm_until)
            self._release_followers(attempt)

    def _finish(self, call: QueuedCall, attempt: Attempt, completion: Completion) -> Completion:
        """Update the estimates from an answer. Return the answer with the usage and cost of the call."""
        request = attempt.request
        attempt.characters = max(attempt.characters, len(completion.text))
        usage = self._estimator.plausible(completion.usage, request, attempt.characters) or completion.usage
        self._accept(attempt)
        self._retries.record_answer()
        self._limiter.record_answer()
        if (used := self._estimator.learn(request, usage)) is not None:
            self._limiter.settle(attempt, used, self._clock())
        if attempt.led and usage.cache_write_tokens == 0 and not usage.cached_tokens:
            self._cache.record_uncacheable(request.prompt_sha256)
        self._ledger.calls_ok += 1
        self._end(call, attempt, usage)
        return call.history.complete(completion, usage)

    def _fail(self, call: QueuedCall, attempt: Attempt, error: ProviderError) -> Decision:
        """Slow the pool down after an error if needed, and decide whether to retry the call."""
        now, limiter = self._clock(), self._limiter
        self._ledger.rate_limited += isinstance(error, RateLimited)
        limiter.record_error(attempt, error, now)
        decision = self._retries.decide(call.history, attempt, error, now, limiter.in_flight.values())
        if decision.pause_s:
            limiter.pause_for(decision.pause_s, str(error), now)
        if decision.delay_s is None and not isinstance(error, PoolUnusable):
            self._emit("gave_up", attempt, str(error))
        elif decision.delay_s and isinstance(error, TransientError):
            self._emit("retry", attempt, str(error), decision.delay_s)
        if decision.end_pool is not None:
            self._end_pool(decision.end_pool)
        usage = self._estimator.plausible(error.usage, call.request, attempt.characters)
        if error.may_be_billed and usage is None and not attempt.accepted:
            usage, call.history.cost_estimated = self._estimator.typical(call.request), True
        self._end(call, attempt, usage)
        return decision

    def _end(self, call: QueuedCall, attempt: Attempt, usage: Usage | None) -> None:
        """Bill an attempt and free its slot and reservations. An unknown cost counts as the worst case."""
        cost_usd: float | None = 0.0
        if attempt.accepted or usage is not None:
            cost_usd = self._ledger.bill(call.history, call.request, usage, attempt.characters, self._clock())
        if attempt.leads:
            self._emit("leader_failed", attempt, "another request warms the cache")
            self._release_followers(attempt)
        self._limiter.release(attempt)
        self._budget.settle(attempt.worst_usd, cost_usd)
        self._pump()

    def _release_followers(self, leader: Attempt, *, late: bool = False) -> None:
        """Queue the calls that waited for the leader, which fills the prompt cache.

        If the leader was too slow, they are sent without another leader.
        """
        if not leader.leads:
            return
        leader.leads = False
        for call in self._followers.pop(leader.request.prompt_sha256):
            self._enqueue(call)
        if late:
            self._cache.record_warm(leader.request.prompt_sha256, self._clock() + LEADER_S)
            self._pump()

    def _end_pool(self, error: PoolUnusable, kind: EventKind = "pool_failed") -> None:
        """Send no more requests and wake all waiting calls (rule 12). Only the first error is kept."""
        if self._end_error is None:
            self._end_error = error
            self._ended.set()
            self._emit(kind, None, str(error))
            for call in self._waiting:
                if call.wake is not None and not call.wake.done():
                    call.wake.set_result(None)

    def _emit(self, kind: EventKind, attempt: Attempt | None, detail: str, s: float | None = None) -> None:
        key, model = attempt.request.key if attempt else None, self._settings.name
        self._on_event(PoolEvent(kind=kind, model=model, key=key, detail=detail, seconds=s))
