"""Files and batches of a simulated provider, independent of the interface.

A batch is processed at once, at its end; its requests are billed then. The faults of successive batches are
those listed in the setting `batch_faults`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping  # noqa: TC003 - fields of dataclasses
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from astra_async.simulate.draws import digest

if TYPE_CHECKING:
    from astra_async.simulate.limits import Clocks
    from astra_async.types.simulation import BatchFault, SimulationSettings

Phase = Literal["validating", "in_progress", "canceling", "completed", "failed", "expired", "cancelled"]
Fate = Literal["answered", "errored", "expired", "cancelled"]
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_BROKEN = b'{"error":{"message":"The server had an error.","type":"server_error","code":null,"param":null}}'
_VALIDATED = 0.2  # share of the delay
SOME = 2  # number of requests for which a fault lasts


@dataclass(slots=True)
class BatchLine:
    """One request of a batch; `answer` returns the status and body that a normal request would get."""

    custom_id: str
    tokens: int
    answer: Callable[[], tuple[int, bytes]]
    fate: Fate | None = None
    status: int = 0
    body: bytes = b"{}"


@dataclass(slots=True, kw_only=True)
class Batch:
    """One batch; `about` has fields of the create request to return, `results` names its files."""

    id: str
    family: str
    lines: list[BatchLine]
    created_s: float
    created_unix: float
    fault: BatchFault
    about: Mapping[str, Any] = field(default_factory=dict)
    phase: Phase = "validating"
    why: str = ""
    canceled_s: float | None = None
    looks: int = 0
    looks_at_end: int = 0
    fetches: int = 0
    results: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """True if the batch can no longer change."""
        return self.phase in _ENDED

    @property
    def names_files(self) -> bool:
        """True if the JSON form names the result files."""
        has_looked_often = self.looks_at_end > SOME or self.fault != "late"
        return self.has_ended and self.fault != "never" and has_looked_often

    def at(self, later_s: float = 0.0) -> str:
        """Return the creation time plus `later_s`, in ISO 8601."""
        return datetime.fromtimestamp(self.created_unix + later_s, UTC).isoformat()

    def having(self, *fates: Fate) -> list[BatchLine]:
        """Return the lines with one of these fates, in an order different from the request's."""
        lines = [line for line in self.lines if line.fate in fates]
        random.Random(self.id).shuffle(lines)  # noqa: S311 - an order
        if self.fault == "missing":
            lines = lines[: -max(1, len(lines) // 5)]
        return lines * 2 if self.fault == "duplicates" else lines

    def written(self, *fates: Fate) -> list[BatchLine]:
        """Like `having`, but as written in result files, including faults."""
        lines = self.having(*fates)
        if self.fault == "short":
            lines = lines[: -max(1, len(lines) // 5)]
        if self.fault == "tries":
            broken = [replace(line, fate="errored", status=500, body=_BROKEN) for line in lines]
            lines = [each for pair in zip(broken, lines, strict=True) for each in pair]
        return lines


class BatchStore:
    """All files and batches, in order of creation.

    `processed` counts billed requests; `faults` yields the faults of the next batches.
    """

    def __init__(self, settings: SimulationSettings, clocks: Clocks) -> None:
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, Batch] = {}
        self.processed = 0
        self._settings = settings
        self._clocks = clocks
        self.faults = iter(settings.batch_faults)
        self._numbers = count(1)

    def name(self, prefix: str) -> str:
        """Return a unique name, also across restarts of the server."""
        return f"{prefix}{digest(f'{self._clocks.unix()}/{next(self._numbers)}')[:20]}"

    def keep(self, prefix: str, content: bytes) -> str:
        """Store a file and return its name."""
        name = self.name(prefix)
        self.files[name] = content
        return name

    def keep_results(self, batch: Batch, prefix: str, contents: Mapping[str, bytes]) -> None:
        """Store a batch's result files by the interface's names; delete them if the fault is "vanish"."""
        batch.results = {what: self.keep(prefix, content) for what, content in contents.items()}
        if batch.fault == "vanish":
            for name in batch.results.values():
                del self.files[name]

    def create(
        self, family: str, prefix: str, lines: list[BatchLine], fault: BatchFault, about: Mapping[str, Any]
    ) -> Batch:
        """Create a batch that starts now."""
        batch = Batch(
            id=self.name(prefix),
            family=family,
            lines=lines,
            created_s=self._clocks.monotonic(),
            created_unix=self._clocks.unix(),
            fault=fault,
            about=about,
        )
        self.batches[batch.id] = batch
        return batch

    def of(self, family: str) -> list[Batch]:
        """Return the current batches of an interface, newest first."""
        found = [batch for batch in self.batches.values() if batch.family == family]
        return [self.refreshed(batch) for batch in reversed(found)]

    def cancel(self, batch: Batch) -> None:
        """Cancel a batch; it ends soon and keeps the half that is finished."""
        if not self.refreshed(batch).has_ended and batch.canceled_s is None:
            batch.canceled_s, batch.phase = self._clocks.monotonic(), "canceling"

    def refreshed(self, batch: Batch) -> Batch:
        """Update a batch to the current time and return it."""
        if batch.has_ended:
            return batch
        now, delay_s = self._clocks.monotonic(), self._settings.batch_delay_s
        if batch.canceled_s is not None:
            if now >= batch.canceled_s + _VALIDATED * delay_s:
                self._process(batch, "cancelled", len(batch.lines) // 2)
            return batch
        if now < batch.created_s + _VALIDATED * delay_s:
            return batch
        if batch.fault == "invalid":
            batch.phase, batch.why = "failed", "invalid"
        elif batch.phase == "validating" and self.is_over(batch):
            batch.phase, batch.why = "failed", "token_limit_exceeded"
        else:
            batch.phase = "in_progress"
        if not batch.has_ended and now >= batch.created_s + delay_s:
            expires = batch.fault == "expire"
            self._process(
                batch, "expired" if expires else "completed", len(batch.lines) // (2 if expires else 1)
            )
        return batch

    def is_over(self, batch: Batch) -> bool:
        """Return True if earlier batches leave too few enqueued tokens for this batch."""
        most = self._settings.batch_enqueued_tokens
        others = (each for each in self.batches.values() if each is not batch and not each.has_ended)
        tokens = sum(line.tokens for each in others if each.phase != "validating" for line in each.lines)
        return most is not None and tokens + sum(line.tokens for line in batch.lines) > most

    def _process(self, batch: Batch, phase: Phase, finished: int) -> None:
        for number, line in enumerate(batch.lines):
            if number >= finished:
                line.fate = "expired" if phase == "expired" else "cancelled"
            elif batch.fault == "errors" and number % 3 == 0:
                line.fate, line.status, line.body = "errored", 500, _BROKEN
            else:
                line.status, line.body = line.answer()
                line.fate = "answered" if line.status == 200 else "errored"  # noqa: PLR2004 - HTTP
                self.processed += line.fate == "answered"
        batch.phase = phase
