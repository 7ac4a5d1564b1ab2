"""Rule 17: the send rate after single rejections."""

from itertools import pairwise

import pytest

from astra_async.asking.throttle.rates import SendRate


class Sends:
    """Client that sends as fast as the send rate allows, or at given times."""

    def __init__(self) -> None:
        self.pace = SendRate()
        self.now = 0.0
        self.number = 0

    def send(self, at: float | None = None) -> int:
        self.now = max(self.now, self.pace.ready_at(self.now)) if at is None else at
        self.number += 1
        self.pace.record_send(self.number, self.now)
        return self.number

    def clean(self, count: int) -> None:
        for _ in range(count):
            while (at := self.pace.ready_at(self.now)) > self.now:
                self.now = at
            self.send(self.now)

    def try_more(self) -> float:
        """Go on until a higher rate is tried."""
        while not self.pace.trying:
            self.clean(1)
        assert self.pace.per_second is not None
        return self.pace.per_second

    def signal(self, *, hint_s: float | None = None, pause_s: float = 1.0) -> bool:
        self.pace.record_rejection(self.send(self.now), self.now, hint_s, first=True)
        self.now += pause_s
        return self.pace.learn(self.now)


def learned(sends: int = 10, apart_s: float = 0.1) -> Sends:
    """Return a send rate learned from some requests. The pause ends one second after the last request."""
    each = Sends()
    for number in range(sends):
        each.send(number * apart_s)
    assert each.signal()
    return each


def test_the_first_rejection_sets_the_rate_accepted_until_the_reopening() -> None:
    assert learned().pace.per_second == pytest.approx(10 / 1.9)


def test_idle_time_before_does_not_change_the_measured_rate() -> None:
    each = Sends()
    each.send(0.0)
    for number in range(10):
        each.send(50 + number * 0.1)
    each.signal()
    assert each.pace.per_second == pytest.approx(10 / 1.9)


def test_a_short_hint_is_taken_as_the_length_of_the_window() -> None:
    each = Sends()
    for number in range(5):
        each.send(10 + number * 0.01)
    each.signal(hint_s=1.0)
    assert each.pace.per_second == pytest.approx(5.0)


def test_without_accepted_requests_no_rate_is_learned() -> None:
    assert not Sends().signal()


def test_sends_are_spaced_by_the_rate_and_the_first_one_gets_no_credit() -> None:
    each = learned()
    at = [each.now]
    for _ in range(5):
        each.send()
        at.append(each.now)
    rate = each.pace.per_second
    assert rate is not None
    assert [later - earlier for earlier, later in pairwise(at[1:])] == pytest.approx([1 / (0.984 * rate)] * 4)


def test_a_rate_that_holds_is_raised_by_a_fifth_and_then_twice_as_much() -> None:
    each = learned()
    first = each.pace.per_second
    assert first is not None
    each.clean(120)
    assert each.pace.per_second is not None
    assert each.pace.per_second > 1.2 * first * 1.2


def test_a_failed_increase_is_reverted_and_a_rate_between_is_tried_next() -> None:
    each = learned()
    first = each.pace.per_second
    assert first is not None
    failed = each.try_more()
    each.signal()
    assert each.pace.per_second == pytest.approx(first)
    assert first < each.try_more() < failed


def test_a_rejection_at_a_rate_that_held_lowers_it_by_three_percent() -> None:
    each = learned()
    first = each.pace.per_second
    assert first is not None
    each.clean(12)
    each.signal()
    assert each.pace.per_second == pytest.approx(0.97 * first, rel=0.01)
    each.clean(1)
    each.signal(pause_s=1.0)
    assert each.pace.per_second == pytest.approx(0.97 * 0.97 * first, rel=0.01)


def test_pools_that_share_a_limit_do_not_starve() -> None:
    each = learned()
    first = each.pace.per_second
    assert first is not None
    for _ in range(40):  # every third send is rejected, at any rate
        each.clean(2)
        each.signal()
    assert each.pace.per_second is not None
    assert each.pace.per_second > first / 4


def test_an_unused_rate_is_not_raised_above_twice_the_used_rate() -> None:
    each = learned()
    first = each.pace.per_second
    assert first is not None
    for _ in range(1000):  # two at once, ten seconds apart: the second one waits for the rate each time
        each.now += 10
        each.clean(2)
    assert each.pace.per_second == first
    for _ in range(1000):  # at 20 a second: twice in every hundred milliseconds
        each.now += 0.1
        each.clean(2)
    assert first < each.pace.per_second <= 2 * 20


def test_a_limit_far_below_the_rate_is_found_within_a_minute() -> None:
    each = learned(sends=10, apart_s=0.01)
    each.clean(2000)
    assert each.pace.per_second is not None
    assert each.pace.per_second > 80
    begun_at = at = each.now
    level, signals = 5.0, 0
    while each.now < begun_at + 60:  # from here on five a second, and five at once after each pause
        each.now = max(each.now, each.pace.ready_at(each.now))
        level, at = min(5.0, level + 5 * (each.now - at)), each.now
        if level >= 1:
            level -= 1
            each.send(each.now)
        else:
            signals += 1
            each.signal()
    assert signals < 40
    assert each.pace.per_second == pytest.approx(5, rel=0.35)
