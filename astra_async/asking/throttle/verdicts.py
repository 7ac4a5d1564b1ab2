"""What a failed request means: for its call (rules 8, 10, 11), and for the whole pool (rules 7, 12)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.asking.throttle.retries import GIVE_UP_S, PROBES, Outage, Retry, RetryBudget
from astra_async.errors import Overloaded, PoolUnusable, RateLimited, TransientError

if TYPE_CHECKING:
    import random

    from astra_async.asking.throttle.attempt import Attempt
    from astra_async.asking.throttle.gate import Emit, Gate
    from astra_async.asking.throttle.ledger import Tally
    from astra_async.asking.throttle.retries import Effort
    from astra_async.errors import ProviderError


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`retry`: how the call goes on, None if it is given up. `dead`: why the pool ends, None if not."""

    retry: Retry | None = None
    dead: PoolUnusable | None = None


class Judge:
    """Classifies the failures of one pool and tells its gate and its counts."""

    def __init__(self, name: str, gate: Gate, tally: Tally, emit: Emit, rng: random.Random) -> None:
        self._name = name
        self._gate = gate
        self._tally = tally
        self._emit = emit
        self._rng = rng
        self._retries = RetryBudget()
        self._outage = Outage()

    def answered(self) -> None:
        """A call has its answer."""
        self._retries.earn()
        self._outage.answered()

    def failed(self, effort: Effort, attempt: Attempt, error: ProviderError, now: float) -> Verdict:
        """One attempt has ended with this error."""
        match error:
            case RateLimited():
                self._tally.rate_limited += 1
                self._emit("rate_limited", attempt, str(error), error.hint_s)
                self._gate.rate_limited(attempt, error, now)
                return self._rejected(effort, attempt, error, now)
            case Overloaded():
                self._tally.overloaded += 1
                self._emit("overloaded", attempt, str(error), error.hint_s)
                self._gate.overloaded(attempt, error, now)
                return self._rejected(effort, attempt, error, now)
            case TransientError():
                self._gate.failed()
                return self._interrupted(effort, attempt, error, now)
            case PoolUnusable():
                return self._lost(Verdict(dead=error))
            case _:
                return self._refused(attempt, error)

    def _rejected(
        self, effort: Effort, attempt: Attempt, error: RateLimited | Overloaded, now: float
    ) -> Verdict:
        wait_s = self._gate.paused_for_s(now)
        if wait_s > GIVE_UP_S:
            # The call waits with the others, and is told with them that the pool is dead.
            return self._lost(Verdict(retry=Retry(), dead=self._parked_for_too_long(wait_s)))
        retry = effort.rejected(error, now, billed=_billed(attempt, error), rng=self._rng)
        return self._again(retry) if retry else self._give_up(attempt, error)

    def _interrupted(self, effort: Effort, attempt: Attempt, error: TransientError, now: float) -> Verdict:
        prompt = attempt.request.prompt_sha256
        probes = self._outage.interrupted(prompt, attempt.sent_at, now)
        if probes > PROBES:
            return self._give_up(attempt, error, dead=self._answers_nobody(error))
        if probes:
            self._gate.outage(probes, str(error), now)
        retry = effort.failed(self._retries, billed=_billed(attempt, error), rng=self._rng)
        if retry is None or self._outage.hopeless(prompt):
            return self._give_up(attempt, error)
        self._emit("retry", attempt, str(error), retry.delay_s)
        return self._again(retry)

    def _refused(self, attempt: Attempt, error: ProviderError) -> Verdict:
        """The provider is there, and has judged the request itself."""
        self._gate.answered()
        meets_all = self._outage.refused(attempt.request.prompt_sha256, error)
        return self._give_up(attempt, error, dead=self._refuses_all(error) if meets_all else None)

    def _again(self, retry: Retry) -> Verdict:
        self._tally.retries += 1
        return Verdict(retry=retry)

    def _give_up(self, attempt: Attempt, error: ProviderError, dead: PoolUnusable | None = None) -> Verdict:
        self._emit("gave_up", attempt, str(error))
        return self._lost(Verdict(dead=dead))

    def _lost(self, verdict: Verdict) -> Verdict:
        self._tally.calls_lost += 1
        return verdict

    def _parked_for_too_long(self, wait_s: float) -> PoolUnusable:
        return PoolUnusable(
            f"{self._name}: the provider asks to wait {wait_s / 3600:.1f} hours"
            f" ({self._gate.pause_reason}); run the same command again then"
        )

    def _answers_nobody(self, error: ProviderError) -> PoolUnusable:
        return PoolUnusable(
            f"{self._name}: nobody is answered any more, the latest error: {error};"
            " check base_url and the network, then run the same command again",
            status=error.status,
            code=error.code,
        )

    def _refuses_all(self, error: ProviderError) -> PoolUnusable:
        return PoolUnusable(
            f"{self._name}: every request is refused alike: {error};"
            " change the model's settings, then run the same command again",
            status=error.status,
            code=error.code,
        )


def _billed(attempt: Attempt, error: ProviderError) -> bool:
    return attempt.accepted or bool(error.usage and error.usage.output_tokens)
