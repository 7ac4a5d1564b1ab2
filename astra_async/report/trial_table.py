"""Which samples were tried by twins (docs/integrity.md), what that showed, and where there is no twin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from astra_async.report.packing import FAILURES, TRIALS
from astra_async.report.table import WHO, Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.report.entries import Entry
    from astra_async.report.load import Run
    from astra_async.report.table import Cell
    from astra_async.types import TrialState

_TAMPERED = FAILURES.index("tampered")


def trials(runs: Sequence[Run], entries: Sequence[Entry]) -> Table:
    """One row for each model and format: samples above the untouched project's score, and who was tried."""
    rows = [row for entry in entries if entry.summary.valid and (row := _row(entry)) is not None]
    return Table(
        name="trials",
        title="Trials by twin",
        columns=(
            *WHO,
            Column("due", "Above the untouched project", "count", help="samples"),
            Column("tried", "Tried", "count", help="the same tests, made to fail"),
            Column("equal", "Equal to one tried", "count"),
            Column("not_drawn", "Not drawn", "count", help="more would take over 40 %"),
            Column("no_twin", "Without a twin", "count"),
            Column("tampered", "Tampered", "count"),
            Column("share", "Share tried", "percent"),
            Column("time", "Trials / scored runs", "percent", help="time"),
        ),
        rows=tuple(rows),
        notes=tuple(_notes(runs)) if rows else ("Nobody was tried: --canary off, or nothing was graded.",),
    )


def _row(entry: Entry) -> tuple[Cell, ...] | None:
    counts = dict.fromkeys(TRIALS, 0)
    tampered, trial_s, test_s = 0, 0.0, 0.0
    for _, rows in entry.rows_by_run():
        for number, times in zip(*np.unique(rows["trial"], return_counts=True), strict=True):
            counts[TRIALS[int(number)]] += int(times)
        tampered += int(np.count_nonzero(rows["failure"] == _TAMPERED))
        trial_s += float(rows["trial_s"].sum())
        test_s += float(np.nansum(rows["test_s"]))
    states: tuple[TrialState, ...] = ("tried", "equal", "not_drawn", "no_twin")
    due = sum(counts[state] for state in states)
    if not due and not counts["not_due"]:
        return None
    tried = counts["tried"] + counts["equal"]
    return (
        *entry.who,
        due,
        *(counts[state] for state in states),
        tampered,
        tried / due if due else None,
        trial_s / test_s if test_s else None,
    )


def _notes(runs: Sequence[Run]) -> list[str]:
    without, left_out = dict[str, None](), dict[str, int]()
    for run in runs:
        for number, name in enumerate(run.problems):
            rows = run.problem_rows(number)
            if np.any(rows["trial"] == TRIALS.index("no_twin")):
                without[name] = None
            elif len(rows) and (count := int(rows["trial_left_out"].max())):
                left_out[name] = count
    notes = ["A sample is tampered where a test that has to fail is reported as passed."]
    if without:
        notes.append(
            f"No twin: {', '.join(without)}. Their tests are in no language that can be rewritten; solutions"
            " were tried without any tests instead, which shows less."
        )
    if left_out:
        listed = ", ".join(f"{name} {count}" for name, count in left_out.items())
        notes.append(f"Tests of computed names, which prove less: {listed}.")
    return notes
