"""Calls in line: first come, first served, across retries; and the requests that have had their turn.

A call that goes on with a conversation whose beginning is still in the provider's prompt cache stands `AHEAD`
places further to the front than it came: in front of all that usually wait. No call starves of that: one that
waits is overtaken only by calls that come before `AHEAD` others have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol

from astra_async.asking.throttle.breaker import ATTEMPTS, RejectionStreak

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from astra_async.asking.throttle.bucket import Reservation
    from astra_async.errors import ProviderError
    from astra_async.types import Completion, ModelRequest, RateLimits, Usage


CUT_STREAMS = 2
AHEAD = 1024  # more than wait at a time in a pool of the usual 256 in flight


@dataclass(slots=True, kw_only=True)
class CallHistory:
    """Attempts, failures and cost of one call.

    `cost_usd` is None if the price of an attempt is unknown. `cost_estimated` marks costs that include
    tokens which the provider did not report.
    """

    attempts: int = 0
    cost_usd: float | None = 0.0
    cost_estimated: bool = False
    failures: int = 0
    cut_streams: int = 0
    overloads: int = 0
    rejections: RejectionStreak = field(default_factory=RejectionStreak)

    def add_cost(self, cost_usd: float | None, *, estimated: bool = False) -> None:
        """Add the cost of one attempt."""
        self.cost_estimated |= estimated
        known = cost_usd is not None and self.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (cost_usd or 0.0) if known else None

    def add_rejection(self, now: float) -> bool:
        """Count a rejection and return True if the call may keep waiting. Rejections are not attempts."""
        self.rejections.add(now)
        return not self.rejections.too_long(now)

    def add_failure(self, *, billed: bool) -> bool:
        """Count a network error, a time-out or a 5xx and return True if another attempt is allowed."""
        self.failures += 1
        self.cut_streams += billed
        return self.failures < ATTEMPTS and self.cut_streams < CUT_STREAMS

    def complete(self, completion: Completion, usage: Usage) -> Completion:
        """Return `completion` with the corrected usage and the cost of all attempts."""
        return replace(
            completion,
            usage=usage,
            attempts=self.attempts,
            cost_usd=self.cost_usd,
            cost_estimated=self.cost_estimated,
        )

    def annotate(self, error: ProviderError) -> None:
        """Store the attempts and cost of the call in its final error."""
        error.attempts = self.attempts
        error.cost_usd = self.cost_usd
        error.cost_estimated = self.cost_estimated

    def copy_error(self, error: ProviderError) -> ProviderError:
        """Return a copy of an error that ends several calls, with the cost of this call."""
        copy = type(error)(str(error), status=error.status, code=error.code)
        copy.__cause__ = error
        self.annotate(copy)
        return copy


@dataclass(slots=True, kw_only=True, eq=False)
class Ticket:
    """One call's place."""

    request: ModelRequest
    history: CallHistory = field(default_factory=CallHistory)
    place: float = 0.0  # stays over its retries, unless it is sent to the tail
    turn: asyncio.Future[None] | None = None  # what the call's task waits on, None while it does not wait
    attempt: Attempt | None = None  # the slot it was given and has not used yet
    yielded: bool = False  # it has let others go first, once
    dismissed: bool = False  # it has left, or was told that the pool is dead

    @property
    def gone(self) -> bool:
        """Whether no call waits here any more; a cancelled task may not have run yet to say so."""
        return self.dismissed or (self.turn is not None and self.turn.cancelled())


class Line:
    """Tickets in order of their places, and those in a back-off that come back by themselves.

    Tickets that are gone stay until they reach the front: leaving is one assignment.
    """

    def __init__(self) -> None:
        self._places = 0
        self._line: list[tuple[float, Ticket]] = []
        self._later: list[tuple[float, float, Ticket]] = []

    def new_place(self, ticket: Ticket, *, ahead: bool = False) -> None:
        """Give the ticket the last place of all, or one `AHEAD` of it; no two have the same."""
        self._places += 1
        ticket.place = self._places - AHEAD + 0.5 if ahead else self._places

    def enter(self, ticket: Ticket) -> None:
        """Stand in line, at the ticket's own place."""
        heappush(self._line, (ticket.place, ticket))

    def enter_later(self, ticket: Ticket, at: float) -> None:
        """Stand in line from `at` on."""
        heappush(self._later, (at, ticket.place, ticket))

    def first(self, now: float) -> Ticket | None:
        """The ticket whose turn it is, still in line; None when no call waits."""
        while self._later and self._later[0][0] <= now:
            self.enter(heappop(self._later)[2])
        while self._line and self._line[0][1].gone:
            heappop(self._line)
        return self._line[0][1] if self._line else None

    def leave(self) -> None:
        """The first leaves the line."""
        heappop(self._line)

    def next_at(self) -> float:
        """When the next back-off ends; never, if no call is in one."""
        while self._later and self._later[0][2].gone:
            heappop(self._later)
        return self._later[0][0] if self._later else math.inf


class Listener(Protocol):
    """Who gave the slots, and hears what comes back on them."""

    def heard_limits(self, attempt: Attempt, limits: RateLimits) -> None:
        """The response's headers have come."""

    def heard_first_token(self, attempt: Attempt) -> None:
        """The answer has begun."""


@dataclass(kw_only=True, eq=False)
class Attempt:
    """A slot in flight, and the CallWatch of its request."""

    listener: Listener
    request: ModelRequest
    number: int  # counts the pool's attempts
    epoch: int  # the number of rate signals before it: a cut answers only signals of its own epoch
    sent_at: float  # when the slot was given, in the pool's clock
    crowd: int  # how many were in flight when it was sent, itself among them
    reserved: Sequence[Reservation] = field(default=(), init=False)  # what was reserved in the buckets
    # What follows stands in the class until it happens: making an attempt takes no time for it.
    worst_usd = 0.0  # what was reserved of the budget
    leads = False  # others wait for it to warm the cache
    led = False  # they have, at some time
    accepted = False  # the provider has let it in
    let_in = False  # the ceiling has counted it so, perhaps only because no rejection came
    counted = False  # it has raised the concurrency, or never will
    characters = 0  # streamed so far

    def limits(self, limits: RateLimits) -> None:
        """Rate-limit headers of this attempt's response."""
        self.listener.heard_limits(self, limits)

    def first_token(self) -> None:
        """The answer has begun to stream."""
        self.listener.heard_first_token(self)

    def streamed(self, characters: int) -> None:
        """So many more characters have arrived."""
        self.characters += characters
