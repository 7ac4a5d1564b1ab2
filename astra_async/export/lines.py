"""Iteration over the valid result lines of a run, with their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from astra_async.files import read_at
from astra_async.running.recorded import valid_records
from astra_async.types.records import read_key, read_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from astra_async.report.load import Run
    from astra_async.types import AnswerKey


def places(path: Path) -> dict[AnswerKey, tuple[int, int]]:
    """Return (byte offset, length in bytes) of each answer in completions.jsonl or turns.jsonl."""
    found: dict[AnswerKey, tuple[int, int]] = {}
    for key, place, _ in valid_records(path):
        found.setdefault(key, place)
    return found


def lines(run: Run, pair: int, *, with_answers: bool) -> Iterator[tuple[Mapping[str, Any], str | None]]:
    """Yield (result line, answer) of a model and format, with one sample in memory at a time.

    The answer is None unless `with_answers`, or if it is not recorded.
    """
    log = run.directory / "completions.jsonl"
    answers = places(log) if with_answers else {}
    for record in run.lines(run.pair_rows(pair)):
        place = answers.get(read_key(record))
        yield record, str(read_record(read_at(log, *place))["text"]) if place else None


def usage_of(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a sample's tokens under inspect_ai's field names; None if the provider did not report them."""
    usage = record.get("usage") or {}
    sent, written = usage.get("input_tokens"), usage.get("output_tokens")
    if sent is None or written is None:
        return None
    return {
        "input_tokens": sent,
        "output_tokens": written,
        "total_tokens": sent + written,
        "input_tokens_cache_read": usage.get("cached_tokens"),
        "input_tokens_cache_write": usage.get("cache_write_tokens"),
        "reasoning_tokens": usage.get("reasoning_tokens"),
    }
