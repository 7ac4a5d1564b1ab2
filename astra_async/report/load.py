"""Loading of a run directory: plan, packed result columns and metrics."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from astra_async.files import read_at
from astra_async.report.packed_row import number_in
from astra_async.report.run_settings import RunSettings, read_settings
from astra_async.report.sidecar import read_columns
from astra_async.report.turn_lines import read_turns
from astra_async.types.records import read_line, read_tests

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from astra_async.metrics import Metrics
    from astra_async.report.packing import Columns
    from astra_async.types import Format, NamedOutcome, TurnKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One loaded run.

    Attributes:
        rows: structured array, one element for each valid sample, sorted by pair, problem and sample.
        bounds: flat array; index pair * number of problems + problem gives the first row of that pair and
            problem. The last element is the number of rows.
        turn_usd: cost in US dollars of the follow-up turns of each row; NaN if the cost of a turn is unknown.
        pairs, problems: meaning of the numbers in `rows["pair"]` and `rows["problem"]`.
        texts: interned texts (hashes, image ids, names of repairs joined by `;`).
        metrics: the paper's metrics over these rows.
        outcomes: by (problem, names of its tests), the number of samples for each set of passed tests; bit i
            of a set is the i-th test.
        missing: planned samples without a result, as rows of (pair, problem, sample) numbers.
        started_at, finished_at: earliest start and latest end of the samples, as recorded.
        warnings: one line for each kind of ignored input.
        turns: the final lines of follow-up turns; empty in the viewer.
    """

    directory: Path
    settings: RunSettings
    rows: NDArray[np.void]
    turn_usd: NDArray[np.float64]
    bounds: NDArray[np.int64]
    pairs: tuple[tuple[str, Format], ...]
    problems: tuple[str, ...]
    texts: tuple[str, ...]
    metrics: Metrics
    outcomes: Mapping[tuple[str, tuple[str, ...]], Mapping[int, int]]
    missing: NDArray[np.int64]
    started_at: str
    finished_at: str
    warnings: tuple[str, ...]
    turns: Mapping[TurnKey, dict[str, Any]] = field(default_factory=dict)

    def pair_rows(self, pair: int) -> NDArray[np.void]:
        """Return the rows of one (model, format), as a view."""
        return self.rows[self._slice(pair)]

    def pair_usd(self, pair: int) -> NDArray[np.float64]:
        """Return the cost in US dollars of each sample of one (model, format); NaN if a part is unknown.

        All attempts and all follow-up turns are included.
        """
        costs: NDArray[np.float64] = self.pair_rows(pair)["cost_usd"] + self.turn_usd[self._slice(pair)]
        return costs

    def _slice(self, pair: int) -> slice:
        first, last = self.bounds[[pair * len(self.problems), (pair + 1) * len(self.problems)]]
        return slice(first, last)

    def problem_rows(self, problem: int, answer_format: Format | None = None) -> NDArray[np.void]:
        """Return a copy of the rows of one problem under all models, in one format or all formats."""
        cells = np.array(
            [
                pair * len(self.problems) + problem
                for pair, (_, used) in enumerate(self.pairs)
                if answer_format in (None, used)
            ],
            dtype=np.int64,
        )
        # Selected by index: concatenating structured arrays is a hundred times slower.
        places = [np.arange(self.bounds[cell], self.bounds[cell + 1]) for cell in cells]
        gathered: NDArray[np.void] = self.rows[np.concatenate([np.arange(0), *places])]
        return gathered

    def line(self, row: np.void) -> dict[str, Any]:
        """Return the whole result record of a row, read from disk."""
        return read_line(read_at(self.directory / "results.jsonl", int(row["offset"]), int(row["length"])))

    def lines(self, rows: NDArray[np.void]) -> Iterator[dict[str, Any]]:
        """Yield the result records of many rows, with one in memory at a time."""
        yield from map(read_line, self.contents(rows))

    def tests(self, rows: NDArray[np.void]) -> Iterator[tuple[NamedOutcome, ...]]:
        """Yield the test outcomes of many rows, with those of one sample in memory at a time."""
        yield from map(read_tests, self.contents(rows))

    def contents(self, rows: NDArray[np.void]) -> Iterator[bytes]:
        """Yield the lines of results.jsonl for many rows, with one in memory at a time."""
        if len(rows):
            with (self.directory / "results.jsonl").open("rb") as stream:
                for offset, length in zip(rows["offset"].tolist(), rows["length"].tolist(), strict=True):
                    yield os.pread(stream.fileno(), length, offset)


def load_run(directory: Path) -> Run:
    """Load a run directory; the run may still be in progress.

    An incomplete last line is ignored. A last line that lacks only its newline is read. Unreadable lines and
    equal duplicates are ignored with a warning.

    Raises:
        UsageError: the directory has no run.json.
        ConflictError: two lines contradict each other, or a line contradicts the plan.
    """
    settings = read_settings(directory)
    columns = read_columns(directory, settings)
    turn_usd = np.zeros(columns.places.shape)
    turns, warnings = read_turns(directory)
    for key, record in turns.items():
        if place := columns.place(key):
            turn_usd[place] += number_in(record.get("cost_usd"))
    run = run_of(directory, settings, columns, turn_usd, in_place=True)
    return replace(run, warnings=(*run.warnings, *warnings), turns=turns)


def run_of(
    directory: Path,
    settings: RunSettings,
    columns: Columns,
    turn_usd: NDArray[np.float64],
    *,
    in_place: bool = False,
) -> Run:
    """Return the run in the columns read so far. With `in_place` the columns must not be used afterwards.

    `turn_usd` is the cost of each sample's follow-up turns, in the shape of `columns.places`.
    """
    present = columns.places["present"] == 1
    return Run(
        directory=directory,
        settings=settings,
        turn_usd=turn_usd[present],
        bounds=np.concatenate([[0], np.cumsum(present.sum(axis=2))]),
        pairs=tuple(columns.pairs),
        problems=tuple(columns.problems),
        texts=tuple(columns.texts),
        metrics=columns.metrics(),
        outcomes=columns.outcomes(),
        missing=np.argwhere(~present & columns.planned[:, None, :]),
        started_at=columns.started_at,
        finished_at=columns.finished_at,
        warnings=tuple(columns.warnings()),
        rows=columns.rows(in_place=in_place),
    )
