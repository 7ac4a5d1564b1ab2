"""Rule 17: the pace that rejections teach."""

import random

import pytest

from astra_async.asking.throttle.sendrate import SendRate


class Sender:
    """Sends as early as a rate allows and keeps the time."""

    def __init__(self) -> None:
        self.rate = SendRate()
        self.now = 0.0
        self.number = 0
        self.announced = False

    def send(self, count: int = 1, gap_s: float = 0.0) -> None:
        for _ in range(count):
            self.now = max(self.now + gap_s, self.rate.ready_at(self.now + gap_s))
            self.rate.sent(self.number, self.now)
            self.number += 1

    def reject(self, hint_s: float | None = 1.0, pause_s: float = 1.0) -> str:
        """The latest send is rejected; the pool pauses."""
        self.rate.rejected(self.number - 1)
        self.rate.signal(hint_s, self.now)
        self.now += pause_s
        return self.rate.reopened(self.now, announced=self.announced)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.rate.ready_at(self.now)


def taught(accepted: int, hint_s: float | None = 1.0, pause_s: float = 1.0) -> Sender:
    """So many accepted at once, then a rejection."""
    sender = Sender()
    sender.send(accepted + 1)
    sender.reject(hint_s, pause_s)
    return sender


def proven(per_second: int) -> Sender:
    """A rate that was let go once and taken up again."""
    sender = taught(per_second)
    sender.wait(10.0)
    assert sender.rate.per_second is None
    sender.send(3)
    sender.reject()
    assert sender.rate.per_second == pytest.approx(per_second)
    return sender


def test_the_first_signal_teaches_what_was_accepted_until_the_reopening() -> None:
    assert taught(5).rate.per_second == pytest.approx(5.0)
    a_minute = Sender()
    a_minute.send(301, gap_s=1 / 30)
    a_minute.reject(hint_s=50.0, pause_s=50.0)
    assert a_minute.rate.per_second == pytest.approx(5.0, rel=0.01)


def test_an_idle_time_before_does_not_blur_the_measure() -> None:
    sender = Sender()
    sender.send(4)
    sender.wait(30.0)
    sender.send(6)
    sender.reject()
    assert sender.rate.per_second == pytest.approx(5.0)


def test_one_accepted_request_teaches_no_rate() -> None:
    sender = Sender()
    sender.send(2)
    assert sender.reject() == "noise"
    assert sender.rate.per_second is None


def test_nothing_but_rejections_teach_nothing() -> None:
    sender = Sender()
    for _ in range(2):
        sender.send()
        sender.rate.rejected(sender.number - 1)
    sender.send()
    assert sender.reject() == "nothing"


def test_sends_are_spaced_by_the_rate() -> None:
    sender = taught(5)
    begun_at = sender.now
    sender.send(11)
    assert sender.now - begun_at == pytest.approx(10 / 5 / 0.985, rel=0.01)


@pytest.mark.parametrize(("seconds", "sends"), [(10.0, 0), (0.0, 60)])
def test_the_first_rate_is_let_go_after_ten_clean_seconds_or_fifty_clean_sends(
    seconds: float, sends: int
) -> None:
    sender = taught(100)
    sender.send(sends)
    sender.wait(seconds)
    assert sender.rate.per_second is None


def test_a_rate_that_was_let_go_is_taken_up_again_when_a_rejection_answers() -> None:
    sender = proven(5)
    sender.wait(19.0)
    assert sender.rate.per_second == pytest.approx(5.0)
    sender.wait(1.5)
    assert sender.rate.per_second == pytest.approx(5.25)


def test_ten_clean_seconds_raise_the_rate_by_five_percent_and_the_next_ten_by_ten() -> None:
    sender = proven(10)
    seen = []
    for _ in range(4):
        sender.wait(20.0)
        seen.append(sender.rate.per_second)
    assert seen == pytest.approx([10.5, 11.55, 13.86, 19.404])


def test_a_raise_that_fails_is_taken_back_and_the_next_one_waits_twice_as_long() -> None:
    sender = proven(10)
    sender.wait(20.0)
    assert sender.rate.per_second == pytest.approx(10.5)
    sender.send(10)
    sender.reject()
    assert sender.rate.per_second == pytest.approx(10.0)
    sender.wait(39.0)
    assert sender.rate.per_second == pytest.approx(10.0)
    sender.wait(1.5)
    assert sender.rate.per_second == pytest.approx(10.5)


def test_a_further_signal_lowers_a_proven_rate_by_seven_percent() -> None:
    sender = proven(10)
    sender.send(60)
    sender.reject()
    assert sender.rate.per_second == pytest.approx(9.3)


def test_two_signals_within_twenty_sends_lower_the_rate_to_what_was_accepted() -> None:
    sender = taught(30)
    assert sender.rate.per_second == pytest.approx(30)
    sender.send(13)
    sender.reject()
    sender.send(13)
    sender.reject()
    assert sender.rate.per_second == pytest.approx(12, rel=0.05)


def test_a_stray_rejection_slows_nothing_down_for_longer_than_ten_seconds() -> None:
    sender = Sender()
    sender.send(10, gap_s=0.5)
    sender.reject(hint_s=0.2, pause_s=0.2)
    assert sender.rate.per_second is not None
    sender.wait(10.0)
    assert sender.rate.per_second is None


def test_announced_limits_are_doubted_after_two_signals_within_twenty_sends() -> None:
    sender = Sender()
    sender.announced = True
    sender.send(6)
    assert sender.reject() == "noise"
    sender.send(6)
    assert sender.reject() == "pace"
    assert sender.rate.per_second == pytest.approx(5)


def test_strays_that_come_at_every_rate_are_not_heeded_for_a_minute() -> None:
    sender, rng = Sender(), random.Random(3)
    sender.send(8)
    sender.reject()
    for _ in range(60):
        sender.send(rng.randint(3, 12))
        sender.reject()
    assert sender.rate.per_second is None
    begun_at = sender.now
    sender.send(100)
    assert sender.now == begun_at


def test_a_limit_far_below_the_first_measure_is_no_stray() -> None:
    sender = Sender()
    sender.send(41)
    sender.reject()  # a bucket of 40 was full, its rate is 5
    level, last, rejections = 0.0, sender.now - 1, 0
    for _ in range(300):
        sender.send()
        level, last = min(40.0, level + 5 * (sender.now - last)), sender.now
        if level < 1:
            sender.reject()
            rejections += 1
        else:
            level -= 1
    assert rejections < 15
