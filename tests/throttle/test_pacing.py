"""Rules 8 and 9: pauses and slow start."""

import random

import pytest

from astra_async.asking.throttle.concurrency import Pause, Reopening
from astra_async.asking.throttle.retry import backoff_s


def test_a_pause_lasts_the_hint_and_a_small_jitter() -> None:
    pause = Pause(random.Random(1))
    assert pause.extend(pause.length_s(10.0), "429", 100.0)
    assert 110.0 <= pause.until <= 110.2
    assert pause.expected_until == 110.0


def test_a_later_rejection_extends_a_pause_and_a_shorter_hint_does_not_end_it() -> None:
    pause = Pause(random.Random(1))
    pause.extend(10.0, "first", 0.0)
    until = pause.until
    assert not pause.extend(2.0, "second", 1.0)
    assert (pause.until, pause.reason) == (until, "first")
    assert not pause.extend(30.0, "third", 2.0)
    assert pause.until == pytest.approx(32.0, abs=1)
    assert pause.reason == "third"


def test_without_a_hint_the_pause_grows_by_half_up_to_a_minute_and_is_never_much_shorter() -> None:
    rng = random.Random(1)
    for bursts, most in ((1, 1.5), (3, 3.375), (6, 11.39), (50, 60.0)):
        lengths = []
        for _ in range(300):
            pause = Pause(rng)
            for _ in range(bursts):
                pause.bursts += 1
            lengths.append(pause.length_s(None))
        assert 0.49 * most < min(lengths) < max(lengths) <= 1.001 * most


@pytest.mark.parametrize("hint_s", [0.0, -5.0])
def test_repeated_hints_to_retry_at_once_are_ignored_after_a_while(hint_s: float) -> None:
    pause = Pause(random.Random(1))
    lengths = []
    for _ in range(20):
        pause.bursts += 1
        lengths.append(pause.length_s(hint_s))
    assert lengths[:2] == [0.0] * 2
    assert max(lengths[12:]) > 5
    pause.bursts = 0
    pause.bursts += 1
    assert pause.length_s(hint_s) == 0.0


@pytest.mark.parametrize("hint_s", [float("nan"), float("inf")])
def test_a_hint_that_is_not_a_finite_number_is_ignored(hint_s: float) -> None:
    pause = Pause(random.Random(1))
    pause.bursts += 1
    assert 0 <= pause.length_s(hint_s) <= 2


def test_back_off_is_full_jitter() -> None:
    rng = random.Random(1)
    delays = [backoff_s(3, rng) for _ in range(1000)]
    assert min(delays) < 0.1
    assert 7.9 < max(delays) <= 8.0
    assert max(backoff_s(40, rng) for _ in range(1000)) <= 60


def sends(opening: Reopening, until: float) -> list[float]:
    now = 0.0
    times: list[float] = []
    while now <= until:
        ready_at = opening.ready_at(now)
        if ready_at > now:
            now = ready_at
            continue
        opening.record_send(now)
        times.append(now)
    return times


def test_a_pool_reopens_with_four_sends_and_doubles_each_second() -> None:
    opening = Reopening(-100.0)
    opening.restart(0.0)
    times = sends(opening, 4.5)
    assert [sum(1 for at in times if second <= at < second + 1) for second in range(4)] == [4, 8, 16, 32]


def test_the_slow_start_ends_after_ten_seconds() -> None:
    opening = Reopening(-100.0)
    opening.restart(0.0)
    assert opening.ready_at(10.0) == 10.0
    for _ in range(100_000):
        opening.record_send(10.0)
    assert opening.ready_at(10.1) == 10.1


def test_a_new_pool_sends_four_requests_and_one_a_second_until_a_response() -> None:
    opening = Reopening(0.0)
    assert sends(opening, 3.5) == [0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0]
    opening.record_response()
    assert opening.ready_at(3.6) == 3.6
