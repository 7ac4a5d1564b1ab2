"""Verdicts of identical solutions: with `--reuse-identical` the same files are graded once."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from astra_async.types import REUSED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from astra_async.running.directory import RunDirectory
    from astra_async.types import SampleKey

Solved = tuple[str, str]  # a problem's id and the hash of what is applied to its project


class EarlierVerdicts:
    """The first verdict on each solution of a run; a solution that is being graded is waited for.

    Solutions are the same when the files applied to the problem's project are, whoever wrote them. A
    time-out is not used again: it may have been the machine's.
    """

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory
        self._first: dict[Solved, SampleKey] | None = None
        self._locks: dict[Solved, asyncio.Lock] = {}

    @asynccontextmanager
    async def turn(self, key: SampleKey, solution_sha256: str) -> AsyncIterator[Mapping[str, Any] | None]:
        """The final line of an equal sample, or None: then this one is graded and recorded within."""
        solved = (key.problem_id, solution_sha256)
        async with self._locks.setdefault(solved, asyncio.Lock()):
            record = self._known(solved)
            yield record
            if record is None:
                self._index()[solved] = key

    def _known(self, solved: Solved) -> Mapping[str, Any] | None:
        first = self._index().get(solved)
        record = self._directory.result(first) if first else None
        return None if record is None or record["failure"] == "timeout" else record

    def _index(self) -> dict[Solved, SampleKey]:
        if self._first is None:
            self._first = {}
            for key, record in recorded_lines(self._directory):
                if not record["note"].startswith(REUSED):
                    self._first.setdefault((key.problem_id, record["solution_sha256"]), key)
        return self._first


def note_of_reuse(key: SampleKey, first: SampleKey) -> str:
    """The note of a line whose verdict is another sample's."""
    other = (first.model, first.format) != (key.model, key.format)
    return f"{REUSED}{first.sample} reused" + (f" ({first.model}, {first.format})" if other else "")


def recorded_lines(directory: RunDirectory) -> Iterator[tuple[SampleKey, Mapping[str, Any]]]:
    """The final lines of all samples with a solution that earlier calls recorded."""
    for key in list(directory.graded):
        record = directory.result(key)
        if record["status"] == "scored":
            yield key, record
