"""What `--until decided` would have spent on a run of all samples, and what it would have decided."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from astra_async.report.costs import mean_cost_usd
from astra_async.report.deciding import compared, group_of, recorded
from astra_async.report.table import Column, Table
from astra_async.stats.sequential import schedule_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.report.entries import Entry
    from astra_async.report.load import Run
    from astra_async.report.table import Cell

_MOST_MODELS = 8  # models whose run is replayed: pairs grow with the square


def replays(runs: Sequence[Run], entries: Sequence[Entry]) -> Table:
    """What `--until decided` would have spent on complete runs, and what it would have decided."""
    columns = (
        Column("run", "Run"),
        Column("asked", "Samples asked %", "percent", help="of those that the run asked"),
        Column("cost_usd", "Cost $", "usd", help="of the samples asked, at each model's mean"),
        Column("whole_usd", "Of $", "usd", help="what the run has cost"),
        Column("decided", "Decided", "count", help="pairs that are better, worse or equivalent"),
        Column("pairs", "Pairs", "count"),
        Column("same", "Same conclusion", "count", help="pairs, as one look after all samples has it"),
    )
    complete = [run for run in runs if not run.settings.deciding and not len(run.missing)]
    items = [_replayed(run, entries) for run in complete if 1 < len(run.settings.models) <= _MOST_MODELS]
    notes = ("The run as it would have been, from its own samples (docs/deciding.md).",) if items else ()
    return Table.of("looks_replayed", "With --until decided", columns, items, notes=notes)


def _replayed(run: Run, entries: Sequence[Entry]) -> dict[str, Cell]:
    schedule = schedule_of(run.settings.samples)
    groups = {"groups": [group_of(list(run.settings.models), [])]}
    found = compared(run, recorded(schedule, "decided", None) | groups)
    one_look = replace(schedule, rounds=schedule.rounds[-1:], spent=(schedule.alpha,))
    at_end = compared(run, recorded(one_look, "decided", None) | groups)
    last = {
        model: max((each.k for each in found if model in (each.a, each.b)), default=0)
        for model in run.settings.models
    }
    costs = [
        (entry.summary.planned * (mean_cost_usd(entry) or 0.0), last[entry.model] / run.settings.samples)
        for entry in entries
        if any(part is run for part, _ in entry.parts)
    ]
    return {
        "run": str(run.directory),
        "asked": math.fsum(last.values()) / (len(last) * run.settings.samples),
        "cost_usd": math.fsum(cost * share for cost, share in costs) or None,
        "whole_usd": math.fsum(cost for cost, _ in costs) or None,
        "decided": sum(each.state not in ("open", "not separable") for each in found),
        "pairs": len(found),
        "same": sum(one.state == other.state for one, other in zip(found, at_end, strict=True)),
    }
