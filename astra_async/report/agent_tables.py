"""Tables on agents: score, cost, time and steps, and comparisons with single answers of the same model."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from astra_async.report.costs import mean_cost_usd, quantile_of
from astra_async.report.entries import ranked
from astra_async.report.packed_row import AGENT_ENDS
from astra_async.report.pairwise import Pair
from astra_async.report.table import ENTRY_COLUMNS, Column, Table
from astra_async.types import is_agent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from astra_async.report.entries import Entry

TEXT = (
    "Agents worked on each problem in a container. Rows with format xml or json are single answers of the"
    " same model. Model s is the time spent on model requests; Own s is the remaining time of the agent."
)
_ENDS = {
    "crashed": "Crashed",
    "time": "Out of time",
    "steps": "Out of steps",
    "cost": "Out of money",
    "context": "Context full",
}


def with_agents(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries of agents and the single-answer entries of the same models.

    Return an empty list if no entry is an agent's.
    """
    models = {entry.label for entry in entries if is_agent(entry.format)}
    return [entry for entry in entries if entry.label in models]


def agent_pairs(entries: Sequence[Entry]) -> list[Pair]:
    """Return the pairs of entries to compare, with the higher mean score as A.

    First come all pairs of entries of one model in which at least one entry is an agent's. Then the best
    agent entry is paired with every agent entry that has both another model and another agent.
    """
    pairs = []
    for label in dict.fromkeys(entry.label for entry in with_agents(entries)):
        ways = ranked([entry for entry in entries if entry.label == label])
        pairs += [Pair.of(a, b) for a, b in combinations(ways, 2) if is_agent(a.format) or is_agent(b.format)]
    agents = ranked([entry for entry in entries if is_agent(entry.format)])
    pairs += [
        Pair.of(agents[0], other)
        for other in agents[1:]
        if other.label != agents[0].label and other.format != agents[0].format
    ]
    return pairs


def work(entries: Sequence[Entry]) -> Table:
    """Return the score, cost, time and steps of each entry.

    An agent end that never occurred has no column.
    """
    shown = [entry for entry in with_agents(entries) if entry.summary.valid]
    seen = [end for end in _ENDS if any(_ended(end)(entry) for entry in shown)]
    columns = (
        *ENTRY_COLUMNS,
        Column("valid", "Valid", "count", help="samples", of=lambda entry: len(entry.rows())),
        Column("mean_score", "Mean score %", "percent", of=lambda entry: entry.summary.mean_score),
        Column("pass_at_1", "pass@1 %", "percent", of=lambda entry: entry.summary.pass_at_1),
        Column("cost_per_sample", "$ per sample", "usd", of=mean_cost_usd),
        Column(
            "cost_per_pass",
            "$ per solved",
            "usd",
            help="dollars of all samples / samples that pass all tests",
            of=_usd_a_pass,
        ),
        Column(
            "seconds_per_pass",
            "s per solved",
            "seconds",
            help="seconds of all samples / samples that pass all tests",
            of=_s_a_pass,
        ),
        Column("model_s", "Model s, median", "seconds", help="time spent on model requests", of=_model_s),
        Column("own_s", "Own s, median", "seconds", of=quantile_of("own_s", 0.5)),
        Column(
            "steps",
            "Steps, median",
            "count",
            help="model requests with a response",
            of=quantile_of("steps", 0.5),
        ),
        Column("steps_p90", "Steps, 90 %", "count", of=quantile_of("steps", 0.9)),
        *(Column(f"ended_{end}", _ENDS[end], "count", help="samples", of=_ended(end)) for end in seen),
    )
    notes = (
        ("If an agent runs out of time, steps or money, the project is graded in its last state.",)
        if seen
        else ()
    )
    return Table.of("agents", "Agents and single answers", columns, shown, notes=notes, provisional=True)


def _usd_a_pass(entry: Entry) -> float | None:
    perfect, each = int(entry.perfect.sum()), mean_cost_usd(entry)
    return None if each is None or not perfect else each * len(entry.rows()) / perfect


def _s_a_pass(entry: Entry) -> float | None:
    rows, perfect = entry.rows(), int(entry.perfect.sum())
    seconds = rows["model_s"] + rows["own_s"] if is_agent(entry.format) else rows["latency_s"]
    known = seconds[~np.isnan(seconds)]
    return float(known.mean()) * len(rows) / perfect if len(known) and perfect else None


def _model_s(entry: Entry) -> float | None:
    return quantile_of("model_s" if is_agent(entry.format) else "latency_s", 0.5)(entry)


def _ended(end: str) -> Callable[[Entry], int | None]:
    """Return a function that counts an agent's samples with this end; it returns None for single answers."""
    number = AGENT_ENDS.index(end)

    def of(entry: Entry) -> int | None:
        if is_agent(entry.format):
            return int(np.count_nonzero(entry.rows()["agent_end"] == number))
        return None

    return of
