"""Rules 10, 11 and 16: what one call may cost in attempts, and when it is given up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.asking.throttle.pacing import backoff_s
from astra_async.errors import Overloaded, RateLimited, TransientError, TruncatedStream

if TYPE_CHECKING:
    import random

    from astra_async.errors import ProviderError

ATTEMPTS = 6
CUT_STREAMS = 2
GIVE_UP_S = 1800.0
_FREE_RETRIES, _RETRIES_PER_SUCCESS = 10, 0.1
_LOST_CALLS, _LOST_PROMPTS = 10, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Try again after `delay_s`, spent outside every slot; `to_tail`: behind everything that waits."""

    delay_s: float = 0.0
    to_tail: bool = False


class Effort:
    """What one call has cost so far.

    Attributes:
        attempts: requests sent.
        cost_usd: US dollars spent on them, None once a price was unknown.
        cost_estimated: tokens that the provider did not tell are estimated in it.
    """

    __slots__ = (
        *("_cut_streams", "_failures", "_overloads", "_rejected_since"),
        *("attempts", "cost_estimated", "cost_usd"),
    )

    def __init__(self) -> None:
        self.attempts = 0
        self.cost_usd: float | None = 0.0
        self.cost_estimated = False
        self._failures = 0
        self._cut_streams = 0
        self._overloads = 0
        self._rejected_since: float | None = None

    def spend(self, cost_usd: float | None, *, estimated: bool = False) -> None:
        """Add an attempt's cost; a cost that is unknown, or an estimate, makes the sum one."""
        self.cost_estimated |= estimated
        if cost_usd is None or self.cost_usd is None:
            self.cost_usd = None
        else:
            self.cost_usd += cost_usd

    def rejected(self, error: RateLimited | Overloaded, now: float, rng: random.Random) -> Retry | None:
        """The provider had no room: no attempt is counted, but waiting ends after `GIVE_UP_S`.

        A rate limit is waited out by the whole pool (rule 8). A single overload is this call's own
        trouble, with delays twice as long as after a lost connection.
        """
        if self._rejected_since is None:
            self._rejected_since = now
        if now - self._rejected_since >= GIVE_UP_S:
            return None
        if isinstance(error, RateLimited):
            return Retry()
        self._overloads += 1
        return Retry(delay_s=0.0 if error.hint_s else backoff_s(self._overloads + 1, rng))

    def failed(
        self, error: TransientError, budget: RetryBudget, *, billed: bool, rng: random.Random
    ) -> Retry | None:
        """Connection, time-out or 5xx: 6 attempts; 2 for streams that were cut after tokens were billed."""
        self._failures += 1
        if isinstance(error, TruncatedStream) and billed:
            self._cut_streams += 1
        if self._failures >= ATTEMPTS or self._cut_streams >= CUT_STREAMS:
            return None
        return Retry(delay_s=backoff_s(self._failures, rng), to_tail=not budget.take())

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


class Losses:
    """Notices a provider that answers nobody: calls given up in a row, over several prompts.

    One prompt may break a server by itself, so it takes three.
    """

    def __init__(self) -> None:
        self._calls = 0
        self._prompts: set[str] = set()

    def given_up(self, prompt_sha256: str) -> bool:
        """A call was given up after all its attempts; whether the pool should be given up as well."""
        self._calls += 1
        self._prompts.add(prompt_sha256)
        return self._calls >= _LOST_CALLS and len(self._prompts) >= _LOST_PROMPTS

    def answered(self) -> None:
        """A call succeeded."""
        if self._calls:
            self._calls = 0
            self._prompts.clear()
