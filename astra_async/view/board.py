"""Several run directories as one grid: a row for each model of each directory, problems, samples.

Samples are bytes here, one for each, in the order (model, problem, sample); texts never travel in lists.
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
_PARTS = 249  # a share p/T becomes PART + floor(249 p/T)
_MOST_KINDS = 32
FAILURE_NAMES: tuple[Failure, ...] = get_args(Failure)
_NO_SOLUTION_STATUS = STATUSES.index("no_solution")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model under one format in one directory: `run` and `pair` are places there."""

    name: str
    format: Format
    label: str
    run: int
    pair: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """What the numbers of a grid stand for, as long as no plan changes.

    Attributes:
        columns: for each run, the numbers here of its problems; empty without a readable run.json.
        samples: the largest k of the runs.
    """

    models: tuple[Model, ...]
    problems: tuple[ProblemInfo, ...]
    columns: tuple[NDArray[np.int64], ...]
    samples: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Models, problems, samples."""
        return len(self.models), len(self.problems), self.samples


class Board:
    """The grid over run directories that are followed, computed again when something has changed."""

    def __init__(self, runs: Sequence[Following]) -> None:
        self.runs = tuple(runs)
        self._grid: tuple[tuple[int, ...], Grid] | None = None
        self._cells: tuple[int, Bytes] | None = None

    @property
    def version(self) -> int:
        """Grows with every change."""
        return sum(run.version for run in self.runs)

    @property
    def plan(self) -> tuple[int, ...]:
        """Another one when ids may mean something else."""
        return tuple(run.plan for run in self.runs)

    @property
    def state(self) -> State:
        """Running if any is, finished if all are."""
        states = {run.state for run in self.runs}
        if "running" in states:
            return "running"
        return next(iter(states)) if len(states) == 1 else "unknown" if "unknown" in states else "stopped"

    @property
    def grid(self) -> Grid:
        """What ids mean at present."""
        if self._grid is None or self._grid[0] != self.plan:
            self._grid = self.plan, _grid_of(self.runs)
        return self._grid[1]

    def cells(self) -> Bytes:
        """One byte for each sample, by model, problem, sample."""
        version = self.version
        if self._cells is None or self._cells[0] != version:
            self._cells = version, self._filled(NOT_PLANNED, np.uint8, _cells_of).reshape(-1)
        return self._cells[1]

    def column(self, name: str) -> bytes | None:
        """One column of COLUMNS for all samples, little-endian; None for a name that is none."""
        if name not in COLUMNS:
            return None
        kind, absent, values = COLUMNS[name]
        filled = self._filled(absent, kind, lambda run: values(self, run))
        return filled.astype(f"<{kind}").tobytes()

    def names(self, field: str) -> list[str]:
        """Names of repairs or suspicions that occur, in the order in which they were met."""
        found: dict[str, None] = {}
        for run in self.runs:
            columns = run.logs.columns
            texts = list(columns.texts)
            for number in np.unique(columns.places[field]):
                found.update(dict.fromkeys(filter(None, texts[number].split(";"))))
        return list(found)

    def totals(self) -> list[int | None]:
        """T of each problem, from its results; None while there are none."""
        found = np.zeros(len(self.grid.problems), dtype=np.int64)
        for run, columns in zip(self.runs, self.grid.columns, strict=True):
            here = run.logs.columns.places["total"].max(axis=(0, 2), initial=0)
            found[columns] = np.maximum(found[columns], here)
        return [int(total) or None for total in found]

    def key(self, model: int, problem: int, sample: int) -> SampleKey:
        """The sample's key, as the records have it."""
        row = self.grid.models[model]
        return SampleKey(row.name, row.format, self.grid.problems[problem].id, sample)

    def run_of(self, model: int) -> Following:
        """The directory that a model's samples are in."""
        return self.runs[self.grid.models[model].run]

    def place(self, model: int, problem: int) -> int | None:
        """The problem's number in the model's own directory; None if it is not planned there."""
        found = np.flatnonzero(self.grid.columns[self.grid.models[model].run] == problem)
        return int(found[0]) if len(found) else None

    def cell(self, run: int, flat: int) -> tuple[int, int, int]:
        """Numbers here of model, problem and sample, of a sample's number within a run's logs."""
        pair, problem, sample = np.unravel_index(flat, self.runs[run].logs.columns.places.shape)
        models = [(model.run, model.pair) for model in self.grid.models]
        return models.index((run, int(pair))), int(self.grid.columns[run][problem]), int(sample)

    def flat(self, model: int, problem: int, sample: int) -> int | None:
        """The sample's number within its run's logs; None if it is not planned there."""
        row, here = self.grid.models[model], self.place(model, problem)
        columns = self.runs[row.run].logs.columns
        if here is None or sample >= columns.samples:
            return None
        return (row.pair * len(columns.problems) + here) * columns.samples + sample

    def _filled(self, absent: float, kind: Any, values: Callable[[Following], NDArray[Any]]) -> NDArray[Any]:
        """An array over the grid, from one over each run's pairs, problems and samples."""
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
    """A byte for each sample; what has no verdict differs by whether a process is there to bring it.

    While one lives, an answer or an agent's call is under way and all else waits, but for what was lost since
    it began. Without one nothing is under way: answers wait for their tests, and all else is missing. Rounds
    that `--until` has not begun are not planned.
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
    """A number that may not be recorded, NaN then."""
    places = run.logs.columns.places
    return np.where(places["present"], places[name], np.nan)


def _failure(_: Board, run: Following) -> NDArray[Any]:
    found = run.logs.columns.places["failure"].astype(np.int64) - 1  # number 0 is none
    return np.where(found < 0, NOT_PLANNED, found)


def _any_of(name: str, _: Board, run: Following) -> NDArray[Any]:
    return run.logs.columns.places[name] > 0


def _kinds(name: str, board: Board, run: Following) -> NDArray[Any]:
    """Bit i for the i-th of `names`; all from the 32nd on share the last bit."""
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


# Name -> element type, value where there is no result, and how it is worked out.
COLUMNS: dict[str, tuple[str, float, Values]] = {
    "failure": ("u1", NOT_PLANNED, _failure),
    "repair": ("u4", 0, partial(_kinds, "repairs")),
    "suspicion": ("u4", 0, partial(_kinds, "suspicions")),
    "repaired": ("u1", 0, partial(_any_of, "repairs")),
    "suspicious": ("u1", 0, partial(_any_of, "suspicions")),
    "dropped": ("u1", 0, partial(_any_of, "dropped")),
    "label": ("u1", 0, _label),
    "passed": ("u2", 0, partial(_field, "passed")),
    "cost": ("f4", np.nan, partial(_measured, "cost_usd")),
    "tokens_in": ("f4", np.nan, partial(_measured, "input_tokens")),
    "tokens_out": ("f4", np.nan, partial(_measured, "output_tokens")),
    "tests_s": ("f4", np.nan, partial(_measured, "test_s")),
    "seconds": ("f4", np.nan, partial(_measured, "latency_s")),
}
