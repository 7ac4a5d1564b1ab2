"""Cost of requests, and a cost ceiling that counts requests in flight at their worst case (rule 14)."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from astra_async.errors import BudgetExhausted, ConfigError
from astra_async.types import Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from astra_async.asking.throttle.estimate import Estimator
    from astra_async.asking.throttle.retry import CallHistory
    from astra_async.types import ModelRequest, ModelSettings

_ROUNDING_USD = 1e-9
_WINDOW_S = 60
Fit = Literal["now", "later", "never"]


class Budget:
    """Ceiling in US dollars, shared by the pools of a run.

    A request is admitted only if spent + reserved + its worst case stays under the ceiling. A provider that
    bills more than `max_tokens` can exceed the worst case and thereby the ceiling.

    Args:
        ceiling_usd: maximum cost of the run, above 0; None for no ceiling.
        spent_usd: cost of earlier invocations of the same run.

    Attributes:
        spent_usd: cost of finished requests.
        reserved_usd: worst case of the requests in flight.

    Raises:
        ConfigError: the ceiling is not above 0.
    """

    def __init__(self, ceiling_usd: float | None = None, *, spent_usd: float = 0.0) -> None:
        if ceiling_usd is not None and not (0 < ceiling_usd < math.inf):
            raise ConfigError(f"--budget-usd: must be above 0, not {ceiling_usd:g}")
        self.ceiling_usd = math.inf if ceiling_usd is None else ceiling_usd
        self.spent_usd = spent_usd
        self.reserved_usd = 0.0
        self._in_flight = 0
        self._waiting: dict[Callable[[], None], None] = {}

    def fits(self, worst_usd: float) -> Fit:
        """Return when a request fits: "now", "never", or "later" if others may cost less than reserved."""
        most = self.ceiling_usd + _ROUNDING_USD
        if self.spent_usd + self.reserved_usd + worst_usd <= most:
            return "now"
        return "later" if self._in_flight and self.spent_usd + worst_usd <= most else "never"

    def reserve(self, worst_usd: float) -> None:
        """Reserve the worst case of a request."""
        self._in_flight += 1
        self.reserved_usd += worst_usd

    def settle(self, worst_usd: float, cost_usd: float | None) -> None:
        """Replace a reservation by the cost. An unknown cost (None) counts as the worst case."""
        self._in_flight -= 1
        self.reserved_usd = self.reserved_usd - worst_usd if self._in_flight else 0.0
        self.spent_usd += worst_usd if cost_usd is None else cost_usd
        waiting, self._waiting = self._waiting, {}
        for wake in waiting:
            wake()

    def wake_on_settlement(self, wake: Callable[[], None]) -> None:
        """Call `wake` once after the next settlement."""
        self._waiting[wake] = None

    def forget(self, wake: Callable[[], None]) -> None:
        """Cancel `wake_on_settlement`."""
        self._waiting.pop(wake, None)


def require_price(model: str, price: Callable[[Usage], float | None]) -> None:
    """Raise ConfigError if the price of the model's tokens is unknown."""
    if price(Usage(input_tokens=1000, output_tokens=1000)) is None:
        raise ConfigError(
            f"--budget-usd: no price is known for {model}; add --price-input and --price-output (USD per"
            " million tokens), or set price_input and price_output for it under [[models]]"
        )


class Ledger:
    """Cost accounting of one pool, with its counts of calls and tokens for PoolState.

    Raises:
        ConfigError: a ceiling is set, but the model's price is unknown.
    """

    def __init__(
        self,
        settings: ModelSettings,
        estimator: Estimator,
        price: Callable[[Usage], float | None],
        budget: Budget,
        now: float,
    ) -> None:
        if budget.ceiling_usd < math.inf:
            require_price(settings.name, price)
        self.calls_ok = self.rate_limited = self.retries = 0
        self.input_tokens = self.output_tokens = 0
        self.cost_usd: float | None = 0.0
        self._name = settings.name
        self._estimator = estimator
        self._price = price
        self._budget = budget
        self._began_at = now
        self._seconds: deque[tuple[int, int]] = deque(maxlen=_WINDOW_S)  # tokens by second

    def worst_usd(self, request: ModelRequest) -> float:
        """Return the worst case in US dollars: no cached input, all of `max_tokens`; 0 without a ceiling."""
        if self._budget.ceiling_usd == math.inf:
            return 0.0
        usage = self._estimator.worst(request)
        written = replace(usage, cache_write_tokens=usage.input_tokens) if request.cache else usage
        return max(self._price(usage) or 0.0, self._price(written) or 0.0)

    def bill(
        self, call: CallHistory, request: ModelRequest, usage: Usage | None, characters: int, now: float
    ) -> float | None:
        """Add the tokens and cost of an attempt to `call`. Return the cost in US dollars, None if unknown.

        Tokens that the provider does not report are estimated.
        """
        filled = self._estimator.fill(usage, request, characters)
        cost_usd = self._price(filled)
        call.add_cost(cost_usd, estimated=filled is not usage)
        inputs, outputs = filled.input_tokens or 0, filled.output_tokens or 0
        self.input_tokens += inputs
        self.output_tokens += outputs
        self.cost_usd = None if cost_usd is None or self.cost_usd is None else self.cost_usd + cost_usd
        second = int(now)
        if self._seconds and self._seconds[-1][0] == second:
            self._seconds[-1] = (second, self._seconds[-1][1] + inputs + outputs)
        else:
            self._seconds.append((second, inputs + outputs))
        return cost_usd

    def exhausted(self, worst_usd: float) -> BudgetExhausted:
        """Return the error for a request that exceeds the ceiling."""
        ceiling_usd, spent_usd = self._budget.ceiling_usd, self._budget.spent_usd
        needed_usd = math.ceil(100 * max(ceiling_usd, spent_usd + worst_usd)) / 100
        error = BudgetExhausted(
            f"{self._name}: the budget of ${ceiling_usd:.2f} is reached: ${spent_usd:.2f} spent, the next"
            f" request may cost ${worst_usd:.2f}; raise --budget-usd above {needed_usd:.2f}"
        )
        error.raise_to_usd = 2 * needed_usd
        return error

    def sums(self) -> dict[str, Any]:
        """Return the sums as fields of PoolState."""
        names = ("calls_ok", "rate_limited", "retries", "input_tokens", "output_tokens", "cost_usd")
        return {name: getattr(self, name) for name in names}

    def tokens_per_minute(self, now: float) -> float:
        """Return the tokens of the last minute, scaled up while the pool is younger than a minute."""
        seconds = min(float(_WINDOW_S), max(1.0, now - self._began_at))
        tokens = sum(tokens for second, tokens in self._seconds if second > now - _WINDOW_S)
        return tokens * 60 / seconds
