"""Where the line of each key stands in a run directory's logs; what is not believed is told, not counted."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from astra_async.files import read_at
from astra_async.running.log import scan
from astra_async.running.recorded import Place, key_reader, readable
from astra_async.types import SampleKey
from astra_async.types.records import (
    Disbelieved,
    Flaw,
    check_schema,
    counting,
    read_key,
    read_record,
    read_turn_key,
    repeated,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from astra_async.types import AnswerKey

OnRecord = Callable[[Mapping[str, Any]], object]


def ignore(_: Mapping[str, Any]) -> None:
    """Hear of a record, and do nothing."""


def index_log(
    path: Path, index: dict[AnswerKey, Place], check: OnRecord, on_record: OnRecord = ignore
) -> Iterator[str]:
    """Add to the index where each believed line stands; yields what was repaired or ignored, a line each.

    Raises ConflictError (lines that contradict each other, another schema).
    """
    lines: dict[AnswerKey, int] = {}
    read = key_reader(path.name)
    disbelieved = Disbelieved(path.name, read)
    for number, offset, line in scan(path):
        try:
            record = read_record(line)
            key = _interned(read(record))
            check_schema(record, f"{path} line {number}")
            check(record)
        except Flaw as flaw:
            disbelieved.add(number, flaw, line)
            continue
        if key in index:
            earlier = read_at(path, *index[key])
            counts = counting(earlier, line)
            if counts is None:
                yield repeated(path, (lines[key], number), (earlier, line))
            if counts is not line:
                continue
        index[key] = (offset, len(line))
        lines[key] = number
        on_record(record)
    yield from disbelieved.warnings(index.__contains__)


def outputs_at(path: Path) -> dict[AnswerKey, Place]:
    """Where outputs stand; the last one of a key counts."""
    found: dict[AnswerKey, Place] = {}
    for place, record in readable(path):
        with contextlib.suppress(Flaw):
            found[read_turn_key(record) if record.get("turn") else read_key(record)] = place
    return found


def _interned(key: AnswerKey) -> AnswerKey:
    """The same key; a million of them share their names."""
    names = SampleKey(sys.intern(key.model), key.format, sys.intern(key.problem_id), key.sample)
    return names.at(key.turn)
