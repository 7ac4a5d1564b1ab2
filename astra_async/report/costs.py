"""What it took: calls, tokens, money and time of each entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from astra_async.report.table import WHO, Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from astra_async.report.entries import Entry
    from astra_async.report.table import Cell


def costs(entries: Sequence[Entry]) -> Table:
    """Totals and medians over valid samples; None where nothing was recorded."""
    return Table(
        name="costs",
        title="Tokens and cost",
        columns=(
            *WHO,
            Column("valid", "Answers", "count"),
            Column("attempts", "Attempts", "count", help="calls, repeats included"),
            Column("input_tokens", "Input tokens", "count"),
            Column("cached_share", "Cached %", "percent", help="of the input tokens"),
            Column("output_tokens", "Output tokens", "count"),
            Column("reasoning_share", "Reasoning %", "percent", help="of the output tokens"),
            Column("cost_usd", "Cost $", "usd"),
            Column("cost_per_sample", "$ per sample", "usd"),
            Column("cost_per_pass", "$ per perfect sample", "usd"),
        ),
        rows=tuple(_cost_row(entry) for entry in entries),
        notes=_cost_notes(entries),
    )


def times(entries: Sequence[Entry]) -> Table:
    """Latency of the final attempt, time to the first token and time in the container."""
    return Table(
        name="times",
        title="Time",
        columns=(
            *WHO,
            Column("ttft_s", "First token s, median", "seconds"),
            Column("latency_s", "Answer s, median", "seconds"),
            Column("latency_p90", "Answer s, 90 %", "seconds"),
            Column("latency_p99", "Answer s, 99 %", "seconds"),
            Column("tokens_per_s", "Tokens/s, median", "number", help="after the first"),
            Column("test_s", "Tests s, median", "seconds", help="in the container"),
            Column("test_p90", "Tests s, 90 %", "seconds"),
            Column("timed_out", "Time-outs", "count", help="of the tests"),
        ),
        rows=tuple(_time_row(entry) for entry in entries),
    )


def _cost_notes(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Whose costs are guesses, in part: no tokens were reported for those answers."""
    notes = ["Of samples with a result; sums of tokens leave out what a provider did not report."]
    notes += filter(None, map(partly_known, entries))
    for entry in entries:
        rows = entry.rows()
        guessed = int(rows["cost_estimated"].sum())
        if guessed:
            notes.append(
                f"{entry.label} ({entry.format}): the cost of {guessed} of {len(rows)} samples is an estimate"
                " from characters, for the provider did not report all tokens."
            )
    return tuple(notes)


def mean_cost_usd(entry: Entry) -> float | None:
    """US dollars for a sample, all attempts, over the samples whose cost is known; None if there is none."""
    known = _known_costs(entry)
    return float(known.mean()) if len(known) and known.sum() > 0 else None


def partly_known(entry: Entry) -> str:
    """A note on an entry of whose samples only some have a known cost; empty for any other."""
    known, valid = len(_known_costs(entry)), entry.summary.valid
    if known in (0, valid):
        return ""
    return (
        f"{entry.label} ({entry.format}): cost known of {known} of {valid} samples; what a sample costs is"
        " their mean, and a sum is theirs alone."
    )


def cost_is_estimated(entry: Entry) -> bool:
    """Whether any sample's cost was worked out from an estimate of its tokens."""
    return any(bool(rows["cost_estimated"].any()) for _, rows in entry.rows_by_run())


def _known_costs(entry: Entry) -> NDArray[np.float64]:
    costs = np.concatenate([rows["cost_usd"] for _, rows in entry.rows_by_run()])
    known: NDArray[np.float64] = costs[~np.isnan(costs)]
    return known


def _cost_row(entry: Entry) -> tuple[Cell, ...]:
    rows = entry.rows()
    tokens = {
        name: _sum(rows[name])
        for name in ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "cost_usd")
    }
    valid, perfect = len(rows), int(entry.perfect.sum())
    each = _share(tokens["cost_usd"], len(_known_costs(entry)))
    return (
        *entry.who,
        valid,
        int(rows["attempts"].sum()),
        tokens["input_tokens"],
        _share(tokens["cached_tokens"], tokens["input_tokens"]),
        tokens["output_tokens"],
        _share(tokens["reasoning_tokens"], tokens["output_tokens"]),
        tokens["cost_usd"],
        each,
        None if each is None else _share(each * valid, perfect),
    )


def _time_row(entry: Entry) -> tuple[Cell, ...]:
    rows = entry.rows()
    streaming = rows["latency_s"] - rows["ttft_s"]
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = np.where(streaming > 0, rows["output_tokens"] / streaming, np.nan)
    tested = rows["test_s"][rows["test_s"] > 0]
    return (
        *entry.who,
        _quantile(rows["ttft_s"], 0.5),
        _quantile(rows["latency_s"], 0.5),
        _quantile(rows["latency_s"], 0.9),
        _quantile(rows["latency_s"], 0.99),
        _quantile(speed, 0.5),
        _quantile(tested, 0.5),
        _quantile(tested, 0.9),
        int(rows["timed_out"].sum()),
    )


def _sum(values: NDArray[np.float64]) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.sum()) if len(known) else None


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _quantile(values: NDArray[np.float64], q: float) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.quantile(known, q)) if len(known) else None
