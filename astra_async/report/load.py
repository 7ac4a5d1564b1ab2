"""A run directory as it is now: its plan, the packed columns of its results, its metrics."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from astra_async.errors import ConflictError, UsageError
from astra_async.files import read_at
from astra_async.report.sidecar import read_columns
from astra_async.running.fingerprint import fingerprint
from astra_async.types.records import newer_version, read_line, read_run, read_tests

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from astra_async.metrics import Metrics
    from astra_async.report.packing import Columns
    from astra_async.types import Format, NamedOutcome

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemInfo:
    """A problem as run.json describes it; None and empty mean: not recorded there."""

    id: str
    name: str = ""
    main_skill: str = ""
    sub_skills: tuple[str, ...] = ()
    family: str = ""
    statement_characters: int | None = None
    input_files: int | None = None
    input_characters: int | None = None
    output_characters: int | None = None  # this and the next two are the reference's
    lines_written: int | None = None
    files_changed: int | None = None
    tests: float | None = None  # that count, as far as its samples say


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """A run's plan and provenance. `models` maps a name to its recorded settings, `samples` is k.

    `deciding` is how `--until` looks at it; its `planned` has k of the models that it has stopped, or not
    yet let on. `turns` is how often a sample may go on after its first answer. `contents` has, by problem, a
    hash of all that makes it the problem it is: statement, project, tests; empty for one of which nothing is
    recorded.
    """

    run_id: str
    created_at: str
    samples: int
    models: Mapping[str, Mapping[str, Scalar]]
    formats: tuple[Format, ...]
    problems: Mapping[str, ProblemInfo]
    turns: int = 0
    deciding: Mapping[str, Any] = field(default_factory=dict)
    simulated: bool = False
    parent: str | None = None
    fingerprints: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    contents: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


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
    return run_of(directory, settings, read_columns(directory, settings))


def run_of(directory: Path, settings: RunSettings, columns: Columns) -> Run:
    """The run as it stands in columns that have been read so far."""
    present = columns.places["present"] == 1
    return Run(
        directory=directory,
        settings=settings,
        rows=columns.rows(),
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
    )


def read_settings(directory: Path) -> RunSettings:
    """Read DIR/run.json; raises UsageError when it is no run directory, ConflictError when broken."""
    path = directory / "run.json"
    try:
        record = read_run(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(
            f"{directory}: no run.json there; give the directory that `astra run --out` wrote"
        ) from error
    try:
        return _settings(record)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConflictError(
            f"{path}: a field is missing or malformed ({error!r}); restore it from a copy"
        ) from error


def _settings(record: Mapping[str, Any]) -> RunSettings:
    parent = record.get("parent")
    return RunSettings(
        run_id=str(record["run_id"]),
        created_at=str(record.get("created_at", "")),
        samples=int(record["samples"]),
        models={str(model["name"]): _scalars(model) for model in record["models"]},
        formats=tuple(record["formats"]),
        problems={name: problem_info(name, problem) for name, problem in record["problems"].items()},
        turns=int(record.get("turns", 0)),
        deciding=record.get("deciding") or {},
        simulated=bool(record.get("simulated", False)),
        parent=None if parent is None else _parent(parent),
        fingerprints={
            kind: {name: str(value) for name, value in names.items()}
            for kind, names in record.get("fingerprints", {}).items()
        },
        contents={name: _content(record, name) for name in record["problems"]},
        versions={name: str(value) for name, value in record.get("versions", {}).items()},
        warnings=newer_version(record, version("astra_async")),
    )


def problem_info(problem_id: str, record: Mapping[str, Any]) -> ProblemInfo:
    """One problem's description, as run.json has it."""
    reference = record.get("reference") or {}
    return ProblemInfo(
        id=problem_id,
        name=record.get("name") or "",
        main_skill=record.get("main_skill") or "",
        sub_skills=tuple(record.get("sub_skills") or ()),
        family=record.get("family") or "",
        **{name: record.get(name) for name in ("statement_characters", "input_files", "input_characters")},
        **{name: reference.get(name) for name in ("output_characters", "lines_written", "files_changed")},
    )


def _content(record: Mapping[str, Any], problem_id: str) -> dict[str, str]:
    """Hashes of a problem's recorded parts by name, as far as there are any: versions may record others.

    How long its tests may take is left out: that is of the grading, as all limits are.
    """
    part = record.get("parts", {}).get("problems", {}).get(problem_id)
    if isinstance(part, dict):
        return {name: fingerprint(value) for name, value in part.items() if name != "timeout_s"}
    whole = record.get("fingerprints", {}).get("problems", {}).get(problem_id)
    return {} if whole is None else {"fingerprint": str(whole)}


def _parent(parent: object) -> str:
    """A regrade names its parent by id, or as an object that holds it."""
    return str(parent.get("run_id", parent)) if isinstance(parent, dict) else str(parent)


def _scalars(model: Mapping[str, Any]) -> dict[str, Scalar]:
    return {
        name: value for name, value in model.items() if isinstance(value, str | int | float) or value is None
    }
