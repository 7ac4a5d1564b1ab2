"""Several run directories as one grid of models, problems and samples.

Each sample is one byte, in the order (model, problem, sample). Lists of samples never include texts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from astra_async.report.entries import directory_names
from astra_async.report.labels import CLASSES
from astra_async.report.packed_row import STATUSES
from astra_async.types import Failure, SampleKey

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from astra_async.report.run_settings import ProblemInfo
    from astra_async.types import Format
    from astra_async.view.following import Following, State

    Bytes = NDArray[np.uint8]
    Values = Callable[["Board", Following], NDArray[Any]]

MISSING, NO_SOLUTION, NONE_PASSED, PART = 0, 1, 2, 3
WAITING, ALL_PASSED, UNDER_WAY, NOT_PLANNED = 252, 253, 254, 255
_PARTS = 249  # a score p/T is encoded as PART + floor(249 p/T)
_MOST_KINDS = 32
FAILURE_NAMES: tuple[Failure, ...] = get_args(Failure)
_NO_SOLUTION_STATUS = STATUSES.index("no_solution")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model and format in one directory; `run` and `pair` are indices there."""

    name: str
    format: Format
    label: str
    run: int
    pair: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The meaning of the grid's indices, valid until a plan changes.

    Attributes:
        columns: for each run, the grid indices of its problems; empty without a readable run.json.
        samples: the largest k of the runs.
    """

    models: tuple[Model, ...]
    problems: tuple[ProblemInfo, ...]
    columns: tuple[NDArray[np.int64], ...]
    samples: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of models, problems and samples."""
        return len(self.models), len(self.problems), self.samples


class Board:
    """A grid over several run directories, recomputed after changes."""

    def __init__(self, runs: Sequence[Following]) -> None:
        self.runs = tuple(runs)
        self._grid: tuple[tuple[int, ...], Grid] | None = None
        self._cells: tuple[int, Bytes] | None = None

    @property
    def version(self) -> int:
        """A number that increases with every change."""
        return sum(run.version for run in self.runs)

    @property
    def plan(self) -> tuple[int, ...]:
        """A value that changes when indices may change their meaning."""
        return tuple(run.plan for run in self.runs)

    @property
    def state(self) -> State:
        """Return "running" if any run is running, "finished" if all are finished."""
        states = {run.state for run in self.runs}
        if "running" in states:
            return "running"
        return next(iter(states)) if len(states) == 1 else "unknown" if "unknown" in states else "stopped"

    @property
    def grid(self) -> Grid:
        """Return the names for the indices of models, problems and outcomes."""
        if self._grid is None or self._grid[0] != self.plan:
            self._grid = self.plan, _grid_of(self.runs)
        return self._grid[1]

    def cells(self) -> Bytes:
        """Return one byte per sample, ordered by model, problem, sample."""
        version = self.version
        if self._cells is None or self._cells[0] != version:
            self._cells = version, self._filled(NOT_PLANNED, np.uint8, _cells_of).reshape(-1)
        return self._cells[1]

    def column(self, name: str) -> bytes | None:
        """Return a column of COLUMNS for all samples, little-endian; None for an unknown name."""
        if name not in COLUMNS:
            return None
        kind, absent, values = COLUMNS[name]
        filled = self._filled(absent, kind, lambda run: values(self, run))
        return filled.astype(f"<{kind}").tobytes()

    def names(self, field: str) -> list[str]:
        """Return the repairs or suspicions that occur, in order of first occurrence."""
        found: dict[str, None] = {}
        for run in self.runs:
            columns = run.logs.columns
            texts = list(columns.texts)
            for number in np.unique(columns.places[field]):
                found.update(dict.fromkeys(filter(None, texts[number].split(";"))))
        return list(found)

    def totals(self) -> list[int | None]:
        """Return the number of tests (T) of each problem; None if the problem has no results."""
        found = np.zeros(len(self.grid.problems), dtype=np.int64)
        for run, columns in zip(self.runs, self.grid.columns, strict=True):
            here = run.logs.columns.places["total"].max(axis=(0, 2), initial=0)
            found[columns] = np.maximum(found[columns], here)
        return [int(total) or None for total in found]

    def key(self, model: int, problem: int, sample: int) -> SampleKey:
        """Return a sample's key, as used in the records."""
        row = self.grid.models[model]
        return SampleKey(row.name, row.format, self.grid.problems[problem].id, sample)

    def run_of(self, model: int) -> Following:
        """Return the run directory of a model."""
        return self.runs[self.grid.models[model].run]

    def place(self, model: int, problem: int) -> int | None:
        """Return the problem's index in the model's directory; None if the problem is not planned there."""
        found = np.flatnonzero(self.grid.columns[self.grid.models[model].run] == problem)
        return int(found[0]) if len(found) else None

    def cell(self, run: int, flat: int) -> tuple[int, int, int]:
        """Convert a sample's flat index in a run's logs to the grid's (model, problem, sample)."""
        pair, problem, sample = np.unravel_index(flat, self.runs[run].logs.columns.places.shape)
        models = [(model.run, model.pair) for model in self.grid.models]
        return models.index((run, int(pair))), int(self.grid.columns[run][problem]), int(sample)

    def flat(self, model: int, problem: int, sample: int) -> int | None:
        """Convert grid indices to the flat index in the run's logs; None if the sample is not planned."""
        row, here = self.grid.models[model], self.place(model, problem)
        columns = self.runs[row.run].logs.columns
        if here is None or sample >= columns.samples:
            return None
        return (row.pair * len(columns.problems) + here) * columns.samples + sample

    def _filled(self, absent: float, kind: Any, values: Callable[[Following], NDArray[Any]]) -> NDArray[Any]:
        """Return an array over the grid, filled from one array per run."""
        grid = self.grid
        filled = np.full(grid.shape, absent, dtype=kind)
        for number, run in enumerate(self.runs):
            rows = np.flatnonzero([model.run == number for model in grid.models])
            k = run.logs.columns.samples
            filled[np.ix_(rows, grid.columns[number], np.arange(k))] = values(run)
        return filled


def _grid_of(runs: Sequence[Following]) -> Grid:
    plans = [run.logs.columns for run in runs]
    infos = {name: info for run in runs for name, info in run.logs.settings.problems.items()}
    places = {name: place for place, name in enumerate(infos)}
    often = Counter(pair for columns in plans for pair in columns.pairs)
    folders = directory_names([run.directory for run in runs])
    models = []
    for number, (columns, where) in enumerate(zip(plans, folders, strict=True)):
        for (name, fmt), pair in columns.pairs.items():
            label = f"{name} @ {where}" if often[name, fmt] > 1 else name
            models.append(Model(name=name, format=fmt, label=label, run=number, pair=pair))
    return Grid(
        models=tuple(models),
        problems=tuple(infos.values()),
        columns=tuple(
            np.array([places[name] for name in columns.problems], dtype=np.int64) for columns in plans
        ),
        samples=max((columns.samples for columns in plans), default=0),
    )


def _cells_of(run: Following) -> Bytes:
    """Return one byte per sample; the code of a sample without a result depends on the run's state.

    While a process is running, samples with an answer or an agent step are UNDER_WAY, samples lost since the
    process started are MISSING, and all others are WAITING. Otherwise, answers without test results are
    WAITING and all others MISSING. Rounds that `--until` has not begun are NOT_PLANNED.
    """
    places = run.logs.columns.places
    is_running = run.state == "running"
    cells = np.full(places.shape, WAITING if is_running else MISSING, dtype=np.uint8)
    if is_running:
        cells.reshape(-1)[run.logs.lines["calls"].places()] = UNDER_WAY
        for place in run.lost():
            cells[place] = MISSING
    cells[np.broadcast_to(~run.logs.columns.planned[:, None], cells.shape)] = NOT_PLANNED
    answered = run.logs.lines["completions"].places()
    cells.reshape(-1)[answered] = UNDER_WAY if is_running else WAITING
    passed, total = places["passed"].astype(np.int64), np.maximum(places["total"], 1).astype(np.int64)
    rewarded = (_PARTS * places["score"]).astype(np.int64)
    parts = np.where(places["rewarded"] == 1, rewarded, _PARTS * passed // total)
    scored = np.where(places["score"] > 0, PART + parts, NONE_PASSED)
    scored = np.where(passed == total, ALL_PASSED, scored)
    scored = np.where(places["status"] == _NO_SOLUTION_STATUS, NO_SOLUTION, scored)
    return np.where(places["present"] == 1, scored, cells).astype(np.uint8)


def _field(name: str, _: Board, run: Following) -> NDArray[Any]:
    return run.logs.columns.places[name]


def _measured(name: str, _: Board, run: Following) -> NDArray[Any]:
    """Return a numeric field as float, NaN without a result."""
    places = run.logs.columns.places
    return np.where(places["present"], places[name], np.nan)


def _failure(_: Board, run: Following) -> NDArray[Any]:
    found = run.logs.columns.places["failure"].astype(np.int64) - 1  # 0 means no failure
    return np.where(found < 0, NOT_PLANNED, found)


def _any_of(name: str, _: Board, run: Following) -> NDArray[Any]:
    return run.logs.columns.places[name] > 0


def _kinds(name: str, board: Board, run: Following) -> NDArray[Any]:
    """Return bit masks: bit i for entry i of `names`; entries from the 32nd on share the last bit."""
    bits = {kind: 1 << min(i, _MOST_KINDS - 1) for i, kind in enumerate(board.names(name))}
    texts = run.logs.columns.texts
    masks = [reduce(or_, (bits.get(kind, 0) for kind in text.split(";"))) for text in texts]
    found: NDArray[Any] = np.array(masks, dtype=np.uint32)[run.logs.columns.places[name]]
    return found


def _label(_: Board, run: Following) -> NDArray[Any]:
    columns = run.logs.columns
    found = np.zeros(columns.places.shape, dtype=np.uint8)
    for key, given in run.labels.items():
        place = columns.place(key)
        if place is not None:
            found[place] = 1 + list(CLASSES).index(given[0])
    return found


# Name -> element type, value of a sample without a result, and function that computes the column.
COLUMNS: dict[str, tuple[str, float, Values]] = {
    "failure": ("u1", NOT_PLANNED, _failure),
    "repair": ("u4", 0, partial(_kinds, "repairs")),
    "suspicion": ("u4", 0, partial(_kinds, "suspicions")),
    "repaired": ("u1", 0, partial(_any_of, "repairs")),
    "suspicious": ("u1", 0, partial(_any_of, "suspicions")),
    "dropped": ("u1", 0, partial(_any_of, "dropped")),
    "label": ("u1", 0, _label),
    "passed": ("u2", 0, partial(_field, "passed")),
    "score": ("f8", np.nan, partial(_measured, "score")),
    "cost": ("f4", np.nan, partial(_measured, "cost_usd")),
    "tokens_in": ("f4", np.nan, partial(_measured, "input_tokens")),
    "tokens_out": ("f4", np.nan, partial(_measured, "output_tokens")),
    "tests_s": ("f4", np.nan, partial(_measured, "test_s")),
    "seconds": ("f4", np.nan, partial(_measured, "latency_s")),
}
