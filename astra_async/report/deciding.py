"""Interim analyses ("looks") of `astra run --until decided` and `--until precise`.

Every figure is a function of the scores of complete rounds and the recorded schedule. A resumed run and any
later report therefore give identical figures.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import combinations, product
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from astra_async.report.entries import directory_names
from astra_async.report.pairwise import TURNED, standing_of
from astra_async.report.run_settings import families_of
from astra_async.report.table import ENTRY_COLUMNS, Column, Table
from astra_async.stats.sequential import RULE, Schedule, SequentialOutcome, Series, can_find, decide, precise
from astra_async.stats.spread import rms_within_sd

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from astra_async.report.entries import Entry, Floats
    from astra_async.report.load import Run
    from astra_async.report.pairwise import Standing
    from astra_async.stats.sequential import State
    from astra_async.types import Format

    Scores = Mapping[tuple[str, str], Floats]  # by model and format: problems x samples, NaN if missing

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
    """Return True if a run with `--until` has a next round in run.json; False for a malformed record."""
    with suppress(LookupError, TypeError, ValueError, AttributeError):
        return "planned" in record and ahead(record, as_recorded(record, formats), {}) is not None
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
    """Return the next round; None if no round is left, no pair is open, or the run is a regrade.

    `cost_usd` is for one sample.
    """
    if record.get("closed"):
        return None
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


def interim_conclusions(entries: Sequence[Entry]) -> dict[frozenset[str], dict[str, Standing]]:
    """Return the conclusion on each pair of `--until decided`, also if no look has been made yet.

    The result maps the names of the two entries to the conclusion on each entry. Fixed-sample tests are not
    valid with interim looks, so the report uses only these conclusions for these pairs.
    """
    found: dict[frozenset[str], dict[str, Standing]] = {}
    known = {(entry.model, entry.format, id(run)): entry.name for entry in entries for run, _ in entry.parts}
    for run in {id(run): run for entry in entries for run, _ in entry.parts}.values():
        record = run.settings.deciding
        for each in compared(run, record) if record.get("until") == "decided" else ():
            a, b = (known[name, each.format, id(run)] for name in (each.a, each.b))
            of_a = standing_of(each.state, each.looks[-1].interval if each.looks else None)
            found[frozenset((a, b))] = {a: of_a, b: TURNED.get(of_a, of_a)}
    return found


def looks_at_pairs(runs: Sequence[Run]) -> Table:
    """Return a row for every look at every pair of `--until decided`."""
    columns = (
        Column("a", "A"),
        Column("b", "B"),
        Column("format", "Format"),
        Column("k", "k", "count", help="samples of each problem, complete for A and B"),
        Column("difference", "A - B", "points", help="mean score"),
        Column("interval", "Repeated interval", "points", interval=True, help="95 % over all looks together"),
        Column("state", "State"),
        Column("problems", "Problems needed", "number", help="80 % power if the difference is as observed"),
    )
    note = (
        "Repeated intervals are valid whatever the reason to stop the run. They are not adjusted for several"
        " pairs. Stopping at a significant"
        " difference makes the difference look larger, on average by less than a point. The bias is largest"
        " if a difference is hard to detect."
    )
    return _looks("looks", "Looks after whole rounds", columns, runs, "decided", note)


def looks_at_models(runs: Sequence[Run]) -> Table:
    """Return a row for every look at every model of `--until precise`."""
    columns = (
        Column("model", "Model", of=itemgetter("a")),
        Column("format", "Format"),
        Column("k", "k", "count", help="complete samples of each problem"),
        Column("mean_score", "Mean score %", "percent", of=itemgetter("difference")),
        Column("interval", "95 % interval", "percent", interval=True, help="for new problems like these"),
        Column("state", "State"),
        Column("problems", "Problems needed", "number", help="for the target, with k samples of each"),
    )
    note = "The 95 % intervals are those of a single look. They are not adjusted for several looks."
    return _looks("looks_precise", "Looks at each model", columns, runs, "precise", note)


def _looks(
    name: str, title: str, columns: Sequence[Column], runs: Sequence[Run], until: str, note: str
) -> Table:
    """Return a table of looks of runs with `until`; the first column names the run if there are several."""
    names = directory_names([run.directory for run in runs])
    items = (
        {"run": directory, "a": each.a, "b": each.b, "format": each.format, **asdict(look)}
        | {"state": shown_state(look.state, until)}
        for run, directory in zip(runs, names, strict=True)
        if run.settings.deciding.get("until") == until
        for each in compared(run, run.settings.deciding)
        for look in each.looks
    )
    of_run = [Column("run", "Run")] if len(runs) > 1 else []
    return Table.of(name, title, (*of_run, *columns), items, notes=(note,))


def shown_state(state: State, until: str) -> str:
    """Return the state as tables and lines name it; a model without its target is `not reached`."""
    return "not reached" if until == "precise" and state == "not separable" else state


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
    common = min(map(complete_rounds, scores.values()))
    for (model, fmt), each in scores.items():
        k = complete_rounds(each)
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


def complete_rounds(scores: Floats) -> int:
    """Return the number of complete rounds of samples: each problem has at least this many first samples."""
    gaps = np.flatnonzero(np.isnan(scores).any(axis=0))
    return int(gaps[0]) if len(gaps) else scores.shape[1]


def _series(schedule: Schedule, a: Floats, b: Floats, families: Any) -> Series:
    """Return the means over the first k samples of both models, for each round that both have completed."""
    common = min(complete_rounds(a), complete_rounds(b))
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
    first = [scores[:, :k] for k in schedule.rounds if k <= complete_rounds(scores)]
    means, within = [each.mean(axis=1) for each in first], [_within(each) for each in first]
    return precise(schedule, means, within, families, record["target_se"] / 100)


def _within(scores: Floats) -> float:
    return float(scores.var(axis=1, ddof=1).mean()) if scores.shape[1] > 1 else 0.0
