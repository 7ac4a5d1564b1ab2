"""`calls.jsonl` of a run directory: one line for each model call that an agent has made, before it is served.

A request is recorded by what makes it of an earlier one of the same sample (`since`, a step; None: of
nothing), so that the file grows with what is said and not with its square. A line with `failed` is a call
that brought no answer: it cost something, or the provider refused its body for good (`refused`: its words).
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from astra_async.errors import StorageError
from astra_async.files import storage_error
from astra_async.log import AppendLog, encode, now_utc, scan
from astra_async.types import Completion, SampleKey, ToolCall, Usage
from astra_async.types.records import SCHEMA, Flaw, read_key, read_named, read_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from astra_async.agents.requests import Json
    from astra_async.types import AnswerKey

_OF_COMPLETION = frozenset(
    {
        *("text", "finish_reason", "returned_model", "ttft_s", "latency_s", "attempts", "cost_usd"),
        *("cost_estimated", "native"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One answered call of a sample; `seconds` is how long it was under way, waiting included."""

    step: int
    sha256: str
    completion: Completion
    seconds: float
    since: int | None
    request: Json
    translated: bool = False
    removed: tuple[str, ...] = ()
    at: str = ""


class CallLog:
    """The file, open for appending, or without a `log` for reading only; `keep` appends a line, loses none.

    The calls of lines that cannot be read are asked again. `paid_usd` sums what was appended, by model.
    """

    def __init__(
        self,
        path: Path,
        log: AppendLog | None = None,
        keep: Callable[[AppendLog, bytes], tuple[int, int]] = AppendLog.append_line,
    ) -> None:
        self.path = path
        self._keep = keep
        self._log = log
        self.paid_usd: defaultdict[str, float] = defaultdict(float)
        self._places: defaultdict[SampleKey, list[tuple[int, int]]] = defaultdict(list)
        self._appended = self._synced = 0
        self._syncing = asyncio.Lock()
        for _, offset, line in scan(path):
            with suppress(Flaw):
                self._places[read_key(read_named(line))].append((offset, len(line)))

    @classmethod
    def open(cls, path: Path) -> CallLog:
        """The log at `path`, of which a torn last line is cut off. Raises StorageError."""
        return cls(path, AppendLog.open(path))

    def records(self, key: AnswerKey) -> Iterator[Json]:
        """The lines of a sample's answered calls, in the order in which they ended. Raises StorageError."""
        return self._lines(key.first)

    def of(self, key: AnswerKey) -> list[RecordedCall]:
        """The answered calls of a sample, in the order in which they ended. Raises StorageError."""
        found = []
        for line in self._lines(key.first):
            with suppress(Flaw, KeyError, TypeError, ValueError):
                found.append(recorded_call(line))
        return found

    def refused(self, key: AnswerKey) -> list[tuple[str, str]]:
        """Bodies of a sample that the provider refused: their hashes, and its words. Raises StorageError."""
        lines = self._lines(key.first, failed=True)
        return [(line["sha256"], line["refused"]) for line in lines if line.get("refused")]

    async def append(self, key: AnswerKey, line: Json) -> None:
        """Write a line, and return when it is on the disk. Raises StorageError."""
        if self._log is None:
            raise StorageError(f"{self.path}: open for reading only")
        first = key.first
        named = {"schema": SCHEMA, **first._asdict(), **line, "at": now_utc()}
        place = self._keep(self._log, encode(named))
        self._places[first].append(place)
        self.paid_usd[first.model] += line.get("cost_usd") or 0.0
        self._appended += 1
        mine = self._appended
        async with self._syncing:  # one sync is for all that were written before it began
            if self._synced < mine:
                upto = self._appended
                await asyncio.to_thread(self._log.sync)
                self._synced = upto

    def _lines(self, key: SampleKey, *, failed: bool = False) -> Iterator[Json]:
        if key not in self._places:
            return
        try:
            with self.path.open("rb") as stream:
                for offset, length in self._places[key]:
                    record = read_record(os.pread(stream.fileno(), length, offset))
                    if bool(record.get("failed")) == failed:
                        yield record
        except OSError as error:
            raise storage_error(self.path, error) from error


def fields_of_answer(completion: Completion) -> Json:
    """A completion as a line holds it."""
    kept: Json = {name: getattr(completion, name) for name in sorted(_OF_COMPLETION)}
    kept |= {"usage": completion.usage, "calls": completion.calls, "repairs": completion.repairs}
    return kept


def recorded_call(line: Json) -> RecordedCall:
    """The call that a line holds. Raises KeyError, TypeError or ValueError for one that was damaged."""
    known = {each.name for each in fields(Usage)}
    usage = Usage(**{name: value for name, value in (line.get("usage") or {}).items() if name in known})
    completion: dict[str, Any] = {name: line[name] for name in _OF_COMPLETION if name in line}
    completion |= {"usage": usage, "calls": tuple(ToolCall(**call) for call in line.get("calls") or ())}
    return RecordedCall(
        step=line["step"],
        sha256=line["sha256"],
        completion=Completion(**completion, repairs=tuple(line.get("repairs") or ())),
        seconds=line.get("seconds") or 0.0,
        since=line.get("since"),
        request=line["request"],
        translated=bool(line.get("translated")),
        removed=tuple(line.get("removed") or ()),
        at=line.get("at") or "",
    )
