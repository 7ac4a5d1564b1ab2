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
            name=f"m{i} (xml)",
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


@pytest.mark.parametrize(("models", "skills"), [(2, 1), (10, 1), (2, 28)])
def test_of_equal_models_the_luckiest_is_rarely_separable_from_any(models: int, skills: int) -> None:
    """Adjusted within each skill, 35 % of tables with 28 skills and two equal models claimed that."""
    rng, claims = np.random.default_rng(models), 0
    for _ in range(REPETITIONS):
        shares = rng.beta(2, 1, (skills, len(PROBLEMS)))
        drawn = [rng.binomial(32, np.tile(row, (models, 1))) / 32 for row in shares]
        rows = winners([skill_of(each) for each in drawn], "main").by_name()
        named = [f"{row['winners']}, {row['not_separable'] or ''}".strip(", ").split(", ") for row in rows]
        claims += any(len(each) < models for each in named)
    assert claims <= (0.05 + 2 * (0.05 * 0.95 / REPETITIONS) ** 0.5) * REPETITIONS


def test_a_model_that_is_far_better_is_separable_from_all() -> None:
    rng = np.random.default_rng(1)
    means = np.vstack([rng.uniform(0.8, 1, 24), rng.uniform(0.1, 0.5, (9, 24))])
    (row,) = winners([skill_of(means)], "main").by_name()
    assert (row["winners"], row["not_separable"]) == ("m0", "")
