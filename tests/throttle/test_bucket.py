"""Rules 2, 4 and 5: even spending, settlement, and what the provider's headers change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astra_async.asking.throttle.bucket import AIM, CAPACITY_S, Bucket, announced_bucket
from astra_async.types import RateWindow

PACE = 5 * AIM


def send_times(bucket: Bucket, amounts: list[float], late_s: float = 0.0) -> list[float]:
    now, times = 0.0, []
    for amount in amounts:
        ready = bucket.ready_at(amount, now)
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


def test_timers_that_come_late_cost_no_throughput() -> None:
    on_time = send_times(Bucket("requests", 6000, 0.0), [1.0] * 1000)
    late = send_times(Bucket("requests", 6000, 0.0), [1.0] * 1000, late_s=0.004)
    assert late[-1] - on_time[-1] < 0.01


def test_a_request_above_the_whole_limit_goes_at_once_and_is_paid_for_after() -> None:
    times = send_times(Bucket("tokens", 6000, 0.0), [12_000.0, 1.0])
    assert times[0] == 0.0
    assert times[1] == pytest.approx(120 / AIM)


def test_unused_tokens_go_back_at_settlement() -> None:
    bucket = Bucket("tokens", 60_000, 0.0)
    reserved = bucket.reserve(5000.0, 0.0)
    assert bucket.ready_at(1.0, 0.0) == pytest.approx(5 / AIM)
    bucket.settle(reserved, 1000.0, 0.0)
    assert bucket.ready_at(1.0, 0.0) == pytest.approx(1 / AIM)


def test_more_tokens_than_reserved_are_paid_for_at_settlement() -> None:
    bucket = Bucket("output_tokens", 60_000, 0.0)
    reserved = bucket.reserve(1000.0, 0.0)
    bucket.settle(reserved, 3000.0, 0.0)
    assert bucket.ready_at(1.0, 0.0) == pytest.approx(3 / AIM)


def test_settlements_pile_up_to_ten_seconds_worth_at_most() -> None:
    bucket = Bucket("tokens", 60_000, 0.0)
    made = [bucket.reserve(20_000.0, 0.0) for _ in range(10)]
    for reserved in made:
        bucket.settle(reserved, 0.0, 300.0)
    assert bucket.state(300.0).level == pytest.approx(CAPACITY_S * 1000 * AIM)


def test_the_margin_of_a_first_guess_is_not_sent_later_in_a_burst() -> None:
    bucket = Bucket("tokens", 60_000, 0.0)
    reserved = bucket.reserve(5000.0, 0.0, guessed=True)
    bucket.settle(reserved, 1000.0, 0.0)
    assert bucket.ready_at(1.0, 0.0) == pytest.approx(5 / AIM)


def test_a_cancelled_reservation_leaves_no_trace() -> None:
    bucket = Bucket("requests", 60, 0.0)
    bucket.announce(RateWindow(limit=60, remaining=10), 0.0, None, 0.0)
    before = bucket.state(0.0)
    reserved = bucket.reserve(1.0, 0.0)
    bucket.cancel(reserved, 0.0)
    assert bucket.state(0.0) == before


def test_headers_hold_requests_back_that_the_provider_has_no_room_for() -> None:
    bucket = Bucket("tokens", 60_000, 0.0)
    reserved = bucket.reserve(100.0, 0.0)
    bucket.announce(RateWindow(limit=60_000, remaining=59_900), 0.0, reserved, 0.5)
    bucket.announce(RateWindow(limit=60_000, remaining=500), 0.0, reserved, 10.0)
    # 500 left when the request came, 10 s of refill since
    assert bucket.state(10.0).remaining == pytest.approx(10_500)
    assert bucket.ready_at(10_000, 10.0) == 10.0
    assert bucket.ready_at(12_500, 10.0) == pytest.approx(12.0)


def test_reservations_sent_after_the_request_began_are_taken_off_what_headers_leave() -> None:
    bucket = Bucket("tokens", 60_000, 0.0)
    reserved = bucket.reserve(100.0, 0.0)
    bucket.reserve(3000.0, 1.0)
    bucket.announce(RateWindow(limit=60_000, remaining=500), 0.0, reserved, 1.0)
    assert bucket.state(1.0).remaining == pytest.approx(500 + 1000 - 3000)


def test_a_window_shorter_than_the_latency_does_not_hold_the_pool_up() -> None:
    # 5 a second, answers after 2 s: the headers say 4 left, and 10 were sent since.
    bucket = Bucket("requests", 300, 0.0)
    made = [(at / PACE, bucket.reserve(1.0, at / PACE)) for at in range(11)]
    now = made[-1][0]
    bucket.announce(RateWindow(limit=300, remaining=4, reset_s=0.2), made[0][0], made[0][1], now)
    assert bucket.ready_at(1.0, now) == pytest.approx(now + 1 / PACE, rel=1e-3)


def test_the_room_is_never_believed_to_be_larger_than_the_headers_ever_said() -> None:
    bucket = Bucket("tokens", 60_000, 0.0)
    reserved = bucket.reserve(100.0, 0.0)
    bucket.announce(RateWindow(limit=60_000, remaining=900), 0.0, reserved, 0.1)
    assert bucket.state(50.0).remaining == pytest.approx(1000)  # a second's worth, not a minute's


def test_headers_of_a_newer_request_raise_the_room_and_never_our_own_spending() -> None:
    bucket = Bucket("requests", 60, 0.0)
    bucket.announce(RateWindow(limit=60, remaining=2), 1.0, None, 1.0)
    spent_evenly = bucket.state(3.0).level
    bucket.announce(RateWindow(limit=60, remaining=50), 3.0, None, 3.0)
    assert bucket.state(3.0).remaining == 50
    assert bucket.state(3.0).level == spent_evenly


def test_headers_of_an_older_request_only_make_us_more_careful() -> None:
    bucket = Bucket("tokens", 60_000, 0.0)
    older, newer = bucket.reserve(0.0, 0.0), bucket.reserve(0.0, 1.0)
    bucket.announce(RateWindow(limit=60_000, remaining=100), 1.0, newer, 1.0)
    bucket.announce(RateWindow(limit=60_000, remaining=50_000), 0.0, older, 1.0)
    assert bucket.state(1.0).remaining == pytest.approx(100)


def test_the_limit_follows_the_headers_but_never_above_the_settings() -> None:
    announced = announced_bucket("requests", RateWindow(limit=600), 0.0)
    assert announced is not None
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
        RateWindow(remaining=3),
    ],
)
def test_negative_hourly_and_daily_windows_make_no_bucket_and_change_none(window: RateWindow) -> None:
    assert announced_bucket("requests", window, 0.0) is None
    bucket = Bucket("requests", 600, 0.0)
    bucket.announce(RateWindow(limit=window.limit, remaining=-5, reset_s=window.reset_s), 0.0, None, 0.0)
    assert bucket.per_minute == 600
    assert bucket.ready_at(1.0, 0.0) == 0.0
