"""Rules 8, 9 and 17: pauses, openings, and the pace that rejections teach."""

import random

import pytest

from astra_async.throttle.pacing import Opening, Pause, SendRate, backoff_s


def test_a_pause_lasts_the_hint_and_a_small_jitter() -> None:
    pause = Pause(random.Random(1))
    assert pause.extend(pause.length_s(10.0), "429", 100.0)
    assert 110.0 <= pause.until <= 110.2
    assert pause.told_until == 110.0


def test_a_later_signal_extends_a_pause_and_a_shorter_one_does_not_end_it() -> None:
    pause = Pause(random.Random(1))
    pause.extend(10.0, "first", 0.0)
    until = pause.until
    assert not pause.extend(2.0, "second", 1.0)
    assert (pause.until, pause.reason) == (until, "first")
    assert not pause.extend(30.0, "third", 2.0)
    assert pause.until == pytest.approx(32.0, abs=1)
    assert pause.reason == "third"


def test_without_a_hint_the_pause_is_full_jitter_that_doubles_up_to_a_minute() -> None:
    rng = random.Random(1)
    for episodes, most in ((1, 2.0), (3, 8.0), (6, 60.0), (50, 60.0)):
        lengths = []
        for _ in range(300):
            pause = Pause(rng)
            for _ in range(episodes):
                pause.begin_episode()
            lengths.append(pause.length_s(None))
        assert 0.9 * most < max(lengths) <= most
        assert sum(lengths) / len(lengths) == pytest.approx(most / 2, rel=0.15)


@pytest.mark.parametrize("hint_s", [0.0, -5.0])
def test_a_server_that_says_retry_at_once_for_ever_is_not_believed_for_ever(hint_s: float) -> None:
    pause = Pause(random.Random(1))
    lengths = []
    for _ in range(20):
        pause.begin_episode()
        lengths.append(pause.length_s(hint_s))
    assert lengths[:8] == [0.0] * 8
    assert max(lengths[12:]) > 5
    pause.answered()
    pause.begin_episode()
    assert pause.length_s(hint_s) == 0.0


@pytest.mark.parametrize("hint_s", [float("nan"), float("inf")])
def test_a_hint_that_is_no_number_is_no_hint(hint_s: float) -> None:
    pause = Pause(random.Random(1))
    pause.begin_episode()
    assert 0 <= pause.length_s(hint_s) <= 2


def test_back_off_is_full_jitter() -> None:
    rng = random.Random(1)
    delays = [backoff_s(3, rng) for _ in range(1000)]
    assert min(delays) < 0.1
    assert 7.9 < max(delays) <= 8.0
    assert max(backoff_s(40, rng) for _ in range(1000)) <= 60


def sends(opening: Opening, until: float) -> list[float]:
    now = 0.0
    times: list[float] = []
    while now <= until:
        ready_at = opening.ready_at(now)
        if ready_at > now:
            now = ready_at
            continue
        opening.sent()
        times.append(now)
    return times


def test_a_pool_reopens_with_four_sends_and_doubles_each_second() -> None:
    opening = Opening(-100.0)
    opening.reopen(0.0)
    times = sends(opening, 4.5)
    assert [sum(1 for at in times if second <= at < second + 1) for second in range(4)] == [4, 8, 16, 32]


def test_after_ten_seconds_the_opening_is_over() -> None:
    opening = Opening(-100.0)
    opening.reopen(0.0)
    assert opening.ready_at(10.0) == 10.0
    for _ in range(100_000):
        opening.sent()
    assert opening.ready_at(10.1) == 10.1


def test_a_new_pool_sends_four_and_one_a_second_until_the_provider_shows_a_sign_of_life() -> None:
    opening = Opening(0.0)
    assert sends(opening, 3.5) == [0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0]
    opening.alive()
    assert opening.ready_at(3.6) == 3.6


def learned(accepted: list[float], signal_at: float, hint_s: float | None, pause_s: float) -> SendRate:
    rate = SendRate()
    for number, at in enumerate(accepted):
        rate.sent(number, at)
    rate.sent(999, signal_at)
    rate.rejected(999)
    rate.signal(hint_s, signal_at)
    rate.reopened(signal_at + pause_s)
    return rate


def test_the_first_signal_teaches_what_was_accepted_until_the_reopening() -> None:
    rate = learned([0.0] * 5, 0.0, 1.0, 1.0)
    assert rate.per_second == pytest.approx(5.0)
    a_minute = learned([i / 30 for i in range(300)], 10.0, 50.0, 50.0)
    assert a_minute.per_second == pytest.approx(5.0, rel=0.01)


def test_an_idle_time_before_does_not_blur_the_measure() -> None:
    rate = learned([0.0] * 4 + [30.0] * 5, 30.0, 1.0, 1.0)
    assert rate.per_second == pytest.approx(5.0)


def test_rejections_at_the_very_start_teach_no_rate() -> None:
    assert learned([], 0.0, 30.0, 30.0).per_second is None
    assert learned([0.0], 0.0, 30.0, 30.0).per_second is None


def test_a_further_signal_lowers_the_rate_by_seven_percent() -> None:
    rate = learned([0.0] * 10, 0.0, 1.0, 1.0)
    for number in range(90):
        rate.sent(number + 10, 1.0 + number / 10)
    rate.signal(1.0, 11.5)
    rate.reopened(12.5)
    assert rate.per_second == pytest.approx(9.3)


def test_a_signal_soon_after_the_reopening_measures_again() -> None:
    rate = learned([0.0] * 30, 0.0, 1.0, 1.0)
    assert rate.per_second == pytest.approx(30)
    for number in range(12):
        rate.sent(100 + number, 1.0 + number / 30)
    rate.signal(1.0, 1.4)
    rate.reopened(2.4)
    assert rate.per_second == pytest.approx(12, rel=0.05)


def test_ten_clean_seconds_raise_the_rate_by_five_percent_and_the_next_ten_by_ten() -> None:
    rate = learned([0.0] * 10, 0.0, 1.0, 1.0)
    seen = []
    for now in (10.9, 11.0, 20.9, 21.0, 31.0):
        rate.ready_at(now)
        seen.append(rate.per_second)
    assert seen == pytest.approx([10.0, 10.5, 10.5, 11.55, 13.86])


def test_a_raise_that_fails_is_taken_back_and_the_next_one_waits_twice_as_long() -> None:
    rate = learned([0.0] * 10, 0.0, 1.0, 1.0)
    rate.ready_at(11.0)
    rate.signal(1.0, 12.0)
    rate.reopened(13.0)
    assert rate.per_second == pytest.approx(10.0)
    rate.ready_at(32.9)
    assert rate.per_second == pytest.approx(10.0)
    rate.ready_at(33.0)
    assert rate.per_second == pytest.approx(10.5)


def test_a_single_rejection_without_a_limit_behind_it_is_forgotten_within_two_minutes() -> None:
    rate = learned([i / 2 for i in range(10)], 5.0, 0.2, 0.2)
    first = rate.per_second
    assert first is not None
    for tenths in range(1200):
        rate.ready_at(5.2 + tenths / 10)
    assert (rate.per_second or 0) > 20 * first
