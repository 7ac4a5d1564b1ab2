"""Limits that nobody announces, in whatever shape: near the ideal, and few rejections."""

from statistics import median

import pytest
from shapes import HARD, SCENARIOS, Bucket, Hint, Scenario, play, play_lifted

SEEDS = range(5)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_pool_learns_a_limit_of_any_shape(name: str) -> None:
    scenario = SCENARIOS[name]
    played = [play(scenario, seed) for seed in SEEDS]
    assert median(each.took_s for each in played) <= 1.3 * scenario.ideal_s
    assert median(each.rejected for each in played) <= 0.1 * scenario.count
    assert max(each.took_s for each in played) <= 1.75 * scenario.ideal_s
    assert max(each.rejected for each in played) <= 0.2 * scenario.count


@pytest.mark.parametrize("name", HARD)
def test_what_cannot_be_known_is_found_by_trying_and_costs_a_bounded_part(name: str) -> None:
    scenario = HARD[name]
    played = [play(scenario, seed) for seed in SEEDS]
    assert median(each.took_s for each in played) <= 6 * scenario.ideal_s
    assert median(each.rejected for each in played) <= 0.2 * scenario.count


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
    assert max(each.after for each in played) <= 2 * max(each.before for each in played) + 10, played
    assert all(each.send_rate == pytest.approx(5, rel=0.3) for each in played), played
