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
            Column(name="valid", title="Answers", kind="count"),
            Column(name="attempts", title="Attempts", kind="count", help="calls, repeats included"),
            Column(name="input_tokens", title="Input tokens", kind="count"),
            Column(name="cached_share", title="Cached %", kind="percent", help="of the input tokens"),
            Column(name="output_tokens", title="Output tokens", kind="count"),
            Column(name="reasoning_share", title="Reasoning %", kind="percent", help="of the output tokens"),
            Column(name="cost_usd", title="Cost $", kind="usd"),
            Column(name="cost_per_sample", title="$ per sample", kind="usd"),
            Column(name="cost_per_pass", title="$ per perfect sample", kind="usd"),
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
            Column(name="ttft_s", title="First token s, median", kind="seconds"),
            Column(name="latency_s", title="Answer s, median", kind="seconds"),
            Column(name="latency_p90", title="Answer s, 90 %", kind="seconds"),
            Column(name="latency_p99", title="Answer s, 99 %", kind="seconds"),
            Column(name="tokens_per_s", title="Tokens/s, median", kind="number", help="after the first"),
            Column(name="test_s", title="Tests s, median", kind="seconds", help="in the container"),
            Column(name="test_p90", title="Tests s, 90 %", kind="seconds"),
            Column(name="timed_out", title="Time-outs", kind="count", help="of the tests"),
        ),
        rows=tuple(_time_row(entry) for entry in entries),
    )


def _cost_notes(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Whose costs are guesses, in part: no tokens were reported for those answers."""
    notes = ["Of samples with a result; sums of tokens leave out what a provider did not report."]
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
    costs = np.concatenate([rows["cost_usd"] for _, rows in entry.rows_by_run()])
    known = costs[~np.isnan(costs)]
    return float(known.mean()) if len(known) and known.sum() > 0 else None


def cost_is_estimated(entry: Entry) -> bool:
    """Whether any sample's cost was worked out from an estimate of its tokens."""
    return any(bool(rows["cost_estimated"].any()) for _, rows in entry.rows_by_run())


def _cost_row(entry: Entry) -> tuple[Cell, ...]:
    rows = entry.rows()
    tokens = {
        name: _sum(rows[name])
        for name in ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "cost_usd")
    }
    cost, valid, perfect = tokens["cost_usd"], len(rows), int(entry.perfect.sum())
    return (
        entry.label,
        entry.format,
        valid,
        int(rows["attempts"].sum()),
        tokens["input_tokens"],
        _share(tokens["cached_tokens"], tokens["input_tokens"]),
        tokens["output_tokens"],
        _share(tokens["reasoning_tokens"], tokens["output_tokens"]),
        cost,
        _share(cost, valid),
        _share(cost, perfect),
    )


def _time_row(entry: Entry) -> tuple[Cell, ...]:
    rows = entry.rows()
    streaming = rows["latency_s"] - rows["ttft_s"]
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = np.where(streaming > 0, rows["output_tokens"] / streaming, np.nan)
    tested = rows["test_s"][rows["test_s"] > 0]
    return (
        entry.label,
        entry.format,
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
