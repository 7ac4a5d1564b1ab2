"""The content of a directory's logs under one plan: result columns, and positions of all other lines."""

from __future__ import annotations

import os
import time
from array import array
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from astra_async.errors import ConflictError
from astra_async.files import open_regular
from astra_async.report.harness import Events
from astra_async.report.packed_row import FAILURES, number_in
from astra_async.report.sidecar import cached_columns
from astra_async.types import is_last
from astra_async.types.records import Flaw, read_head, read_key, read_record, score_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from astra_async.report.packing import Columns
    from astra_async.report.run_settings import RunSettings

    Numbers = NDArray[np.int64]


MOST_SAMPLES = 5_000_000
_BLOCK_BYTES = 1 << 20
_MARK_BYTES = 64

Place = tuple[int, int]  # offset and length of a line
Line = tuple[int, int, bytes]  # number from 1, offset, content without its newline


class Regrown(Exception):  # noqa: N818 - what happened to the file
    """The file was truncated or replaced since it was read."""


class Tail:
    """Incremental reader of one growing file of lines.

    Attributes:
        offset: number of bytes read; always at the end of a line.
        lines: number of lines read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self.lines = 0
        self._inode = 0
        self._mark = b""
        self._searched = 0  # bytes after `offset` known to have no newline

    def skip(self, lines: int, size: int) -> None:
        """Skip a number of lines and bytes that are already known. Raises OSError."""
        with self.path.open("rb") as stream:
            self._inode = os.fstat(stream.fileno()).st_ino
            self._mark = os.pread(stream.fileno(), min(_MARK_BYTES, size), max(0, size - _MARK_BYTES))
        self.lines, self.offset = lines, size

    def read(self) -> list[Line]:
        """Return up to about 1 MB of new whole lines; [] at the end. Raises Regrown, OSError."""
        try:
            descriptor = open_regular(self.path)
        except FileNotFoundError:
            if self.offset:
                raise Regrown from None
            return []
        try:
            return self._read(descriptor)
        finally:
            os.close(descriptor)

    def _read(self, descriptor: int) -> list[Line]:
        found = os.fstat(descriptor)
        if self.offset and (found.st_ino != self._inode or found.st_size < self.offset):
            raise Regrown
        self._inode = found.st_ino
        if found.st_size - self.offset <= self._searched:
            return []
        if os.pread(descriptor, len(self._mark), self.offset - len(self._mark)) != self._mark:
            raise Regrown
        block = self._block(descriptor)
        return self._lines(block) if block else []

    def _block(self, descriptor: int) -> bytes:
        """Return the next bytes up to the last newline; empty if the next line is not complete."""
        block = os.pread(descriptor, _BLOCK_BYTES, self.offset + self._searched)
        end = block.rfind(b"\n") + 1
        while not end and block:
            self._searched += len(block)
            block = os.pread(descriptor, _BLOCK_BYTES, self.offset + self._searched)
            end = block.find(b"\n") + 1
        if not end:
            return b""
        length, self._searched = self._searched, 0
        return (os.pread(descriptor, length, self.offset) if length else b"") + block[:end]

    def _lines(self, block: bytes) -> list[Line]:
        found: list[Line] = []
        for line in block.split(b"\n")[:-1]:
            self.lines += 1
            if line:
                found.append((self.lines, self.offset, line))
            self.offset += len(line) + 1
        self._mark = block[-_MARK_BYTES:]
        return found


class LineIndex:
    """Positions of each sample's lines in a file: sample index, follow-up turn, offset, length."""

    def __init__(self) -> None:
        self._places = array("q")
        self._turns = array("I")
        self._offsets = array("Q")
        self._lengths = array("I")

    def add(self, place: int, offset: int, length: int, turn: int = 0) -> None:
        """Add one line."""
        self._places.append(place)
        self._turns.append(turn)
        self._offsets.append(offset)
        self._lengths.append(length)

    def columns(self) -> list[Numbers]:
        """Return sample, offset and length of all lines, in file order."""
        return [np.array(each, dtype=np.int64) for each in (self._places, self._offsets, self._lengths)]

    def places(self) -> Numbers:
        """Return the samples of all lines, in file order."""
        return np.array(self._places, dtype=np.int64)

    def of(self, place: int) -> list[tuple[int, Place]]:
        """Return (follow-up turn, byte range) of each line of one sample, in file order."""
        found = np.flatnonzero(np.frombuffer(self._places, dtype=np.int64) == place) if self._places else ()
        return [(self._turns[i], (self._offsets[i], self._lengths[i])) for i in found]


_EVENTS_KEPT = 100
IGNORED_SHOWN = 20
_LAST = [number for number, failure in enumerate(FAILURES) if is_last(failure)]  # no turn follows
_TURN = np.dtype([("number", "u2"), ("usable", "?"), ("score", "f8"), ("is_last", "?"), ("cost_usd", "f8")])


@dataclass(slots=True)
class Logs:
    """Content of a directory's logs, read with one plan. A changed plan needs a new object.

    Attributes:
        lines: positions of each sample's lines, by file, without result lines (see `columns`).
        last_events: the latest events, with all their fields.
        turns: latest follow-up turn of each sample, in the shape of `columns.places`. `number` is 0 without a
            turn, `score` is valid if `usable` is true, and `is_last` is true if no turn can follow.
            `cost_usd` is the cost of all turns.
        events_seen: counts by kind and model, and reasons why samples are missing.
        ignored_lines: number of ignored lines, which are damaged or contradict other lines.
        conflicts: messages about the first IGNORED_SHOWN of them.
    """

    settings: RunSettings
    columns: Columns
    turns: NDArray[np.void]
    tails: Mapping[str, Tail]
    lines: Mapping[str, LineIndex] = field(default_factory=lambda: {name: LineIndex() for name in _READERS})
    last_events: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=_EVENTS_KEPT))
    events_seen: Events = field(default_factory=Events)
    ignored_lines: int = 0
    conflicts: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, directory: Path, settings: RunSettings) -> Logs:
        """Return logs with only the cached result columns loaded.

        Raises ConflictError for a plan with more than MOST_SAMPLES samples.
        """
        planned = len(settings.models) * len(settings.formats) * len(settings.problems) * settings.samples
        if planned > MOST_SAMPLES:
            raise ConflictError(f"{directory}: {planned} planned samples; the limit is {MOST_SAMPLES}")
        tails = {name: Tail(directory / f"{name}.jsonl") for name in _READERS}
        columns, lines, size = cached_columns(directory, settings)
        if size:
            tails["results"].skip(lines, size)
        turns = np.zeros(columns.places.shape, dtype=_TURN)
        return cls(settings=settings, columns=columns, turns=turns, tails=tails)

    def read_on(self, until: float) -> bool:
        """Read until a monotonic time; return True if there were new lines. Raises Regrown."""
        changed = False
        for name, tail in self.tails.items():
            while lines := tail.read():
                changed = True
                for line in lines:
                    self._read(name, line)
                if time.monotonic() > until:
                    return True
        return changed

    def read_results(self) -> None:
        """Read all results and no texts; for figures of the whole run. Raises Regrown."""
        for name in ("results", "turn_results"):
            while lines := self.tails[name].read():
                for line in lines:
                    self._read(name, line)

    def _read(self, name: str, line: Line) -> None:
        try:
            _READERS[name](self, line)
        except (ConflictError, Flaw) as error:
            self.ignored_lines += 1
            if self.ignored_lines <= IGNORED_SHOWN:
                where = f"{name}.jsonl line {line[0]}: " if isinstance(error, Flaw) else ""
                self.conflicts.append(f"{where}{error}")

    def missing_turns(self) -> NDArray[np.bool_]:
        """Return the samples with a missing follow-up turn, in the shape of `columns.places`."""
        places, turns = self.columns.places, self.turns
        if not self.settings.turns:
            return np.zeros(places.shape, dtype=np.bool_)
        is_over = np.isin(places["failure"], _LAST) | turns["is_last"]
        is_missing: NDArray[np.bool_] = (places["present"] == 1) & ~is_over
        return is_missing & (turns["number"] < self.settings.turns)

    def flat(self, record: Mapping[str, Any]) -> int:
        """Return a sample's flat index over pairs, problems and samples; -1 if it is not planned."""
        try:
            place = self.columns.place(read_key(record))
        except Flaw:
            return -1
        if place is None:
            return -1
        return (place[0] * len(self.columns.problems) + place[1]) * self.columns.samples + place[2]


def _result(logs: Logs, line: Line) -> None:
    logs.columns.read(*line)


def _into(name: str, before: bytes, *, turn: bool = False) -> Callable[[Logs, Line], None]:
    """Return a reader that records a line's position; fields from `before` on are not parsed."""

    def read(logs: Logs, line: Line) -> None:
        _, offset, content = line
        record = read_head(content, before)
        if turn and "turn" not in record:
            record = read_record(content)
        place, number = logs.flat(record), record.get("turn", 0)
        if place >= 0 and type(number) is int and 0 <= number < 1 << 16:
            logs.lines[name].add(place, offset, len(content), number)

    return read


def _turn_result(logs: Logs, line: Line) -> None:
    _TURN_LINE(logs, line)
    record = read_record(line[2])
    try:
        number, failure, status = record["turn"], record["failure"], record["status"]
        score = score_of(record) if status == "scored" else None
    except (LookupError, TypeError, ZeroDivisionError) as error:
        raise Flaw(f"without a field or with a wrong one ({error!r})") from error
    place = logs.flat(record)
    if place < 0 or type(number) is not int:
        return
    latest = logs.turns.reshape(-1)[place]
    if latest["number"] < number < 1 << 16:
        latest["number"], latest["is_last"] = number, is_last(failure)
        latest["cost_usd"] += number_in(record.get("cost_usd"))
        if score is not None:  # an unusable answer changes no files
            latest["usable"], latest["score"] = True, score


def _event(logs: Logs, line: Line) -> None:
    _, offset, content = line
    record = read_record(content)
    logs.lines["events"].add(logs.flat(record), offset, len(content))
    logs.last_events.append(record)
    logs.events_seen.add(record)


_TURN_LINE = _into("turn_results", b"tests", turn=True)
_READERS: dict[str, Callable[[Logs, Line], None]] = {
    "results": _result,
    "completions": _into("completions", b"text"),
    "outputs": _into("outputs", b"output"),
    "turns": _into("turns", b"feedback", turn=True),
    "turn_results": _turn_result,
    "events": _event,
    "calls": _into("calls", b"step"),
}
