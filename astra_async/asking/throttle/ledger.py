"""What a pool's requests cost: prices, the share of the budget, and sums for the display."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from astra_async.errors import BudgetExhausted, ConfigError
from astra_async.types import Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from astra_async.asking.throttle.attempt import Attempt
    from astra_async.asking.throttle.budget import Budget, Fit
    from astra_async.asking.throttle.estimate import Estimator
    from astra_async.types import ModelRequest, ModelSettings

_WINDOW_S = 60


class Ledger:
    """Bills attempts and keeps the pool's side of a shared budget (rule 14).

    Attributes:
        tally: sums over all attempts so far.
    """

    def __init__(
        self,
        settings: ModelSettings,
        estimator: Estimator,
        price: Callable[[Usage], float | None],
        budget: Budget | None,
        now: float,
    ) -> None:
        if budget is not None and price(Usage(input_tokens=1000, output_tokens=1000)) is None:
            raise ConfigError(
                f"--budget-usd: no price is known for {settings.name};"
                " set price_input and price_output (USD per million tokens) for it under [[models]]"
            )
        self.tally = Tally(now)
        self._name = settings.name
        self._estimator = estimator
        self._price = price
        self._budget = budget

    def worst_usd(self, request: ModelRequest) -> float:
        """The most that a request can cost: nothing cached, `max_tokens` of output; 0 without a budget."""
        if self._budget is None:
            return 0.0
        usage = self._estimator.worst(request)
        written = replace(usage, cache_write_tokens=usage.input_tokens) if request.cache else usage
        return max(self._price(usage) or 0.0, self._price(written) or 0.0)

    def fits(self, worst_usd: float) -> Fit:
        """Whether the budget has room for it."""
        return "now" if self._budget is None else self._budget.fits(worst_usd)

    def reserve(self, attempt: Attempt, worst_usd: float) -> None:
        """Set the attempt's worst case aside."""
        if self._budget is not None:
            attempt.worst_usd = worst_usd
            self._budget.reserve(worst_usd)

    def settle(self, attempt: Attempt, cost_usd: float | None) -> None:
        """The attempt has ended; one whose cost is unknown counts at its worst."""
        if self._budget is not None:
            self._budget.settle(attempt.worst_usd, attempt.worst_usd if cost_usd is None else cost_usd)

    def bill(self, attempt: Attempt, usage: Usage | None, characters: int, now: float) -> float | None:
        """Count an attempt's tokens, estimated where the provider is silent; returns US dollars or None."""
        filled = self._estimator.fill(usage, attempt.request, characters)
        attempt.estimated = filled is not usage
        cost_usd = self._price(filled)
        self.tally.add(filled, cost_usd, now)
        return cost_usd

    def exhausted(self, worst_usd: float) -> BudgetExhausted:
        """Why a request of that size cannot go."""
        ceiling_usd = self._budget.ceiling_usd if self._budget else 0.0
        spent_usd = self._budget.spent_usd if self._budget else 0.0
        return BudgetExhausted(
            f"{self._name}: the budget of ${ceiling_usd:.2f} is reached: ${spent_usd:.2f} spent, the next"
            f" request may cost ${worst_usd:.2f}; raise --budget-usd and run the same command again"
        )

    def wake_on_settlement(self, wake: Callable[[], None]) -> None:
        """Call `wake` once when any pool of the budget settles."""
        if self._budget is not None:
            self._budget.wake_on_settlement(wake)

    def forget(self, wake: Callable[[], None]) -> None:
        """Do not call `wake` any more."""
        if self._budget is not None:
            self._budget.forget(wake)


class Tally:
    """Counts of one pool, written as things happen."""

    def __init__(self, now: float) -> None:
        self.calls_ok = 0
        self.calls_lost = 0
        self.rate_limited = 0
        self.overloaded = 0
        self.retries = 0
        self.input_tokens = 0
        self.cached_tokens = 0
        self.output_tokens = 0
        self.reasoning_tokens = 0
        self.cost_usd: float | None = 0.0
        self._began_at = now
        self._seconds: deque[tuple[int, int]] = deque()

    def add(self, usage: Usage, cost_usd: float | None, now: float) -> None:
        """One attempt's tokens and cost."""
        inputs, outputs = usage.input_tokens or 0, usage.output_tokens or 0
        self.input_tokens += inputs
        self.output_tokens += outputs
        self.cached_tokens += usage.cached_tokens or 0
        self.reasoning_tokens += usage.reasoning_tokens or 0
        self.cost_usd = None if cost_usd is None or self.cost_usd is None else self.cost_usd + cost_usd
        second = int(now)
        if self._seconds and self._seconds[-1][0] == second:
            self._seconds[-1] = (second, self._seconds[-1][1] + inputs + outputs)
        else:
            self._seconds.append((second, inputs + outputs))
            self._forget(now)

    def tokens_per_minute(self, now: float) -> float:
        """Tokens of the last minute, scaled up while the pool is younger than that."""
        self._forget(now)
        seconds = min(float(_WINDOW_S), max(1.0, now - self._began_at))
        return sum(tokens for _, tokens in self._seconds) * 60 / seconds

    def _forget(self, now: float) -> None:
        while self._seconds and self._seconds[0][0] <= now - _WINDOW_S:
            self._seconds.popleft()
