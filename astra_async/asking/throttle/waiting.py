"""Calls in line: first come, first served, across retries.

A call that goes on with a conversation whose beginning is still in the provider's prompt cache stands `AHEAD`
places further to the front than it came: in front of all that usually wait. No call starves of that: one that
waits is overtaken only by calls that come before `AHEAD` others have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from astra_async.asking.throttle.retry import Attempt, CallHistory

if TYPE_CHECKING:
    import asyncio

    from astra_async.types import ModelRequest


AHEAD = 1024  # more than wait at a time in a pool of the usual 256 in flight


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
