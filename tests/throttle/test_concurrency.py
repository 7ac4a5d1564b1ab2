"""Rules 6 and 7: growth while it is used, one cut for a burst."""

import pytest

from astra_async.asking.throttle.concurrency import Concurrency


def test_the_limit_begins_at_eight_and_never_exceeds_the_maximum() -> None:
    assert Concurrency(256, 0.0).limit == 8
    assert Concurrency(3, 0.0).limit == 3
    limit = Concurrency(20, 0.0)
    for _ in range(100):
        limit.grow(int(limit.limit))
    assert limit.limit == 20


def test_a_clean_round_doubles_the_limit_until_the_first_throttle() -> None:
    limit = Concurrency(256, 0.0)
    for expected in (16, 32, 64):
        for _ in range(int(limit.limit)):
            limit.grow(int(limit.limit))
        assert limit.limit == expected


@pytest.mark.parametrize(("before", "after"), [(10.0, 11.0), (100.0, 105.0)])
def test_after_the_first_throttle_a_round_adds_one_or_five_percent(before: float, after: float) -> None:
    limit = Concurrency(256, 0.0)
    limit.limit = before / 0.7
    limit.cut(0.7)
    for _ in range(int(before)):
        limit.grow(int(limit.limit))
    assert limit.limit == pytest.approx(after, rel=0.01)


def test_the_limit_grows_only_while_most_of_it_is_in_use() -> None:
    limit = Concurrency(256, 0.0)
    for _ in range(50):
        limit.grow(6)
    assert limit.limit == 8
    limit.grow(7)
    assert limit.limit == 9


def test_a_cut_never_goes_below_one() -> None:
    limit = Concurrency(256, 0.0)
    for _ in range(30):
        limit.cut(0.7)
    assert limit.limit == 1


def test_three_overloads_in_ten_seconds_cut_once() -> None:
    limit = Concurrency(256, 0.0)
    assert [limit.record_overload(now) for now in (0.0, 4.0, 9.0)] == [False, False, True]
    assert limit.limit == pytest.approx(8 * 0.85)
    assert not limit.record_overload(9.5)


def test_overloads_far_apart_cut_nothing() -> None:
    limit = Concurrency(256, 0.0)
    assert not any(limit.record_overload(now) for now in (0.0, 6.0, 12.0, 18.0, 24.0))


def test_transport_errors_cut_only_above_a_fifth_of_the_last_fifty() -> None:
    limit = Concurrency(256, 0.0)
    for i in range(500):
        assert not limit.record_outcome(failed=i % 5 == 0)  # exactly 20 %
    outcomes = [limit.record_outcome(failed=True) for _ in range(3)]
    assert outcomes.count(True) == 1


def test_early_errors_do_not_cut_before_there_are_more_than_ten() -> None:
    limit = Concurrency(256, 0.0)
    assert [limit.record_outcome(failed=True) for _ in range(11)] == [False] * 10 + [True]
