"""What a failed request means: for its call (rules 8, 10, 11, 16), and for the whole pool (rules 7, 12)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

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

_FREE_RETRIES, _RETRIES_PER_SUCCESS = 10, 0.1


class Judge:
    """Classifies the failures of one pool for its gate and its counts; `end` ends the pool, and why."""

    def __init__(
        self,
        name: str,
        gate: Gate,
        ledger: Ledger,
        emit: Emit,
        end: Callable[[PoolUnusable], None],
        rng: random.Random,
    ) -> None:
        self._name = name
        self._gate = gate
        self._ledger = ledger
        self._emit = emit
        self._end = end
        self._rng = rng
        # After transport errors: 10 % of the successes and ten more, then the tail of the queue (rule 10).
        self._retries_left = float(_FREE_RETRIES)

    def answered(self) -> None:
        """A call has its answer."""
        self._retries_left += _RETRIES_PER_SUCCESS
        self._gate.in_vain.answered()

    def failed(self, effort: Effort, attempt: Attempt, error: ProviderError, now: float) -> Retry | None:
        """How a call goes on of which an attempt has ended with this error; None if it is given up."""
        match error:
            case RateLimited():
                self._ledger.rate_limited += 1
                self._emit("rate_limited", attempt, str(error), error.hint_s)
                self._gate.rate_limited(attempt, error, now)
                return self._rejected(effort, attempt, error, now)
            case Overloaded():
                self._emit("overloaded", attempt, str(error), error.hint_s)
                self._gate.overloaded(attempt, error, now)
                return self._rejected(effort, attempt, error, now)
            case TransientError():
                return self._interrupted(effort, attempt, error, now)
            case PoolUnusable():
                self._end(error)
                return None
            case _:
                return self._refused(attempt, error)

    def _rejected(
        self, effort: Effort, attempt: Attempt, error: RateLimited | Overloaded, now: float
    ) -> Retry | None:
        wait_s = self._gate.paused_for_s(now)
        if wait_s > GIVE_UP_S:
            hours, why = wait_s / 3600, self._gate.pause.reason
            text = f"the provider asks to wait {hours:.1f} hours ({why}); run the same command again then"
            self._end(PoolUnusable(f"{self._name}: {text}"))
            return Retry()  # the call waits with the others, and hears with them that the pool is dead
        if self._gate.lets_nobody_in(now):
            text = f"nobody was let in for {GIVE_UP_S / 60:.0f} minutes, the latest rejection: {error}"
            return self._give_up(
                attempt, error, f"{text}; check quota and balance, or run the same command again later"
            )
        retry = effort.rejected(error, now, billed=_billed(attempt, error), rng=self._rng)
        prompt, in_vain = attempt.request.prompt_sha256, self._gate.in_vain
        if retry is None or in_vain.of_prompt(prompt, now):
            return self._give_up(attempt, error)
        return replace(retry, to_tail=in_vain.yields(prompt))

    def _interrupted(
        self, effort: Effort, attempt: Attempt, error: TransientError, now: float
    ) -> Retry | None:
        if error.status is None and self._gate.too_many_connections(attempt, now) and effort.waits_on(now):
            return Retry()
        if self._gate.failed(attempt, str(error), now) > PROBES:
            text = f"nobody is answered any more, the latest error: {error}"
            remedy = "check base_url and the network, then run the same command again"
            return self._give_up(attempt, error, f"{text}; {remedy}")
        goes_on = effort.failed(billed=_billed(attempt, error))
        if not goes_on or self._gate.in_vain.breaks_servers(attempt.request.prompt_sha256):
            return self._give_up(attempt, error)
        to_tail = self._retries_left < 1
        self._retries_left -= not to_tail
        retry = Retry(delay_s=backoff_s(effort.failures, self._rng), to_tail=to_tail)
        self._emit("retry", attempt, str(error), retry.delay_s)
        return retry

    def _refused(self, attempt: Attempt, error: ProviderError) -> Retry | None:
        """The provider is there, and has judged the request itself."""
        self._gate.answered()
        everybody = self._gate.in_vain.refused(attempt.request.task, error)
        remedy = "check the key and the model's settings, then run the same command again"
        return self._give_up(attempt, error, f"every request is refused alike: {error}; {remedy}" * everybody)

    def _give_up(self, attempt: Attempt, error: ProviderError, why_dead: str = "") -> Retry | None:
        self._emit("gave_up", attempt, str(error))
        if why_dead:
            self._end(PoolUnusable(f"{self._name}: {why_dead}", status=error.status, code=error.code))
        return None


def _billed(attempt: Attempt, error: ProviderError) -> bool:
    return attempt.accepted or bool(error.usage and error.usage.output_tokens)
