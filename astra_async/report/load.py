"""A run directory as columns: one packed record of numbers for each result line, nothing else kept.

A million lines take about 150 MB: texts are interned, answers and output tails stay on disk and are found
again by `offset` and `length`. Every planned sample has its place in one block of memory, in the order
(model and format, problem, sample), so that nothing computed from it depends on the order of the lines.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import orjson

from astra_async.errors import ConflictError
from astra_async.metrics import Metrics
from astra_async.report.settings import read_settings
from astra_async.types import REUSED, Failure, FinishReason, Format, TrialState
from astra_async.types.records import Disbelieved, Flaw, check_result, check_schema, read_key, read_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from astra_async.report.settings import RunSettings
    from astra_async.types import SampleKey, Status

FAILURES: tuple[Failure | None, ...] = (None, *get_args(Failure))
FINISHES: tuple[FinishReason, ...] = get_args(FinishReason)
TRIALS: tuple[TrialState, ...] = get_args(TrialState)
STATUSES: tuple[Status, ...] = ("scored", "no_solution")

_ROW: tuple[tuple[str, str], ...] = (  # name and type of each packed field, in the order of _values
    ("present", "B"),
    ("pair", "I"),
    ("problem", "I"),
    ("sample", "I"),
    ("passed", "I"),
    ("total", "I"),
    ("status", "B"),
    ("failure", "B"),
    ("finish", "B"),
    ("timed_out", "B"),
    ("trial", "B"),
    ("trial_s", "d"),
    ("trial_left_out", "I"),
    ("reused", "B"),  # the verdict is another sample's: the tests did not run
    ("exit_code", "f"),  # the optional numbers are floats: NaN means not recorded
    ("input_tokens", "d"),
    ("cached_tokens", "d"),
    ("output_tokens", "d"),
    ("reasoning_tokens", "d"),
    ("cost_usd", "d"),
    ("cost_estimated", "B"),
    ("ttft_s", "d"),
    ("latency_s", "d"),
    ("test_s", "d"),
    ("attempts", "I"),
    ("input_characters", "I"),
    ("output_characters", "I"),
    ("files_changed", "I"),
    ("lines_written", "I"),
    ("extra_tests", "I"),
    ("dropped", "I"),
    ("repairs", "I"),  # these five are numbers of texts in `Run.texts`
    ("suspicions", "I"),
    ("prompt", "I"),
    ("image", "I"),
    ("returned_model", "I"),
    ("solution", "Q"),  # leading 60 bits of solution_sha256; 0 without a solution
    ("outcomes", "q"),  # hash of the outcomes in their order, to see equal answers judged differently
    ("offset", "Q"),
    ("length", "I"),
)
_PACK = struct.Struct("=" + "".join(code for _, code in _ROW))
_DTYPE = np.dtype([(name, f"={code}") for name, code in _ROW])
_NAN = float("nan")
_TRIAL_NUMBERS = {state: number for number, state in enumerate(TRIALS)}
_STATUS_NUMBERS = {status: number for number, status in enumerate(STATUSES)}
_FAILURE_NUMBERS = {failure: number for number, failure in enumerate(FAILURES)}
_FINISH_NUMBERS = {finish: number for number, finish in enumerate(FINISHES)}


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
        gathered: NDArray[np.void] = self.rows[np.concatenate(places)]
        return gathered

    def line(self, row: np.void) -> dict[str, Any]:
        """The whole result record of a row, read again from disk."""
        with (self.directory / "results.jsonl").open("rb") as stream:
            stream.seek(int(row["offset"]))
            record: dict[str, Any] = orjson.loads(stream.read(int(row["length"])))
        return record


def load_run(directory: Path) -> Run:
    """Load a run directory, also one that is still being written.

    A torn last line is ignored, an unreadable one and equal duplicates are ignored with a warning.

    Raises:
        UsageError: it is no run directory.
        ConflictError: two lines contradict each other, or a line contradicts the plan.
    """
    settings = read_settings(directory)
    reader = _Reader(settings, directory / "results.jsonl")
    for number, offset, line in _lines(reader.path):
        reader.read(number, offset, line)
    present = reader.places["present"] == 1
    rows = reader.places.reshape(-1) if bool(present.all()) else reader.places[present]
    return Run(
        directory=directory,
        settings=settings,
        rows=rows,
        bounds=np.concatenate([[0], np.cumsum(present.sum(axis=2))]),
        pairs=tuple(reader.pairs),
        problems=tuple(reader.problems),
        texts=tuple(reader.texts),
        metrics=_metrics(settings, rows, reader),
        outcomes=reader.outcomes,
        missing=np.argwhere(~present),
        started_at=reader.started_at,
        finished_at=reader.finished_at,
        warnings=tuple(reader.all_warnings()),
    )


class _Reader:
    """Packs result lines into the places of their samples; keeps what the numbers stand for."""

    def __init__(self, settings: RunSettings, path: Path) -> None:
        pairs = [(model, answer_format) for model in settings.models for answer_format in settings.formats]
        self.path = path
        self.pairs = {pair: number for number, pair in enumerate(pairs)}
        self.problems = {problem: number for number, problem in enumerate(settings.problems)}
        self.texts: dict[str, int] = {"": 0}
        self.warnings: list[str] = []
        self._settings_warnings = settings.warnings
        self._disbelieved = Disbelieved("results.jsonl")
        self._problem_names = list(self.problems)
        self._last_outcomes: dict[int, tuple[list[str], Counter[int]]] = {}
        self.outcomes: dict[tuple[str, tuple[str, ...]], Counter[int]] = {}
        self.started_at = ""
        self.finished_at = ""
        # zeros cost no memory until they are written: a plan may be far larger than what there is
        shape = len(self.pairs), len(self.problems), settings.samples
        places = np.zeros(math.prod(shape) * _PACK.size, dtype=np.uint8)
        self._buffer = memoryview(places)  # type: ignore[arg-type]  # numpy's stubs lack the buffer
        self.places = places.view(_DTYPE).reshape(shape)
        self._samples = settings.samples
        self._unplanned = 0
        self._first_unplanned = ""

    def read(self, number: int, offset: int, line: bytes) -> None:
        record: dict[str, Any] = {}
        try:
            record = read_record(line)
            place = self._place(read_key(record))
            check_schema(record, f"{self.path} line {number}")
            check_result(record)
            if place is None:
                return
            at = ((place[0] * len(self.problems) + place[1]) * self._samples + place[2]) * _PACK.size
            if self._buffer[at]:
                self._check_twin(number, (offset, len(line)), place)
                return
            _PACK.pack_into(self._buffer, at, 1, *place, *self._values(record), offset, len(line))
            self._note_times(record)
            if tests := record.get("tests"):
                self._note_outcomes(place[1], tests)
        except Flaw as flaw:
            self._disbelieved.add(number, flaw, record)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, struct.error) as error:
            self._disbelieved.add(number, Flaw(f"malformed ({error})"), record)

    def all_warnings(self) -> Iterator[str]:
        yield from self._settings_warnings
        yield from self.warnings
        yield from self._disbelieved.warnings(self._is_there)
        if self._unplanned:
            yield (
                f"results.jsonl: {self._unplanned} lines are not part of the plan in run.json and are left "
                f"out (the first: {self._first_unplanned})"
            )

    def _place(self, key: SampleKey) -> tuple[int, int, int] | None:
        pair, problem = self.pairs.get((key.model, key.format)), self.problems.get(key.problem_id)
        if pair is not None and problem is not None and key.sample < self._samples:
            return pair, problem, key.sample
        self._unplanned += 1
        self._first_unplanned = self._first_unplanned or str(key)
        return None

    def _is_there(self, key: SampleKey) -> bool:
        place = self._place(key)
        return place is not None and bool(self.places[place]["present"])

    def _values(self, record: Mapping[str, Any]) -> tuple[int | float, ...]:
        get, text = record.get, self._text
        usage = get("usage") or {}
        solution = get("solution_sha256")
        return (
            record["passed"],
            record["total"],
            _STATUS_NUMBERS[record["status"]],
            _FAILURE_NUMBERS[record["failure"]],
            _FINISH_NUMBERS[get("finish_reason") or "stop"],
            bool(get("timed_out")),
            _TRIAL_NUMBERS.get(get("trial") or "", 0),
            get("trial_s") or 0.0,
            get("trial_left_out") or 0,
            (get("note") or "").startswith(REUSED),
            _number(get("exit_code")),
            _number(usage.get("input_tokens")),
            _number(usage.get("cached_tokens")),
            _number(usage.get("output_tokens")),
            _number(usage.get("reasoning_tokens")),
            _number(get("cost_usd")),
            bool(get("cost_estimated")),
            _number(get("ttft_s")),
            _number(get("latency_s")),
            _number(get("test_s")),
            get("attempts") or 0,
            get("input_characters") or 0,
            get("output_characters") or 0,
            get("files_changed") or 0,
            get("lines_written") or 0,
            len(get("extra_tests") or ()),
            len(get("dropped") or ()),
            text(";".join(repairs)) if (repairs := get("repairs")) else 0,
            text(";".join(suspicions)) if (suspicions := get("suspicions")) else 0,
            text(get("prompt_sha256") or ""),
            text(get("image_id") or ""),
            text(get("returned_model") or ""),
            int(solution[:15], 16) if solution else 0,
            hash(tuple([test["outcome"] for test in get("tests") or ()])),
        )

    def _text(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))

    def _note_times(self, record: Mapping[str, Any]) -> None:
        started, finished = record.get("started_at"), record.get("finished_at")
        if started and (not self.started_at or started < self.started_at):
            self.started_at = started
        if finished and finished > self.finished_at:
            self.finished_at = finished

    def _note_outcomes(self, problem: int, tests: Sequence[Mapping[str, str]]) -> None:
        names, bit, passed = [], 1, 0
        for test in tests:
            names.append(test["name"])
            if test["outcome"] == "passed":
                passed |= bit
            bit <<= 1
        last = self._last_outcomes.get(problem)
        if last is None or last[0] != names:  # nearly always those of the line before
            key = self._problem_names[problem], tuple(names)
            last = self._last_outcomes[problem] = names, self.outcomes.setdefault(key, Counter())
        last[1][passed] += 1

    def _check_twin(self, number: int, second: tuple[int, int], place: tuple[int, int, int]) -> None:
        """A second line of the same sample: the same bytes are ignored, anything else is a conflict."""
        row = self.places[place]
        first = int(row["offset"]), int(row["length"])
        with self.path.open("rb") as stream:
            if _read_at(stream, *first) == _read_at(stream, *second):
                self.warnings.append(f"results.jsonl line {number}: repeats an earlier line, counted once")
                return
        earlier = next(line for line, offset, _ in _lines(self.path) if offset == first[0])
        raise ConflictError(
            f"{self.path}: lines {earlier} and {number} contradict each other for the same sample; "
            "remove the wrong one"
        )


def _lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Whole lines as (number from 1, offset, content); what stands behind the last newline is torn."""
    if not path.exists():
        return
    offset = 0
    with path.open("rb", buffering=1 << 20) as stream:
        for number, line in enumerate(stream, 1):
            if line.endswith(b"\n") and len(line) > 1:
                yield number, offset, line[:-1]
            offset += len(line)


def _number(value: float | None) -> float:
    return _NAN if value is None else value


def _read_at(stream: Any, offset: int, length: int) -> bytes:
    stream.seek(offset)
    content: bytes = stream.read(length)
    return content


def _metrics(settings: RunSettings, rows: NDArray[np.void], reader: _Reader) -> Metrics:
    plan = dict.fromkeys(reader.problems, settings.samples)
    metrics = Metrics(dict.fromkeys(reader.pairs, plan))
    pairs, problems = list(reader.pairs), list(reader.problems)
    chunk = 100_000  # so that the lists of Python integers stay small
    for start in range(0, len(rows), chunk):
        part = rows[start : start + chunk]
        columns = [
            part[name].tolist() for name in ("pair", "problem", "passed", "total", "status", "failure")
        ]
        for pair, problem, passed, total, status, failure in zip(*columns, strict=True):
            model, answer_format = pairs[pair]
            kind, reason = STATUSES[status], FAILURES[failure]
            try:
                metrics.add(
                    model, answer_format, problems[problem], passed, total, status=kind, failure=reason
                )
            except ConflictError as error:
                raise ConflictError(f"{reader.path}: {error}") from error
    return metrics
