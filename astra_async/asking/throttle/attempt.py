"""One request on its way: what was reserved for it, and what its provider has told so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.asking.throttle.bucket import Hold
    from astra_async.asking.throttle.pool import Pool
    from astra_async.types import ModelRequest, RateLimits


@dataclass(slots=True, kw_only=True, eq=False)
class Attempt:
    """A slot in flight, and the CallWatch of its request."""

    pool: Pool
    request: ModelRequest
    number: int  # counts the pool's attempts
    epoch: int  # the number of rate signals before it: a cut answers only signals of its own epoch
    sent_at: float  # when the slot was given, in the pool's clock
    crowd: int  # how many were in flight when it was sent, itself among them
    holds: Sequence[Hold] = ()  # what was reserved in the buckets
    worst_usd: float = 0.0  # what was reserved of the budget
    leads: bool = False  # others wait for it to warm the cache
    led: bool = False  # they have, at some time
    accepted: bool = False  # the provider has let it in
    let_in: bool = False  # the ceiling has counted it so, perhaps only because no rejection came
    counted: bool = False  # it has raised the concurrency, or never will
    characters: int = 0  # streamed so far
    estimated: bool = False  # it was billed, and tokens that the provider left out were estimated

    def limits(self, limits: RateLimits) -> None:
        """Rate-limit headers of this attempt's response."""
        self.pool.heard_limits(self, limits)

    def first_token(self) -> None:
        """The answer has begun to stream."""
        self.pool.heard_first_token(self)

    def streamed(self, characters: int) -> None:
        """So many more characters have arrived."""
        self.characters += characters
