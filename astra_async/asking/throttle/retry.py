"""Retry policy of one pool: which errors are retried, how often, and for how long (rules 7 to 12, 16)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.asking.throttle.breaker import GIVE_UP_S
from astra_async.asking.throttle.estimate import Demand
from astra_async.asking.throttle.pause import LONGEST_BACKOFF_S
from astra_async.asking.throttle.waiting import CUT_STREAMS
from astra_async.errors import Overloaded, PoolUnusable, RateLimited, TransientError

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from astra_async.asking.throttle.budget import Ledger
    from astra_async.asking.throttle.gate import Emit, Gate
    from astra_async.asking.throttle.waiting import Attempt, CallHistory
    from astra_async.errors import ProviderError
    from astra_async.types import Completion, Usage

PROBES = 8  # The pauses between probes double from 2 s to 60 s: about four minutes in total.
_FREE_RETRIES, _RETRIES_PER_SUCCESS = 10.0, 0.1
_REJECTED_WITHIN_S = 600.0  # Routers may take minutes to reject. Older requests may still be accepted.
_NOTHING = Demand(0.0, 0.0)


def backoff_s(failures: int, rng: random.Random) -> float:
    """Return a delay with full jitter over min(60 s, 2^failures)."""
    return rng.uniform(0.0, min(LONGEST_BACKOFF_S, 2.0 ** min(failures, 10)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Decision to retry after `delay_s`, which holds no slot; `to_tail` moves the call to the queue's end."""

    delay_s: float = 0.0
    to_tail: bool = False


@dataclass(slots=True)
class RetryPolicy:
    """Retry policy and accounting of one pool; `end_pool` disables the pool."""

    name: str
    gate: Gate
    ledger: Ledger
    emit: Emit
    end_pool: Callable[[PoolUnusable], None]
    rng: random.Random
    # Invariant: transport retries never exceed 10 % of the successes plus ten, except from the queue's end.
    retries_left: float = _FREE_RETRIES

    def accept(self, attempt: Attempt, now: float) -> None:
        """Record that the provider accepted the request."""
        if not attempt.accepted:
            self.gate.breaker.record_accepted(attempt.request.prompt_sha256)
            self.gate.accepted(attempt, now)

    def finish(
        self, call: CallHistory, attempt: Attempt, completion: Completion, now: float
    ) -> tuple[Completion, float | None]:
        """Return the completion with the cost of the call, and the cost of this attempt in US dollars."""
        request, estimator, breaker = attempt.request, self.gate.estimator, self.gate.breaker
        characters = max(attempt.characters, len(completion.text))
        usage = estimator.believed(completion.usage, request, characters)
        self.accept(attempt, now)
        breaker.record_response()
        breaker.record_accepted(request.prompt_sha256)
        breaker.record_answer()
        self.gate.record_success()
        self.gate.settle(attempt, estimator.actual(usage), now)
        estimator.learn(request, usage)
        cost_usd, is_estimate = self.ledger.bill(request, usage, characters, now)
        call.add_cost(cost_usd, estimated=is_estimate)
        self.ledger.calls_ok += 1
        self.retries_left += _RETRIES_PER_SUCCESS
        return call.complete(completion, usage), cost_usd

    def decide(
        self, call: CallHistory, attempt: Attempt, error: ProviderError, now: float
    ) -> tuple[Retry | None, float | None]:
        """Return how to retry a failed attempt, None to give up, and the cost of the attempt."""
        began, usage = attempt.accepted or error.usage is not None, error.usage
        if usage is not None:
            usage = self.gate.estimator.believed(usage, attempt.request, attempt.characters)
        cost_usd, is_estimate = self._bill(attempt, usage, now) if began else (0.0, False)
        call.add_cost(cost_usd, estimated=is_estimate)
        if not began and not isinstance(error, TransientError):
            # The provider processed no tokens. OpenAI documents that the request itself still counts.
            self.gate.settle(attempt, _NOTHING, now)
        retry = self._dispatch(call, attempt, error, now)
        if retry is None:
            call.annotate(error)
        return retry, cost_usd

    def abandon(self, attempt: Attempt, now: float) -> float | None:
        """Return the cost of a cancelled attempt: streamed output is billed."""
        return self._bill(attempt, None, now)[0] if attempt.accepted else 0.0

    def _bill(self, attempt: Attempt, usage: Usage | None, now: float) -> tuple[float | None, bool]:
        return self.ledger.bill(attempt.request, usage, attempt.characters, now)

    def _dispatch(
        self, call: CallHistory, attempt: Attempt, error: ProviderError, now: float
    ) -> Retry | None:
        match error:
            case RateLimited() | Overloaded():
                return self._retry_rejection(call, attempt, error, now)
            case TransientError():
                return self._retry_failure(call, attempt, error, now)
            case PoolUnusable():
                self.end_pool(error)
                return None
            case _:
                self._refuse(attempt, error)
                return None

    def _retry_rejection(
        self, call: CallHistory, attempt: Attempt, error: RateLimited | Overloaded, now: float
    ) -> Retry | None:
        self._record_rejection(attempt, error, now)
        wait_s, breaker = self.gate.paused_for_s(now), self.gate.breaker
        if wait_s > GIVE_UP_S:
            hours, why = wait_s / 3600, self.gate.pause.reason
            text = f"the provider asks to wait {hours:.1f} hours ({why}); run the same command again then"
            self.end_pool(PoolUnusable(f"{self.name}: {text}"))
            return Retry()  # The queue tells this call, like all waiting calls, that the pool has ended.
        if breaker.rejects_all(now) and now - self.gate.oldest_sent_at() <= _REJECTED_WITHIN_S:
            text = f"no request was let in for {GIVE_UP_S / 60:.0f} minutes, the latest rejection: {error}"
            self._give_up(
                attempt, error, f"{text}; check quota and balance, or run the same command again later"
            )
            return None
        prompt = attempt.request.prompt_sha256
        call.cut_streams += _was_billed(attempt, error)
        waits = call.add_rejection(now) and call.cut_streams < CUT_STREAMS
        if not waits or breaker.prompt_is_rejected(prompt, now):
            self._give_up(attempt, error)
            return None
        return Retry(delay_s=self._rejection_delay_s(call, error), to_tail=breaker.prompt_yields(prompt))

    def _record_rejection(self, attempt: Attempt, error: RateLimited | Overloaded, now: float) -> None:
        breaker, prompt = self.gate.breaker, attempt.request.prompt_sha256
        if isinstance(error, RateLimited):
            self.ledger.rate_limited += 1
            self.emit("rate_limited", attempt, str(error), error.hint_s)
            breaker.record_response()
            breaker.record_rejection(prompt, now)
            self.gate.rate_limited(attempt, error, now)
        else:
            self.emit("overloaded", attempt, str(error), error.hint_s)
            breaker.record_rejection(prompt, now)
            self.gate.overloaded(attempt, error, now)

    def _rejection_delay_s(self, call: CallHistory, error: RateLimited | Overloaded) -> float:
        """Return the delay of this call alone. A rate limit pauses the whole pool instead."""
        if isinstance(error, RateLimited):
            return 0.0
        call.overloads += 1
        return 0.0 if error.hint_s else backoff_s(call.overloads + 1, self.rng)

    def _retry_failure(
        self, call: CallHistory, attempt: Attempt, error: TransientError, now: float
    ) -> Retry | None:
        if error.status is None and self.gate.too_many_connections(attempt, now) and call.add_rejection(now):
            return Retry()
        if self._record_failure(attempt, error, now) > PROBES:
            text = f"no request is answered any more, the latest error: {error}"
            remedy = "check base_url and the network, then run the same command again"
            self._give_up(attempt, error, f"{text}; {remedy}")
            return None
        retries = call.add_failure(billed=_was_billed(attempt, error))
        if not retries or self.gate.breaker.prompt_breaks_servers(attempt.request.prompt_sha256):
            self._give_up(attempt, error)
            return None
        to_tail = self.retries_left < 1
        self.retries_left -= not to_tail
        retry = Retry(delay_s=backoff_s(call.failures, self.rng), to_tail=to_tail)
        self.emit("retry", attempt, str(error), retry.delay_s)
        return retry

    def _record_failure(self, attempt: Attempt, error: TransientError, now: float) -> int:
        """Record the failure, pause during an outage, and return the number of failed probes."""
        self.gate.record_failure()
        probes = self.gate.breaker.record_failure(attempt.request.prompt_sha256, attempt.sent_at, now)
        if probes:
            self.gate.pause_for(min(LONGEST_BACKOFF_S, 2.0**probes), str(error), now)
        return probes

    def _refuse(self, attempt: Attempt, error: ProviderError) -> None:
        """Give up a request that the provider refused."""
        self.gate.breaker.record_response()
        self.gate.record_refusal()
        every_request = self.gate.breaker.record_refusal(attempt.request.task, error)
        remedy = "check the key and the model's settings, then run the same command again"
        reason = f"every request is refused alike: {error}; {remedy}" if every_request else ""
        self._give_up(attempt, error, reason)

    def _give_up(self, attempt: Attempt, error: ProviderError, pool_error: str = "") -> None:
        self.emit("gave_up", attempt, str(error))
        if pool_error:
            self.end_pool(PoolUnusable(f"{self.name}: {pool_error}", status=error.status, code=error.code))


def _was_billed(attempt: Attempt, error: ProviderError) -> bool:
    return attempt.accepted or bool(error.usage and error.usage.output_tokens)
