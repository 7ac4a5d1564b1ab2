"""Result lines packed into columns, one record of numbers for each sample, as the lines come.

A million lines take about 150 MB: texts are interned, answers and output tails stay on disk and are found
again by `offset` and `length`. Every planned sample has its place in one block of memory, in the order
(model and format, problem, sample), so that nothing computed from it depends on the order of the lines.
"""

from __future__ import annotations

import json
import math
import struct
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from astra_async.errors import ConflictError
from astra_async.metrics import Metrics
from astra_async.surrogates import without_surrogates
from astra_async.types import REUSED, Failure, FinishReason, TrialState
from astra_async.types.records import Disbelieved, Flaw, check_result, check_schema, read_key, read_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from astra_async.report.load import RunSettings
    from astra_async.types import SampleKey, Status

FAILURES: tuple[Failure | None, ...] = (None, *get_args(Failure))
FINISHES: tuple[FinishReason, ...] = get_args(FinishReason)
TRIALS: tuple[TrialState, ...] = get_args(TrialState)
STATUSES: tuple[Status, ...] = ("scored", "no_solution")

# Fields that are packed as they are: counts, or 0, and numbers, or NaN, where nothing is recorded.
_COUNTS = (
    *("attempts", "input_characters", "output_characters", "files_changed", "lines_written"),
    "trial_left_out",
)
_TOKENS = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
_NUMBERS = ("exit_code", "cost_usd", "ttft_s", "latency_s", "test_s")
_ROW: tuple[tuple[str, str], ...] = (  # name and type of each packed field, in the order of _values
    ("present", "B"),
    *((name, "I") for name in ("pair", "problem", "sample", "passed", "total")),
    *((name, "B") for name in ("status", "failure", "finish", "trial")),
    ("trial_s", "d"),
    ("reused", "B"),  # the verdict is another sample's: the tests did not run
    *((name, "B") for name in ("timed_out", "cost_estimated")),
    *((name, "I") for name in (*_COUNTS, "extra_tests", "dropped")),
    *((name, "d") for name in (*_TOKENS, *_NUMBERS)),
    # these six are numbers of texts in `Columns.texts`
    *((name, "I") for name in ("repairs", "suspicions", "prompt", "image", "node", "returned_model")),
    ("solution", "Q"),  # leading 60 bits of solution_sha256; 0 without a solution
    ("outcomes", "q"),  # hash of the outcomes in their order, to see equal answers judged differently
    ("verdict", "I"),  # number in `Columns.verdicts`
    ("finished", "d"),  # seconds since 1970, NaN when not recorded
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

Place = tuple[int, int, int]  # numbers of pair, problem and sample


class Columns:
    """A run's result lines as columns; lines may be added while others look.

    Attributes:
        places: one packed record for each planned sample, by pair, problem and sample; `present` says
            whether its line was read.
        pairs, problems, texts: what the numbers in them stand for, by name.
        verdicts: what the numbers in `verdict` stand for: a problem's number, the names of its tests, and
            which of them passed (bit i for the i-th). Number 0 is a sample without tests.
        metrics: the paper's metrics over the lines read.
        started_at, finished_at: first start and last end of the samples, as recorded.
    """

    def __init__(self, settings: RunSettings, path: Path) -> None:
        pairs = [(model, answer_format) for model in settings.models for answer_format in settings.formats]
        self.path = path
        self.pairs = {pair: number for number, pair in enumerate(pairs)}
        self.problems = {problem: number for number, problem in enumerate(settings.problems)}
        self.samples = settings.samples
        self.texts: dict[str, int] = {"": 0}
        self.verdicts: list[tuple[int, tuple[str, ...], int]] = [(-1, (), 0)]
        self.metrics = Metrics(dict.fromkeys(pairs, dict.fromkeys(self.problems, settings.samples)))
        self.started_at = ""
        self.finished_at = ""
        self._warnings = list(settings.warnings)
        self._disbelieved = Disbelieved("results.jsonl")
        self._last_names: dict[int, tuple[list[str], dict[int, int]]] = {}
        self._numbers: dict[tuple[int, tuple[str, ...]], dict[int, int]] = {}
        # zeros cost no memory until they are written: a plan may be far larger than what there is
        shape = len(self.pairs), len(self.problems), settings.samples
        places = np.zeros(math.prod(shape) * _PACK.size, dtype=np.uint8)
        self._buffer = memoryview(places)  # type: ignore[arg-type]  # numpy's stubs lack the buffer
        self.places = places.view(_DTYPE).reshape(shape)
        self._unplanned = 0
        self._first_unplanned = ""

    def read(self, number: int, offset: int, line: bytes) -> None:
        """Pack one line; what is not believed becomes a warning.

        Raises ConflictError when it contradicts an earlier line or the plan; it is not counted then.
        """
        record: dict[str, Any] = {}
        try:
            record = read_line(line)
            place = self.place(read_key(record))
            check_schema(record, f"{self.path} line {number}")
            check_result(record)
            if place is None:
                self._note_unplanned(read_key(record))
                return
            at = ((place[0] * len(self.problems) + place[1]) * self.samples + place[2]) * _PACK.size
            if self._buffer[at]:
                self._check_twin(number, (offset, len(line)), place)
                return
            packed = _PACK.pack(1, *place, *self._values(record, place[1]), offset, len(line))
            self._count(record)
            self._buffer[at : at + _PACK.size] = packed
            self._note_times(record)
        except Flaw as flaw:
            self._disbelieved.add(number, flaw, record)
        except (
            AttributeError,
            IndexError,
            KeyError,
            TypeError,
            ValueError,
            OverflowError,
            struct.error,
        ) as error:
            self._disbelieved.add(number, Flaw(f"malformed ({error})"), record)

    def place(self, key: SampleKey) -> Place | None:
        """Where a sample stands in `places`; None if it is not planned."""
        pair, problem = self.pairs.get((key.model, key.format)), self.problems.get(key.problem_id)
        if pair is not None and problem is not None and key.sample < self.samples:
            return pair, problem, key.sample
        return None

    def warnings(self) -> Iterator[str]:
        """One line for everything that was ignored."""
        yield from self._warnings
        yield from self._disbelieved.warnings(self._is_there)
        if self._unplanned:
            yield (
                f"results.jsonl: {self._unplanned} lines are not part of the plan in run.json and are left "
                f"out (the first: {self._first_unplanned})"
            )

    def outcomes(self) -> dict[tuple[str, tuple[str, ...]], Counter[int]]:
        """By problem and names of its tests, how often each set of them passed."""
        found: dict[tuple[str, tuple[str, ...]], Counter[int]] = {}
        names = list(self.problems)
        often = np.bincount(self.places["verdict"].reshape(-1), minlength=len(self.verdicts)).tolist()
        for (problem, tests, passed), count in zip(self.verdicts[1:], often[1:], strict=True):
            found.setdefault((names[problem], tests), Counter())[passed] = count
        return found

    def _note_unplanned(self, key: SampleKey) -> None:
        self._unplanned += 1
        self._first_unplanned = self._first_unplanned or str(key)

    def _is_there(self, key: SampleKey) -> bool:
        place = self.place(key)
        return place is not None and bool(self.places[place]["present"])

    def _count(self, record: Mapping[str, Any]) -> None:
        try:
            self.metrics.add(
                record["model"],
                record["format"],
                record["problem_id"],
                record["passed"],
                record["total"],
                status=record["status"],
                failure=record["failure"],
            )
        except ConflictError as error:
            raise ConflictError(f"{self.path}: {error}") from error

    def _values(self, record: Mapping[str, Any], problem: int) -> tuple[int | float, ...]:
        get, text = record.get, self._text
        usage = get("usage") or {}
        solution = get("solution_sha256")
        return (
            record["passed"],
            record["total"],
            _STATUS_NUMBERS[record["status"]],
            _FAILURE_NUMBERS[record["failure"]],
            _FINISH_NUMBERS[get("finish_reason") or "stop"],
            _TRIAL_NUMBERS.get(get("trial") or "", 0),
            number_in(get("trial_s") or 0.0),
            (get("note") or "").startswith(REUSED),
            bool(get("timed_out")),
            bool(get("cost_estimated")),
            *[count or 0 for count in map(get, _COUNTS)],
            len(get("extra_tests") or ()),
            len(get("dropped") or ()),
            *map(number_in, (*map(usage.get, _TOKENS), *map(get, _NUMBERS))),
            text(";".join(repairs)) if (repairs := get("repairs")) else 0,
            text(";".join(suspicions)) if (suspicions := get("suspicions")) else 0,
            text(get("prompt_sha256") or ""),
            text(get("image_id") or ""),
            text(get("node") or ""),
            text(get("returned_model") or ""),
            int(solution[:15], 16) if solution else 0,
            hash(tuple([test["outcome"] for test in get("tests") or ()])),
            self._verdict(problem, tests) if (tests := get("tests")) else 0,
            _seconds(get("finished_at") or ""),
        )

    def _text(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))

    def _note_times(self, record: Mapping[str, Any]) -> None:
        started, finished = record.get("started_at"), record.get("finished_at")
        if started and (not self.started_at or started < self.started_at):
            self.started_at = started
        if finished and finished > self.finished_at:
            self.finished_at = finished

    def _verdict(self, problem: int, tests: Sequence[Mapping[str, str]]) -> int:
        names, bit, passed = [], 1, 0
        for test in tests:
            names.append(test["name"])
            if test["outcome"] == "passed":
                passed |= bit
            bit <<= 1
        last = self._last_names.get(problem)
        if last is None or last[0] != names:  # nearly always those of the line before
            numbers = self._numbers.setdefault((problem, tuple(names)), {})
            last = self._last_names[problem] = names, numbers
        number = last[1].setdefault(passed, len(self.verdicts))
        if number == len(self.verdicts):
            self.verdicts.append((problem, tuple(names), passed))
        return number

    def _check_twin(self, number: int, second: tuple[int, int], place: Place) -> None:
        """A second line of the same sample: the same bytes are ignored, anything else is a conflict."""
        row = self.places[place]
        first = int(row["offset"]), int(row["length"])
        if read_at(self.path, *first) == read_at(self.path, *second):
            self._warnings.append(f"results.jsonl line {number}: repeats an earlier line, counted once")
            return
        earlier = next(line for line, offset, _ in lines_of(self.path) if offset == first[0])
        raise ConflictError(
            f"{self.path}: lines {earlier} and {number} contradict each other for the same sample; "
            "remove the wrong one"
        )


def lines_of(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Whole lines as (number from 1, offset, content); what stands behind the last newline is torn."""
    if not path.exists():
        return
    offset = 0
    with path.open("rb", buffering=1 << 20) as stream:
        for number, line in enumerate(stream, 1):
            if line.endswith(b"\n") and len(line) > 1:
                yield number, offset, line[:-1]
            offset += len(line)


def read_at(path: Path, offset: int, length: int) -> bytes:
    """A line again, of which nothing but its place was kept."""
    with path.open("rb") as stream:
        stream.seek(offset)
        return stream.read(length)


def read_line(line: bytes) -> dict[str, Any]:
    """The record in a line, as whoever reads results reads it: texts that UTF-8 can carry. Raises Flaw."""
    record = read_record(line)
    if b"\\ud" in line or b"\\uD" in line:
        record = read_record(without_surrogates(json.dumps(record, ensure_ascii=False)).encode())
    return record


def number_in(value: float | None) -> float:
    """A number of a record, NaN for what is not recorded, and for what is no finite number."""
    return _NAN if value is None or not math.isfinite(value) else value


def _seconds(text: str) -> float:
    """Seconds since 1970; NaN for what is no time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return _NAN
