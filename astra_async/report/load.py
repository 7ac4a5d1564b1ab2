"""A run directory as it is now: its plan, the packed columns of its results, its metrics."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from astra_async.files import read_at
from astra_async.report.run_settings import RunSettings, read_settings
from astra_async.report.sidecar import read_columns
from astra_async.types.records import read_line, read_tests

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from astra_async.metrics import Metrics
    from astra_async.report.packing import Columns
    from astra_async.types import Format, NamedOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One loaded run.

    Attributes:
        rows: structured array, one element for each valid sample, sorted by pair, problem, sample.
        pairs, problems: what the numbers in `rows["pair"]` and `rows["problem"]` stand for.
        texts: interned texts (hashes, image ids, `;`-joined names of repairs).
        metrics: the paper's metrics over these rows.
        bounds: where the rows of each (pair, problem) begin, as one long list, and where the last end.
        outcomes: by problem and names of its tests, how often each set of them passed: bit i of a number is
            the i-th test.
        missing: planned keys without a final line, as (pair, problem, sample) numbers.
        started_at, finished_at: first start and last end of the samples, as recorded.
        warnings: one line for everything that was ignored.
    """

    directory: Path
    settings: RunSettings
    rows: NDArray[np.void]
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

    def pair_rows(self, pair: int) -> NDArray[np.void]:
        """The rows of one (model, format), as a view."""
        first, last = self.bounds[[pair * len(self.problems), (pair + 1) * len(self.problems)]]
        return self.rows[first:last]

    def problem_rows(self, problem: int, answer_format: Format | None = None) -> NDArray[np.void]:
        """The rows of one problem under all models, in one format or all."""
        cells = np.array(
            [
                pair * len(self.problems) + problem
                for pair, (_, used) in enumerate(self.pairs)
                if answer_format in (None, used)
            ],
            dtype=np.int64,
        )
        # gathered by index: concatenating structured arrays costs a hundred times as much for each part
        places = [np.arange(self.bounds[cell], self.bounds[cell + 1]) for cell in cells]
        gathered: NDArray[np.void] = self.rows[np.concatenate([np.arange(0), *places])]
        return gathered

    def line(self, row: np.void) -> dict[str, Any]:
        """The whole result record of a row, read again from disk."""
        return read_line(read_at(self.directory / "results.jsonl", int(row["offset"]), int(row["length"])))

    def lines(self, rows: NDArray[np.void]) -> Iterator[dict[str, Any]]:
        """The result records of many rows, one in memory at a time."""
        yield from map(read_line, self.contents(rows))

    def tests(self, rows: NDArray[np.void]) -> Iterator[tuple[NamedOutcome, ...]]:
        """The tests of many rows' samples, those of one in memory at a time."""
        yield from map(read_tests, self.contents(rows))

    def contents(self, rows: NDArray[np.void]) -> Iterator[bytes]:
        """The lines of many rows as they stand there, one in memory at a time."""
        if len(rows):
            with (self.directory / "results.jsonl").open("rb") as stream:
                for offset, length in zip(rows["offset"].tolist(), rows["length"].tolist(), strict=True):
                    yield os.pread(stream.fileno(), length, offset)


def load_run(directory: Path) -> Run:
    """Load a run directory, also one that is still being written.

    A torn last line is ignored unless it lacks only its newline; an unreadable one and equal duplicates are
    ignored with a warning.

    Raises:
        UsageError: it is no run directory.
        ConflictError: two lines contradict each other, or a line contradicts the plan.
    """
    settings = read_settings(directory)
    return run_of(directory, settings, read_columns(directory, settings), at_last=True)


def run_of(directory: Path, settings: RunSettings, columns: Columns, *, at_last: bool = False) -> Run:
    """The run as it stands in columns that have been read so far; `at_last` they are of no use afterwards."""
    present = columns.places["present"] == 1
    return Run(
        directory=directory,
        settings=settings,
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
        rows=columns.rows(at_last=at_last),
    )
