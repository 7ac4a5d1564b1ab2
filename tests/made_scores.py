"""Realistic scores: problems always or never solved, whole or partial answers, 1 to 13 tests.

A problem has a chance that an answer is wholly right, and for the others a chance for each test to pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Kind = Literal["usual", "hard", "ceiling", "whole"]
KINDS: tuple[Kind, ...] = ("usual", "hard", "ceiling", "whole")
_TESTS = (1, 2, 3, 4, 4, 5, 5, 5, 6, 6, 7, 7, 8, 8, 9, 10, 12, 13)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problems:
    """Arrays of equal shape; `full` and `each` are the two probabilities."""

    full: Floats
    each: Floats
    tests: NDArray[np.int64]

    @property
    def scores(self) -> Floats:
        """Return the true mean score of each problem."""
        return self.full + (1 - self.full) * self.each

    @property
    def passes(self) -> Floats:
        """Return the true pass@1 of each problem."""
        return self.full + (1 - self.full) * self.each**self.tests

    def sampled(self, k: int, rng: np.random.Generator) -> Floats:
        """Draw scores of k samples of each problem, along a new last axis."""
        shape = (*self.full.shape, k)
        tests = np.broadcast_to(self.tests[..., None], shape)
        partial = rng.binomial(tests, np.broadcast_to(self.each[..., None], shape))
        passed = np.where(rng.random(shape) < self.full[..., None], tests, partial)
        return passed / tests


def made(kind: Kind, shape: tuple[int, ...], rng: np.random.Generator) -> Problems:
    """Problems of one kind: true mean scores of about 0.81, 0.36, 0.96 and 0.57."""
    tests = rng.choice(np.array(_TESTS), size=shape)
    place = rng.random(shape)
    match kind:
        case "usual":
            full = np.where(place < 0.35, 1.0, np.where(place < 0.43, 0.0, rng.beta(1.0, 0.8, shape)))
            each = np.where((place >= 0.35) & (place < 0.40), 0.0, rng.beta(1.5, 1.5, shape))
        case "hard":
            full = np.where(place < 0.4, 0.0, np.where(place < 0.5, 1.0, rng.beta(0.6, 2.0, shape)))
            each = np.where(place < 0.2, 0.0, rng.beta(0.8, 2.5, shape))
        case "ceiling":
            some = np.where(place > 0.95, rng.random(shape), rng.beta(5.0, 1.0, shape))
            full = np.where(place < 0.6, 1.0, some)
            each = rng.beta(2.0, 2.0, shape)
        case "whole":
            tests = np.ones(shape, dtype=np.int64)
            full = rng.beta(0.4, 0.3, shape)
            each = np.zeros(shape)
    return Problems(full=full, each=each, tests=tests)


def other_model(of: Problems, how: Literal["weaker", "now_and_then", "alike"], seed: int) -> Problems:
    """Return another model: weaker on all problems, much weaker on one in ten, or equal."""
    rng = np.random.default_rng(seed)
    shape = of.full.shape
    if how == "now_and_then":
        scale = np.where(rng.random(shape) < 0.1, 0.6, 1.0)
        return Problems(full=of.full * scale, each=of.each * scale, tests=of.tests)
    shift = rng.normal(-0.7 if how == "weaker" else 0.0, 1.0, shape)
    lost = (of.full == 1) & (rng.random(shape) < (0.15 if how == "weaker" else 0.0))
    full = np.where(lost, rng.beta(2.0, 1.0, shape), _shifted(of.full, shift))
    return Problems(full=full, each=_shifted(of.each, shift), tests=of.tests)


def _shifted(chances: Floats, shift: Floats) -> Floats:
    """Shift probabilities on the logit scale; 0 and 1 do not change."""
    with np.errstate(divide="ignore"):
        moved: Floats = 1 / (1 + (1 / chances - 1) * np.exp(-shift))
    return moved
