"""What agents did, what it took, and what each is worth over another way to ask the same model."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from astra_async.report.costs import mean_cost_usd
from astra_async.report.packing import AGENT_ENDS
from astra_async.report.pairwise import Pair
from astra_async.report.table import WHO, Column, Table, unfinished
from astra_async.types import is_agent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.report.entries import Entry
    from astra_async.report.table import Cell

TEXT = (
    "Agents worked on each problem in a container; a single answer of the same model stands beside them. Time"
    " in which the model answered is apart from the agent's own."
)
_ENDS = {
    "crashed": "Crashed",
    "time": "Out of time",
    "steps": "Out of steps",
    "cost": "Out of money",
    "context": "Context full",
}


def with_agents(entries: Sequence[Entry]) -> list[Entry]:
    """Agents' entries, and single answers of the models that they worked with; none without agents."""
    models = {entry.label for entry in entries if is_agent(entry.format)}
    return [entry for entry in entries if entry.label in models]


def agent_pairs(entries: Sequence[Entry]) -> list[Pair]:
    """Each model's ways to be asked in pairs, where one of the two is an agent: the better mean as A.

    Then the best of all agents' entries against those of other models with other agents.
    """
    pairs = []
    for label in dict.fromkeys(entry.label for entry in with_agents(entries)):
        ways = sorted((entry for entry in entries if entry.label == label), key=lambda entry: entry.rank)
        for a, b in combinations(ways, 2):
            if is_agent(a.format) or is_agent(b.format):
                formats = f"{a.format}/{b.format}"
                pairs.append(Pair(a=a, b=b, a_name=a.name, b_name=b.name, format=formats))
    ranked = sorted((entry for entry in entries if is_agent(entry.format)), key=lambda entry: entry.rank)
    for other in ranked[1:]:
        if other.label != ranked[0].label and other.format != ranked[0].format:
            formats = f"{ranked[0].format}/{other.format}"
            best = ranked[0]
            pairs.append(Pair(a=best, b=other, a_name=best.name, b_name=other.name, format=formats))
    return pairs


def work(entries: Sequence[Entry]) -> Table:
    """Score, money, time and steps of each; ends that never occurred are left out."""
    shown = [entry for entry in with_agents(entries) if entry.summary.valid]
    counts = {entry.name: _ends(entry) for entry in shown}
    seen = [end for end in _ENDS if any(found[end] for found in counts.values())]
    return Table(
        name="agents",
        title="Agents and single answers",
        columns=(
            *WHO,
            Column("valid", "Valid", "count", help="samples"),
            Column("mean_score", "Mean score %", "percent"),
            Column("pass_at_1", "pass@1 %", "percent"),
            Column("cost_per_sample", "$ per sample", "usd"),
            Column("cost_per_pass", "$ per solved", "usd", help="all samples' dollars by the perfect ones"),
            Column("seconds_per_pass", "s per solved", "seconds", help="all samples' time, likewise"),
            Column("model_s", "Model s, median", "seconds", help="in which a call was under way"),
            Column("own_s", "Own s, median", "seconds"),
            Column("steps", "Steps, median", "count", help="model calls that were answered"),
            Column("steps_p90", "Steps, 90 %", "count"),
            *(Column(f"ended_{end}", _ENDS[end], "count", help="samples") for end in seen),
        ),
        rows=tuple(_row(entry, [counts[entry.name][end] for end in seen]) for entry in shown),
        provisional=unfinished(entry.complete for entry in shown),
        notes=("Who ran out of time, steps or money is graded as the project stood then.",) if seen else (),
    )


def _row(entry: Entry, ends: Sequence[int]) -> tuple[Cell, ...]:
    rows = entry.rows()
    perfect, each = int(entry.perfect.sum()), mean_cost_usd(entry)
    by_agent = is_agent(entry.format)
    seconds = rows["model_s"] + rows["own_s"] if by_agent else rows["latency_s"]
    known = seconds[~np.isnan(seconds)]
    return (
        *entry.who,
        len(rows),
        entry.summary.mean_score,
        entry.summary.pass_at_1,
        each,
        None if each is None or not perfect else each * len(rows) / perfect,
        float(known.mean()) * len(rows) / perfect if len(known) and perfect else None,
        _quantile(rows["model_s"] if by_agent else rows["latency_s"], 0.5),
        _quantile(rows["own_s"], 0.5),
        _quantile(rows["steps"], 0.5),
        _quantile(rows["steps"], 0.9),
        *(count if by_agent else None for count in ends),
    )


def _ends(entry: Entry) -> dict[str, int]:
    counts = np.bincount(entry.rows()["agent_end"], minlength=len(AGENT_ENDS)).tolist()
    return {end: counts[AGENT_ENDS.index(end)] for end in _ENDS}


def _quantile(values: np.ndarray[tuple[int], np.dtype[np.float64]], q: float) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.quantile(known, q)) if len(known) else None
