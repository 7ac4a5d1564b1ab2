"""What is read of a directory's logs under one plan: columns of the results, where all other lines stand."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from astra_async.errors import ConflictError
from astra_async.report.harness import Events
from astra_async.report.sidecar import kept_columns
from astra_async.types.records import Flaw, read_head, read_key, read_record
from astra_async.view.tails import LineIndex, Tail

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from astra_async.report.packing import Columns
    from astra_async.report.run_settings import RunSettings
    from astra_async.view.tails import Line

_EVENTS_KEPT = 100


@dataclass(slots=True)
class Logs:
    """What was read of a directory's logs under one plan; a changed plan begins anew.

    Attributes:
        lines: where the lines of each sample stand, by file; those of the results `columns` know.
        last_events: the last of them, whole.
        events_seen: counted by kind and model, and why samples are missing.
        conflicts: lines that contradict others, and are not counted.
    """

    settings: RunSettings
    columns: Columns
    tails: Mapping[str, Tail]
    lines: Mapping[str, LineIndex] = field(default_factory=lambda: {name: LineIndex() for name in _READERS})
    last_events: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=_EVENTS_KEPT))
    events_seen: Events = field(default_factory=Events)
    conflicts: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, directory: Path, settings: RunSettings) -> Logs:
        """Nothing read yet but what is kept beside the result lines."""
        tails = {name: Tail(directory / f"{name}.jsonl") for name in _READERS}
        columns, lines, size = kept_columns(directory, settings)
        if size:
            tails["results"].skip(lines, size)
        return cls(settings=settings, columns=columns, tails=tails)

    def read_on(self, until: float) -> bool:
        """Read what is new until a time of the monotonic clock; whether anything was. Raises Regrown."""
        changed = False
        for name, tail in self.tails.items():
            while lines := tail.read():
                changed = True
                for line in lines:
                    _READERS[name](self, line)
                if time.monotonic() > until:
                    return True
        return changed

    def flat(self, record: Mapping[str, Any]) -> int:
        """A sample's number, counted through pairs, problems and samples; -1 for none that is planned."""
        try:
            place = self.columns.place(read_key(record))
        except Flaw:
            return -1
        if place is None:
            return -1
        return (place[0] * len(self.columns.problems) + place[1]) * self.columns.samples + place[2]


def _result(logs: Logs, line: Line) -> None:
    try:
        logs.columns.read(*line)
    except ConflictError as error:
        logs.conflicts.append(str(error))


def _into(name: str, before: bytes, *, turn: bool = False) -> Callable[[Logs, Line], None]:
    """A reader that notes where a sample's line stands; fields from `before` on are not parsed."""

    def read(logs: Logs, line: Line) -> None:
        _, offset, content = line
        try:
            record = read_head(content, before)
        except Flaw:
            return  # told by whoever resumes the run
        if turn and "turn" not in record:
            record = read_record(content)
        place, number = logs.flat(record), record.get("turn", 0)
        if place >= 0 and type(number) is int and 0 <= number < 1 << 16:
            logs.lines[name].add(place, offset, len(content), number)

    return read


def _event(logs: Logs, line: Line) -> None:
    _, offset, content = line
    try:
        record = read_record(content)
    except Flaw:
        return
    logs.lines["events"].add(logs.flat(record), offset, len(content))
    logs.last_events.append(record)
    logs.events_seen.add(record)


_READERS: dict[str, Callable[[Logs, Line], None]] = {
    "results": _result,
    "completions": _into("completions", b"text"),
    "outputs": _into("outputs", b"output"),
    "turns": _into("turns", b"feedback", turn=True),
    "turn_results": _into("turn_results", b"tests", turn=True),
    "events": _event,
    "calls": _into("calls", b"step"),
}
