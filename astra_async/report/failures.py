"""Why samples failed: what the program saw, and apart from it what people judged (paper, section 4.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from astra_async.report.load import FAILURES
from astra_async.report.table import WHO, Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.report.entries import Entry
    from astra_async.report.table import Cell
    from astra_async.types import Failure

_KINDS: dict[Failure, str] = {
    "no_report": "No report",
    "build_failure": "Build failed",
    "timeout": "Time-out",
    "out_of_memory": "Out of memory",
    "tampered": "Tampered",
    "refusal": "Refused",
    "truncated": "Cut",
    "context_exceeded": "Context exceeded",
    "format_error": "Unreadable",
    "path_violation": "Bad paths",
}


def automatic_kinds(entries: Sequence[Entry]) -> Table:
    """Samples of each entry by what the program recorded; kinds that never occurred are left out."""
    seen = [kind for kind in _KINDS if any(entry.summary.failures.get(kind) for entry in entries)]
    return Table(
        name="failures",
        title="Outcome of samples, as recorded",
        columns=(
            *WHO,
            Column("valid", "Valid", "count", help="samples"),
            Column("perfect", "All tests passed", "count", help="samples"),
            Column("partial", "Some", "count", help="samples that passed some tests"),
            Column("none_passed", "None", "count", help="tests ran and all of them failed"),
            *(Column(kind, _KINDS[kind], "count") for kind in seen),
        ),
        rows=tuple(_row(entry, seen) for entry in entries),
        notes=("Each sample is counted once; only the first two kinds score above 0.",),
    )


def _row(entry: Entry, seen: Sequence[Failure]) -> tuple[Cell, ...]:
    failures = entry.summary.failures
    partial = sum(
        int(np.count_nonzero((rows["failure"] == FAILURES.index("tests_failed")) & (rows["passed"] > 0)))
        for _, rows in entry.rows_by_run()
    )
    return (
        *entry.who,
        entry.summary.valid,
        int(entry.perfect.sum()),
        partial,
        failures.get("tests_failed", 0) - partial,
        *(failures.get(kind, 0) for kind in seen),
    )
