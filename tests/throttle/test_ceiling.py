"""A limit of requests in flight that the provider enforces, told from a limit of the rate."""

import random
from typing import Any

from limited_provider import LimitedProvider, request, settings

from astra_async.asking.throttle.concurrency import Ceiling
from astra_async.asking.throttle.gate import Gate
from astra_async.asking.throttle.retry import Attempt
from astra_async.errors import Overloaded, RateLimited


def ignore(*_: Any) -> None:
    pass


class Requests:
    def __init__(self) -> None:
        self.ceiling = Ceiling()
        self.now = 0.0
        self.number = 0
        self.in_flight: list[Attempt] = []

    def send(self) -> Attempt:
        self.number += 1
        attempt = Attempt(
            request=request(),
            on_limits=ignore,
            on_first_token=ignore,
            number=self.number,
            epoch=0,
            sent_at=self.now,
            crowd=len(self.in_flight) + 1,
        )
        self.in_flight.append(attempt)
        self.ceiling.sent(attempt)
        return attempt

    def let_in(self) -> Attempt:
        attempt = self.send()
        self.ceiling.let_in(attempt, self.now)
        return attempt

    def reject(self, *, of_a_try: bool = False) -> bool:
        attempt = self.send()
        self.in_flight.remove(attempt)
        return self.ceiling.rejected(attempt, self.now, begins_burst=True, of_a_try=of_a_try)

    def end(self) -> None:
        self.ceiling.ended(self.in_flight.pop(0))

    def after(self, seconds: float) -> "Requests":
        self.now += seconds
        return self


def with_ceiling(limit: int = 4) -> Requests:
    each = Requests()
    for _ in range(limit):
        each.let_in()
    each.reject()
    assert each.after(2).reject()
    assert each.ceiling.limit == limit
    return each


def test_two_bursts_that_never_contradict_it_make_a_ceiling() -> None:
    with_ceiling(4)


def test_one_burst_does_not() -> None:
    each = Requests()
    for _ in range(4):
        each.let_in()
    assert not each.reject()
    assert each.ceiling.limit is None


def test_two_bursts_within_a_second_do_not() -> None:
    each = Requests()
    for _ in range(4):
        each.let_in()
    each.reject()
    assert not each.after(0.5).reject()


def test_a_request_that_found_as_many_in_flight_and_was_let_in_contradicts() -> None:
    each = Requests()
    for _ in range(4):
        each.let_in()
    each.reject()
    each.after(2).let_in()
    assert not each.reject()
    assert each.ceiling.limit is None


def test_a_request_that_was_not_rejected_for_half_a_second_was_let_in() -> None:
    each = Requests()
    for _ in range(4):
        each.send()
    each.after(0.6).reject()
    assert each.after(2).reject()
    assert each.ceiling.limit == 4


def test_signals_that_a_higher_rate_explains_do_not_count() -> None:
    each = Requests()
    for _ in range(4):
        each.let_in()
    each.reject(of_a_try=True)
    assert not each.after(2).reject(of_a_try=True)


def test_under_a_ceiling_one_more_is_tried_after_a_while_and_more_rarely_when_it_fails() -> None:
    each = with_ceiling(4)
    ceiling = each.ceiling
    assert ceiling.ready_at(3, each.now) == each.now
    assert ceiling.ready_at(4, each.now) == each.now + 5
    assert ceiling.ready_at(5, each.now + 100) == float("inf")
    each.after(5).reject()
    assert ceiling.limit == 4
    assert ceiling.ready_at(4, each.now) == each.now + 10


def test_tries_that_are_let_in_raise_the_ceiling_and_end_it() -> None:
    each = with_ceiling(4)
    limits: list[int | None] = []
    while each.ceiling.limit is not None:
        while len(each.in_flight) < each.ceiling.limit:
            each.let_in()
        each.after(5).let_in()
        limits.append(each.ceiling.limit)
    assert limits[:3] == [6, 8, 11]
    assert len(limits) == 4


def test_somebody_else_who_takes_a_share_lowers_it() -> None:
    each = with_ceiling(4)
    for _ in range(5):
        each.end()
        each.let_in()
    each.end()
    each.reject()
    assert each.ceiling.limit == 3


def test_rejections_with_as_few_again_and_again_are_no_ceiling() -> None:
    each = with_ceiling(4)
    each.end()
    each.reject()
    assert each.ceiling.limit is None


class Sent:
    """A gate that is asked as fast as it lets requests go, under limits that never hold them."""

    def __init__(self) -> None:
        provider = LimitedProvider(lambda: self.now)
        self.now = 0.0
        self.gate = Gate(
            settings(requests_per_minute=6000), provider, random.Random(0), lambda *_: None, self.now
        )

    def burst(self, most: int) -> list[Attempt]:
        """What goes within a fifth of a second, `most` at the most."""
        attempts: list[Attempt] = []
        until = self.now + 0.2
        while len(attempts) < most:
            at, _ = self.gate.opens_at(request(), self.now, warm=False)
            if at > until:
                break
            self.now = max(self.now, at)
            if at <= self.now:
                attempts.append(self.gate.admit(request(), self.now, ignore, ignore, warm=False))
        return attempts

    def end(self, attempts: list[Attempt], pause_s: float) -> None:
        for attempt in attempts:
            self.gate.release(attempt)
        self.now += pause_s
        self.gate.resume(self.now)


def test_what_a_ceiling_explained_does_not_explain_a_later_overload() -> None:
    each = Sent()
    for _ in range(2):  # five at once and no more, twice: a ceiling
        attempts = each.burst(8)
        for attempt in attempts[:5]:
            each.gate.accepted(attempt, each.now)
        for attempt in attempts[5:]:
            each.gate.rate_limited(attempt, RateLimited("429", hint_s=2.0), each.now)
        each.end(attempts, 3)
    attempts = each.burst(4)
    for attempt in attempts:
        each.gate.overloaded(attempt, Overloaded("529", hint_s=5.0), each.now)
    each.end(attempts, 7)
    assert len(each.burst(100)) == 4  # as after any pause without a known pace, though five may be in flight
