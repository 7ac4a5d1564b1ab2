"""Which samples were tried by altered tests (docs/integrity.md), what that showed, and where none can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from astra_async.report.packed_row import FAILURES, TRIALS
from astra_async.report.table import WHO, Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.report.entries import Entry
    from astra_async.report.load import Run
    from astra_async.report.table import Cell
    from astra_async.types import TrialState

_TAMPERED = FAILURES.index("tampered")
_DUE: tuple[TrialState, ...] = ("tried", "equal", "not_drawn", "no_trial", "unproven")
_NO_TRIAL = [TRIALS.index("no_trial"), TRIALS.index("no_twin")]
_TRIED: tuple[TrialState, ...] = ("tried", "equal", "unproven")
_DONE = [TRIALS.index(state) for state in _TRIED]


def trial_counts(entry: Entry) -> dict[str, int]:
    """An entry's samples by what became of their trial; `done` of them had one, `tampered` were proven."""
    rows = entry.rows()
    counts = dict(zip(TRIALS, np.bincount(rows["trial"], minlength=len(TRIALS)).tolist(), strict=True))
    counts["no_trial"] += counts["no_twin"]
    tampered = int(np.count_nonzero(rows["failure"] == _TAMPERED))
    return {**counts, "done": sum(counts[state] for state in _TRIED), "tampered": tampered}


def trials(runs: Sequence[Run], entries: Sequence[Entry]) -> Table:
    """One row for each model and format: samples above the untouched project's score, and those tried."""
    columns = (
        *WHO,
        Column("due", "Above the untouched project", "count", help="samples"),
        Column("tried", "Tried", "count", help="the same tests with other answers"),
        Column("equal", "Equal to one tried", "count"),
        Column("not_drawn", "Not drawn", "count", help="more would take over 40 %"),
        Column("no_trial", "Cannot be tried", "count"),
        Column("unproven", "Unproven", "count", help="trials silent"),
        Column("tampered", "Tampered", "count"),
        Column("share", "Share tried", "percent"),
        Column("time", "Trials / scored runs", "percent", help="time"),
    )
    items = [item for entry in entries if entry.summary.valid and (item := _stands(entry))]
    notes = _notes(runs) if items else ["No sample was tried: --trials off, or nothing was graded."]
    return Table.of("trials", "Trials", columns, items, notes=notes)


def _stands(entry: Entry) -> dict[str, Cell]:
    counts = trial_counts(entry)
    trial_s, test_s = float(entry.rows()["trial_s"].sum()), float(np.nansum(entry.rows()["test_s"]))
    due = sum(counts[state] for state in _DUE)
    if not due and not counts["not_due"]:
        return {}
    shares = {"share": counts["done"] / due if due else None, "time": trial_s / test_s if test_s else None}
    return entry.who | counts | shares | {"due": due}


def _notes(runs: Sequence[Run]) -> list[str]:
    without, left_out = dict[str, None](), dict[str, int]()
    for run in runs:
        for number, name in enumerate(run.problems):
            rows = run.problem_rows(number)
            if np.any(np.isin(rows["trial"], _NO_TRIAL)) and not np.any(np.isin(rows["trial"], _DONE)):
                without[name] = None
            elif len(rows) and (count := int(rows["trial_left_out"].max())):
                left_out[name] = count
    notes = ["A sample is tampered where a test and its altered form are both reported as passed."]
    if without:
        notes.append(
            f"No trials: {', '.join(without)}. No test was altered that the reference fails then: a solution"
            " that bends them is not found out."
        )
    if left_out:
        listed = ", ".join(f"{name} {count}" for name, count in left_out.items())
        notes.append(f"Tests that cannot be altered, of which nothing is proven: {listed}.")
    return notes
