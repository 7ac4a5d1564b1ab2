"""One request on its way: what was reserved for it, and what its provider has told so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from astra_async.asking.throttle.bucket import Hold
    from astra_async.types import ModelRequest, RateLimits


class Listener(Protocol):
    """Who is told of an attempt's progress (the pool)."""

    def heard_limits(self, attempt: Attempt, limits: RateLimits) -> None:
        """The response's headers have come."""

    def heard_first_token(self, attempt: Attempt) -> None:
        """The answer has begun to stream."""


class Attempt:
    """A slot in flight, and the CallWatch of its request.

    Attributes:
        number: counts the pool's attempts.
        sent_at: when the slot was given, in the pool's clock.
        crowd: how many were in flight when it was sent, itself among them.
        epoch: the number of rate signals before it: a cut answers only signals of its own epoch.
        holds: what was reserved in the buckets.
        worst_usd: what was reserved of the budget.
        leads: others wait for it to warm the cache.
        led: they have, at some time.
        accepted: the provider has let it in.
        let_in: the ceiling has counted it so, perhaps only because no rejection came.
        counted: it has raised the concurrency, or never will.
        characters: streamed so far.
        estimated: it was billed, and tokens that the provider left out were estimated.
    """

    __slots__ = (
        "_listener",
        "accepted",
        "characters",
        "counted",
        "crowd",
        "epoch",
        "estimated",
        "holds",
        "leads",
        "led",
        "let_in",
        "number",
        "request",
        "sent_at",
        "worst_usd",
    )

    def __init__(
        self, listener: Listener, request: ModelRequest, number: int, epoch: int, sent_at: float, crowd: int
    ) -> None:
        self._listener = listener
        self.request = request
        self.number = number
        self.epoch = epoch
        self.sent_at = sent_at
        self.crowd = crowd
        self.holds: list[Hold] = []
        self.worst_usd = 0.0
        self.leads = self.led = self.let_in = False
        self.accepted = self.counted = self.estimated = False
        self.characters = 0

    def limits(self, limits: RateLimits) -> None:
        """Rate-limit headers of this attempt's response."""
        self._listener.heard_limits(self, limits)

    def first_token(self) -> None:
        """The answer has begun to stream."""
        self._listener.heard_first_token(self)

    def streamed(self, characters: int) -> None:
        """So many more characters have arrived."""
        self.characters += characters
