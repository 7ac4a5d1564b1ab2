"""Looks after whole rounds: errors of equal models, repeated intervals, power, mean k and bias, simulated.

    scripts/bench/run looks [--runs 20000] [--part errors|joins|intervals|power|limits] [--flips 9999]

- errors: shares of runs of equal models in which any pair is called different; above .055 the exit code is 1.
- joins: the same if four of six models join one by one. Each of the five groups of pairs has its own .05.
- intervals: how often the repeated interval holds the true difference at the look where a run stops: decided
  (the rule stops it), for a budget (at any look, whatever came out), killed and resumed (at a look that a
  kill made and the resume makes again, and at the next one), or by a person who looks on and stops where the
  interval is most wrong: at all looks at once. Below .94 the exit code is 1.
- power: two models on 65 problems; how often a difference is found with one look after 32 samples and with
  `--until decided`, the mean k, the share of samples asked, and what stopping adds to differences, on average
  over all runs.
- limits: where the sign flips promise nothing: rare large losses against small even gains.

The decisions are those of `astra_async.stats.sequential.states_of`; it is asked only where a look may cross
at all, which `suspects` finds with the same flips (tests/stats/test_looks.py holds both to the same claims).
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from astra_async.stats.intervals import bootstrap_units as units_of
from astra_async.stats.intervals import probability_below
from astra_async.stats.sequential import FLIPS, Schedule, Series, schedule_of, signs, states_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
    Numbers = NDArray[np.int64]
    Couples = Sequence[tuple[int, int]]
    Draw = Callable[[int, int, np.random.Generator], Floats]  # runs, problems: scores of two models

KINDS = {  # of scores: tests of a problem, SD of two models' differences between problems
    "no spread between": (7, 0.0),
    "little between": (7, 0.05),
    "typical between": (7, 0.15),
    "large between": (7, 0.3),
    "no spread within": (0, 0.15),
    "0/1": (1, 0.15),
    "0/1, none between": (1, 0.0),
    "skewed": (7, None),
    "skewed 0/1": (1, None),
}
PROBLEMS, MODELS = (6, 12, 20, 65), (2, 3, 8)
LOSSES = 0.06  # of problems, for each model of a skewed pair
SAMPLES = 32
GAINS = (
    *(("little", gain) for gain in (0.0, 0.03, 0.06)),
    *(("typical", gain) for gain in (0.0, 0.03, 0.06, 0.1)),
    *(("large", gain) for gain in (0.0, 0.06, 0.1, 0.15)),
)
MOST_WRONG, LEAST_HELD = 0.055, 0.94
CHUNK = 250  # runs drawn together, with flips of their own
FEW = 1_000  # flips that most pairs need to be seen as no suspects
NEAR = 1.5  # standard errors from the truth that no repeated interval is shorter than
ROUNDING, ROUNDING_32 = 1e-9, 1e-4  # as the product grants it; of sums of 32 bits, generously
CACHED = 200_000  # sums of flips at a time for each look: what a core keeps at hand


def drawn(kind: str, shape: tuple[int, int, int], rng: np.random.Generator, gain: float = 0.0) -> Floats:
    """Scores, runs x models x problems x 32 samples; the first model is better by `gain` before clipping."""
    tests, between = KINDS[kind]
    runs, _, n = shape
    if between is None:
        chances = np.where(rng.random(shape) < LOSSES, 0.1, 0.99)
    else:
        base = np.clip(rng.beta(2, 1, (runs, 1, n)), 0.02, 0.98)
        chances = base + rng.normal(0, between / 2**0.5, shape)
    chances[:, 0] += gain
    chances = np.clip(chances, 0, 1)
    return passed(tests, chances, rng) if tests else np.repeat(chances[..., None], SAMPLES, axis=-1)


def passed(tests: int, chances: Floats, rng: np.random.Generator) -> Floats:
    """Shares of so many tests, each passed with its problem's chance; faster than rng.binomial."""
    luck = rng.random((*chances.shape, SAMPLES), dtype=np.float32)
    counts, below = np.zeros(luck.shape, dtype=np.int8), np.zeros(chances.shape)
    for count in range(tests):
        below += math.comb(tests, count) * chances**count * (1 - chances) ** (tests - count)
        counts += luck >= below[..., None].astype(np.float32)
    return np.asarray(counts / tests, dtype=np.float64)


def unlike(runs: int, n: int, rng: np.random.Generator) -> Floats:
    """Two models of one mean: one has rare large losses, the other none."""
    losing = np.where(rng.random((runs, n)) < LOSSES, 0.1, 0.99)
    even = np.full((runs, n), LOSSES * 0.1 + (1 - LOSSES) * 0.99)
    return passed(7, np.stack([losing, even], axis=1), rng)


def series(a: Floats, b: Floats, schedule: Schedule) -> Series:
    """Two models after each round that both have completed."""
    rounds = [k for k in schedule.rounds if k <= a.shape[1]]
    return Series(
        a=np.array([a[:, :k].mean(axis=1) for k in rounds]),
        b=np.array([b[:, :k].mean(axis=1) for k in rounds]),
        within=[sum(float(x[:, :k].var(axis=1, ddof=1).mean()) for x in (a, b)) for k in rounds],
    )


def means(scores: Floats, schedule: Schedule) -> Floats:
    """Runs x models x looks x problems."""
    return np.stack([scores[..., :k].mean(axis=-1) for k in schedule.rounds], axis=2)


def suspects(differences: Floats, schedule: Schedule, pairs: int) -> Numbers:
    """The rows (looks x problems each) that may cross at a look, with 1 / `pairs` of alpha: all that do.

    What crosses is among those that may have crossed by then, itself and ties included.
    """
    flips = signs(schedule.flips, schedule.seed, differences.shape[-1]).T
    short = flips.astype(np.float32)  # quicker; what it may round counts for the suspect
    allowed = np.floor(np.array(schedule.spent) / pairs * flips.shape[1] + ROUNDING)
    found = np.arange(len(differences))
    for some, dust in ((short[:, :FEW], ROUNDING_32), (short, ROUNDING_32), (flips, -ROUNDING)):
        parts = [
            part[(_beyond(differences[part], some, dust) <= allowed).any(axis=-1)]
            for part in np.array_split(found, 1 + len(found) * some.shape[1] // CACHED)
        ]
        found = np.concatenate(parts)
    return found


def _beyond(rows: Floats, flips: NDArray[Any], dust: float) -> Numbers:
    """At each look so many flips are at least as far out as the observed signs."""
    least = np.abs(rows.sum(axis=-1, keepdims=True))
    sums = rows.astype(flips.dtype) @ flips
    np.abs(sums, out=sums)
    return np.asarray(np.count_nonzero(sums >= (least * (1 + dust) + dust).astype(flips.dtype), axis=-1))


def claims(scores: Floats, schedule: Schedule, couples: Couples = ()) -> Floats:
    """Whether any pair is called different, for each run: nothing is handed on before the first claim.

    `couples` are the pairs that are tested together, by default all.
    """
    looks = means(scores, schedule)
    couples = couples or list(itertools.combinations(range(scores.shape[1]), 2))
    part = replace(schedule, spent=tuple(each / len(couples) for each in schedule.spent))
    found = np.zeros(len(scores), dtype=bool)
    for a, b in couples:
        for run in suspects(looks[:, a] - looks[:, b], schedule, len(couples)):
            pair = series(scores[run, a], scores[run, b], schedule)
            found[run] |= states_of(part, [pair])[0][-1] in ("better", "worse")
    return found


def claims_with_joins(scores: Floats, schedule: Schedule) -> Floats:
    """The same if two models begin and each other model joins later, which tests its pairs in a new group."""
    groups = [[(0, 1)], *([(new, old) for old in range(new)] for new in range(2, scores.shape[1]))]
    found: Floats = np.any([claims(scores, schedule, group) for group in groups], axis=0)
    return found


def chunks(runs: int, flips: int, seed: list[int]) -> Iterator[tuple[np.random.Generator, int, Schedule]]:
    """The runs of a cell, so many at a time, with other flips for each part, as each real run has its own."""
    rng = np.random.default_rng(seed)
    for begun in range(0, runs, CHUNK):
        yield rng, min(CHUNK, runs - begun), schedule_of(SAMPLES, flips=flips, seed=seed[0] + begun)


def errors(runs: int, flips: int) -> bool:
    """Print how often equal models are called different; whether that is rare enough."""
    print("equal models called different")
    print(f"{'kind':18}   n " + "".join(f"{models:>3} models" for models in MODELS))
    worst = 0.0
    for (number, kind), n in itertools.product(enumerate(KINDS), PROBLEMS):
        cells = []
        for models in MODELS:
            wrong = sum(
                int(claims(drawn(kind, (some, models, n), rng), schedule).sum())
                for rng, some, schedule in chunks(runs, flips, [n, models, number])
            )
            cells.append(wrong / runs)
        worst = max(worst, *cells)
        print(f"{kind:18} {n:3} " + "".join(f"{each:10.4f}" for each in cells), flush=True)
    print(f"worst {worst:.4f}", flush=True)
    return worst <= MOST_WRONG


def joins(runs: int, flips: int) -> bool:
    """Print how often equal models are called different if four of six join one by one."""
    print("equal models called different: two begin, four join")
    worst = 0.0
    for (number, kind), n in itertools.product(enumerate(KINDS), PROBLEMS):
        wrong = sum(
            int(claims_with_joins(drawn(kind, (some, 6, n), rng), schedule).sum())
            for rng, some, schedule in chunks(runs, flips, [n, 6, number])
        )
        worst = max(worst, wrong / runs)
        print(f"{kind:18} {n:3} {wrong / runs:10.4f}", flush=True)
    print(f"worst {worst:.4f}", flush=True)
    return worst <= 5 * MOST_WRONG


def misses(a: Floats, b: Floats, truth: float, schedule: Schedule) -> list[bool]:
    """Whether the repeated interval is without the truth, look by look (a, b: looks x problems)."""
    own = np.diff(schedule.spent, prepend=0.0)
    return [_is_off(x - y, truth, 1 - level) for x, y, level in zip(a, b, own, strict=True)]


def _is_off(values: Floats, truth: float, level: float) -> bool:
    """Whether `difference_interval` is without the truth: its bounds are quantiles, so one chance will do."""
    mean = values.mean()
    if abs(mean - truth) <= NEAR * values.std() / len(values) ** 0.5:
        return False
    units = units_of(values)
    if units is None:
        return False
    if mean > truth:
        return probability_below(truth, units.with_unobserved(-1.0)) < (1 - level) / 2
    return probability_below(truth, units.with_unobserved(1.0)) > (1 + level) / 2


def stops(scores: Floats, truth: float, schedule: Schedule, rng: np.random.Generator) -> Floats:
    """How many repeated intervals miss: decided, for a budget, killed and resumed, a person."""
    looks, lost = means(scores, schedule), np.zeros(4, dtype=int)
    for run, (a, b) in enumerate(looks):
        off, at = misses(a, b, truth, schedule), int(rng.integers(len(schedule.rounds)))
        if any(off):
            decided = len(states_of(schedule, [series(scores[run, 0], scores[run, 1], schedule)])[0]) - 1
            lost += (off[decided], off[at], any(off[at : at + 2]), True)
    return lost


def intervals(runs: int, flips: int) -> bool:
    """Print how often repeated intervals hold the truth; whether that is often enough."""
    print("repeated intervals hold the true difference, by the reason to stop")
    print(f"{'':26}   n   decided    budget    killed    person")
    least = 1.0
    for (name, draw), n in itertools.product(DRAWS.items(), PROBLEMS):
        truth = _difference(draw) if "+" in name else 0.0
        lost = np.zeros(4, dtype=int)
        for rng, some, schedule in chunks(runs, flips, [n, 2, 77]):
            lost += stops(draw(some, n, rng), truth, schedule, rng)
        held = 1 - lost / runs
        least = min(least, *held)
        print(f"{name:26} {n:3} " + "".join(f"{each:10.4f}" for each in held), flush=True)
    print(f"least {least:.4f}", flush=True)
    return least >= LEAST_HELD


def two(kind: str, gain: float) -> Draw:
    """Draws two models of a kind."""
    return lambda runs, n, rng: drawn(kind, (runs, 2, n), rng, gain)


DRAWS: dict[str, Draw] = {
    **{kind: two(kind, 0.0) for kind in KINDS},
    **{f"{kind}, +10": two(kind, 0.1) for kind in ("little between", "large between", "0/1")},
    "rare losses against none": unlike,
}


def _difference(draw: Draw) -> float:
    """The true difference, from a million problems."""
    many = [draw(50, 1_000, np.random.default_rng(each))[..., :4].mean(axis=(0, 2, 3)) for each in range(20)]
    true = np.mean(many, axis=0)
    return float(true[0] - true[1])


def power(runs: int, flips: int) -> bool:
    """Print what looks cost in power and save in samples, with a twentieth of the runs."""
    print("spread   difference   one look  with looks  mean k  asked  added to differences")
    runs = max(1, runs // 20)
    for name, gain in GAINS:
        draw, once, looks = two(f"{name} between", gain), 0, []
        true = _difference(draw)
        for rng, some, schedule in chunks(runs, flips, [65, 2, 7]):
            last = replace(schedule, rounds=(SAMPLES,), spent=(schedule.alpha,))
            for first, second in draw(some, 65, rng):
                once += states_of(last, [series(first, second, last)])[0] == ["better"]
                pair = series(first, second, schedule)
                states = states_of(schedule, [pair])[0]
                at = len(states) - 1
                looks.append((states[at] == "better", schedule.rounds[at], (pair.a[at] - pair.b[at]).mean()))
        found, k, difference = map(float, np.mean(looks, axis=0))
        bias = 100 * (difference - true)
        shares = f"{once / runs:.3f}       {found:.3f}    {k:5.1f}   {k / SAMPLES:.2f}"
        print(f"{name:8} {100 * true:6.1f}       {shares}    {bias:+.1f} points", flush=True)
    return True


def limits(runs: int, flips: int) -> bool:
    """Print what the sign flips do not promise."""
    print("rare large losses against small even gains, called different")
    for n in PROBLEMS:
        parts = chunks(runs, flips, [n, 2, 99])
        wrong = sum(int(claims(unlike(some, n, rng), schedule).sum()) for rng, some, schedule in parts)
        print(f"{n:3} problems {wrong / runs:.4f}", flush=True)
    return True


PARTS = {"errors": errors, "joins": joins, "intervals": intervals, "power": power, "limits": limits}


def main() -> None:
    """Print the tables asked for; 1 where an error is too frequent or an interval holds too rarely."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--flips", type=int, default=FLIPS)
    parser.add_argument("--part", choices=PARTS, action="append")
    given = parser.parse_args()
    good = True
    for part in given.part or PARTS:
        began = time.process_time()
        good &= PARTS[part](given.runs, given.flips)
        print(f"({given.runs:,} runs, {(time.process_time() - began) / 60:.0f} min of CPU)\n", flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
