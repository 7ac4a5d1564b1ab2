"""Looks after whole rounds: errors of equal models, repeated intervals, power, mean k and bias, simulated.

    scripts/bench/run looks [--runs 20000] [--part errors|power] [--flips 999]

- errors: shares of runs of equal models in which any pair is called different ("any"), and in which the
  repeated interval of the first pair is without the truth at any of the five looks ("interval"): whatever
  makes a run stop (a decision, the budget, a kill, a person) can choose no other look than one of these.
- power: two models on 65 problems; how often a difference is found with one look after 32 samples and with
  `--until decided`, the mean k, the share of samples asked, and what stopping adds to differences, on average
  over all runs.
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import replace

import numpy as np

from astra_async.stats.sequential import Schedule, Series, decide, schedule_of

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
KINDS = ("shares", "whole", "skewed", "no spread between", "no spread within")
CELLS = (*itertools.product((6, 12, 20, 65), (2,)), (20, 4), (65, 4), (20, 8))
LOSSES = 0.06  # of problems, for one model of a skewed pair
SPREADS = ((0.05, "little"), (0.15, "typical"), (0.3, "large"))


def drawn(
    kind: str, models: int, n: int, rng: np.random.Generator, *, gain: float = 0.0, between: float = 0.15
) -> Floats:
    """Scores of 32 samples, models x problems x samples; the first model is better by `gain`."""
    shape = (models, n)
    base = np.clip(rng.beta(2, 1, n), 0.02, 0.98)
    match kind:
        case "skewed":
            chances = np.where(rng.random(shape) < LOSSES, 0.1, 0.99)
        case "no spread between" | "whole":
            chances = np.tile(base, (models, 1))
        case _:
            chances = base + rng.normal(0, between / 2**0.5, shape)
    chances[0] += gain
    chances = np.clip(chances, 0, 1)
    if kind == "no spread within":
        return np.repeat(chances[..., None], 32, axis=2)
    tests = 1 if kind == "whole" else 7
    return rng.binomial(tests, chances[..., None], (*shape, 32)) / tests


def series(a: Floats, b: Floats, schedule: Schedule) -> Series:
    """Two models after each round."""
    return Series(
        a=np.array([a[:, :k].mean(axis=1) for k in schedule.rounds]),
        b=np.array([b[:, :k].mean(axis=1) for k in schedule.rounds]),
        within=[sum(float(x[:, :k].var(axis=1, ddof=1).mean()) for x in (a, b)) for k in schedule.rounds],
    )


def errors(runs: int, flips: int) -> None:
    """Print how often equal models are called different, and repeated intervals fail."""
    schedule = schedule_of(32, flips=flips)
    print("kind                  n  models    any  interval")
    for kind, (n, models) in itertools.product(KINDS, CELLS):
        rng, wrong, outside = np.random.default_rng([n, models]), 0, 0
        for _ in range(runs):
            scores = drawn(kind, models, n, rng)
            pairs = [series(a, b, schedule) for a, b in itertools.combinations(scores, 2)]
            found = decide(schedule, pairs)
            wrong += any(each[-1].state in ("better", "worse") for each in found)
            looks = [decide(schedule, [until(pairs[0], look)])[0][-1] for look in range(len(schedule.rounds))]
            outside += any(each.interval and not each.interval[0] <= 0 <= each.interval[1] for each in looks)
        print(f"{kind:18} {n:4} {models:7}  {wrong / runs:.3f}     {outside / runs:.3f}", flush=True)


def until(pair: Series, look: int) -> Series:
    """What was there by a look."""
    return replace(pair, a=pair.a[: look + 1], b=pair.b[: look + 1])


def power(runs: int, flips: int) -> None:
    """Print what looks cost in power and save in samples."""
    schedule = schedule_of(32, flips=flips)
    last = replace(schedule, spent=(0.0,) * 4 + (schedule.alpha,))
    print("spread   difference   one look  with looks  mean k  asked  added to differences")
    for (between, name), gain in itertools.product(SPREADS, (0.0, 0.03, 0.06, 0.1, 0.15, 0.2)):
        rng, once, looks = np.random.default_rng(7), 0, []
        many = [drawn("shares", 2, 65, rng, gain=gain, between=between) for _ in range(200)]
        true = float(np.mean([each[0].mean() - each[1].mean() for each in many]))
        for _ in range(runs):
            first, second = drawn("shares", 2, 65, rng, gain=gain, between=between)
            pair = series(first, second, schedule)
            once += decide(last, [_whole(pair)])[0][-1].state == "better"
            looks.append(decide(schedule, [pair])[0][-1])
        found = [each for each in looks if each.state == "better"]
        k = float(np.mean([each.k for each in looks]))
        bias = 100 * (float(np.mean([each.difference for each in looks])) - true)
        shares = f"{once / runs:.3f}     {len(found) / runs:.3f}      {k:5.1f}   {k / 32:.2f}"
        print(f"{name:8} {100 * true:6.1f}       {shares}    {bias:+.1f} points", flush=True)


def _whole(pair: Series) -> Series:
    """Only the last look can decide: none before is hopeless where nothing varies within."""
    return replace(pair, within=[1.0] * 4 + [pair.within[-1]])


def main() -> None:
    """Print the tables asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--flips", type=int, default=999)
    parser.add_argument("--part", choices=("errors", "power"), action="append")
    given = parser.parse_args()
    for part in given.part or ("errors", "power"):
        {"errors": errors, "power": power}[part](given.runs, given.flips)


if __name__ == "__main__":
    main()
