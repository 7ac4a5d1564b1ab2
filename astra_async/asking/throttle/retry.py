"""Retry policy of one pool: which errors are retried, how often, and when to give up (rules 10 to 12, 16)."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from astra_async.errors import Overloaded, PoolUnusable, RateLimited, TransientError

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from astra_async.asking.throttle.rates import Reservation
    from astra_async.errors import ProviderError
    from astra_async.types import Completion, ModelRequest, RateLimits, Usage

ATTEMPTS = 6
CUT_STREAMS = 2  # attempts of a call whose stream broke after tokens were billed
PROBES = 8  # The pauses between probes double from 2 s to 60 s: about four minutes in total.
GIVE_UP_S = 1800.0
LONGEST_BACKOFF_S = 60.0
_FREE_RETRIES, _RETRIES_PER_SUCCESS = 10.0, 0.1
_SIMILAR_ERRORS, _PROMPTS = 10, 3  # errors, and different prompts, before the whole pool is to blame
_YIELD_AFTER = 5
_REJECTED_WITHIN_S = 600.0  # Routers may take minutes to reject. Older requests may still be accepted.


def backoff_s(failures: int, rng: random.Random) -> float:
    """Return a delay in seconds with full jitter over min(60 s, 2^failures)."""
    return rng.uniform(0.0, min(LONGEST_BACKOFF_S, 2.0 ** min(failures, 10)))


@dataclass(slots=True)
class RejectionStreak:
    """Count and duration of consecutive rejections.

    A gap longer than the longest pause begins a new streak, because nothing was sent meanwhile.
    """

    count: int = 0
    since: float = math.inf
    latest: float = -math.inf

    def add(self, now: float) -> None:
        """Add a rejection."""
        if now - self.latest > GIVE_UP_S + LONGEST_BACKOFF_S:
            self.count, self.since = 0, now
        self.count += 1
        self.latest = now

    def too_long(self, now: float) -> bool:
        """Return True if the rejections have lasted at least `GIVE_UP_S`."""
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
        """Return `completion` with the corrected usage and the cost of all attempts."""
        return replace(
            completion,
            usage=usage,
            attempts=self.attempts,
            cost_usd=self.cost_usd,
            cost_estimated=self.cost_estimated,
        )

    def annotate(self, error: ProviderError) -> None:
        """Store the attempts and cost of the call in its final error."""
        error.attempts = self.attempts
        error.cost_usd = self.cost_usd
        error.cost_estimated = self.cost_estimated

    def copy_error(self, error: ProviderError) -> ProviderError:
        """Return a copy of an error that ends several calls, with the cost of this call."""
        copy = type(error)(str(error), status=error.status, code=error.code)
        copy.__cause__ = error
        self.annotate(copy)
        return copy


@dataclass(kw_only=True, eq=False)
class Attempt:
    """One request in flight, and the CallWatch that its provider reports to."""

    request: ModelRequest
    on_limits: Callable[[Attempt, RateLimits], None]
    on_first_token: Callable[[Attempt], None]
    sent_at: float  # on the pool's clock
    reserved: Sequence[Reservation] = field(default=(), init=False)
    # Defaults below are class attributes, because creating an attempt is on the hot path.
    number = 0  # counts the pool's attempts
    epoch = 0  # number of rate limits before this request: only errors of the current epoch count
    crowd = 0  # requests in flight when this one was sent, including this one
    worst_usd = 0.0  # reserved of the budget
    leads = False  # others wait for this request to warm the prompt cache
    led = False  # others have waited
    accepted = False  # the provider has accepted the request
    presumed = False  # counted as accepted, perhaps only because no rejection came, or over
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Decision about a failed attempt.

    Attributes:
        delay_s: seconds until the call is queued again; None to give it up. The delay holds no slot.
        to_tail: queue the call behind all others.
        pause_s: pause the whole pool for so many seconds; 0 for no pause.
        end_pool: why no request of the pool can succeed; empty if others may.
    """

    delay_s: float | None = None
    to_tail: bool = False
    pause_s: float = 0.0
    end_pool: str = ""


class RetryPolicy:
    """Retry policy and circuit breaker of one pool.

    Every conclusion about the pool needs errors of three prompts, because one prompt may be the cause.
    Any response except an overload ends an outage, because routers report an overload when the server
    behind them is down. A first token does not: a server that cuts every stream would bill each call twice.

    Invariant: transport retries never exceed 10 % of the successes plus ten, except from the queue's end.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._retries_left = _FREE_RETRIES
        # Since the last accepted request, of all prompts and of each prompt (keys are prompt hashes).
        self._rejections = RejectionStreak()
        self._rejections_by_prompt: dict[str, RejectionStreak] = {}
        self._rejected_prompts: set[str] = set()
        # Since the last response.
        self._failures: Counter[str] = Counter()
        self._probes, self._outage_at = 0, math.inf
        # Since the last complete answer.
        self._failures_since_answer: Counter[str] = Counter()
        self._likeness, self._refusals = "", Counter[str]()

    @property
    def outage(self) -> bool:
        """True if the provider does not respond: probe it with one request at a time."""
        return self._probes > 0

    def record_accepted(self, prompt_sha256: str) -> None:
        """Record that the provider accepted a request: it ends the rejections, but not an outage."""
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

    def wait_for_connection(self, call: CallHistory, now: float) -> Decision | None:
        """Retry a connection that was refused because too many are open, for half an hour at most."""
        call.rejections.add(now)
        return None if call.rejections.too_long(now) else Decision(delay_s=0.0)

    def decide(
        self, call: CallHistory, attempt: Attempt, error: ProviderError, now: float, oldest_sent_at: float
    ) -> Decision:
        """Record a failed attempt and decide what becomes of its call.

        Args:
            call: the history of the call.
            attempt: the failed attempt.
            error: the error that ended the attempt.
            now: the time on the pool's clock.
            oldest_sent_at: when the oldest request in flight was sent; infinity if none is in flight.
        """
        match error:
            case RateLimited() | Overloaded():
                return self._decide_rejection(call, attempt, error, now, oldest_sent_at)
            case TransientError():
                return self._decide_failure(call, attempt, error, now)
            case PoolUnusable():
                return Decision(end_pool=str(error))
            case _:
                return self._decide_refusal(attempt, error)

    def _decide_rejection(
        self, call: CallHistory, attempt: Attempt, error: ProviderError, now: float, oldest_sent_at: float
    ) -> Decision:
        """A rejection is retried until rejections have lasted for half an hour."""
        prompt, overloaded = attempt.request.prompt_sha256, isinstance(error, Overloaded)
        if not overloaded:
            self._end_outage()
        of_prompt = self._rejections_by_prompt.setdefault(prompt, RejectionStreak())
        for streak in (of_prompt, self._rejections, call.rejections):
            streak.add(now)
        self._rejected_prompts.add(prompt)
        if error.hint_s is not None and GIVE_UP_S < error.hint_s < math.inf:
            wait = f"the provider asks to wait {error.hint_s / 3600:.1f} hours ({error})"
            return Decision(delay_s=0.0, end_pool=f"{wait}; run the same command again then")
        rejects_all = self._rejections.too_long(now) and len(self._rejected_prompts) >= _PROMPTS
        if rejects_all and now - oldest_sent_at <= _REJECTED_WITHIN_S:
            reason = f"no request was let in for {GIVE_UP_S / 60:.0f} minutes, the latest rejection: {error}"
            remedy = "check quota and balance, or run the same command again later"
            return Decision(end_pool=f"{reason}; {remedy}")
        call.cut_streams += _was_billed(attempt, error)
        # After half an hour a prompt's calls have one attempt each: otherwise each would wait as long anew.
        hopeless = of_prompt.count >= _SIMILAR_ERRORS and of_prompt.too_long(now)
        if hopeless or call.rejections.too_long(now) or call.cut_streams >= CUT_STREAMS:
            return Decision()
        delay_s = 0.0  # A rate limit, or an overload with a hint, pauses the whole pool instead.
        if overloaded:
            call.overloads += 1
            delay_s = 0.0 if error.hint_s else backoff_s(call.overloads + 1, self._rng)
        return Decision(delay_s=delay_s, to_tail=self.prompt_yields(prompt))

    def _decide_failure(
        self, call: CallHistory, attempt: Attempt, error: ProviderError, now: float
    ) -> Decision:
        """A network error or a 5xx is retried up to six attempts, and two if tokens were billed."""
        prompt = attempt.request.prompt_sha256
        self._failures[prompt] += 1
        self._failures_since_answer[prompt] += 1
        outage = self._failures.total() >= _SIMILAR_ERRORS and len(self._failures) >= _PROMPTS
        # Requests that were in flight when the outage began are not probes.
        if outage and (self._probes == 0 or attempt.sent_at >= self._outage_at):
            self._probes += 1
            self._outage_at = now
        pause_s = min(LONGEST_BACKOFF_S, 2.0**self._probes) if self._probes else 0.0
        if self._probes > PROBES:
            reason = f"no request is answered any more, the latest error: {error}"
            remedy = "check base_url and the network, then run the same command again"
            return Decision(pause_s=pause_s, end_pool=f"{reason}; {remedy}")
        call.failures += 1
        call.cut_streams += _was_billed(attempt, error)
        prompt_breaks_servers = self._failures_since_answer[prompt] >= _SIMILAR_ERRORS * ATTEMPTS
        if call.failures >= ATTEMPTS or call.cut_streams >= CUT_STREAMS or prompt_breaks_servers:
            return Decision(pause_s=pause_s)
        to_tail = self._retries_left < 1
        self._retries_left -= not to_tail
        return Decision(delay_s=backoff_s(call.failures, self._rng), to_tail=to_tail, pause_s=pause_s)

    def _decide_refusal(self, attempt: Attempt, error: ProviderError) -> Decision:
        """A refusal is never retried. Ten equal refusals in a row end the pool (rule 12)."""
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
        return Decision(end_pool=f"every request is refused alike: {error}; {remedy}")

    def _end_outage(self) -> None:
        self._failures.clear()
        self._probes, self._outage_at = 0, math.inf


def _was_billed(attempt: Attempt, error: ProviderError) -> bool:
    return attempt.accepted or bool(error.usage and error.usage.output_tokens)
