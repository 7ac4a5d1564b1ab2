"""Limits that nobody announces, in whatever shape: near the ideal, and few rejections."""

from statistics import median

import pytest
from shapes import HARD, SCENARIOS, play

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
