"""Every interval that a report prints holds its target as often as it says, on scores as they really are.

Nominal is 95 %. Asserted: at least 92 %, less two standard errors of the simulation itself. Above 95 % is
no fault where scores are discrete and at an end, or where a rare loss is reckoned with that these scores have
not. The harsh scores are not the formula's own: problems that always fail, single rare failures, families.
COVERAGE_REPETITIONS (scripts/long) asks for more.
"""

from __future__ import annotations

import os
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest
import scipy

from astra_async.stats.association import correlation
from astra_async.stats.differences import ratio_of_means
from astra_async.stats.intervals import (
    difference_interval,
    equivalence,
    median_interval,
    run_only_interval,
    total_interval,
)
from made_scores import KINDS, Kind, Problems, made, other_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Interval = tuple[float, float] | None

pytestmark = [pytest.mark.long, pytest.mark.first]

REPETITIONS = int(os.environ.get("COVERAGE_REPETITIONS", "300"))
LEAST = 0.92 - 2 * (0.95 * 0.05 / REPETITIONS) ** 0.5
SIZES = list(product((10, 20, 65), (4, 8, 32)))
MANY = 200_000

HARSH = list(product((10, 20, 65), (0.01, 0.02, 0.03, 0.05, 0.1)))

sizes = pytest.mark.parametrize(("n", "k"), SIZES)
kinds = pytest.mark.parametrize("kind", KINDS)


@cache
def population(kind: Kind) -> Problems:
    return made(kind, (MANY,), np.random.default_rng(1))


@cache
def median_sd(kind: Kind, k: int) -> float:
    problems = made(kind, (40_000,), np.random.default_rng(2))
    return float(np.median(problems.sampled(k, np.random.default_rng(3)).std(axis=-1)))


def drawn(kind: Kind, n: int, k: int) -> Iterator[tuple[Problems, np.ndarray]]:
    """Problems and the scores of their samples, again and again."""
    rng = np.random.default_rng([n, k, KINDS.index(kind)])
    problems = made(kind, (REPETITIONS, n), rng)
    scores = problems.sampled(k, rng)
    for i in range(REPETITIONS):
        yield Problems(full=problems.full[i], each=problems.each[i], tests=problems.tests[i]), scores[i]


def share(hits: Iterable[tuple[Interval, float]]) -> float:
    """How often the interval holds the target (up to rounding); one that is not printed counts as held."""
    held = [i is None or i[0] - 1e-9 <= target <= i[1] + 1e-9 for i, target in hits]
    return sum(held) / len(held)


@kinds
@sizes
def test_the_mean_on_new_problems(kind: Kind, n: int, k: int) -> None:
    score, passed = float(population(kind).scores.mean()), float(population(kind).passes.mean())
    runs = list(drawn(kind, n, k))
    assert share((total_interval(s.mean(axis=1)), score) for _, s in runs) >= LEAST
    assert share((total_interval((s == 1).mean(axis=1)), passed) for _, s in runs) >= LEAST


@kinds
@pytest.mark.parametrize("n", [2, 3, 6])
def test_the_mean_of_a_skill_with_few_problems(kind: Kind, n: int) -> None:
    score = float(population(kind).scores.mean())
    assert share((total_interval(s.mean(axis=1)), score) for _, s in drawn(kind, n, 8)) >= LEAST


def new_samples(scores: np.ndarray) -> Interval:
    n, k = scores.shape
    return run_only_interval(scores.mean(axis=1), scores.ravel(), np.repeat(np.arange(n), k))


@kinds
@pytest.mark.parametrize(("n", "k"), [(10, 4), (20, 32), (65, 8)])
def test_the_mean_on_these_problems(kind: Kind, n: int, k: int) -> None:
    runs = list(drawn(kind, n, k))[: max(100, REPETITIONS // 3)]
    assert share((new_samples(s), float(p.scores.mean())) for p, s in runs) >= LEAST
    assert share((new_samples((s == 1) * 1.0), float(p.passes.mean())) for p, s in runs) >= LEAST


def harsh(bad: float, n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """A share of the problems always fails; of the others' samples one in 300 does. Mean scores."""
    fails = rng.binomial(k, 1 / 300, (REPETITIONS, n))
    return np.where(rng.random((REPETITIONS, n)) < bad, 0.0, 1 - fails / k)


@pytest.mark.parametrize(("n", "bad"), HARSH)
def test_the_mean_near_an_end(n: int, bad: float) -> None:
    """It was 0.44 at n = 20 with 2 % bad, 0.46 at n = 65 with 1 %, 0.66 at n = 10 with 5 %."""
    means, target = harsh(bad, n, 32, np.random.default_rng([n, 11])), (1 - bad) * (1 - 1 / 300)
    assert share((total_interval(row), target) for row in means) >= LEAST
    assert share((total_interval(1 - row), 1 - target) for row in means) >= LEAST


@pytest.mark.parametrize(("n", "bad"), HARSH)
def test_a_difference_of_rare_losses(n: int, bad: float) -> None:
    """One of two models always fails on a few problems; "equivalent within 2 points" was said in 0.26 of
    cases with a difference of 5 points. Neither may be said more often than the level and three points."""
    rng = np.random.default_rng([n, 12])
    pairs = list(zip(harsh(0, n, 32, rng), harsh(bad, n, 32, rng), strict=True))
    target = bad * (1 - 1 / 300)
    assert share((difference_interval(a, b), target) for a, b in pairs) >= LEAST
    for margin in (0.02, 0.045, 0.09):
        if target >= margin:
            said = np.mean([(equivalence(a, b, margin) or 0) < 0.05 for a, b in pairs])
            assert said <= 0.08 + 2 * (0.05 * 0.95 / REPETITIONS) ** 0.5


@pytest.mark.parametrize("rate", [1 / 3000, 1 / 300, 1 / 30, 0.1])
@pytest.mark.parametrize("always_fails", [0.0, 0.5])
@pytest.mark.parametrize("n", [10, 20, 65])
def test_the_mean_on_these_problems_with_rare_failures(n: int, rate: float, always_fails: float) -> None:
    """It was 0.85 at n = 20 where half the problems always fail."""
    rng, bad = np.random.default_rng([n, 13]), round(n * always_fails)
    scores = (rng.random((REPETITIONS, n, 32)) >= rate) * 1.0
    scores[:, :bad] = 0.0
    target = (n - bad) * (1 - rate) / n
    assert share((new_samples(row), target) for row in scores) >= LEAST


@pytest.mark.parametrize("size", [2, 4, 13])
def test_everything_by_families_of_equal_problems(size: int) -> None:
    """Equal models; a family's problems rise and fall together. The plain interval covered 0.41 to 0.81."""
    rng = np.random.default_rng([size, 14])
    families = [f"f{i // size}" for i in range(65)]
    count = len(set(families))
    both = rng.beta(2.0, 1.0, (2, REPETITIONS, count))[:, :, [i // size for i in range(65)]]
    assert share((total_interval(row, families), 2 / 3) for row in both[0]) >= LEAST
    pairs = list(zip(*both, strict=True))
    assert share((difference_interval(a, b, families), 0.0) for a, b in pairs) >= LEAST
    assert share((median_interval(row, families), 0.5**0.5) for row in both[0]) >= LEAST


@kinds
@sizes
def test_the_median_sd_on_new_problems(kind: Kind, n: int, k: int) -> None:
    """The target is the median SD at this very k: it is another one at another k."""
    target = median_sd(kind, k)
    assert share((median_interval(s.std(axis=1)), target) for _, s in drawn(kind, n, k)) >= LEAST


@pytest.mark.parametrize("how", ["weaker", "now_and_then", "alike"])
@kinds
@pytest.mark.parametrize(("n", "k"), [(10, 8), (20, 32), (65, 4)])
def test_a_difference_of_two_models(kind: Kind, how: str, n: int, k: int) -> None:
    everything = population(kind)
    worse = other_model(everything, how, seed=4)  # type: ignore[arg-type]
    targets = (
        float(everything.scores.mean() - worse.scores.mean()),
        float(everything.passes.mean() - worse.passes.mean()),
    )
    rng = np.random.default_rng([n, k, 5])
    here = made(kind, (REPETITIONS, n), rng)
    a, b = here.sampled(k, rng), other_model(here, how, seed=6).sampled(k, rng)  # type: ignore[arg-type]
    for ones, others, target in ((a, b, targets[0]), (a == 1, b == 1, targets[1])):
        pairs = zip(ones.mean(axis=2), others.mean(axis=2), strict=True)
        assert share((difference_interval(x, y), target) for x, y in pairs) >= LEAST


@kinds
@sizes
def test_the_mean_with_families_of_two(kind: Kind, n: int, k: int) -> None:
    score = float(population(kind).scores.mean())
    rng = np.random.default_rng([n, k, 7])
    half = made(kind, (REPETITIONS, n - n // 2), rng)
    twins = [np.concatenate([values, values], axis=1)[:, :n] for values in (half.full, half.each, half.tests)]
    scores = Problems(full=twins[0], each=twins[1], tests=twins[2]).sampled(k, rng).mean(axis=2)
    families = [str(i % (n - n // 2)) for i in range(n)]
    assert share((total_interval(row, list(map(str, families))), score) for row in scores) >= LEAST


@pytest.mark.parametrize(("a", "b"), [(2.0, 1.0), (0.7, 0.3)])
@pytest.mark.parametrize(
    "sizes", [[12, 6, 4] + [1] * 43, [8, 4] + [1] * 18, [10] + [1] * 10, [24, 20, 14] + [1] * 7]
)
def test_the_mean_with_families_of_unlike_sizes(sizes: list[int], a: float, b: float) -> None:
    """Members are alike, families from a beta distribution; their plain number gives 79 to 94 % here."""
    rng = np.random.default_rng([*sizes, 9])
    families = [family for family, size in enumerate(sizes) for _ in range(size)]
    means = rng.beta(a, b, (REPETITIONS, len(sizes)))[:, families]
    assert share((total_interval(row, list(map(str, families))), a / (a + b)) for row in means) >= LEAST


@pytest.mark.parametrize(("often", "rate"), [(0.1, 0.15), (1.0, 0.05), (0.3, 0.9)])
@sizes
def test_a_rate_of_failures_that_cluster_in_problems(often: float, rate: float, n: int, k: int) -> None:
    """`often` is the share of problems that have such failures at all."""
    rng = np.random.default_rng([n, k, 8])
    chances = np.where(rng.random((REPETITIONS, n)) < often, rate, 0.002)
    shares = rng.binomial(k, chances) / k
    target = often * rate + (1 - often) * 0.002
    assert share((total_interval(row), target) for row in shares) >= LEAST


@pytest.mark.parametrize("depends", [0.0, 1.5])
@kinds
@sizes
def test_a_correlation_of_length_and_score(kind: Kind, depends: float, n: int, k: int) -> None:
    def lengths(problems: Problems, rng: np.random.Generator) -> np.ndarray:
        noise = rng.normal(0, (0.36 + 0.09 / k) ** 0.5, problems.full.shape)
        return np.asarray(np.exp(7.5 + noise - depends * problems.scores))

    rng = np.random.default_rng([n, k, 9])
    many = made(kind, (40_000,), rng)
    ranks = scipy.stats.rankdata(lengths(many, rng)), scipy.stats.rankdata(many.sampled(k, rng).mean(axis=1))
    target = float(np.corrcoef(*ranks)[0, 1])
    few = made(kind, (REPETITIONS, n), rng)
    pairs = zip(lengths(few, rng), few.sampled(k, rng).mean(axis=2), strict=True)
    found = (correlation(x, y, orders=1) for x, y in pairs)
    assert share((each.interval if each else None, target) for each in found) >= LEAST


@pytest.mark.parametrize("n", [6, 12, 30, 65])
@pytest.mark.parametrize(("spread", "other"), [(0.3, 0.0), (1.0, 0.0), (1.3, 0.0), (1.3, 1.3)])
def test_the_interval_of_a_ratio_of_costs(spread: float, other: float, n: int) -> None:
    """Fieller's interval covers 78 to 86 % here if the costs of only one model have the log SD 1.3."""
    rng = np.random.default_rng([n, 10])
    sizes = rng.lognormal(0, 0.5, (REPETITIONS, n))
    a, b = (sizes * rng.lognormal(-sd * sd / 2, sd, sizes.shape) for sd in (spread, other))
    found = [ratio_of_means(*pair) for pair in zip(a, b, strict=True)]
    assert sum(each is None for each in found) <= 0.1 * REPETITIONS
    assert share((each[1] if each else None, 1.0) for each in found) >= LEAST
