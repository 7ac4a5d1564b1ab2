"""events.jsonl: why anything waited, was repeated or is missing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_DETAIL_CHARACTERS = 300
_MISSING = ("_error", "budget", "pool_failed")  # ends of the kinds that leave samples missing


Key = tuple[str | None, str | None, str | None, int | None]


@dataclass(slots=True)
class Events:
    """Counts and US dollars by (kind, model), and the last reason by key; None there stands for all.

    The money was spent on calls that left their sample missing: no result line counts it.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    costs: dict[tuple[str, str], float] = field(default_factory=dict)
    reasons: dict[Key, tuple[str, str]] = field(default_factory=dict)
    last: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, record: Mapping[str, Any]) -> None:
        """Count one event."""
        kind, detail = str(record.get("kind", "")), str(record.get("detail", ""))[:_DETAIL_CHARACTERS]
        which = kind, str(record.get("model") or record.get("pool") or "")
        self.counts[which] += 1
        self.costs[which] = self.costs.get(which, 0.0) + (record.get("cost_usd") or 0.0)
        self.last[which] = detail
        if kind.endswith(_MISSING):
            key = record.get("model"), record.get("format"), record.get("problem_id"), record.get("sample")
            self.reasons[key] = (kind, detail)

    def reason(self, model: str, answer_format: str, problem_id: str, sample: int) -> tuple[str, str] | None:
        """(kind, detail) of the last event of a key, else of its problem, else of its model."""
        return (
            self.reasons.get((model, answer_format, problem_id, sample))
            or self.reasons.get((None, None, problem_id, None))
            or self.reasons.get((model, None, None, None))
        )


def read_events(path: Path) -> Events:
    """Read the log; unreadable lines and a torn tail are ignored: nothing is scored by events."""
    events = Events()
    if path.exists():
        with path.open("rb") as stream:
            for line in stream:
                if (record := _record(line)) is not None:
                    events.add(record)
    return events


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = orjson.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
