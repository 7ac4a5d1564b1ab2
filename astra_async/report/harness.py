"""Tables on the harness: missing samples, flaky tests, repaired answers, cluster nodes and events."""

from __future__ import annotations

import math
import sys
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from astra_async.files import scan
from astra_async.listing import counted
from astra_async.report.table import ENTRY_COLUMNS, Column, Table
from astra_async.types.records import Flaw, read_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from astra_async.report.entries import Entry
    from astra_async.report.load import Run
    from astra_async.report.table import Cell

Key = tuple[Any, ...]  # (model, format, problem, sample); None means any

_DETAIL_CHARACTERS = 300
_UNRECOGNIZED = (
    ": unrecognized:"  # part of the message of an unknown error (`asking.providers.error_meaning`)
)
_MISSING = ("_error", "budget", "pool_failed")  # suffixes of event kinds that leave samples missing
_MOST_NAMED = 200  # rows of the table of missing samples; runs.csv has all
_NOT_TRIED = ("not tried", "not started yet")


@dataclass(slots=True)
class Events:
    """Counts of events, and reasons of missing samples.

    Attributes:
        counts: number of events by (kind, model). costs: US dollars by (kind, model), spent on requests of
        missing samples. No result line has this cost. reasons: last (kind, detail) by key; None in a key
        means any. lost: time (ISO 8601) of the last event by key. unrecognized: number of provider errors
        that were not recognized. last: last detail by (kind, model).
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    costs: defaultdict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    reasons: dict[Key, tuple[str, str]] = field(default_factory=dict)
    lost: dict[Key, str] = field(default_factory=dict)
    unrecognized: int = 0
    last: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, record: Mapping[str, Any]) -> None:
        """Count one event."""
        kind, detail = str(record.get("kind", "")), str(record.get("detail", ""))[:_DETAIL_CHARACTERS]
        which = kind, str(record.get("model") or record.get("pool") or "")
        self.counts[which] += 1
        self.costs[which] += _usd(record.get("cost_usd"))
        self.last[which] = detail
        self.unrecognized += _UNRECOGNIZED in detail
        if kind.endswith(_MISSING):
            key = tuple(map(record.get, ("model", "format", "problem_id", "sample")))
            with suppress(TypeError):  # an unhashable key (a list or an object) identifies no sample
                self.reasons[key] = (kind, detail)
                self.lost[key] = str(record.get("at"))

    def reason(self, model: str, answer_format: str, problem_id: str, sample: int) -> tuple[str, str] | None:
        """Return (kind, detail) of the last event of a key, otherwise of its problem, otherwise of its model.

        Return None if there is no such event.
        """
        return (
            self.reasons.get((model, answer_format, problem_id, sample))
            or self.reasons.get((None, None, problem_id, None))
            or self.reasons.get((model, None, None, None))
        )


def read_events(path: Path) -> Events:
    """Read an event log. Unreadable lines are ignored, because events do not affect scores."""
    events = Events()
    for _, _, line in scan(path):
        with suppress(Flaw):
            events.add(read_line(line))
    return events


def missing_samples(entries: Sequence[Entry], events: dict[str, Events]) -> Table:
    """Return the first 200 missing samples, each with the last recorded reason."""
    items = [item for entry in entries for item in _missing(entry, events)]
    missing = counted(len(items), "sample")
    notes = [f"Missing: {missing}. To continue, run the same command again."] if items else []
    if len(items) > _MOST_NAMED:
        notes.append(f"The first {_MOST_NAMED} missing samples are shown; runs.csv has all of them.")
    columns = (
        *ENTRY_COLUMNS,
        Column("problem_id", "Problem"),
        Column("sample", "Sample", "count"),
        Column("kind", "Kind"),
        Column("detail", "Last reason"),
    )
    return Table.of("missing", "Missing samples", columns, items[:_MOST_NAMED], notes=notes)


def event_counts(events: dict[str, Events]) -> Table:
    """Return the number of events and their cost, by kind and model."""
    counts: Counter[tuple[str, str]] = Counter()
    costs: defaultdict[tuple[str, str], float] = defaultdict(float)
    for each in events.values():
        counts.update(each.counts)
        for which, cost in each.costs.items():
            costs[which] += cost
    spent = "spent on requests without a result"
    columns = (
        Column("kind", "Kind", of=lambda which: which[0]),
        Column("model", "Model", of=lambda which: which[1]),
        Column("count", "Times", "count", of=counts.get),
        Column("cost_usd", "Cost $", "usd", help=spent, of=lambda which: costs[which] or None),
    )
    notes = ["Source: events.jsonl. Retries and waits take time but do not change scores."] if counts else []
    if unrecognized := sum(each.unrecognized for each in events.values()):
        notes.append(
            f"{unrecognized} errors of providers were not recognized. events.jsonl has their text after the"
            f" word{_UNRECOGNIZED.strip(':')}. Please report the text, without names and keys."
        )
    return Table.of("events", "Events", columns, sorted(counts), notes=notes)


def handling(entries: Sequence[Entry]) -> Table:
    """Return the numbers of repaired answers, dropped changes and suspicious samples."""
    strict = "mean score if every repaired answer had score 0"
    columns = (
        *ENTRY_COLUMNS,
        Column("valid", "Valid", "count", of=lambda entry: entry.summary.valid),
        Column("repaired", "Repaired answers", "count", of=_count_nonzero("repairs")),
        Column("repairs", "Repairs", of=_text_counts("repairs")),
        Column("strict_score", "Strict score %", "percent", help=strict, of=_strict_score),
        Column(
            "dropped",
            "With dropped changes",
            "count",
            help="to protected files",
            of=_count_nonzero("dropped"),
        ),
        Column("suspected", "Suspicious", "count", of=_count_nonzero("suspicions")),
        Column("suspicions", "Suspicions", of=_text_counts("suspicions")),
    )
    begun = (entry for entry in entries if entry.summary.valid)
    title = "Repaired answers, dropped changes and suspicious samples"
    return Table.of("handling", title, columns, begun, provisional=True)


class _OnNode(NamedTuple):
    """Verdicts of one node as arrays: score, time-out (0 or 1), seconds, and pace.

    The pace is the seconds divided by the median seconds of the problem.
    """

    node: str
    score: NDArray[np.float64]
    timed_out: NDArray[np.float64]
    test_s: NDArray[np.float64]
    pace: NDArray[np.float64]


def nodes(runs: Sequence[Run]) -> Table:
    """Return verdicts, durations and time-outs by cluster node; the table is empty without a cluster."""
    measured: dict[str, list[NDArray[np.float64]]] = {}
    for run in runs:
        for problem in range(len(run.problems)):
            rows = run.problem_rows(problem)
            rows = rows[(rows["node"] != 0) & (rows["reused"] == 0)]
            usual_s = float(np.median(rows["test_s"])) if len(rows) else 0.0
            for number in np.unique(rows["node"]).tolist():
                mine = rows[rows["node"] == number]
                pace = mine["test_s"] / usual_s if usual_s else np.ones(len(mine))
                score = mine["score"]
                found = np.stack([score, mine["timed_out"].astype(float), mine["test_s"], pace])
                measured.setdefault(run.texts[number], []).append(found)
    pace_help = "median of a test run's seconds / the problem's median seconds"
    columns = (
        Column("node", "Node"),
        Column("graded", "Graded", "count", of=lambda on: len(on.score)),
        Column("perfect", "All passed", "count", of=lambda on: int(np.count_nonzero(on.score == 1.0))),
        Column("mean_score", "Mean score %", "percent", of=lambda on: float(on.score.mean())),
        Column("timeouts", "Time-outs", "count", of=lambda on: int(on.timed_out.sum())),
        Column("test_s", "Test s", "seconds", help="median", of=lambda on: float(np.median(on.test_s))),
        Column("test_p95_s", "95 % below s", "seconds", of=lambda on: float(np.percentile(on.test_s, 95))),
        Column("pace", "Pace", "number", help=pace_help, of=lambda on: float(np.median(on.pace))),
    )
    items = (_OnNode(name, *np.concatenate(parts, axis=1)) for name, parts in sorted(measured.items()))
    return Table.of("nodes", "Nodes of the cluster", columns, items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """Groups of equal solutions of one problem that were graded more than once in the same image.

    Attributes:
        groups, samples: number of groups, and number of samples in them.
        unlike: number of groups with different outcomes.
        variance: pooled variance of scores within groups (ddof = 1), the noise of the harness.
    """

    problem_id: str = ""
    groups: int = 0
    samples: int = 0
    unlike: int = 0
    variance: float | None = None


def flakiness(runs: Sequence[Run]) -> Table:
    """Return the problems whose equal solutions had different outcomes, because of tests or machine."""
    found = [
        replace(repeats(run.problem_rows(problem)), problem_id=name)
        for run in runs
        for problem, name in enumerate(run.problems)
    ]
    total = sum(each.unlike for each in found)
    everything = [_pooled(found)] if any(each.groups for each in found) else []
    columns = (
        Column("problem_id", "Problem"),
        Column("groups", "Repeated solutions", "count", help="equal files graded twice in the same image"),
        Column("samples", "Samples", "count", help="with a repeated solution"),
        Column("unlike", "Different outcomes", "count", help="repeated solutions graded differently"),
        Column("noise_sd", "SD by harness", "score", help="within equal solutions, ddof = 1", of=_noise),
    )
    note = "No equal solutions were graded differently."
    if total:
        note = (
            f"{total} solutions had different outcomes in equal conditions: their tests are flaky. To find"
            " these tests, run: astra validate --repeat"
        )
    items = [*everything, *(each for each in found if each.unlike)]
    return Table.of("flakiness", "Flakiness of the harness", columns, items, notes=(note,))


def repeats(rows: NDArray[np.void]) -> Repeats:
    """Group one problem's graded rows by solution and image. Rows with a reused verdict are ignored."""
    rows = rows[(rows["solution"] != 0) & (rows["reused"] == 0)]
    if len(rows) == 0:
        return Repeats()
    _, solutions = np.unique(rows["solution"], return_inverse=True)
    images, image = np.unique(rows["image"], return_inverse=True)
    _, numbers = np.unique(solutions * len(images) + image, return_inverse=True)
    sizes = np.bincount(numbers)
    several = sizes > 1
    order = np.argsort(numbers, kind="stable")
    outcomes = rows["outcomes"][order].astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    unlike = np.maximum.reduceat(outcomes, starts) != np.minimum.reduceat(outcomes, starts)
    scores = rows["score"]
    means = np.bincount(numbers, weights=scores) / sizes
    squares = np.bincount(numbers, weights=(scores - means[numbers]) ** 2)
    freedom = int((sizes[several] - 1).sum())
    return Repeats(
        groups=int(several.sum()),
        samples=int(sizes[several].sum()),
        unlike=int((unlike & several).sum()),
        variance=float(squares[several].sum()) / freedom if freedom else None,
    )


def _noise(found: Repeats) -> float | None:
    return math.sqrt(found.variance) if found.variance is not None else None


def _pooled(each: Sequence[Repeats]) -> Repeats:
    """Return the total over problems; variances are weighted by their degrees of freedom."""
    freedom = sum(one.samples - one.groups for one in each)
    squares = math.fsum((one.samples - one.groups) * (one.variance or 0.0) for one in each)
    return Repeats(
        problem_id="all problems",
        groups=sum(one.groups for one in each),
        samples=sum(one.samples for one in each),
        unlike=sum(one.unlike for one in each),
        variance=squares / freedom if freedom else None,
    )


def _usd(value: object) -> float:
    """Return a recorded cost in US dollars; 0 for an invalid value."""
    return value if isinstance(value, int | float) and 0 <= value <= sys.float_info.max else 0.0


def _missing(entry: Entry, events: dict[str, Events]) -> Iterator[dict[str, Cell]]:
    for run, pair in entry.parts:
        known = events[str(run.directory)]
        for _, problem, sample in run.missing[run.missing[:, 0] == pair].tolist():
            name = run.problems[problem]
            kind, detail = known.reason(entry.model, entry.format, name, sample) or _NOT_TRIED
            yield entry.cells | {"problem_id": name, "sample": sample, "kind": kind, "detail": detail}


def _count_nonzero(name: str) -> Callable[[Entry], int]:
    """Return a function that counts the samples with a nonzero value of a field."""
    return lambda entry: int(np.count_nonzero(entry.rows()[name]))


def _text_counts(name: str) -> Callable[[Entry], str]:
    """Return a function that lists a field's texts with their counts, the most frequent first."""

    def of(entry: Entry) -> str:
        counts: Counter[str] = Counter()
        for run, rows in entry.rows_by_run():
            numbers, times = np.unique(rows[name], return_counts=True)
            for number, often in zip(numbers.tolist(), times.tolist(), strict=True):
                for text in filter(None, run.texts[number].split(";")):
                    counts[text.split(":")[0]] += often
        return ", ".join(f"{text} {times:,}" for text, times in counts.most_common())

    return of


def _strict_score(entry: Entry) -> float:
    """Return the mean score over begun problems, with score 0 for repaired answers."""
    scores = entry.per_problem(lambda rows: (rows["repairs"] == 0) * rows["score"])
    means = entry.begun(scores) / entry.begun(entry.valid)
    return math.fsum(means) / len(means)
