"""Unannounced limits of all kinds: throughput near the ideal, with few rejections."""

from statistics import median

import pytest
from shapes import HARD, SCENARIOS, SHARED, Bucket, Hint, Scenario, play, play_lifted, play_naive

pytestmark = [pytest.mark.long, pytest.mark.first]

SEEDS = range(5)


EVERY = {**SCENARIOS, **SHARED, **HARD}


@pytest.mark.parametrize("name", EVERY)
def test_a_limit_of_any_shape_is_kept_near_and_never_slower_than_eight_in_flight_with_back_off(
    name: str,
) -> None:
    scenario = EVERY[name]
    played = [play(scenario, seed) for seed in SEEDS]
    naive = [play_naive(scenario, seed) for seed in SEEDS]
    took_s = median(each.took_s for each in played)
    rejected = median(each.rejected for each in played)
    assert took_s <= median(each.took_s for each in naive) * 1.02  # two of the shapes are a matter of luck
    assert rejected <= max(0.16 * scenario.count, median(each.rejected for each in naive))
    if name not in HARD:
        assert took_s <= 1.3 * scenario.ideal_s
        assert rejected <= 0.28 * scenario.count
        assert max(each.took_s for each in played) <= 1.75 * scenario.ideal_s


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_unshared_limit_costs_few_rejections(name: str) -> None:
    scenario = SCENARIOS[name]
    played = [play(scenario, seed) for seed in SEEDS]
    assert median(each.rejected for each in played) <= 0.11 * scenario.count
    assert max(each.rejected for each in played) <= 0.2 * scenario.count


@pytest.mark.parametrize("hint", [None, 1.0])
@pytest.mark.parametrize(
    ("away_s", "in_flight"), [(60, 64), (60, 256), (180, 64), (180, 256), (900, 64), (900, 256)]
)
def test_a_limit_that_was_lifted_for_a_while_is_found_again_as_it_was_found_first(
    away_s: float, in_flight: int, hint: Hint
) -> None:
    five = Scenario(shape=lambda _: Bucket(5, 5), count=0, ideal_s=0, hint=hint, latency_s=6, spread=0.5)
    played = [
        play_lifted(five, away_s, in_flight=in_flight, seed=seed) for seed in range(1 if away_s > 180 else 2)
    ]
    assert max(each.after for each in played) <= 2 * max(each.before for each in played) + 16, played
    assert all(each.send_rate == pytest.approx(5, rel=0.3) for each in played), played
