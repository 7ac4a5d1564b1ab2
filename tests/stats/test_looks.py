"""Errors and intervals over all looks, in brief; short cuts of the long simulation change nothing.

The simulation is scripts/bench/looks.py; `scripts/long` has 20,000 runs of each cell.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from simulated_looks import looks

from astra_async.report.deciding import too_few_problems
from astra_async.stats.intervals import difference_interval
from astra_async.stats.sequential import Series, decide, schedule_of

FLIPS, RUNS = 1999, 200
SCHEDULE = schedule_of(32, flips=FLIPS)
NOISE = 3 * (0.05 * 0.95 / RUNS) ** 0.5  # three standard errors: there are some fifty cells


@pytest.mark.long
@pytest.mark.first(kind=lambda kind, **_: kind, n=lambda n, **_: n)
@pytest.mark.parametrize("kind", looks.KINDS)
@pytest.mark.parametrize(("n", "models"), [(6, 2), (12, 3), (20, 2), (65, 2), (20, 8)])
def test_equal_models_are_rarely_called_different(kind: str, n: int, models: int) -> None:
    wrong = sum(
        looks.claims(looks.drawn(kind, (some, models, n), rng), schedule).sum()
        for rng, some, schedule in looks.chunks(RUNS, FLIPS, [n, models])
    )
    assert wrong <= (looks.MOST_WRONG + NOISE) * RUNS


@pytest.mark.long
@pytest.mark.first(kind=lambda kind, **_: kind)
@pytest.mark.parametrize("kind", looks.KINDS)
def test_models_that_join_add_an_error_rate_for_each_group_as_the_report_says(kind: str) -> None:
    wrong = sum(
        looks.claims_with_joins(looks.drawn(kind, (some, 6, 20), rng), schedule).sum()
        for rng, some, schedule in looks.chunks(RUNS // 2, FLIPS, [20, 6])
    )
    assert wrong <= (5 * looks.MOST_WRONG + NOISE) * RUNS / 2


@pytest.mark.long
@pytest.mark.first(kind=lambda kind, **_: kind, n=lambda n, **_: n)
@pytest.mark.parametrize("n", [6, 20, 65])
@pytest.mark.parametrize("kind", looks.KINDS)
def test_repeated_intervals_hold_whyever_one_stops(kind: str, n: int) -> None:
    lost = sum(
        looks.stops(looks.DRAWS[kind](some, n, rng), 0.0, schedule, rng)
        for rng, some, schedule in looks.chunks(RUNS // 2, FLIPS, [n, 2])
    )
    assert (1 - lost / (RUNS // 2) >= looks.LEAST_HELD - NOISE).all()


@pytest.mark.long
@pytest.mark.first(kind=lambda kind, **_: kind, n=lambda n, **_: n)
@pytest.mark.parametrize("kind", looks.KINDS)
@pytest.mark.parametrize(("models", "n", "gain"), [(2, 20, 0.1), (3, 12, 0.2), (4, 14, 0.3)])
def test_only_who_cannot_cross_is_left_out(kind: str, models: int, n: int, gain: float) -> None:
    scores = looks.drawn(kind, (12, models, n), np.random.default_rng([models, n]), gain)
    expected = []
    for run in scores:
        found = decide(SCHEDULE, [looks.series(a, b, SCHEDULE) for a, b in combinations(run, 2)])
        expected.append(any(each[-1].state in ("better", "worse") for each in found))
    assert looks.claims(scores, SCHEDULE).tolist() == expected


@pytest.mark.long
@pytest.mark.first
@pytest.mark.parametrize("models", [3, 2, 5])
def test_with_too_few_problems_not_even_the_clearest_difference_is_called_one(models: int) -> None:
    for n in range(1, 15):
        falls = np.linspace(0.1, 0.2, n)  # the same sign everywhere, and no ties; noise keeps pairs open
        scores = [np.tile(1 - number * falls, (len(SCHEDULE.rounds), 1)) for number in range(models)]
        pairs = [Series(a=a, b=b, within=[9.0] * len(SCHEDULE.rounds)) for a, b in combinations(scores, 2)]
        decided = any(looks[-1].state == "better" for looks in decide(SCHEDULE, pairs))
        warned = too_few_problems(SCHEDULE, {f"p{i}": {} for i in range(n)}, len(pairs))
        assert bool(warned) != decided, (n, warned)


def test_a_warning_of_too_few_problems_counts_families_and_names_what_would_do() -> None:
    problems = {f"p{i}": {"family": "one" if i < 5 else ""} for i in range(9)}
    assert too_few_problems(SCHEDULE, problems, 1) == (
        "warning: with 5 families of problems no look can find a difference between models;"
        " use at least 6 families of problems"
    )
    assert not too_few_problems(SCHEDULE, {f"p{i}": {} for i in range(6)}, 1)
    assert too_few_problems(SCHEDULE, {f"p{i}": {} for i in range(65)}, 400).endswith(
        "compare fewer models at once"
    )


@pytest.mark.long
@pytest.mark.first(n=lambda n, **_: n)
@pytest.mark.parametrize("draw", looks.DRAWS.values(), ids=looks.DRAWS)
@pytest.mark.parametrize("n", [6, 20])
def test_an_interval_misses_where_its_bounds_do(draw: Any, n: int) -> None:
    own = np.diff(SCHEDULE.spent, prepend=0.0)
    pairs = looks.means(draw(12, n, np.random.default_rng(n)), SCHEDULE)
    for a, b in pairs:
        for truth in (0.0, 0.1, -0.3):
            found = [
                difference_interval(x, y, None, 1 - level) for x, y, level in zip(a, b, own, strict=True)
            ]
            expected = [each is not None and not each[0] <= truth <= each[1] for each in found]
            assert looks.misses(a, b, truth, SCHEDULE) == expected


def test_shares_of_tests_have_their_chance() -> None:
    chances = np.array([[0.0, 0.2, 0.9, 1.0]] * 2_000)
    found = looks.passed(7, chances, np.random.default_rng(1))
    assert found.mean(axis=(0, 2)) == pytest.approx([0, 0.2, 0.9, 1], abs=0.003)
    assert found.var(axis=(0, 2)) == pytest.approx([0, 0.16 / 7, 0.09 / 7, 0], abs=0.001)
