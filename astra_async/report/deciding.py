"""Interim analyses ("looks") of `astra run --until decided` and `--until precise`.

Every figure is a function of the scores of complete rounds and the recorded schedule. A resumed run and any
later report therefore give identical figures.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np

from astra_async.report.pairwise import RARE_DIFFERENCES
from astra_async.report.run_settings import families_of
from astra_async.report.table import ENTRY_COLUMNS, Column, Table, shown, visible
from astra_async.stats.sequential import RULE, Schedule, SequentialOutcome, Series, can_find, decide, precise
from astra_async.stats.spread import rms_within_sd, round_drift

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from astra_async.report.entries import Entry, Floats
    from astra_async.report.load import Run
    from astra_async.report.pairwise import Standing
    from astra_async.stats.sequential import State
    from astra_async.types import Format

    Scores = Mapping[tuple[str, str], Floats]  # by model and format: problems x samples, NaN if missing

_DRIFT_P = 0.01  # over all models of a run
_MOST_PROBLEMS = 100  # upper end of the search for a sufficient number; from 14 on the flips do not increase


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The looks at two models under one format; with `--until precise` at one model, and `b` is empty."""

    a: str
    b: str
    format: Format
    looks: tuple[SequentialOutcome, ...]

    @property
    def state(self) -> State:
        """State after the last look."""
        return self.looks[-1].state if self.looks else "open"

    @property
    def k(self) -> int:
        """Samples of each problem at the last look."""
        return self.looks[-1].k if self.looks else 0


def scores_of(run: Run) -> dict[tuple[str, str], Floats]:
    """Return the scores of a run by model and format, as arrays of problems x samples; NaN if missing."""
    found: dict[tuple[str, str], Floats] = {}
    for number, pair in enumerate(run.pairs):
        rows, grid = run.pair_rows(number), np.full((len(run.problems), run.settings.samples), np.nan)
        grid[rows["problem"], rows["sample"]] = rows["score"]
        found[pair] = grid
    return found


def compared(run: Run, record: Mapping[str, Any]) -> list[Compared]:
    """Return the looks at every pair or model of `record`, as recorded if made by another version of RULE."""
    if record.get("rule", 1) != RULE:
        return as_recorded(record, run.settings.formats)
    schedule, scores = schedule_in(record), scores_of(run)
    named = families_of(run.settings.problems[name] for name in run.problems)
    families = None if named is None else np.array(named)
    found: list[Compared] = []
    for group, fmt in product(record["groups"], run.settings.formats):
        sides = list(_sides(group, record["until"]))
        if record["until"] == "precise":
            looks = [_looks_at(schedule, record, scores[a, fmt], families) for a, _ in sides]
        else:
            looks = decide(
                schedule, [_series(schedule, scores[a, fmt], scores[b, fmt], families) for a, b in sides]
            )
        found += [
            Compared(a=a, b=b, format=fmt, looks=tuple(each))
            for (a, b), each in zip(sides, looks, strict=True)
        ]
    return found


def as_recorded(record: Mapping[str, Any], formats: Sequence[Format]) -> list[Compared]:
    """Return the looks as recorded in run.json, without reading results."""
    looks: dict[tuple[str, str, str], list[SequentialOutcome]] = {}
    for look in record.get("looks", ()):
        values = {name: look[name] for name in ("state", "k", "difference")}
        interval = None if look["interval"] is None else (look["interval"][0], look["interval"][1])
        could = look["problems"]
        if could is None and look["state"] in ("open", "not separable"):
            could = math.inf  # recorded as null, because JSON has no infinity
        found = SequentialOutcome(**values, interval=interval, problems=could)
        looks.setdefault((look["a"], look["b"], look["format"]), []).append(found)
    return [
        Compared(a=a, b=b, format=fmt, looks=tuple(looks.get((a, b, fmt), ())))
        for group in record["groups"]
        for fmt in formats
        for a, b in _sides(group, record["until"])
    ]


def has_open_pairs(record: Mapping[str, Any], formats: Sequence[Format]) -> bool:
    """Return True if a run with `--until` has open pairs in run.json; False for a malformed record."""
    with suppress(LookupError, TypeError, ValueError, AttributeError):
        return "planned" in record and any(each.state == "open" for each in as_recorded(record, formats))
    return False


def _sides(group: Mapping[str, Any], until: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a group; with `--until precise` each model and an empty name."""
    pairs = group["pairs"] if until == "decided" else ((name, "") for name in group["models"])
    yield from ((a, b) for a, b in pairs)


def schedule_in(record: Mapping[str, Any]) -> Schedule:
    """Return the schedule recorded in run.json."""
    known = {name: record[name] for name in ("alpha", "margin", "flips", "seed")}
    return Schedule(rounds=tuple(record["rounds"]), spent=tuple(record["spent"]), **known)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRound:
    """The next round, up to `end` samples of each problem; `cost_usd` is None if no price is known."""

    end: int
    models: tuple[str, ...]
    cost_usd: float | None


def ahead(
    record: Mapping[str, Any], found: Sequence[Compared], cost_usd: Mapping[tuple[str, Format], float | None]
) -> NextRound | None:
    """Return the next round; None if no round is left or no pair is open. `cost_usd` is for one sample."""
    still = [each for each in found if each.state == "open"]
    begun = min((each.k for each in still), default=record["rounds"][-1])
    if begun >= record["rounds"][-1]:
        return None
    end = next(k for k in record["rounds"] if k > begun)
    going = [name for name in dict.fromkeys(name for each in still for name in (each.a, each.b)) if name]
    costs = [
        max(0, end - max(each.k for each in found if name in (each.a, each.b))) * price
        for (name, _), price in cost_usd.items()
        if name in going and price
    ]
    whole = len(record["problems"]) * math.fsum(costs)
    return NextRound(end=end, models=tuple(going), cost_usd=whole or None)


def status_line(record: Mapping[str, Any], found: Sequence[Compared], next_round: NextRound | None) -> str:
    """Return a line with the numbers of decided and open pairs, and the next round with its cost."""
    states = [each.state for each in found]
    last = max((each.k for each in found), default=0)
    what = "models" if record["until"] == "precise" else "pairs"
    counts = {name: states.count(name) for name in ("not separable", "open")}
    rest = "".join(f", {count} {name}" for name, count in counts.items() if count)
    decided = f"{len(states) - sum(counts.values())} of {len(states)} {what} decided"
    known = f"{decided}{rest} after {last} samples of each problem"
    if next_round is None:
        return known
    money = f", about ${next_round.cost_usd:,.2f}" if next_round.cost_usd else ""
    names = ", ".join(next_round.models)
    return f"{known}; next round: up to {next_round.end} samples of each problem from {names}{money}"


def sentences(runs: Sequence[Run]) -> Iterator[str]:
    """Yield a sentence for each pair or model of runs with `--until`, and what limits these conclusions."""
    for run in runs:
        if record := run.settings.deciding:
            yield from (visible(sentence(each, record)) for each in compared(run, record))
            yield from map(visible, _limits_of(run, record))


def _limits_of(run: Run, record: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence if models joined later, and one for each model whose rounds disagree."""
    groups, alpha = len(record["groups"]), record["alpha"]
    if groups > 1 and record["until"] == "decided":
        yield (
            f"Models joined this run {groups - 1} times. Each time adds an error rate of {100 * alpha:g} %:"
            f" over the whole run, a false conclusion may occur in up to {100 * alpha * groups:g} % of runs."
        )
    found = scores_of(run)
    for (model, fmt), scores in found.items():
        drift = round_drift(scores[:, : _complete(scores)], record["rounds"][0])
        if drift and drift.p < _DRIFT_P / len(found):
            change = (
                f"{100 * abs(drift.difference):.1f} points {'higher' if drift.difference > 0 else 'lower'}"
            )
            name = model if len(run.settings.formats) == 1 else f"{model} ({fmt})"
            yield (
                f"{name} scores {change} after its first round than in it (p = {drift.p:.2g}): the model or"
                " its server may have changed during the run, and all conclusions above assume that it did"
                " not."
            )


def interim_conclusions(entries: Sequence[Entry]) -> dict[frozenset[str], dict[str, Standing]]:
    """Return the conclusion on each pair with looks of `--until decided`.

    The result maps the names of the two entries to the conclusion on each entry. Fixed-sample tests are not
    valid after interim looks, so the report uses only these conclusions for these pairs.
    """
    turned: dict[str, Standing] = {"better": "worse", "worse": "better", "equivalent": "equivalent"}
    found: dict[frozenset[str], dict[str, Standing]] = {}
    known = {(entry.model, entry.format, id(run)): entry.name for entry in entries for run, _ in entry.parts}
    for run in {id(run): run for entry in entries for run, _ in entry.parts}.values():
        record = run.settings.deciding
        for each in compared(run, record) if record.get("until") == "decided" else ():
            if each.looks:
                a, b = (known[name, each.format, id(run)] for name in (each.a, each.b))
                of_b = turned.get(each.state, "inconclusive")
                found[frozenset((a, b))] = {a: turned.get(of_b, "inconclusive"), b: of_b}
    return found


def table(runs: Sequence[Run]) -> Table:
    """Return a row for every look at every pair."""
    repeated, could = "95 % over all looks together", "80 % power if the difference is as observed"
    columns = (
        Column("a", "A"),
        Column("b", "B"),
        Column("format", "Format"),
        Column("k", "k", "count", help="samples of each problem that both have"),
        Column("difference", "A - B", "points", help="mean score; with --until precise the mean itself"),
        Column("interval", "Repeated interval", "points", interval=True, help=repeated),
        Column("state", "State"),
        Column("problems", "Problems needed", "number", help=could),
    )
    items = (
        {"a": each.a, "b": each.b, "format": each.format, **asdict(look)}
        for run in runs
        if run.settings.deciding
        for each in compared(run, run.settings.deciding)
        for look in each.looks
    )
    note = (
        "Repeated intervals are valid whatever the reason to stop the run. Stopping at a significant"
        " difference makes the difference look larger, on average by less than a point. The bias is largest"
        " if a difference is hard to detect."
    )
    return Table.of("looks", "Looks after whole rounds", columns, items, notes=(note,))


def spread_table(runs: Sequence[Run]) -> Table:
    """Return the consistency of models that stopped after different numbers of samples."""
    columns = (
        *ENTRY_COLUMNS,
        Column("k", "k", "count", help="complete samples of each problem"),
        Column("common_k", "Common k", "count", help="smallest k of all models"),
        Column("median_sd", "Median SD", "score", help="over the first common-k samples of each problem"),
        Column("rms_within_sd", "RMS within-SD", "score", help="ddof = 1, all samples; independent of k"),
    )
    items = (item for run in runs if run.settings.deciding for item in _spreads(scores_of(run)))
    return Table.of("looks_spread", "Consistency at the smallest common k", columns, items)


def _spreads(scores: Scores) -> Iterator[dict[str, Any]]:
    common = min(map(_complete, scores.values()))
    for (model, fmt), each in scores.items():
        k = _complete(each)
        within = each[:, :k].var(axis=1, ddof=1) if k > 1 else np.full(len(each), np.nan)
        yield {
            "label": model,
            "format": fmt,
            "k": k,
            "common_k": common,
            "median_sd": float(np.median(each[:, :common].std(axis=1))) if common > 1 else None,
            "rms_within_sd": rms_within_sd(within),
        }


def group_of(models: Sequence[str], known: Sequence[str]) -> dict[str, Any]:
    """Return the new models, and their pairs among themselves and with the known models, for run.json."""
    new = [name for name in models if name not in known]
    return {"models": new, "pairs": [*combinations(new, 2), *((a, b) for a in new for b in known)]}


def too_few_problems(schedule: Schedule, problems: Mapping[str, Mapping[str, Any]], pairs: int) -> str:
    """Return a warning if no look can find a difference with these problems of run.json; otherwise ""."""
    families = len({info.get("family") or ("problem", name) for name, info in problems.items()})
    if not pairs or can_find(schedule, families, pairs):
        return ""
    enough = next((n for n in range(families, _MOST_PROBLEMS) if can_find(schedule, n, pairs)), None)
    kind = "families of problems" if families < len(problems) else "problems"
    remedy = f"use at least {enough} {kind}" if enough else "compare fewer models at once"
    return f"warning: with {families} {kind} no look can find a difference between models; {remedy}"


def recorded(schedule: Schedule, until: str, target_se: float | None) -> dict[str, Any]:
    """Return the record of a schedule for run.json."""
    return {
        "until": until,
        "rule": RULE,
        "target_se": target_se,
        "alpha": schedule.alpha,
        "margin": schedule.margin,
        "flips": schedule.flips,
        "seed": schedule.seed,
        "rounds": list(schedule.rounds),
        "spent": list(schedule.spent),
    }


def sentence(each: Compared, record: Mapping[str, Any]) -> str:
    """Return the conclusion on a pair, or with `--until precise` on a model."""
    both = f"{each.a} and {each.b}" if each.b else each.a
    if not each.looks:
        return f"{both}: no look yet, because no round is complete."
    look, problems = each.looks[-1], len(record["problems"])
    needed = f"about {look.problems:,.0f}" if (look.problems or math.inf) < math.inf else "more than 10,000"
    worse = look.state == "worse"
    first, second = (each.b, each.a) if worse else (each.a, each.b)
    points = f"{100 * abs(look.difference):.1f} points"
    turned = (-look.interval[1], -look.interval[0]) if worse and look.interval else look.interval
    bounds = f"repeated 95 % interval {shown(turned, 'points')}, " if turned else ""
    decided = f"decided after {look.k} samples of each problem"
    is_sure = turned is not None and turned[0] > 0
    better = f"{first} is better than {second}: its mean score is {points} higher ({bounds}{decided})."
    better += "" if is_sure else f" {RARE_DIFFERENCES}"
    target = f"{record['target_se']} points"
    return {
        "better": better,
        "worse": better,
        "equivalent": (
            f"{both} are equivalent: a difference of {100 * record['margin']:g} points or more in"
            f" mean score can be excluded at 95 % ({decided})."
        ),
        "open": f"{both}: no decision after {look.k} samples of each problem.",
        "precise": f"{each.a} has reached the target standard error of {target} ({decided}).",
        "not separable": (
            f"{both} are not separable with {problems} problems: their mean scores differ by {points}"
            f" ({bounds}{decided}). If the difference is as observed, {needed} problems are needed."
            if each.b
            else f"{each.a} cannot reach the target standard error of {target} with {problems} problems"
            f" ({decided}). It needs {needed} problems."
        ),
    }[look.state]


def _complete(scores: Floats) -> int:
    """Return the number of complete rounds of samples: each problem has at least this many first samples."""
    gaps = np.flatnonzero(np.isnan(scores).any(axis=0))
    return int(gaps[0]) if len(gaps) else scores.shape[1]


def _series(schedule: Schedule, a: Floats, b: Floats, families: Any) -> Series:
    """Return the means over the first k samples of both models, for each round that both have completed."""
    common = min(_complete(a), _complete(b))
    rounds = [k for k in schedule.rounds if k <= common]
    return Series(
        a=np.array([a[:, :k].mean(axis=1) for k in rounds]).reshape(len(rounds), len(a)),
        b=np.array([b[:, :k].mean(axis=1) for k in rounds]).reshape(len(rounds), len(b)),
        within=[_within(a[:, :k]) + _within(b[:, :k]) for k in rounds],
        families=families,
    )


def _looks_at(
    schedule: Schedule, record: Mapping[str, Any], scores: Floats, families: Any
) -> list[SequentialOutcome]:
    first = [scores[:, :k] for k in schedule.rounds if k <= _complete(scores)]
    means, within = [each.mean(axis=1) for each in first], [_within(each) for each in first]
    return precise(schedule, means, within, families, record["target_se"] / 100)


def _within(scores: Floats) -> float:
    return float(scores.var(axis=1, ddof=1).mean()) if scores.shape[1] > 1 else 0.0
