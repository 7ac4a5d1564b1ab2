"""Group-sequential tests: interim analyses ("looks") after complete rounds, with control of the error rate.

The design is an alpha-spending design (Lan and DeMets 1983, Biometrika 70: 659-663) over rounds of k = 2, 4,
8 ... samples. Up to the look after k of K samples, `alpha * sqrt(k / K)` is spent. The test is the sign-flip
test over families of problems, with the same flips at all looks. At each look the schedule allows a number of
flips to cross: those with the most extreme sums among the flips that have not crossed before. The observed
signs are one of the flips, so the test is exact for symmetric differences, whatever the correlation of the
looks.

Repeated intervals (Jennison and Turnbull 1989, J. R. Stat. Soc. B 51: 305-361) are
`intervals.difference_interval` at the level that the look spends. They are simultaneously valid for all
looks, whatever the reason to stop. They allow for rare losses that were not observed, so they may include 0
even if the test finds a difference.

For several pairs, Holm's (1979) step-down procedure is applied to their number; by closure it also applies to
earlier looks. A decided pair passes its alpha on to pairs tested for the same kind of claim (difference or
equivalence), so each kind has its own error rate. If equivalent pairs passed alpha on to all claims, it would
go to the pair with the largest chance difference.

All results are functions of the scores of complete rounds and of a seed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

import numpy as np

from astra_async.stats.differences import FEWEST, by_family
from astra_async.stats.intervals import difference_interval, equivalence, total_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

State = Literal["open", "better", "worse", "equivalent", "not separable", "precise"]
RULE = 3  # version of the rules; increased with every change that can change a decision
FIRST_ROUND = 2  # samples of each problem; a variance needs two
FLIPS = 9_999
_EXACT = 13  # up to this number of families all sign patterns are used, because they are fewer than FLIPS
_ENOUGH = (
    0.9  # share of the information of all samples; the remaining samples narrow an interval by at most 5 %
)
_PRECISE_FROM = 4  # minimum samples of each problem for the state "precise"
_NORMAL = NormalDist().inv_cdf(0.975)
_POWER = 0.84  # normal quantile of 80 % power
_MOST_PROBLEMS = 10_000
_TOLERANCE = 1e-9  # tolerance for rounding errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Rounds of the looks, and alpha spent up to each look; recorded before the first look.

    `margin` is the equivalence margin (score from 0 to 1). `flips` and `seed` determine the random sign
    flips.
    """

    rounds: tuple[int, ...]
    spent: tuple[float, ...]
    alpha: float
    margin: float
    flips: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Scores of two models on the same problems after each round that both have completed.

    Attributes:
        a, b: mean scores, as arrays of rounds x problems.
        within: by round, the sum of both models' mean variances within problems (ddof = 1).
        families: families of the problems; None if no two problems share a family.
    """

    a: Floats
    b: Floats
    within: Sequence[float]
    families: NDArray[np.str_] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialOutcome:
    """Result of a look at A against B after `k` samples of both; `interval` is the repeated interval.

    `problems` is the number of problems that would separate the models with 80 % power if the difference is
    as observed (infinity above 10,000). It is None for a decided pair.
    """

    state: State
    k: int
    difference: float
    interval: tuple[float, float] | None
    problems: float | None = None


def schedule_of(
    samples: int, *, alpha: float = 0.05, margin: float = 0.02, flips: int = FLIPS, seed: int = 0
) -> Schedule:
    """Return a schedule with rounds of 2, 4, 8 ... `samples` samples, and alpha * sqrt(k / samples) spent."""
    rounds = [samples]
    while rounds[0] > FIRST_ROUND:
        rounds.insert(0, 2 ** (math.ceil(math.log2(rounds[0])) - 1))
    spent = tuple(alpha * math.sqrt(k / samples) for k in rounds)
    return Schedule(rounds=tuple(rounds), spent=spent, alpha=alpha, margin=margin, flips=flips, seed=seed)


def decide(schedule: Schedule, pairs: Sequence[Series]) -> list[list[SequentialOutcome]]:
    """Return for each pair the outcomes of its looks, over the rounds that all open pairs have completed.

    A pair's list ends with its decision. The result does not depend on the order of the pairs.
    """
    return [
        [_seen(schedule, pair, look, state, len(pairs)) for look, state in enumerate(states)]
        for pair, states in zip(pairs, states_of(schedule, pairs), strict=True)
    ]


def states_of(schedule: Schedule, pairs: Sequence[Series]) -> list[list[State]]:
    """Return for each pair the states of its looks, as `decide` but without figures."""
    found: list[list[State]] = [[] for _ in pairs]
    drawn = [_flipped(schedule, pair) for pair in pairs]
    for look in range(len(schedule.rounds)):
        there = [i for i, states in enumerate(found) if states[-1:] in ([], ["open"])]
        if any(len(pairs[i].a) <= look for i in there):
            break  # all open pairs need the round, because alpha passed on by one pair may decide another
        for i in there:
            found[i].append("open")
        while True:
            # Invariant: a decided pair passes its alpha on to claims of its kind, so open pairs are tested
            # again.
            states = {i: _tested(schedule, pairs[i], look, drawn[i], found) for i in there}
            decided = {i: state for i, state in states.items() if state != "open"}
            if not decided:
                break
            for i, state in decided.items():
                found[i][-1] = state
                there.remove(i)
        for i in there:
            if _is_futile(schedule, pairs[i], look):
                found[i][-1] = "not separable"
    return found


def can_find(schedule: Schedule, families: int, pairs: int) -> bool:
    """Return True if the last look can find a difference in one of `pairs` pairs for any scores.

    This needs enough alpha for at least one flip to cross.
    """
    return schedule.spent[-1] * _rows(schedule.flips, families) / pairs + _TOLERANCE >= 1


def information(within: float, between: float, k: int, most: int) -> float:
    """Return the information fraction of k samples: Var(`most` samples) / Var(k samples)."""
    whole = between + within / k
    return (between + within / most) / whole if whole > 0 else 1.0


def between_of(values: Floats, within: float, k: int, families: NDArray[np.str_] | None) -> float:
    """Return the variance between problems, with the design effect of families, minus the variance within."""
    units = by_family(values, families)
    if len(units) < 2:  # noqa: PLR2004 - a variance needs two values
        return 0.0
    return max(0.0, float(units.var(ddof=1)) * len(values) / len(units) - within / k)


@lru_cache(maxsize=2)
def signs(flips: int, seed: int, n: int) -> Floats:
    """Return the sign flips of n families as rows, the same at all looks; the first row changes no sign."""
    if n <= _EXACT:
        turned = (np.arange(_rows(flips, n))[:, None] >> np.arange(n)) & 1
    else:
        turned = np.random.default_rng(seed).integers(0, 2, (flips + 1, n), dtype=np.int8)
        turned[0] = 0
    return np.asarray(1 - 2 * turned, dtype=np.float64)


def _rows(flips: int, n: int) -> int:
    return (
        2 ** max(0, n - 1) if n <= _EXACT else flips + 1
    )  # flipping the last sign would only mirror all sums


def first_crossing(sums: Floats, spent: Sequence[float], share: float) -> int | None:
    """Return the look at which the first column (the observed signs) crosses; None if it does not cross.

    `sums` has absolute sums, as looks x flips. Up to each look a share of `spent * share` of all flips may
    cross. Flips with equal sums cross together or not at all.
    """
    flips = sums.shape[1]
    left = np.ones(flips, dtype=bool)
    for look, row in enumerate(sums):
        allowed = int(spent[look] * share * flips + _TOLERANCE) - int(flips - left.sum())
        if allowed <= 0:
            continue
        values = row[left]
        place = len(values) - 1 - allowed  # rank of the largest sum that may not cross
        bound = np.partition(values, place)[place] if place >= 0 else -1.0
        crossing = left & (row > bound * (1 + _TOLERANCE) + _TOLERANCE)
        if crossing[0]:
            return look
        left &= ~crossing
    return None


def _flipped(schedule: Schedule, pair: Series) -> Floats:
    """Return |sum of differences| as rounds x flips; the first column is the observed sum."""
    d = pair.a - pair.b
    if pair.families is not None:
        d = np.array([by_family(row, pair.families) for row in d]).reshape(len(d), -1)
    return np.asarray(np.abs(d @ signs(schedule.flips, schedule.seed, d.shape[1]).T))


def _seen(schedule: Schedule, pair: Series, look: int, state: State, pairs: int) -> SequentialOutcome:
    a, b, k = pair.a[look], pair.b[look], schedule.rounds[look]
    return SequentialOutcome(
        state=state,
        k=k,
        difference=float(math.fsum(a) - math.fsum(b)) / len(a),
        interval=difference_interval(a, b, pair.families, 1 - _own_alpha(schedule, look)),
        problems=_problems(schedule, pair, look, pairs) if state in ("open", "not separable") else None,
    )


def _own_alpha(schedule: Schedule, look: int) -> float:
    return schedule.spent[look] - (schedule.spent[look - 1] if look else 0.0)


def _tested(
    schedule: Schedule, pair: Series, look: int, sums: Floats, found: Sequence[Sequence[State]]
) -> State:
    """Return the state of a pair at a look, with the alpha available after the claims in `found`."""
    p = equivalence(pair.a[look], pair.b[look], schedule.margin, pair.families)
    if p is not None and p < _own_alpha(schedule, look) / _left(found, ("equivalent",)):
        return "equivalent"
    if first_crossing(sums[: look + 1], schedule.spent, 1 / _left(found, ("better", "worse"))) is None:
        return "open"
    return "better" if float((pair.a[look] - pair.b[look]).sum()) > 0 else "worse"


def _left(found: Sequence[Sequence[State]], claims: tuple[State, ...]) -> int:
    """Return the number of pairs without any of these claims."""
    return sum(not states or states[-1] not in claims for states in found)


def _is_futile(schedule: Schedule, pair: Series, look: int) -> bool:
    k, most = schedule.rounds[look], schedule.rounds[-1]
    if k == most:
        return True
    between = between_of(pair.a[look] - pair.b[look], pair.within[look], k, pair.families)
    return k > FIRST_ROUND and information(pair.within[look], between, k, most) >= _ENOUGH


def _problems(schedule: Schedule, pair: Series, look: int, pairs: int) -> float:
    """Return the number of problems that would show a difference D as observed, with 80 % power.

    (z + 0.84)^2 (s_b^2 + s_w^2 / K) / D^2 + z^2 / 2, with z for alpha / number of pairs; at least one more
    than the present number. The last term accounts for the estimated variance (Guenther 1981, Am. Stat. 35:
    243-244).
    """
    a, b, k = pair.a[look], pair.b[look], schedule.rounds[look]
    difference, bound = abs(float((a - b).mean())), NormalDist().inv_cdf(1 - schedule.alpha / (2 * pairs))
    between = between_of(a - b, pair.within[look], k, pair.families)
    variance = between + pair.within[look] / schedule.rounds[-1]
    if difference * math.sqrt(_MOST_PROBLEMS) < (bound + _POWER) * math.sqrt(variance) or difference == 0:
        return math.inf
    needed = (bound + _POWER) ** 2 * variance / difference**2 + bound**2 / 2
    return max(len(a) + 1.0, math.ceil(needed))


def precise(
    schedule: Schedule,
    means: Sequence[Floats],
    within: Sequence[float],
    families: NDArray[np.str_] | None,
    target_se: float,
) -> list[SequentialOutcome]:
    """Return the looks at one model until its mean score is precise.

    A mean is precise if both sides of its 95 % interval are at most 1.96 `target_se` long. The estimated
    standard error is not used, because it is too small if rare low scores have not been observed yet. The
    state "not separable" means that the target is not reached and no samples are left, or that all further
    samples would narrow the interval by 5 % at most. In the outcomes `difference` is the mean, `interval` its
    95 % interval, and `problems` an estimate of the problems needed with k samples of each.
    """
    wanted = _NORMAL * target_se
    units = len(by_family(means[0], families)) if means else 0
    looks: list[SequentialOutcome] = []
    for k, values, spread in zip(schedule.rounds, means, within, strict=False):
        between, most = between_of(values, spread, k, families), schedule.rounds[-1]
        mean, interval = float(values.mean()), total_interval(values, families)
        side = max(mean - interval[0], interval[1] - mean) if interval else math.inf
        is_enough = k >= _PRECISE_FROM and units >= FEWEST
        state: State = "precise" if is_enough and side <= wanted else "open"
        share = information(spread, between, k, most)
        if state == "open" and (k == most or (k > FIRST_ROUND and share >= _ENOUGH)):
            state = "not separable"
        needed = len(values) * (side / wanted) ** 2
        looks.append(
            SequentialOutcome(
                state=state,
                k=k,
                difference=mean,
                interval=interval,
                problems=None
                if state == "precise"
                else max(float(np.ceil(needed)), len(values) + 1.0, FEWEST),
            )
        )
        if state != "open":
            break
    return looks
