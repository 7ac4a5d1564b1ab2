"""What exports walk through: the believed final lines of a run, one after the other, with their answers."""

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
    """Where each answer stands in completions.jsonl or turns.jsonl: (offset, length in bytes)."""
    found: dict[AnswerKey, tuple[int, int]] = {}
    for key, place, _ in valid_records(path):
        found.setdefault(key, place)
    return found


def lines(run: Run, pair: int, *, with_answers: bool) -> Iterator[tuple[Mapping[str, Any], str | None]]:
    """Final lines and, if asked for, answers of a model and format; one sample is in memory at a time."""
    log = run.directory / "completions.jsonl"
    answers = places(log) if with_answers else {}
    for record in run.lines(run.pair_rows(pair)):
        place = answers.get(read_key(record))
        yield record, str(read_record(read_at(log, *place))["text"]) if place else None


def usage_of(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """A sample's tokens by the names that others agree on; None where the provider did not say them."""
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
