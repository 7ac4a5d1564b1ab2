"""Reasons why samples of a run directory have no answer, from its events."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args

from astra_async.running.recorded import readable_records, valid_records
from astra_async.types import SampleKey, Trouble
from astra_async.types.records import Flaw, read_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from astra_async.report.load import Run
    from astra_async.types import AnswerKey

_DISABLED: Mapping[str, Trouble] = {"budget": "over_budget", "pool_failed": "provider_error"}


def missing_by_kind(run: Run, answered: AbstractSet[AnswerKey]) -> dict[str, int]:
    """Count the keys without an answer by the kind of their last error.

    All unanswered samples of a model that the last invocation disabled have the kind of that error, because
    most of them were never requested and have no event.
    """
    troubles, events = get_args(Trouble), run.directory / "events.jsonl"
    last = {key: event["kind"] for key, _, event in valid_records(events) if event.get("kind") in troubles}
    kinds = {key: kind for key, kind in last.items() if key not in answered}
    disabled = {event["model"]: _DISABLED[event["kind"]] for event in _disabling(run.directory)}
    places: list[list[int]] = run.missing.tolist()
    unanswered = {SampleKey(*run.pairs[pair], run.problems[at], sample) for pair, at, sample in places}
    kinds |= {key: disabled[key.model] for key in unanswered - answered if key.model in disabled}
    return dict(Counter(kinds.values()))


def sufficient_budget_usd(path: Path) -> float | None:
    """Return a budget that continues the last invocation; None if no budget ended its requests."""
    found = [event.get("raise_to_usd") for event in _disabling(path)]
    return max((usd for usd in found if isinstance(usd, float)), default=None)


def _disabling(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the events with which the last invocation disabled a model."""
    since = ""
    with suppress(OSError, Flaw):
        since = str(read_record((path / "live.json").read_bytes()).get("since") or "")
    for _, event in readable_records(path / "events.jsonl"):
        if event.get("kind") in _DISABLED and event.get("model") and str(event.get("at")) >= since:
            yield event
