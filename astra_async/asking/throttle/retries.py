"""Rules 10, 11 and 16: what one call may cost in attempts, and when it is given up."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.asking.throttle.pacing import backoff_s
from astra_async.errors import RateLimited

if TYPE_CHECKING:
    import random

    from astra_async.errors import Overloaded, ProviderError

ATTEMPTS = 6
CUT_STREAMS = 2
GIVE_UP_S = 1800.0
_FREE_RETRIES, _RETRIES_PER_SUCCESS = 10, 0.1
_ERRORS_ALIKE, _PROMPTS = 10, 3
PROBES = 8  # one by one, with pauses that double from 2 s to a minute: four minutes in all


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

    def rejected(
        self, error: RateLimited | Overloaded, now: float, *, billed: bool, rng: random.Random
    ) -> Retry | None:
        """The provider had no room: no attempt is counted, but waiting ends after `GIVE_UP_S`.

        Unless tokens were billed before: then it is a cut stream, of which a call has two (rule 11).

        A rate limit is waited out by the whole pool (rule 8). A single overload is this call's own
        trouble, with delays twice as long as after a lost connection.
        """
        self._cut_streams += billed
        if self._rejected_since is None:
            self._rejected_since = now
        if self._cut_streams >= CUT_STREAMS or now - self._rejected_since >= GIVE_UP_S:
            return None
        if isinstance(error, RateLimited):
            return Retry()
        self._overloads += 1
        return Retry(delay_s=0.0 if error.hint_s else backoff_s(self._overloads + 1, rng))

    def failed(self, budget: RetryBudget, *, billed: bool, rng: random.Random) -> Retry | None:
        """Connection, time-out or 5xx: 6 attempts; 2 for whatever ended after tokens were billed."""
        self._failures += 1
        self._cut_streams += billed
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


class Outage:
    """Notices a provider that answers nobody, and errors that meet every request.

    One prompt may break a server, or be refused, by itself: it takes three, or an error that says of itself
    that it meets every request. Invariant: an answer begins every count anew.
    """

    def __init__(self) -> None:
        self.answered()

    def answered(self) -> None:
        """A call has its answer."""
        self._failures = self._probes = 0
        self._began_at = math.inf
        self._likeness = ""
        self._alike = 0
        self._refused_prompts: set[str] = set()
        self._failures_with: Counter[str] = Counter()

    def interrupted(self, prompt_sha256: str, sent_at: float, now: float) -> int:
        """An attempt failed, sent at `sent_at`; how many tries one by one have failed since the outage began.

        0: no outage. Of requests that were in flight when it began nothing more is learned.
        """
        self._failures += 1
        self._failures_with[prompt_sha256] += 1
        if self._failures < _ERRORS_ALIKE or len(self._failures_with) < _PROMPTS:
            return 0
        if self._probes == 0 or sent_at >= self._began_at:
            self._probes += 1
            self._began_at = now
        return self._probes

    def refused(self, prompt_sha256: str, error: ProviderError) -> bool:
        """A request was refused for good; whether every other one would be, too."""
        likeness = error.likeness or str(error)
        if likeness != self._likeness:
            self._likeness, self._alike = likeness, 0
            self._refused_prompts.clear()
        self._alike += 1
        self._refused_prompts.add(prompt_sha256)
        everybody = error.meets_all or len(self._refused_prompts) >= _PROMPTS
        return everybody and self._alike >= _ERRORS_ALIKE

    def hopeless(self, prompt_sha256: str) -> bool:
        """Whether attempts with this prompt have failed so often that one is enough for each further call."""
        return self._failures_with[prompt_sha256] >= _ERRORS_ALIKE * ATTEMPTS
