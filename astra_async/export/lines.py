"""What exports walk through: the believed final lines of a run, one after the other, with their answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from astra_async.running.log import scan
from astra_async.types.records import Flaw, read_key, read_record, read_turn_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from astra_async.report.load import Run
    from astra_async.types import AnswerKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One sample: its final line, and its answer where answers are exported."""

    record: Mapping[str, Any]
    answer: str | None = None


def places(path: Path) -> dict[AnswerKey, tuple[int, int]]:
    """Where each answer stands in completions.jsonl or turns.jsonl: (offset, length in bytes)."""
    found: dict[AnswerKey, tuple[int, int]] = {}
    if path.exists():
        for _, offset, line in scan(path):
            try:
                record = read_record(line)
                key = read_turn_key(record) if "turn" in record else read_key(record)
                found.setdefault(key, (offset, len(line)))
            except Flaw:
                continue
    return found


def lines(run: Run, pair: int, *, with_answers: bool) -> Iterator[Line]:
    """The final lines of one model and format by problem and sample; one is in memory at a time."""
    answers = places(run.directory / "completions.jsonl") if with_answers else {}
    with (run.directory / "results.jsonl").open("rb") as results:
        for row in run.pair_rows(pair):
            results.seek(int(row["offset"]))
            record = orjson.loads(results.read(int(row["length"])))
            yield Line(record=record, answer=_answer(run.directory, answers.get(read_key(record))))


def _answer(directory: Path, place: tuple[int, int] | None) -> str | None:
    if place is None:
        return None
    with (directory / "completions.jsonl").open("rb") as stream:
        stream.seek(place[0])
        return str(read_record(stream.read(place[1]))["text"])
