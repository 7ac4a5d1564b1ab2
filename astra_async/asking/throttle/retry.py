"""Retry policy of one pool: which errors are retried, how often, and when to give up (rules 10 to 12, 16)."""

from __future__ import annotations

import math
from collections import Counter
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from astra_async.errors import Overloaded, PoolUnusable, RateLimited, TransientError

if TYPE_CHECKING:
    import asyncio
    import random
    from collections.abc import Callable, Iterable, Sequence

    from astra_async.asking.throttle.rates import Reservation
    from astra_async.errors import ProviderError
    from astra_async.types import Completion, ModelRequest, RateLimits, Usage

ATTEMPTS = 6
CUT_STREAMS = 2  # maximum attempts of a call that were, or may have been, billed without an answer
PROBES = 8  # The pauses between probes double from 2 s to 60 s: about four minutes in total.
GIVE_UP_S = 1800.0
LONGEST_BACKOFF_S = 60.0
_FREE_RETRIES, _RETRIES_PER_SUCCESS = 10.0, 0.1
_SIMILAR_ERRORS, _PROMPTS = 10, 3  # errors and different prompts that show a cause common to the whole pool
_YIELD_AFTER = 5
_REJECTED_WITHIN_S = 600.0  # Routers may take minutes to reject. Older requests may still be accepted.


def backoff_s(failures: int, rng: random.Random) -> float:
    """Return a delay in seconds with full jitter over min(60 s, 2^failures)."""
    return rng.uniform(0.0, min(LONGEST_BACKOFF_S, 2.0 ** min(failures, 10)))


@dataclass(slots=True)
class RejectionStreak:
    """Count and duration of consecutive rejections.

    A gap longer than the longest pause begins a new streak, because no request was sent during the gap.
    """

    count: int = 0
    since: float = math.inf
    latest: float = -math.inf

    def add(self, now: float) -> bool:
        """Add a rejection. Return True if the rejections have lasted at least `GIVE_UP_S`."""
        if now - self.latest > GIVE_UP_S + LONGEST_BACKOFF_S:
            self.count, self.since = 0, now
        self.count += 1
        self.latest = now
        return now - self.since >= GIVE_UP_S


@dataclass(slots=True, kw_only=True)
class CallHistory:
    """Attempts, failures and cost of one call.

    `cost_usd` is None if the price of an attempt is unknown. `cost_estimated` marks costs that include
    tokens which the provider did not report.
    """

    attempts: int = 0
    cost_usd: float | None = 0.0
    cost_estimated: bool = False
    failures: int = 0
    cut_streams: int = 0
    overloads: int = 0
    rejections: RejectionStreak = field(default_factory=RejectionStreak)

    def add_cost(self, cost_usd: float | None, *, estimated: bool = False) -> None:
        """Add the cost of one attempt."""
        self.cost_estimated |= estimated
        known = cost_usd is not None and self.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (cost_usd or 0.0) if known else None

    def complete(self, completion: Completion, usage: Usage) -> Completion:
        """Return `completion` with the corrected usage and the cost of all attempts.

        The cost is an estimate if the price of the service tier is unknown.
        """
        return replace(
            completion,
            usage=usage,
            attempts=self.attempts,
            cost_usd=self.cost_usd,
            cost_estimated=self.cost_estimated or bool(completion.unpriced_tier),
        )

    def annotate(self, error: ProviderError) -> None:
        """Store the attempts and cost of the call in its final error."""
        error.attempts = self.attempts
        error.cost_usd = self.cost_usd
        error.cost_estimated = self.cost_estimated

    def copy_error(self, error: ProviderError) -> ProviderError:
        """Return a copy of an error that ends several calls, with the attempts and cost of this call."""
        copied = copy(error)
        copied.__cause__ = error
        self.annotate(copied)
        return copied


@dataclass(eq=False)
class Attempt:
    """One request in flight. Implements CallWatch, to which the provider reports progress."""

    request: ModelRequest
    sent_at: float  # on the pool's clock
    on_limits: Callable[[Attempt, RateLimits], None]
    on_first_token: Callable[[Attempt], None]
    reserved: Sequence[Reservation] = field(default=(), init=False)
    # Defaults below are class attributes, because creating an attempt is on the hot path.
    number = 0  # number of this attempt in the pool
    epoch = 0  # rate limits before this request was sent; only errors of the current epoch change limits
    crowd = 0  # requests in flight when this one was sent, including this one
    worst_usd = 0.0  # amount reserved in the budget
    leads = False  # other calls wait until this request has warmed the prompt cache
    led = False  # `leads` was True at the start
    accepted = False  # the provider has accepted the request
    refused = False  # the connection was lost because the provider limits connections
    presumed = False  # has ended, or counts as accepted (perhaps only because no rejection came)
    characters = 0  # streamed so far

    def limits(self, limits: RateLimits) -> None:
        """Report the rate-limit headers of the response."""
        self.on_limits(self, limits)

    def first_token(self) -> None:
        """Report that the answer has begun to stream."""
        self.on_first_token(self)

    def streamed(self, characters: int) -> None:
        """Report more characters of the answer."""
        self.characters += characters


@dataclass(slots=True, kw_only=True, eq=False)
class QueuedCall:
    """A call and its place in the queue."""

    request: ModelRequest
    history: CallHistory = field(default_factory=CallHistory)
    place: float = 0.0  # position; the same for retries, unless the call is moved to the tail
    ahead: float = 0.0  # places ahead of the tail at which the call enters the queue
    wake: asyncio.Future[None] | None = None  # awaited by the call's task while it waits
    attempt: Attempt | None = None  # granted, but not used yet
    yielded: bool = False  # moved to the tail once, because its prompt is rejected repeatedly
    left: bool = False  # cancelled, or failed because the pool has ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Decision about a failed attempt.

    Attributes:
        delay_s: seconds until the call is queued again; None to give it up. The delay holds no slot.
        to_tail: queue the call behind all others.
        pause_s: seconds to pause the whole pool; 0 for no pause.
        end_pool: the error that ends the whole pool, None if other requests may succeed.
    """

    delay_s: float | None = None
    to_tail: bool = False
    pause_s: float = 0.0
    end_pool: PoolUnusable | None = None


class RetryPolicy:
    """Retry policy and circuit breaker of one pool.

    The pool counts as unusable only after errors of three prompts, because one prompt alone may be the cause.
    Any response except an overload ends an outage; routers report an overload if the server behind them is
    down. A first token does not end an outage: a server that cuts every stream would bill each call twice.

    Invariant: transport retries never exceed 10 % of the successes plus ten. Further retries wait at the tail
    of the queue.

    Attributes:
        probes: failed probes of an outage. While `probes` is above 0, only one request may be in flight.
    """

    def __init__(self, model: str, rng: random.Random) -> None:
        self._model = model
        self._rng = rng
        self._retries_left = _FREE_RETRIES
        # Rejections since the last accepted request, in total and by prompt hash.
        self._rejections = RejectionStreak()
        self._rejections_by_prompt: dict[str, RejectionStreak] = {}
        self._rejected_prompts: set[str] = set()
        # Transport failures since the last response, by prompt hash.
        self._failures: Counter[str] = Counter()
        self.probes, self._outage_at = 0, math.inf
        # Failures by prompt hash, and equal refusals by task, since the last complete answer.
        self._failures_since_answer: Counter[str] = Counter()
        self._likeness, self._refusals = "", Counter[str]()

    def record_accepted(self, prompt_sha256: str) -> None:
        """Record that the provider accepted a request. This ends the rejections, but not an outage."""
        self._rejections_by_prompt.pop(prompt_sha256, None)
        self._rejections = RejectionStreak()
        self._rejected_prompts.clear()

    def record_answer(self) -> None:
        """Record a complete answer."""
        self._end_outage()
        self._failures_since_answer.clear()
        self._refusals.clear()
        self._retries_left += _RETRIES_PER_SUCCESS

    def prompt_yields(self, prompt_sha256: str) -> bool:
        """Return True if calls of this prompt must let other calls go first (rule 10)."""
        streak = self._rejections_by_prompt.get(prompt_sha256)
        return streak is not None and streak.count >= _YIELD_AFTER

    def decide(
        self,
        call: CallHistory,
        attempt: Attempt,
        error: ProviderError,
        now: float,
        in_flight: Iterable[Attempt],
    ) -> Decision:
        """Record a failed attempt and decide whether to retry its call."""
        # A call is billed twice at most. Any error after the first token is billed, and a request that timed
        # out may be.
        billed = attempt.accepted or error.may_be_billed
        call.cut_streams += billed or bool(error.usage and error.usage.output_tokens)
        match error:
            case RateLimited() | Overloaded():
                answering = any(each.sent_at < now - _REJECTED_WITHIN_S for each in in_flight)
                return self._decide_rejection(call, attempt, error, now, answering=answering)
            case TransientError():
                if attempt.refused and not call.rejections.add(now):
                    return Decision(delay_s=0.0)
                return self._decide_failure(call, attempt, error, now)
            case PoolUnusable():
                return Decision(end_pool=error)
            case _:
                return self._decide_refusal(attempt, error)

    def _decide_rejection(
        self, call: CallHistory, attempt: Attempt, error: ProviderError, now: float, *, answering: bool
    ) -> Decision:
        """Retry after a rejection, until rejections have lasted for half an hour."""
        prompt, overloaded = attempt.request.prompt_sha256, isinstance(error, Overloaded)
        if not overloaded:
            self._end_outage()
        self._rejected_prompts.add(prompt)
        of_prompt = self._rejections_by_prompt.setdefault(prompt, RejectionStreak())
        prompt_too_long, all_too_long = of_prompt.add(now), self._rejections.add(now)
        call_too_long = call.rejections.add(now)
        if error.hint_s is not None and GIVE_UP_S < error.hint_s < math.inf:
            wait = f"the provider asks to wait {error.hint_s / 3600:.1f} hours ({error})"
            return Decision(delay_s=0.0, end_pool=self._unusable(wait, "run the same command again then"))
        if all_too_long and len(self._rejected_prompts) >= _PROMPTS and not answering:
            reason = f"all requests were rejected for {GIVE_UP_S / 60:.0f} minutes, last error: {error}"
            remedy = "check quota and balance, or run the same command again later"
            return Decision(end_pool=self._unusable(reason, remedy, error))
        # After half an hour each call of the prompt has one attempt. Otherwise each would wait as long again.
        hopeless = of_prompt.count >= _SIMILAR_ERRORS and prompt_too_long
        # Losing an agent's work so far costs more than paying for a call again.
        most_cut = ATTEMPTS if attempt.request.by_agent else CUT_STREAMS
        if hopeless or call_too_long or call.cut_streams >= most_cut:
            return Decision()
        delay_s = 0.0  # A rate limit, or an overload with a hint, pauses the whole pool instead.
        if overloaded:
            call.overloads += 1
            delay_s = 0.0 if error.hint_s else backoff_s(call.overloads + 1, self._rng)
        return Decision(delay_s=delay_s, to_tail=self.prompt_yields(prompt))

    def _decide_failure(
        self, call: CallHistory, attempt: Attempt, error: ProviderError, now: float
    ) -> Decision:
        """Retry after a network error or a 5xx: six attempts, or two if tokens were billed."""
        prompt = attempt.request.prompt_sha256
        self._failures[prompt] += 1
        self._failures_since_answer[prompt] += 1
        outage = self._failures.total() >= _SIMILAR_ERRORS and len(self._failures) >= _PROMPTS
        # Requests that were in flight when the outage began are not probes.
        if outage and (self.probes == 0 or attempt.sent_at >= self._outage_at):
            self.probes += 1
            self._outage_at = now
        pause_s = min(LONGEST_BACKOFF_S, 2.0**self.probes) if self.probes else 0.0
        if self.probes > PROBES:
            reason = f"the provider no longer answers, last error: {error}"
            remedy = "check base_url and the network, then run the same command again"
            return Decision(pause_s=pause_s, end_pool=self._unusable(reason, remedy, error))
        call.failures += 1
        prompt_breaks_servers = self._failures_since_answer[prompt] >= _SIMILAR_ERRORS * ATTEMPTS
        if call.failures >= ATTEMPTS or call.cut_streams >= CUT_STREAMS or prompt_breaks_servers:
            return Decision(pause_s=pause_s)
        to_tail = self._retries_left < 1
        self._retries_left -= not to_tail
        return Decision(delay_s=backoff_s(call.failures, self._rng), to_tail=to_tail, pause_s=pause_s)

    def _decide_refusal(self, attempt: Attempt, error: ProviderError) -> Decision:
        """Give up after a refusal: no retries. Ten equal refusals in a row end the pool (rule 12)."""
        self._end_outage()
        likeness = error.likeness or str(error)
        if likeness != self._likeness:
            self._likeness = likeness
            self._refusals.clear()
        self._refusals[attempt.request.task] += 1
        shared_cause = error.meets_all or len(self._refusals) >= _PROMPTS
        if not shared_cause or self._refusals.total() < _SIMILAR_ERRORS:
            return Decision()
        remedy = "check the key and the model's settings, then run the same command again"
        reason = f"every request is refused for the same reason: {error}"
        return Decision(end_pool=self._unusable(reason, remedy, error))

    def _unusable(self, reason: str, remedy: str, error: ProviderError | None = None) -> PoolUnusable:
        status, code = (error.status, error.code) if error else (None, None)
        return PoolUnusable(f"{self._model}: {reason}; {remedy}", status=status, code=code)

    def _end_outage(self) -> None:
        self._failures.clear()
        self.probes, self._outage_at = 0, math.inf
