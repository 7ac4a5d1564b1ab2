"""What a request has come to: its bill; and what a failed one means, for its call and for the whole pool.

For the call: rules 8, 10, 11 and 16; for the pool: rules 7 and 12.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from astra_async.asking.throttle.estimate import Demand
from astra_async.asking.throttle.pacing import GIVE_UP_S, PROBES, backoff_s
from astra_async.asking.throttle.waiting import Retry
from astra_async.errors import Overloaded, PoolUnusable, RateLimited, TransientError

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from astra_async.asking.throttle.gate import Emit, Gate
    from astra_async.asking.throttle.ledger import Ledger
    from astra_async.asking.throttle.waiting import Attempt, Effort
    from astra_async.errors import ProviderError
    from astra_async.types import Completion, Usage

_NOTHING = Demand(0.0, 0.0)
_FREE_RETRIES, _RETRIES_PER_SUCCESS = 10.0, 0.1


@dataclass(slots=True)
class Consequences:
    """What the ends of attempts mean in one pool, for its gate and its counts; `end` ends the pool."""

    name: str
    gate: Gate
    ledger: Ledger
    emit: Emit
    end: Callable[[PoolUnusable], None]
    rng: random.Random
    # After transport errors: 10 % of the successes and ten more, then the tail of the queue (rule 10).
    retries_left: float = _FREE_RETRIES

    def succeeded(
        self, effort: Effort, attempt: Attempt, completion: Completion, now: float
    ) -> tuple[Completion, float | None]:
        """A call's answer with what all of it has cost; and what this attempt has, in US dollars."""
        request, estimator = attempt.request, self.gate.estimator
        characters = max(attempt.characters, len(completion.text))
        usage = estimator.believed(completion.usage, request, characters)
        self.gate.accepted(attempt, now)
        self.gate.succeeded(attempt)
        self.gate.settle(attempt, estimator.actual(usage), now)
        estimator.learn(request, usage)
        cost_usd, is_estimate = self.ledger.bill(request, usage, characters, now)
        effort.spend(cost_usd, estimated=is_estimate)
        self.ledger.calls_ok += 1
        self.retries_left += _RETRIES_PER_SUCCESS
        self.gate.in_vain.answered()
        return effort.signed(completion, usage), cost_usd

    def failed(
        self, effort: Effort, attempt: Attempt, error: ProviderError, now: float
    ) -> tuple[Retry | None, float | None]:
        """How a call goes on, None if it is given up; and what the attempt that failed has cost."""
        began, usage = attempt.accepted or error.usage is not None, error.usage
        if usage is not None:
            usage = self.gate.estimator.believed(usage, attempt.request, attempt.characters)
        cost_usd, is_estimate = self._billed(attempt, usage, now) if began else (0.0, False)
        effort.spend(cost_usd, estimated=is_estimate)
        if not began and not isinstance(error, TransientError):
            # Nothing was processed: the request itself stays counted, as OpenAI documents.
            self.gate.settle(attempt, _NOTHING, now)
        retry = self._how_it_goes_on(effort, attempt, error, now)
        if retry is None:
            effort.sign(error)
        return retry, cost_usd

    def abandoned(self, attempt: Attempt, now: float) -> float | None:
        """What an attempt has cost that no call waits for any more: what had streamed is paid for."""
        return self._billed(attempt, None, now)[0] if attempt.accepted else 0.0

    def _billed(self, attempt: Attempt, usage: Usage | None, now: float) -> tuple[float | None, bool]:
        return self.ledger.bill(attempt.request, usage, attempt.characters, now)

    def _how_it_goes_on(
        self, effort: Effort, attempt: Attempt, error: ProviderError, now: float
    ) -> Retry | None:
        match error:
            case RateLimited():
                self.ledger.rate_limited += 1
                self.emit("rate_limited", attempt, str(error), error.hint_s)
                self.gate.rate_limited(attempt, error, now)
                return self._rejected(effort, attempt, error, now)
            case Overloaded():
                self.emit("overloaded", attempt, str(error), error.hint_s)
                self.gate.overloaded(attempt, error, now)
                return self._rejected(effort, attempt, error, now)
            case TransientError():
                return self._interrupted(effort, attempt, error, now)
            case PoolUnusable():
                self.end(error)
                return None
            case _:
                return self._refused(attempt, error)

    def _rejected(
        self, effort: Effort, attempt: Attempt, error: RateLimited | Overloaded, now: float
    ) -> Retry | None:
        wait_s = self.gate.paused_for_s(now)
        if wait_s > GIVE_UP_S:
            hours, why = wait_s / 3600, self.gate.pause.reason
            text = f"the provider asks to wait {hours:.1f} hours ({why}); run the same command again then"
            self.end(PoolUnusable(f"{self.name}: {text}"))
            return Retry()  # the call waits with the others, and hears with them that the pool is dead
        if self.gate.rejects_all(now):
            text = f"no request was let in for {GIVE_UP_S / 60:.0f} minutes, the latest rejection: {error}"
            return self._give_up(
                attempt, error, f"{text}; check quota and balance, or run the same command again later"
            )
        retry = effort.rejected(error, now, billed=_was_billed(attempt, error), rng=self.rng)
        prompt, in_vain = attempt.request.prompt_sha256, self.gate.in_vain
        if retry is None or in_vain.of_prompt(prompt, now):
            return self._give_up(attempt, error)
        return replace(retry, to_tail=in_vain.yields(prompt))

    def _interrupted(
        self, effort: Effort, attempt: Attempt, error: TransientError, now: float
    ) -> Retry | None:
        if error.status is None and self.gate.too_many_connections(attempt, now) and effort.waits_on(now):
            return Retry()
        if self.gate.failed(attempt, str(error), now) > PROBES:
            text = f"no request is answered any more, the latest error: {error}"
            remedy = "check base_url and the network, then run the same command again"
            return self._give_up(attempt, error, f"{text}; {remedy}")
        goes_on = effort.failed(billed=_was_billed(attempt, error))
        if not goes_on or self.gate.in_vain.breaks_servers(attempt.request.prompt_sha256):
            return self._give_up(attempt, error)
        to_tail = self.retries_left < 1
        self.retries_left -= not to_tail
        retry = Retry(delay_s=backoff_s(effort.failures, self.rng), to_tail=to_tail)
        self.emit("retry", attempt, str(error), retry.delay_s)
        return retry

    def _refused(self, attempt: Attempt, error: ProviderError) -> Retry | None:
        """The provider is there, and has refused the request itself."""
        self.gate.answered()
        everybody = self.gate.in_vain.refused(attempt.request.task, error)
        remedy = "check the key and the model's settings, then run the same command again"
        return self._give_up(attempt, error, f"every request is refused alike: {error}; {remedy}" * everybody)

    def _give_up(self, attempt: Attempt, error: ProviderError, why_dead: str = "") -> Retry | None:
        self.emit("gave_up", attempt, str(error))
        if why_dead:
            self.end(PoolUnusable(f"{self.name}: {why_dead}", status=error.status, code=error.code))
        return None


def _was_billed(attempt: Attempt, error: ProviderError) -> bool:
    return attempt.accepted or bool(error.usage and error.usage.output_tokens)
