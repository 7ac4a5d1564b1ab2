"""A skill's winner is separable from others where it is better than they are, and not by being picked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from astra_async.report.by_skill import Skill, SkillScore, winners

if TYPE_CHECKING:
    from numpy.typing import NDArray

PROBLEMS = tuple(f"p{i}" for i in range(24))
REPETITIONS = 150


def skill_of(means: NDArray[np.float64]) -> Skill:
    """Entries as far as a table of winners looks at them, from one run."""
    entries: list[Any] = [
        SimpleNamespace(
            label=f"m{i}",
            format="xml",
            parts=(),
            means=row,
            problem_ids=PROBLEMS,
            places={problem: place for place, problem in enumerate(PROBLEMS)},
            families_of=lambda _: None,
        )
        for i, row in enumerate(means)
    ]
    scores = [
        SkillScore(entry=entry, mean=float(entry.means.mean()), passed=0.0, interval=None)
        for entry in entries
    ]
    scores.sort(key=lambda score: -score.mean)
    return Skill(kind="main", name="s", problems=PROBLEMS, scores=tuple(scores))


@pytest.mark.parametrize("models", [2, 10])
def test_of_equal_models_the_luckiest_is_rarely_separable_from_any(models: int) -> None:
    """Tests of the winner alone claimed that in 16 % of tables of ten equal models."""
    rng, claims = np.random.default_rng(models), 0
    for _ in range(REPETITIONS):
        drawn = rng.binomial(32, np.tile(rng.beta(2, 1, len(PROBLEMS)), (models, 1))) / 32
        (row,) = winners([skill_of(drawn)], "main").by_name()
        named = [*str(row["winners"]).split(", "), *filter(None, str(row["not_separable"]).split(", "))]
        claims += len(named) < models
    assert claims <= (0.05 + 2 * (0.05 * 0.95 / REPETITIONS) ** 0.5) * REPETITIONS


def test_a_model_that_is_far_better_is_separable_from_all() -> None:
    rng = np.random.default_rng(1)
    means = np.vstack([rng.uniform(0.8, 1, 24), rng.uniform(0.1, 0.5, (9, 24))])
    (row,) = winners([skill_of(means)], "main").by_name()
    assert (row["winners"], row["not_separable"]) == ("m0", "")
