"""Looks at a run after whole rounds: which pairs of models are decided, with the error kept over all looks.

A group-sequential design (Lan and DeMets 1983, Biometrika 70: 659-663) over rounds k = 2, 4, 8 ... of
samples: `alpha * sqrt(k / K)` is spent by the look after k samples. The test is the sign-flip test over
families of problems, with the same flips at all looks: a flip crosses at a look where its sum is among the
most extreme of the flips that have not crossed before, as many as the schedule lets. The observed signs are
one flip among them; so the test is exact wherever differences are symmetric, whatever the correlation of the
looks. Repeated intervals (Jennison and Turnbull 1989, J. R. Stat. Soc. B 51: 305-361) are those of
`intervals.difference_interval` at the level that the look spends: all hold together, whyever one stops. They
reckon with rare losses that no problem has shown, as the test cannot, and may hold 0 where it crosses.

Several pairs: Holm's (1979) step-down over their number, by closure also for looks that have been. Claims of
a difference hand their alpha on to such claims, those of equivalence to their like: two kinds, each with an
error rate. If equivalent pairs left theirs to all, it would go to the pair that is furthest apart by chance.
Everything here is a function of the scores of complete rounds, and of a seed.
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
RULE = 3  # grows with every change by which the same scores could end otherwise
FIRST_ROUND = 2  # samples: a spread takes two
FLIPS = 9_999
_EXACT = 13  # families up to which all 2^n signs are fewer
_ENOUGH = 0.9  # of the information that all samples would give: more would narrow an interval by 5 % at most
_PRECISE_FROM = 4  # samples of each problem, before which no mean is called precise
_NORMAL = NormalDist().inv_cdf(0.975)
_POWER = 0.84  # standard errors above its bound at which a difference is found with 80 %
_MOST_PROBLEMS = 10_000
_DUST = 1e-9  # what rounding may add


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When it is looked, and how much of alpha has been spent by then; recorded before the first look."""

    rounds: tuple[int, ...]
    spent: tuple[float, ...]
    alpha: float
    margin: float
    flips: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Two models on the same problems after each round that both have completed.

    `a`, `b`: mean scores, a row for each round; `within`: mean over problems of both models' variances within
    (ddof = 1), summed, by round; `families` of the problems, None where none share one.
    """

    a: Floats
    b: Floats
    within: Sequence[float]
    families: NDArray[np.str_] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialOutcome:
    """What is known of A against B after `k` samples of both; `interval` is the repeated one.

    `problems`: how many like these would separate them with 80 % power if the difference is what it seems
    (infinite above 10,000); None for what is decided.
    """

    state: State
    k: int
    difference: float
    interval: tuple[float, float] | None
    problems: float | None = None


def schedule_of(
    samples: int, *, alpha: float = 0.05, margin: float = 0.02, flips: int = FLIPS, seed: int = 0
) -> Schedule:
    """Rounds of 2, 4, 8 ... samples up to `samples`, and sqrt(k / samples) of alpha spent by each."""
    rounds = [samples]
    while rounds[0] > FIRST_ROUND:
        rounds.insert(0, 2 ** (math.ceil(math.log2(rounds[0])) - 1))
    spent = tuple(alpha * math.sqrt(k / samples) for k in rounds)
    return Schedule(rounds=tuple(rounds), spent=spent, alpha=alpha, margin=margin, flips=flips, seed=seed)


def decide(schedule: Schedule, pairs: Sequence[Series]) -> list[list[SequentialOutcome]]:
    """The outcomes of all pairs, look by look, for rounds that all open ones have; the last is how it stands.

    A pair's list ends with its decision. The order of the pairs changes nothing.
    """
    return [
        [_seen(schedule, pair, look, state, len(pairs)) for look, state in enumerate(states)]
        for pair, states in zip(pairs, states_of(schedule, pairs), strict=True)
    ]


def states_of(schedule: Schedule, pairs: Sequence[Series]) -> list[list[State]]:
    """What `decide` decides, without the figures."""
    found: list[list[State]] = [[] for _ in pairs]
    drawn = [_flipped(schedule, pair) for pair in pairs]
    for look in range(len(schedule.rounds)):
        there = [i for i, states in enumerate(found) if states[-1:] in ([], ["open"])]
        if any(len(pairs[i].a) <= look for i in there):
            break  # a round counts when it is complete for all: what one pair hands on may decide another
        for i in there:
            found[i].append("open")
        while True:
            # Invariant: a claim hands on its alpha, to its own kind; whoever is open is tested again then.
            states = {i: _tested(schedule, pairs[i], look, drawn[i], found) for i in there}
            decided = {i: state for i, state in states.items() if state != "open"}
            if not decided:
                break
            for i, state in decided.items():
                found[i][-1] = state
                there.remove(i)
        for i in there:
            if _is_hopeless(schedule, pairs[i], look):
                found[i][-1] = "not separable"
    return found


def can_tell(schedule: Schedule, families: int, pairs: int) -> bool:
    """Whether any scores let the last look call one of so many pairs different: alpha spent covers a flip."""
    return schedule.spent[-1] * _rows(schedule.flips, families) / pairs + _DUST >= 1


def information(within: float, between: float, k: int, most: int) -> float:
    """Var(all samples) / Var(k samples): the share of what `most` samples would tell."""
    whole = between + within / k
    return (between + within / most) / whole if whole > 0 else 1.0


def between_of(values: Floats, within: float, k: int, families: NDArray[np.str_] | None) -> float:
    """The variance between problems, times what families raise it by, without that within them."""
    units = by_family(values, families)
    if len(units) < 2:  # noqa: PLR2004 - a spread takes two
        return 0.0
    return max(0.0, float(units.var(ddof=1)) * len(values) / len(units) - within / k)


@lru_cache(maxsize=2)
def signs(flips: int, seed: int, n: int) -> Floats:
    """The flips of n families, a row each, the same at all looks; the first leaves all signs as they are."""
    if n <= _EXACT:
        turned = (np.arange(_rows(flips, n))[:, None] >> np.arange(n)) & 1
    else:
        turned = np.random.default_rng(seed).integers(0, 2, (flips + 1, n), dtype=np.int8)
        turned[0] = 0
    return np.asarray(1 - 2 * turned, dtype=np.float64)


def _rows(flips: int, n: int) -> int:
    return 2 ** max(0, n - 1) if n <= _EXACT else flips + 1  # the first sign alone would only mirror all sums


def first_crossing(sums: Floats, spent: Sequence[float], share: float) -> int | None:
    """The look at which the first column (the observed signs) crosses; `sums` are absolute, looks by flips.

    Of all flips `spent * share` may have crossed by each look; ties cross together or not at all.
    """
    flips = sums.shape[1]
    left = np.ones(flips, dtype=bool)
    for look, row in enumerate(sums):
        allowed = int(spent[look] * share * flips + _DUST) - int(flips - left.sum())
        if allowed <= 0:
            continue
        values = row[left]
        place = len(values) - 1 - allowed  # of the first that may not cross
        bound = np.partition(values, place)[place] if place >= 0 else -1.0
        crossing = left & (row > bound * (1 + _DUST) + _DUST)
        if crossing[0]:
            return look
        left &= ~crossing
    return None


def _flipped(schedule: Schedule, pair: Series) -> Floats:
    """|sum| under each flip, a row for each round; the first column is what was observed."""
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
    """The pair at this look, with its part of the alpha that the claims in `found` have left."""
    p = equivalence(pair.a[look], pair.b[look], schedule.margin, pair.families)
    if p is not None and p < _own_alpha(schedule, look) / _left(found, ("equivalent",)):
        return "equivalent"
    if first_crossing(sums[: look + 1], schedule.spent, 1 / _left(found, ("better", "worse"))) is None:
        return "open"
    return "better" if float((pair.a[look] - pair.b[look]).sum()) > 0 else "worse"


def _left(found: Sequence[Sequence[State]], claims: tuple[State, ...]) -> int:
    """So many pairs of which none of these has been claimed."""
    return sum(not states or states[-1] not in claims for states in found)


def _is_hopeless(schedule: Schedule, pair: Series, look: int) -> bool:
    k, most = schedule.rounds[look], schedule.rounds[-1]
    if k == most:
        return True
    between = between_of(pair.a[look] - pair.b[look], pair.within[look], k, pair.families)
    return k > FIRST_ROUND and information(pair.within[look], between, k, most) >= _ENOUGH


def _problems(schedule: Schedule, pair: Series, look: int, pairs: int) -> float:
    """(z + 0.84)^2 (s_b^2 + s_w^2 / K) / D^2 + z^2 / 2, z at this pair's part of alpha; above what there are.

    The last term stands for a spread that is estimated (Guenther 1981, Am. Stat. 35: 243-244).
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
    """Looks at one model until no side of its mean's 95 % interval is above 1.96 `target_se`.

    That side decides, not the standard error that was seen: that is small by luck where rare
    low scores have not been drawn yet. "not separable" stands for: no number of samples brings these problems
    there. `difference` is the mean itself, with this interval; `problems` is how many could be enough.
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
