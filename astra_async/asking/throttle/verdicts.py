"""What a failed request means: for its call (rules 8, 10, 11, 16), and for the whole pool (rules 7, 12)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from astra_async.asking.throttle.pacing import ERRORS_ALIKE, GIVE_UP_S, PROBES, PROMPTS, InVain, backoff_s
from astra_async.errors import Overloaded, PoolUnusable, RateLimited, TransientError

if TYPE_CHECKING:
    import random

    from astra_async.asking.throttle.gate import Emit, Gate
    from astra_async.asking.throttle.ledger import Spending
    from astra_async.asking.throttle.waiting import Attempt
    from astra_async.errors import ProviderError

ATTEMPTS = 6
CUT_STREAMS = 2
_FREE_RETRIES, _RETRIES_PER_SUCCESS = 10, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Try again after `delay_s`, spent outside every slot; `to_tail`: behind everything that waits."""

    delay_s: float = 0.0
    to_tail: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """`retry`: how the call goes on, None if it is given up. `dead`: why the pool ends, None if not."""

    retry: Retry | None = None
    dead: PoolUnusable | None = None


class Judge:
    """Classifies the failures of one pool and tells its gate and its counts."""

    def __init__(self, name: str, gate: Gate, tally: Spending, emit: Emit, rng: random.Random) -> None:
        self._name = name
        self._gate = gate
        self._tally = tally
        self._emit = emit
        self._rng = rng
        self._retries = RetryBudget()
        self._hopeless = Hopeless()

    def answered(self) -> None:
        """A call has its answer."""
        self._retries.earn()
        self._hopeless.answered()

    def failed(self, effort: Effort, attempt: Attempt, error: ProviderError, now: float) -> Consequence:
        """One attempt has ended with this error."""
        match error:
            case RateLimited():
                self._tally.rate_limited += 1
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
                return Consequence(dead=error)
            case _:
                return self._refused(attempt, error)

    def _rejected(
        self, effort: Effort, attempt: Attempt, error: RateLimited | Overloaded, now: float
    ) -> Consequence:
        wait_s = self._gate.paused_for_s(now)
        if wait_s > GIVE_UP_S:
            # The call waits with the others, and is told with them that the pool is dead.
            hours, why = wait_s / 3600, self._gate.pause.reason
            text = f"the provider asks to wait {hours:.1f} hours ({why}); run the same command again then"
            return Consequence(retry=Retry(), dead=PoolUnusable(f"{self._name}: {text}"))
        if self._gate.lets_nobody_in(now):
            text = f"nobody was let in for {GIVE_UP_S / 60:.0f} minutes, the latest rejection: {error}"
            remedy = "check quota and balance, or run the same command again later"
            return self._give_up(attempt, error, self._dead(f"{text}; {remedy}", error))
        retry = effort.rejected(error, now, billed=_billed(attempt, error), rng=self._rng)
        prompt, rejections = attempt.request.prompt_sha256, self._gate.rejections
        if retry is None or rejections.of_prompt(prompt, now):
            return self._give_up(attempt, error)
        return self._again(replace(retry, to_tail=rejections.yields(prompt)))

    def _interrupted(
        self, effort: Effort, attempt: Attempt, error: TransientError, now: float
    ) -> Consequence:
        if error.status is None and self._gate.too_many_connections(attempt, now) and effort.waits_on(now):
            return self._again(Retry())
        hopeless = self._hopeless.interrupted(attempt.request.prompt_sha256)
        if self._gate.failed(attempt, str(error), now) > PROBES:
            dead = self._dead(
                f"nobody is answered any more, the latest error: {error};"
                " check base_url and the network, then run the same command again",
                error,
            )
            return self._give_up(attempt, error, dead)
        retry = effort.failed(self._retries, billed=_billed(attempt, error), rng=self._rng)
        if retry is None or hopeless:
            return self._give_up(attempt, error)
        self._emit("retry", attempt, str(error), retry.delay_s)
        return self._again(retry)

    def _refused(self, attempt: Attempt, error: ProviderError) -> Consequence:
        """The provider is there, and has judged the request itself."""
        self._gate.answered()
        if not self._hopeless.refused(attempt.request.task, error):
            return self._give_up(attempt, error)
        remedy = "check the key and the model's settings, then run the same command again"
        dead = self._dead(f"every request is refused alike: {error}; {remedy}", error)
        return self._give_up(attempt, error, dead)

    def _again(self, retry: Retry) -> Consequence:
        self._tally.retries += 1
        return Consequence(retry=retry)

    def _give_up(
        self, attempt: Attempt, error: ProviderError, dead: PoolUnusable | None = None
    ) -> Consequence:
        self._emit("gave_up", attempt, str(error))
        return Consequence(dead=dead)

    def _dead(self, text: str, error: ProviderError) -> PoolUnusable:
        return PoolUnusable(f"{self._name}: {text}", status=error.status, code=error.code)


@dataclass(slots=True, kw_only=True)
class Effort:
    """What one call has cost so far."""

    attempts: int = 0  # requests sent
    cost_usd: float | None = 0.0  # US dollars spent on them, None once a price was unknown
    cost_estimated: bool = False  # tokens that the provider did not tell are estimated in it
    failures: int = 0
    cut_streams: int = 0
    overloads: int = 0
    in_vain: InVain = field(default_factory=InVain)

    def spend(self, cost_usd: float | None, *, estimated: bool = False) -> None:
        """Add an attempt's cost; a cost that is unknown, or an estimate, makes the sum one."""
        self.cost_estimated |= estimated
        if cost_usd is None or self.cost_usd is None:
            self.cost_usd = None
        else:
            self.cost_usd += cost_usd

    def rejected(
        self, error: RateLimited | Overloaded, now: float, *, billed: bool, rng: random.Random
    ) -> Retry | None:
        """The provider had no room: no attempt is counted, but waiting ends after `GIVE_UP_S`.

        Unless tokens were billed before: then it is a cut stream, of which a call has two (rule 11).

        A rate limit is waited out by the whole pool (rule 8). A single overload is this call's own
        trouble, with delays twice as long as after a lost connection.
        """
        self.cut_streams += billed
        self.in_vain.another(now)
        if self.cut_streams >= CUT_STREAMS or self.in_vain.too_long(now):
            return None
        if isinstance(error, RateLimited):
            return Retry()
        self.overloads += 1
        return Retry(delay_s=0.0 if error.hint_s else backoff_s(self.overloads + 1, rng))

    def waits_on(self, now: float) -> bool:
        """A connection too many: no attempt is counted, but waiting ends after `GIVE_UP_S`."""
        self.in_vain.another(now)
        return not self.in_vain.too_long(now)

    def failed(self, budget: RetryBudget, *, billed: bool, rng: random.Random) -> Retry | None:
        """Connection, time-out or 5xx: 6 attempts; 2 for whatever ended after tokens were billed."""
        self.failures += 1
        self.cut_streams += billed
        if self.failures >= ATTEMPTS or self.cut_streams >= CUT_STREAMS:
            return None
        return Retry(delay_s=backoff_s(self.failures, rng), to_tail=not budget.take())

    def sign(self, error: ProviderError) -> None:
        """Write what the call has cost into the error that ends it."""
        error.attempts = self.attempts
        error.cost_usd = self.cost_usd
        error.cost_estimated = self.cost_estimated


class RetryBudget:
    """Retries after transport errors: 10 % of the successes + 10, then the tail of the queue."""

    def __init__(self) -> None:
        self._left = float(_FREE_RETRIES)

    def earn(self) -> None:
        """A call succeeded."""
        self._left += _RETRIES_PER_SUCCESS

    def take(self) -> bool:
        """Spend one retry; False when there is none left."""
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Hopeless:
    """Requests that need no further try: errors that meet every request, and prompts that break a server.

    One prompt may be refused by itself: it takes three, or an error that says of itself that it meets every
    request. Invariant: a call's answer begins every count anew; a rejection for its rate disproves nothing.
    """

    def __init__(self) -> None:
        self.answered()

    def answered(self) -> None:
        """A call has its answer."""
        self._likeness = ""
        self._alike = 0
        self._refused_prompts: set[str] = set()
        self._failures_with: Counter[str] = Counter()

    def refused(self, prompt_sha256: str, error: ProviderError) -> bool:
        """A request was refused for good; whether every other one would be, too."""
        likeness = error.likeness or str(error)
        if likeness != self._likeness:
            self._likeness, self._alike = likeness, 0
            self._refused_prompts.clear()
        self._alike += 1
        self._refused_prompts.add(prompt_sha256)
        everybody = error.meets_all or len(self._refused_prompts) >= PROMPTS
        return everybody and self._alike >= ERRORS_ALIKE

    def interrupted(self, prompt_sha256: str) -> bool:
        """An attempt failed; whether so many did with its prompt that one is enough for each further call."""
        self._failures_with[prompt_sha256] += 1
        return self._failures_with[prompt_sha256] >= ERRORS_ALIKE * ATTEMPTS


def _billed(attempt: Attempt, error: ProviderError) -> bool:
    return attempt.accepted or bool(error.usage and error.usage.output_tokens)
