"""Entries: the results of one model under one format, as arrays over problems."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from astra_async.metrics import Metrics
from astra_async.report.packed_row import FAILURES
from astra_async.report.run_settings import families_of
from astra_async.stats.spread import variance_split
from astra_async.types import is_agent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from astra_async.metrics import Summary
    from astra_async.report.load import Run
    from astra_async.stats.spread import VarianceSplit
    from astra_async.types import Failure, Format

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One model under one format.

    `parts` holds the runs with results of the entry, each with the number of the entry's pair in that run;
    the runs have no problem in common. The arrays have one element for each planned problem, in the order of
    `problem_ids`; an unknown value is NaN.

    Attributes:
        label: name in tables: the model, or `model @ directory`.
        places: index of each problem in the arrays.
        valid, planned: number of samples of each problem.
        totals: number of tests T of each problem.
        perfect: number of samples that passed all tests.
        means, passes, sds: mean score, pass@1 and SD (ddof = 0, at least two samples) of each problem.
        families: family of each problem; a problem without a recorded family is a family by itself. None if
            no two problems share a family.
    """

    label: str
    model: str
    format: Format
    parts: tuple[tuple[Run, int], ...]
    summary: Summary
    problem_ids: tuple[str, ...]
    places: Mapping[str, int]
    valid: NDArray[np.int64]
    planned: NDArray[np.int64]
    totals: Floats
    perfect: NDArray[np.int64]
    means: Floats
    passes: Floats
    sds: Floats
    families: NDArray[np.str_] | None

    @property
    def name(self) -> str:
        """Label and format; unique in a report."""
        return f"{self.label} ({self.format})"

    @property
    def cells(self) -> dict[str, Any]:
        """First cells of every table row about this entry."""
        return {"label": self.label, "format": self.format, "complete": self.complete}

    @property
    def complete(self) -> bool:
        """True if every planned sample has a result."""
        return self.summary.complete

    @property
    def rank(self) -> tuple[bool, float, str, str]:
        """Sort key of the leaderboard: complete entries first, then the highest mean score."""
        score = self.summary.mean_score
        return not self.complete, -score if score is not None else 1.0, self.label, self.format

    @property
    def done(self) -> NDArray[np.bool_]:
        """Mask of the problems with results for all planned samples."""
        done: NDArray[np.bool_] = self.valid == self.planned
        return done

    @property
    def score_variances(self) -> Floats:
        """Variance of each problem's scores, ddof = 1; NaN for a problem with fewer than two samples."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.valid > 1, self.sds**2 * self.valid / (self.valid - 1), np.nan)

    @property
    def split(self) -> VarianceSplit | None:
        """Variance of scores within and between problems, over problems with at least two samples."""
        several = self.valid > 1
        return variance_split(self.means[several], self.score_variances[several], self.valid[several])

    def begun(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of the problems with at least one valid sample."""
        return values[self.valid > 0]

    def families_of(self, chosen: Any) -> NDArray[np.str_] | None:
        """Return the families of chosen problems (a mask or indexes); None if no problems share a family."""
        return None if self.families is None else self.families[chosen]

    def extremes(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the lowest and the highest possible values of means or pass@1 over all planned samples.

        The lowest assumes that every missing sample fails all tests, the highest that it passes all tests.
        """
        share = self.valid / self.planned
        low = np.where(self.valid > 0, values, 0.0) * share
        return low, low + (1 - share)

    def sampled(self) -> tuple[Floats, NDArray[np.bool_], NDArray[np.int64]]:
        """Return arrays over valid samples: score, all tests passed, and index among the begun problems."""
        places = np.cumsum(self.valid > 0) - 1
        first = np.cumsum([0, *(len(run.problems) for run, _ in self.parts)])
        parts = zip(first[:-1].tolist(), self.rows_by_run(), strict=True)
        found = [places[start + rows["problem"]] for start, (_, rows) in parts]
        rows = self.rows()
        return rows["score"], rows["passed"] == rows["total"], np.concatenate(found)

    def rows(self) -> NDArray[np.void]:
        """Return the result rows of all parts; numbers of problems and texts are those of each run."""
        parts = [part for _, part in self.rows_by_run()]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def rows_by_run(self) -> Iterator[tuple[Run, NDArray[np.void]]]:
        """Yield each run with the entry's result rows, as views."""
        for run, pair in self.parts:
            yield run, run.pair_rows(pair)

    def per_problem(self, of: Callable[[NDArray[np.void]], NDArray[Any]]) -> Floats:
        """Return for each problem the sum of `of(rows)` over its samples."""
        sums = (
            np.bincount(rows["problem"], weights=of(rows), minlength=len(run.problems))
            for run, rows in self.rows_by_run()
        )
        return np.concatenate(list(sums))

    def failed(self, failure: Failure) -> Floats:
        """Return the number of samples of each problem with this failure."""
        return self.per_problem(lambda rows: rows["failure"] == FAILURES.index(failure))


def entries_of(runs: Sequence[Run]) -> tuple[Entry, ...]:
    """Return the entries of several runs, in the order of the runs' plans.

    A model's runs are merged into one entry if no problem occurs in two of them. Otherwise each run gives an
    entry with the label `model @ directory`.
    """
    names = dict(zip(map(id, runs), directory_names([run.directory for run in runs]), strict=True))
    by_pair: defaultdict[tuple[str, Format], list[tuple[Run, int]]] = defaultdict(list)
    for run in runs:
        for number, pair in enumerate(run.pairs):
            by_pair[pair].append((run, number))
    entries = []
    for pair, parts in by_pair.items():
        counts = Counter(problem for run, _ in parts for problem in run.problems)
        if max(counts.values(), default=0) <= 1:
            entries.append(_entry(pair[0], pair, parts))
        else:
            entries += [_entry(f"{pair[0]} @ {names[id(part[0])]}", pair, [part]) for part in parts]
    return tuple(entries)


def ranked(entries: Sequence[Entry], answer_format: Format | None = None) -> list[Entry]:
    """Return the entries in leaderboard order; only those of `answer_format` unless it is None."""
    wanted = (entry for entry in entries if answer_format in (None, entry.format))
    return sorted(wanted, key=attrgetter("rank"))


def _entry(label: str, pair: tuple[str, Format], parts: list[tuple[Run, int]]) -> Entry:
    metrics = parts[0][0].metrics if len(parts) == 1 else _merged(pair, parts)
    rows = list(metrics.problem_rows(*pair))
    infos = {name: info for run, _ in parts for name, info in run.settings.problems.items()}
    families = families_of(infos[row.problem_id] for row in rows)
    return Entry(
        label=label,
        model=pair[0],
        format=pair[1],
        parts=tuple(parts),
        summary=replace(metrics.summary(*pair), model=label),
        problem_ids=tuple(row.problem_id for row in rows),
        places={row.problem_id: place for place, row in enumerate(rows)},
        valid=np.array([row.valid for row in rows], dtype=np.int64),
        planned=np.array([row.planned for row in rows], dtype=np.int64),
        totals=_floats(row.total for row in rows),
        perfect=np.array([row.perfect for row in rows], dtype=np.int64),
        means=_floats(row.mean_score for row in rows),
        passes=_floats(row.pass_at_1 for row in rows),
        sds=_floats(row.sd for row in rows),
        families=None if families is None else np.array(families),
    )


def _merged(pair: tuple[str, Format], parts: list[tuple[Run, int]]) -> Metrics:
    plan = {problem: run.settings.samples for run, _ in parts for problem in run.problems}
    metrics = Metrics({pair: plan})
    for run, _ in parts:
        metrics.add_all(run.metrics, pair)
    return metrics


def _floats(values: Any) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def format_name(answer_format: Format) -> str:
    """Return the name of an answer format or agent in a sentence: `XML`, `mini-swe-agent`."""
    return answer_format if is_agent(answer_format) else answer_format.upper()


def directory_names(directories: Sequence[Path]) -> list[str]:
    """Return the last component of each path, or the whole path if the last component is not unique."""
    often = Counter(each.name for each in directories)
    return [each.name if often[each.name] == 1 else str(each) for each in directories]
