"""One provider pool: calls wait here for their turn, are tried, retried, paid for and accounted.

A pool is (provider, credential, model); pools know nothing of each other but a shared budget, and whose turn
it is where they share a credential. Nothing polls: whatever changes (a call comes, a request ends, headers
arrive, a moment is reached) runs `_pump`, which admits the first in line while it may go, and sets one timer
for the earliest moment that matters.

Invariant: a slot, its reservations and its share of the budget are taken together in `_grant`, and given
back together in `_finish`, `_fail`, `_abandon` or `_leave`, whatever is cancelled in between.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from typing import TYPE_CHECKING

from astra_async.asking.throttle.budget import Budget, Ledger
from astra_async.asking.throttle.cachewarm import Warmth
from astra_async.asking.throttle.estimate import Demand, Estimator
from astra_async.asking.throttle.limiter import Limiter
from astra_async.asking.throttle.retry import Attempt, Decision, RetryPolicy
from astra_async.asking.throttle.waiting import Line, Ticket
from astra_async.errors import PoolUnusable, ProviderError, RateLimited, TransientError
from astra_async.types.pools import PoolEvent, PoolState

if TYPE_CHECKING:
    from collections.abc import Callable

    from astra_async.asking.throttle.cachewarm import Role
    from astra_async.asking.throttle.rates import Account
    from astra_async.types import Completion, ModelRequest, ModelSettings, Provider, RateLimits, Usage
    from astra_async.types.pools import EventKind

_SHORTEST_TIMER_S = 0.001
_NOTHING = Demand(0.0, 0.0)


class Pool:
    """Answers requests within one provider's limits.

    Args:
        settings: the model, its announced limits and its hard maximum in flight.
        provider: makes single attempts; it stays the caller's to close.
        price: US dollars for a usage, None where a price is unknown.
        budget: shared with other pools.
        account: shared with the pools of the same credential.
        on_event: is told why anything waits, is repeated or is given up; must not raise.
        clock: monotonic seconds; the timers are the running event loop's.

    Raises:
        ConfigError: a limit is not above 0, or there is a budget and no price.
    """

    def __init__(  # noqa: PLR0913 - everything that a test must control is injected here
        self,
        settings: ModelSettings,
        provider: Provider,
        *,
        price: Callable[[Usage], float | None],
        budget: Budget | None = None,
        account: Account | None = None,
        on_event: Callable[[PoolEvent], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        self._settings = settings
        self._provider = provider
        self._on_event = on_event
        self._clock = clock
        rng = rng or random.Random()  # noqa: S311 - jitter needs no secrecy
        self._estimator = Estimator(
            max_tokens=settings.max_tokens,
            charges_max_tokens=provider.charges_max_tokens,
            cached_input_is_exempt=provider.cached_input_is_exempt,
        )
        self._limiter = Limiter(settings, self._estimator, rng, self._emit, clock(), account=account)
        self._line = Line()
        self._warmth = Warmth()
        self._budget = budget or Budget()
        self._ledger = Ledger(settings, self._estimator, price, self._budget, clock())
        self._retries = RetryPolicy(rng)
        self._waiting: set[Ticket] = set()
        self._held_by: str | None = None
        self._dead: PoolUnusable | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf
        self._closed = False

    async def call(self, request: ModelRequest) -> Completion:
        """One finished answer, after as many attempts as it took; waits its turn first.

        `attempts` and `cost_usd` of the completion, or of the error, cover all attempts. What a provider
        does not report of tokens is estimated for attempts whose answer had begun.

        Raises:
            RequestRejected: this request can never succeed.
            PoolUnusable: no request of this pool can; BudgetExhausted if the ceiling is reached.
            ProviderError: given up after 6 attempts, 2 cut streams, or 30 minutes of rejections.
        """
        ticket = Ticket(request=request)
        # Ahead, if it goes on with a conversation that the provider's cache holds.
        begun = request.goes_alone and request.cache
        ahead = begun and self._warmth.is_warm(request.begun_sha256, self._clock())
        self._line.new_place(ticket, ahead=ahead)
        decision = Decision(delay_s=0.0)
        while True:
            attempt = await self._turn(ticket, decision)
            ticket.history.attempts += 1
            try:
                completion = await self._provider.complete(request, attempt)
            except ProviderError as error:
                decision = self._fail(ticket, attempt, error)
                if decision.delay_s is None:
                    raise
            except BaseException:
                self._abandon(attempt)
                raise
            else:
                return self._finish(ticket, attempt, completion)

    def stop(self) -> None:
        """Send nothing more: calls that wait are told at once, those in flight come to their end."""
        name = self._settings.name
        self._end_pool(PoolUnusable(f"{name}: stopped by the user; the same command resumes"), "stopped")

    @property
    def state(self) -> PoolState:
        """The pool as it stands."""
        now, gate, ledger = self._clock(), self._limiter, self._ledger
        return PoolState(
            model=self._settings.name,
            in_flight=gate.in_flight,
            waiting=len(self._waiting),
            limit=gate.limit,
            buckets=tuple(bucket.state(now) for bucket in gate.buckets.values()),
            send_rate=gate.send_rate.per_second,
            held_by=self._held_by if self._waiting else None,
            paused_for_s=max(0.0, gate.pause.until - now),
            pause_reason=gate.pause.reason if gate.pause.until > now else "",
            **ledger.sums(),
            tokens_per_minute=ledger.tokens_per_minute(now),
            dead=None if self._dead is None else str(self._dead),
        )

    async def close(self) -> None:
        """Stop the timer; calls that still wait are their tasks' to cancel."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._budget.forget(self._pump)

    # --- what providers tell while a request runs -----------------------------------------------------

    def _hear_limits(self, attempt: Attempt, limits: RateLimits) -> None:
        """The response's headers have come."""
        self._limiter.record_limits(attempt, limits, self._clock())
        self._pump()

    def _hear_first_token(self, attempt: Attempt) -> None:
        """The answer has begun: the request was let in, and its prompt is in the cache."""
        self._accept(attempt)
        self._warm(attempt)
        self._pump()

    # --- the line -------------------------------------------------------------------------------------

    async def _turn(self, ticket: Ticket, decision: Decision) -> Attempt:
        """Wait in line, first for the back-off, and hold nothing meanwhile."""
        if self._dead is not None:
            raise ticket.history.copy_error(self._dead)
        self._ledger.retries += ticket.history.attempts > 0
        if decision.to_tail:
            self._line.new_place(ticket)
        self._waiting.add(ticket)
        if decision.delay_s:
            self._line.enter_later(ticket, self._clock() + decision.delay_s)
        else:
            self._line.enter(ticket)
        self._pump()
        while ticket.attempt is None:
            if self._dead is not None:
                raise ticket.history.copy_error(self._dead)
            ticket.turn = asyncio.get_running_loop().create_future()
            try:
                await ticket.turn
            except BaseException:
                self._leave(ticket)
                raise
            ticket.turn = None
        attempt, ticket.attempt = ticket.attempt, None
        return attempt

    def _leave(self, ticket: Ticket) -> None:
        """The task was cancelled while it waited, perhaps just after its turn had come."""
        ticket.dismissed = True
        self._waiting.discard(ticket)
        attempt, ticket.attempt = ticket.attempt, None
        if attempt is not None:
            self._limiter.withdraw(attempt, self._clock())
            self._budget.settle(attempt.worst_usd, 0.0)
            self._release_followers(attempt)
        self._pump()

    def _pump(self) -> None:
        """Admit whoever may go, and come back when the next may."""
        if self._closed or not self._waiting:
            return
        # While anybody waits, a timer is set or something is under way whose end runs this again (rule 15).
        now = self._clock()
        self._limiter.resume(now)
        self._put_back(self._warmth.overdue(now))
        at = self._admit(now)
        self._wake_at(min(at, self._line.next_at(), self._warmth.deadline()), now)

    def _admit(self, now: float) -> float:
        """Admit from the front until someone must wait; returns until when, as far as time can tell."""
        while (ticket := self._line.first(now)) is not None:
            if self._yields(ticket):
                continue
            request = ticket.request
            # A conversation that goes on warms the cache for no other sample.
            shared = request.cache and not request.goes_alone
            role: Role = self._warmth.role(request.prompt_sha256, now) if shared else "go"
            if role == "follow":
                self._line.leave()
                self._warmth.follow(request.prompt_sha256, ticket)
                continue
            warm = request.cache and self._warmth.is_warm(request.begun_sha256, now)
            # What the first in line waited for when this last ran; None if the line was empty in the end.
            if self._retries.outage and self._limiter.in_flight:
                self._held_by = "outage"
                return math.inf
            at, self._held_by = self._limiter.ready_at(request, now, warm=warm)
            if at > now:
                return at
            worst_usd = self._ledger.worst_usd(request)
            if not self._ask_budget(worst_usd):
                return math.inf
            self._line.leave()
            attempt = Attempt(
                request=request,
                on_limits=self._hear_limits,
                on_first_token=self._hear_first_token,
                sent_at=now,
            )
            self._limiter.admit(attempt, warm=warm)
            self._grant(ticket, attempt, worst_usd, leads=role == "lead")
        self._held_by = None
        return math.inf

    def _yields(self, ticket: Ticket) -> bool:
        """Whether the first in line went to the tail: its prompt is rejected again and again (rule 10)."""
        if ticket.yielded or not self._retries.prompt_yields(ticket.request.prompt_sha256):
            return False
        ticket.yielded = True
        self._line.leave()
        self._line.new_place(ticket)
        self._line.enter(ticket)
        return True

    def _grant(self, ticket: Ticket, attempt: Attempt, worst_usd: float, *, leads: bool) -> None:
        # A ticket stands in the line, behind a leader, or has its attempt: never in two of these at once.
        attempt.worst_usd = worst_usd
        self._budget.reserve(worst_usd)
        if leads:
            attempt.leads = attempt.led = True
            self._warmth.lead(attempt.request.prompt_sha256, attempt.sent_at)
        ticket.attempt = attempt
        self._waiting.discard(ticket)
        if ticket.turn is not None:
            ticket.turn.set_result(None)

    def _wake_at(self, at: float, now: float) -> None:
        if self._timer is not None:
            if self._timer_at <= at:
                return  # it looks again early enough
            self._timer.cancel()
            self._timer = None
        if at < math.inf and self._waiting:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(_SHORTEST_TIMER_S, at - now), self._on_timer)
            self._timer_at = at  # when `_timer` rings; without one it means nothing

    def _on_timer(self) -> None:
        self._timer = None
        self._pump()

    def _ask_budget(self, worst_usd: float) -> bool:
        """Whether the budget admits the first in line (rule 14); if it never will, ends the pool."""
        fit = self._budget.fits(worst_usd)
        if fit == "later":
            self._held_by = "budget"
            self._budget.wake_on_settlement(self._pump)
        elif fit == "never":
            self._end_pool(self._ledger.exhausted(worst_usd))
        return fit == "now"

    # --- how a request ends -----------------------------------------------------------------------------

    def _finish(self, ticket: Ticket, attempt: Attempt, completion: Completion) -> Completion:
        """Settle, bill and learn from a complete answer."""
        now, request, estimator = self._clock(), attempt.request, self._estimator
        characters = max(attempt.characters, len(completion.text))
        usage = estimator.believed(completion.usage, request, characters)
        self._accept(attempt)
        self._retries.record_answer()
        self._limiter.record_answer()
        if (used := estimator.actual(usage)) is not None:
            self._limiter.settle(attempt, used, now)
        estimator.learn(request, usage)
        cost_usd = self._bill(ticket, attempt, usage, characters)
        self._ledger.calls_ok += 1
        self._warm(attempt)
        if attempt.led:
            self._warmth.learn(request.prompt_sha256, usage)
        self._end(attempt, cost_usd)
        return ticket.history.complete(completion, usage)

    def _accept(self, attempt: Attempt) -> None:
        """Record that the provider accepted the request."""
        if attempt.accepted:
            return
        self._retries.record_accepted(attempt.request.prompt_sha256)
        self._limiter.record_accepted(attempt, self._clock())

    def _fail(self, ticket: Ticket, attempt: Attempt, error: ProviderError) -> Decision:
        """Bill a failed attempt, slow the pool down if needed, and decide what becomes of the call."""
        now, usage = self._clock(), error.usage
        if usage is not None:
            usage = self._estimator.believed(usage, attempt.request, attempt.characters)
        cost_usd: float | None = 0.0
        if attempt.accepted or usage is not None:
            cost_usd = self._bill(ticket, attempt, usage, attempt.characters)
        elif not isinstance(error, TransientError):
            # The provider processed no tokens. OpenAI documents that the request itself still counts.
            self._limiter.settle(attempt, _NOTHING, now)
        self._ledger.rate_limited += isinstance(error, RateLimited)
        decision: Decision | None = None
        if self._limiter.record_error(attempt, error, now):
            decision = self._retries.wait_for_connection(ticket.history, now)
        if decision is None:
            decision = self._retries.decide(ticket.history, attempt, error, now, self._limiter.oldest_sent_at)
        if decision.pause_s:
            self._limiter.pause_for(decision.pause_s, str(error), now)
        if decision.delay_s is None:
            ticket.history.annotate(error)
        self._report(attempt, error, decision)
        self._end(attempt, cost_usd)
        return decision

    def _report(self, attempt: Attempt, error: ProviderError, decision: Decision) -> None:
        if isinstance(error, PoolUnusable):
            self._end_pool(error)
            return
        if decision.delay_s is None:
            self._emit("gave_up", attempt, str(error))
        elif decision.delay_s and isinstance(error, TransientError):
            self._emit("retry", attempt, str(error), decision.delay_s)
        if decision.end_pool:
            reason = f"{self._settings.name}: {decision.end_pool}"
            self._end_pool(PoolUnusable(reason, status=error.status, code=error.code))

    def _abandon(self, attempt: Attempt) -> None:
        """The task was cancelled in flight, or the provider is broken: streamed output is billed."""
        cost_usd: float | None = 0.0
        if attempt.accepted:
            now = self._clock()
            cost_usd, _ = self._ledger.bill(attempt.request, None, attempt.characters, now)
        self._end(attempt, cost_usd)

    def _bill(self, ticket: Ticket, attempt: Attempt, usage: Usage | None, characters: int) -> float | None:
        cost_usd, is_estimate = self._ledger.bill(attempt.request, usage, characters, self._clock())
        ticket.history.add_cost(cost_usd, estimated=is_estimate)
        return cost_usd

    def _end(self, attempt: Attempt, cost_usd: float | None) -> None:
        """Free what it held; one whose cost is unknown counts at its worst."""
        self._release_followers(attempt)
        self._limiter.release(attempt)
        self._budget.settle(attempt.worst_usd, attempt.worst_usd if cost_usd is None else cost_usd)
        self._pump()

    # --- the prompt cache (rule 13) -----------------------------------------------------------------------

    def _warm(self, attempt: Attempt) -> None:
        if attempt.request.cache:
            self._put_back(self._warmth.warmed(attempt.request.prompt_sha256, attempt.sent_at))
            attempt.leads = False
            if attempt.request.earlier and attempt.request.goes_on:
                self._warmth.warmed(attempt.request.sha256, attempt.sent_at)

    def _release_followers(self, attempt: Attempt) -> None:
        if attempt.leads:
            attempt.leads = False
            self._emit("leader_failed", attempt, "another request warms the cache")
            self._put_back(self._warmth.failed(attempt.request.prompt_sha256))

    def _put_back(self, tickets: list[Ticket]) -> None:
        for ticket in tickets:
            self._line.enter(ticket)

    # --- the end of the pool (rule 12) ----------------------------------------------------------------------

    def _end_pool(self, error: PoolUnusable, kind: EventKind = "pool_failed") -> None:
        """Nothing is sent any more: everyone who waits is told at once."""
        if self._dead is not None:
            return
        self._dead = error  # the first reason stays
        self._emit(kind, None, str(error))
        for ticket in self._waiting:
            ticket.dismissed = True
            if ticket.turn is not None and not ticket.turn.done():
                ticket.turn.set_result(None)
        self._waiting.clear()

    def _emit(
        self, kind: EventKind, attempt: Attempt | None, detail: str, seconds: float | None = None
    ) -> None:
        if self._on_event is not None:
            key = None if attempt is None else attempt.request.key
            self._on_event(
                PoolEvent(kind=kind, model=self._settings.name, key=key, detail=detail, seconds=seconds)
            )
