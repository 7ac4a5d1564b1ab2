"""Pass@m and pass^m for every m: what a model gives to whoever may try m times, or needs m in a row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from astra_async.report.table import WHO, Column, Table
from astra_async.stats.passes import pass_at, pass_hat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from astra_async.report.entries import Entry
    from astra_async.report.table import Cell


def curves(entries: Sequence[Entry]) -> Table:
    """One row for each entry and m from 1 to the fewest samples that a begun problem of it has."""
    rows = [(entry, row) for entry in entries for row in _rows(entry)]
    return Table(
        name="curves",
        title="Pass@m and pass^m for every m",
        columns=(
            *WHO,
            Column(name="m", title="m", kind="count", help="samples that are looked at"),
            Column(name="pass_at", title="Pass@m %", kind="percent", help="at least one passes all tests"),
            Column(name="pass_hat", title="Pass^m %", kind="percent", help="all m do"),
        ),
        rows=tuple(row for _, row in rows),
        provisional=frozenset(place for place, (entry, _) in enumerate(rows) if not entry.summary.complete),
    )


def _rows(entry: Entry) -> Iterator[tuple[Cell, ...]]:
    begun = entry.valid > 0
    counts = list(zip(entry.valid[begun].tolist(), entry.perfect[begun].tolist(), strict=True))
    for m in range(1, min((k for k, _ in counts), default=0) + 1):
        yield entry.label, entry.format, m, _mean(counts, m, pass_at), _mean(counts, m, pass_hat)


def _mean(counts: Sequence[tuple[int, int]], m: int, function: Callable[[int, int, int], float]) -> float:
    return math.fsum(function(m, k, c) for k, c in counts) / len(counts)
