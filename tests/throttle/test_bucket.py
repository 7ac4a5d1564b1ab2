"""Rules 2, 4 and 5: even spacing, settlement, and the effect of the provider's headers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astra_async.asking.throttle.rates import AIM, CAPACITY_S, Bucket, is_per_minute
from astra_async.types import RateWindow

PACE = 5 * AIM


def send_times(bucket: Bucket, amounts: list[float], late_s: float = 0.0) -> list[float]:
    now, times = 0.0, []
    for amount in amounts:
        ready = bucket.ready_at(now)
        now = ready if ready == now else ready + late_s
        bucket.reserve(amount, now)
        times.append(now)
    return times


@given(
    per_minute=st.floats(10, 100_000),
    late_s=st.floats(0, 0.005),
    idle_s=st.floats(0, 100),
    window_s=st.floats(1, 70),
)
def test_no_window_of_a_second_or_longer_holds_more_than_the_limit(
    per_minute: float, late_s: float, idle_s: float, window_s: float
) -> None:
    bucket = Bucket("requests", per_minute, -idle_s)
    times = send_times(bucket, [1.0] * 200, late_s)
    for i, begin in enumerate(times):
        inside = sum(1 for at in times[i:] if at < begin + window_s)
        assert inside < per_minute / 60 * window_s + 1


def test_late_timers_do_not_reduce_the_throughput() -> None:
    on_time = send_times(Bucket("requests", 6000, 0.0), [1.0] * 1000)
    late = send_times(Bucket("requests", 6000, 0.0), [1.0] * 1000, late_s=0.004)
    assert late[-1] - on_time[-1] < 0.01


def test_a_request_above_the_limit_is_sent_at_once_and_delays_later_requests() -> None:
    times = send_times(Bucket("tokens", 6000, 0.0), [12_000.0, 1.0])
    assert times[0] == 0.0
    assert times[1] == pytest.approx(120 / AIM)


def test_unused_tokens_are_returned_at_settlement() -> None:
    bucket = Bucket("tokens", 60_000, 0.0)
    reserved = bucket.reserve(5000.0, 0.0)
    assert bucket.ready_at(0.0) == pytest.approx(5 / AIM)
    bucket.settle(reserved, 1000.0, 0.0)
    assert bucket.ready_at(0.0) == pytest.approx(1 / AIM)


def test_excess_tokens_lower_the_level_at_settlement() -> None:
    bucket = Bucket("output_tokens", 60_000, 0.0)
    reserved = bucket.reserve(1000.0, 0.0)
    bucket.settle(reserved, 3000.0, 0.0)
    assert bucket.ready_at(0.0) == pytest.approx(3 / AIM)


def test_settlements_accumulate_at_most_ten_seconds_of_the_limit() -> None:
    bucket = Bucket("tokens", 60_000, 0.0)
    made = [bucket.reserve(20_000.0, 0.0) for _ in range(10)]
    for reserved in made:
        bucket.settle(reserved, 0.0, 300.0)
    assert bucket.state(300.0).level == pytest.approx(CAPACITY_S * 1000 * AIM)


def test_the_margin_of_a_first_guess_is_not_sent_later_in_a_burst() -> None:
    bucket = Bucket("tokens", 60_000, 0.0)
    reserved = bucket.reserve(5000.0, 0.0, guessed=True)
    bucket.settle(reserved, 1000.0, 0.0)
    assert bucket.ready_at(0.0) == pytest.approx(5 / AIM)


def test_headers_lower_the_level_by_what_was_sent_after_their_request() -> None:
    bucket = Bucket("tokens", 60_000, 0.0)
    reserved = bucket.reserve(100.0, 0.0)
    bucket.settle(bucket.reserve(9000.0, 0.0), 0.0, 0.0)  # the level is high: these were not used
    bucket.announce(RateWindow(limit=60_000, remaining=500), 0.0, reserved, 1.0)
    # 500 left when the request came, 1,000 refilled since, 9,000 reserved since
    assert bucket.state(1.0).level == pytest.approx(500 + 1000 - 9000)


def test_a_window_shorter_than_the_latency_does_not_delay_the_pool() -> None:
    # 5 a second, answers after 2 s: the headers say 4 left, and 10 were sent since.
    bucket = Bucket("requests", 300, 0.0)
    made = [(at / PACE, bucket.reserve(1.0, at / PACE)) for at in range(11)]
    now = made[-1][0]
    bucket.announce(RateWindow(limit=300, remaining=4, reset_s=0.2), made[0][0], made[0][1], now)
    assert bucket.ready_at(now) == pytest.approx(now + 1 / PACE, rel=1e-3)


def test_headers_never_raise_the_level() -> None:
    bucket = Bucket("requests", 60, 0.0)
    reserved = bucket.reserve(1.0, 0.0)
    before = bucket.state(0.0)
    bucket.announce(RateWindow(limit=60, remaining=50), 0.0, reserved, 0.0)
    assert bucket.state(0.0) == before


def test_a_new_bucket_counts_requests_of_the_last_ten_seconds() -> None:
    assert Bucket("requests", 60, 2.0, sent=[1.5, 2.0]).ready_at(2.0) == pytest.approx(
        2.0 + (2 - 0.5 * AIM) / AIM, rel=0.01
    )
    assert Bucket("requests", 60, 2.0, sent=[2.0] * 100).ready_at(2.0) == pytest.approx(2.0 + CAPACITY_S)


def test_the_limit_follows_the_headers_but_never_above_the_settings() -> None:
    announced = Bucket("requests", 600, 0.0)
    announced.announce(RateWindow(limit=1200), 0.0, None, 0.0)
    assert announced.per_minute == 1200
    configured = Bucket("requests", 600, 0.0, configured=True)
    configured.announce(RateWindow(limit=1200), 0.0, None, 0.0)
    assert configured.per_minute == 600
    configured.announce(RateWindow(limit=300), 0.0, None, 0.0)
    assert configured.per_minute == 300


@pytest.mark.parametrize(
    "window",
    [
        RateWindow(limit=-1, remaining=-1),
        RateWindow(limit=0, remaining=0),
        RateWindow(limit=float("inf"), remaining=1),
        RateWindow(limit=float("nan"), remaining=1),
        RateWindow(limit=1000, remaining=0, reset_s=86_400),
        RateWindow(limit=1000, remaining=0, reset_s=3_600),
    ],
)
def test_negative_hourly_and_daily_windows_change_nothing(window: RateWindow) -> None:
    assert not is_per_minute(window)
    bucket = Bucket("requests", 600, 0.0)
    bucket.announce(RateWindow(limit=window.limit, remaining=-5, reset_s=window.reset_s), 0.0, None, 0.0)
    assert bucket.per_minute == 600
    assert bucket.ready_at(0.0) == 0.0
