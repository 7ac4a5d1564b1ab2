"""Rule 14: a ceiling on what a run may cost, counting requests in flight at their worst case."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from astra_async.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

_ROUNDING_USD = 1e-9
Fit = Literal["now", "later", "never"]


class Budget:
    """A ceiling in US dollars, shared by the pools of a run.

    spent + reserved never passes the ceiling when a request is admitted. A request can still cost more
    than its worst case where a provider bills more than `max_tokens`; then admission ends the sooner.

    Args:
        ceiling_usd: what the run may cost in all; above 0.
        spent_usd: what earlier sessions of the same run have cost.

    Attributes:
        spent_usd: what finished requests have cost.
        reserved_usd: the worst case of what is in flight.
    """

    def __init__(self, ceiling_usd: float, *, spent_usd: float = 0.0) -> None:
        if not (0 < ceiling_usd < math.inf):
            raise ConfigError(f"--budget-usd: must be above 0, not {ceiling_usd:g}")
        self.ceiling_usd = ceiling_usd
        self.spent_usd = spent_usd
        self.reserved_usd = 0.0
        self._in_flight = 0
        self._waiting: dict[Callable[[], None], None] = {}

    def fits(self, worst_usd: float) -> Fit:
        """Whether a request may go now, later if those in flight cost less than feared, or never."""
        most = self.ceiling_usd + _ROUNDING_USD
        if self.spent_usd + self.reserved_usd + worst_usd <= most:
            return "now"
        return "later" if self._in_flight and self.spent_usd + worst_usd <= most else "never"

    def reserve(self, worst_usd: float) -> None:
        """Set a request's worst case aside."""
        self._in_flight += 1
        self.reserved_usd += worst_usd

    def settle(self, worst_usd: float, cost_usd: float) -> None:
        """The request has ended and cost so much; pools that wait for room look again."""
        self._in_flight -= 1
        self.reserved_usd = self.reserved_usd - worst_usd if self._in_flight else 0.0
        self.spent_usd += cost_usd
        waiting, self._waiting = self._waiting, {}
        for wake in waiting:
            wake()

    def wake_on_settlement(self, wake: Callable[[], None]) -> None:
        """Call `wake` once after the next settlement."""
        self._waiting[wake] = None

    def forget(self, wake: Callable[[], None]) -> None:
        """Do not call `wake` any more."""
        self._waiting.pop(wake, None)
