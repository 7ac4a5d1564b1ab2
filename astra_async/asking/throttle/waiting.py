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

from astra_async.asking.throttle.pacing import ATTEMPTS, Row, backoff_s
from astra_async.errors import RateLimited

if TYPE_CHECKING:
    import asyncio
    import random
    from collections.abc import Sequence

    from astra_async.asking.throttle.bucket import Reservation
    from astra_async.errors import Overloaded, ProviderError
    from astra_async.types import Completion, ModelRequest, RateLimits, Usage


CUT_STREAMS = 2
AHEAD = 1024  # more than wait at a time in a pool of the usual 256 in flight


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Try again after `delay_s`, spent outside every slot; `to_tail`: behind everything that waits."""

    delay_s: float = 0.0
    to_tail: bool = False


@dataclass(slots=True, kw_only=True)
class Effort:
    """What one call has cost so far."""

    attempts: int = 0  # requests sent
    cost_usd: float | None = 0.0  # US dollars spent on them, None once a price was unknown
    cost_estimated: bool = False  # tokens that the provider did not report are estimated in it
    failures: int = 0
    cut_streams: int = 0
    overloads: int = 0
    rejections: Row = field(default_factory=Row)

    def spend(self, cost_usd: float | None, *, estimated: bool = False) -> None:
        """Add an attempt's cost; a cost that is unknown, or an estimate, makes the sum one."""
        self.cost_estimated |= estimated
        known = cost_usd is not None and self.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (cost_usd or 0.0) if known else None

    def rejected(
        self, error: RateLimited | Overloaded, now: float, *, billed: bool, rng: random.Random
    ) -> Retry | None:
        """The provider had no capacity: no attempt is counted, but waiting ends after `GIVE_UP_S`.

        Unless tokens were billed before: then it is a cut stream, of which a call has two (rule 11).

        A rate limit is waited out by the whole pool (rule 8). A single overload is this call's own
        trouble, with delays twice as long as after a lost connection.
        """
        self.cut_streams += billed
        if not self.waits_on(now) or self.cut_streams >= CUT_STREAMS:
            return None
        if isinstance(error, RateLimited):
            return Retry()
        self.overloads += 1
        return Retry(delay_s=0.0 if error.hint_s else backoff_s(self.overloads + 1, rng))

    def waits_on(self, now: float) -> bool:
        """One rejection or connection too many: no attempt is counted, until `GIVE_UP_S` have gone."""
        self.rejections.another(now)
        return not self.rejections.too_long(now)

    def failed(self, *, billed: bool) -> bool:
        """Connection, time-out or 5xx: 6 attempts; 2 for whatever ended after tokens were billed."""
        self.failures += 1
        self.cut_streams += billed
        return self.failures < ATTEMPTS and self.cut_streams < CUT_STREAMS

    def signed(self, completion: Completion, usage: Usage) -> Completion:
        """An answer with what is believed of its usage, and what the call has cost."""
        return replace(
            completion,
            usage=usage,
            attempts=self.attempts,
            cost_usd=self.cost_usd,
            cost_estimated=self.cost_estimated,
        )

    def sign(self, error: ProviderError) -> None:
        """Write what the call has cost into the error that ends it."""
        error.attempts = self.attempts
        error.cost_usd = self.cost_usd
        error.cost_estimated = self.cost_estimated

    def own(self, error: ProviderError) -> ProviderError:
        """An error that ends many calls, as it ends this one."""
        mine = type(error)(str(error), status=error.status, code=error.code)
        mine.__cause__ = error
        self.sign(mine)
        return mine


@dataclass(slots=True, kw_only=True, eq=False)
class Ticket:
    """One call's place."""

    request: ModelRequest
    effort: Effort = field(default_factory=Effort)
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
