"""Tables on requests, tokens, cost and time of each entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from astra_async.report.common_problems import common_places
from astra_async.report.table import ENTRY_COLUMNS, Column, Table
from astra_async.stats.differences import ratio_of_means

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from astra_async.report.entries import Entry, Floats
    from astra_async.report.load import Run


def costs(entries: Sequence[Entry]) -> Table:
    """Return totals of tokens and cost over valid samples; a value is None if nothing was recorded."""
    columns = (
        *ENTRY_COLUMNS,
        Column("valid", "Answers", "count", of=lambda entry: len(entry.rows())),
        Column("attempts", "Attempts", "count", help="requests, retries included", of=_count("attempts")),
        Column("input_tokens", "Input tokens", "count", of=_total("input_tokens")),
        Column(
            "cached_share",
            "Cached %",
            "percent",
            help="share of the input tokens",
            of=_ratio("cached_tokens", "input_tokens"),
        ),
        Column("output_tokens", "Output tokens", "count", of=_total("output_tokens")),
        Column(
            "reasoning_share",
            "Reasoning %",
            "percent",
            help="share of the output tokens",
            of=_ratio("reasoning_tokens", "output_tokens"),
        ),
        Column("cost_usd", "Cost $", "usd", of=total_usd),
        Column("cost_per_sample", "$ per sample", "usd", of=_cost_of_a_sample),
        Column("cost_per_pass", "$ per perfect sample", "usd", of=_cost_of_a_pass),
    )
    return Table.of("costs", "Tokens and cost", columns, entries, notes=_cost_notes(entries))


def times(entries: Sequence[Entry]) -> Table:
    """Return latency of the final attempt, time to the first token, and test time in the container."""
    columns = (
        *ENTRY_COLUMNS,
        Column("ttft_s", "First token s, median", "seconds", of=quantile_of("ttft_s", 0.5)),
        Column("latency_s", "Answer s, median", "seconds", of=quantile_of("latency_s", 0.5)),
        Column("latency_p90", "Answer s, 90 %", "seconds", of=quantile_of("latency_s", 0.9)),
        Column("latency_p99", "Answer s, 99 %", "seconds", of=quantile_of("latency_s", 0.99)),
        Column("tokens_per_s", "Tokens/s, median", "number", help="after the first token", of=_tokens_per_s),
        Column("test_s", "Tests s, median", "seconds", help="in the container", of=_tested(0.5)),
        Column("test_p90", "Tests s, 90 %", "seconds", of=_tested(0.9)),
        Column("timed_out", "Time-outs", "count", help="test runs that timed out", of=_count("timed_out")),
    )
    return Table.of("times", "Time", columns, entries)


def _cost_notes(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Return notes on the basis of the figures, and on entries with unknown or estimated costs."""
    notes = [
        "Only samples with a result are counted. Sums of tokens leave out what a provider did not report."
    ]
    if any(run.settings.turns for entry in entries for run, _ in entry.parts):
        notes.append(
            "The cost and the cost of a sample include follow-up turns. All other columns are about first"
            " answers."
        )
    notes += filter(None, map(partly_known, entries))
    for entry in entries:
        rows = entry.rows()
        guessed = int(rows["cost_estimated"].sum())
        if guessed:
            notes.append(
                f"{entry.name}: the cost of {guessed} of {len(rows)} samples is estimated from the number of"
                " characters, because the provider did not report all tokens."
            )
    return tuple(notes)


def mean_cost_usd(entry: Entry) -> float | None:
    """Return the mean cost of a sample in US dollars, all attempts and follow-up turns included.

    The mean is over samples with a known cost. Return None if no cost is known or all costs are 0.
    """
    return _cost_of_a_sample(entry) or None


def total_usd(entry: Entry) -> float | None:
    """Return the sum of the known costs of samples in US dollars; None if no cost is known.

    All attempts and follow-up turns are included.
    """
    known = _known_usd(entry)
    return float(known.sum()) if len(known) else None


class MeansRatio(NamedTuple):
    """Ratio of a sample's mean cost or time in two entries, on their common problems.

    `ours` and `theirs` are the means over problems of the samples' mean value. `is_partial` is true if the
    value of some of these samples is not known.
    """

    ours: float
    theirs: float
    ratio: float
    interval: tuple[float, float]
    is_partial: bool


def means_ratio(a: Entry, b: Entry, values: Callable[[Run, int], Floats]) -> MeansRatio | None:
    """Return the ratio of two entries over common problems; None if the ratio has no interval.

    `values` returns the values of the samples of a run's pair, NaN if unknown.
    """
    here, there = common_places(a, b)
    known, sums = zip(*(_by_problem(entry, values) for entry in (a, b)), strict=True)
    both = (known[0][here] > 0) & (known[1][there] > 0)
    here, there = here[both], there[both]
    ours, theirs = sums[0][here] / known[0][here], sums[1][there] / known[1][there]
    found = ratio_of_means(ours, theirs, a.families_of(here))
    if found is None:
        return None
    is_partial = bool((known[0][here] < a.valid[here]).any() or (known[1][there] < b.valid[there]).any())
    return MeansRatio(float(ours.mean()), float(theirs.mean()), *found, is_partial or not both.all())


def partly_known(entry: Entry) -> str:
    """Return a note if only a part of an entry's samples have a known cost; otherwise ""."""
    known, valid = len(_known_usd(entry)), entry.summary.valid
    if known in (0, valid):
        return ""
    return (
        f"{entry.name}: the cost of {known} of {valid} samples is known. The mean and the sum are over these"
        " samples only."
    )


def cost_is_estimated(entry: Entry) -> bool:
    """Return True if any sample's cost is based on an estimated number of tokens."""
    return any(bool(rows["cost_estimated"].any()) for _, rows in entry.rows_by_run())


def known_of(entry: Entry, name: str) -> NDArray[np.float64]:
    """Return a field's values for an entry's samples, without NaN."""
    values = np.concatenate([rows[name] for _, rows in entry.rows_by_run()])
    known: NDArray[np.float64] = values[~np.isnan(values)]
    return known


def _known_usd(entry: Entry) -> NDArray[np.float64]:
    """Return the costs of an entry's samples, without unknown ones."""
    costs = np.concatenate([run.pair_usd(pair) for run, pair in entry.parts])
    known: NDArray[np.float64] = costs[~np.isnan(costs)]
    return known


def _by_problem(entry: Entry, values: Callable[[Run, int], Floats]) -> tuple[Floats, Floats]:
    """Return for each problem the number of samples with a known value, and the sum of these values."""
    known, sums = [], []
    for run, pair in entry.parts:
        problems, found = run.pair_rows(pair)["problem"], values(run, pair)
        known.append(np.bincount(problems, weights=~np.isnan(found), minlength=len(run.problems)))
        sums.append(np.bincount(problems, weights=np.nan_to_num(found), minlength=len(run.problems)))
    return np.concatenate(known), np.concatenate(sums)


def _total(name: str) -> Callable[[Entry], float | None]:
    """Return a function that sums the known values of a field; it returns None if no value is known."""

    def of(entry: Entry) -> float | None:
        known = known_of(entry, name)
        return float(known.sum()) if len(known) else None

    return of


def _count(name: str) -> Callable[[Entry], int]:
    return lambda entry: int(entry.rows()[name].sum())


def _ratio(part: str, whole: str) -> Callable[[Entry], float | None]:
    return lambda entry: _share(_total(part)(entry), _total(whole)(entry))


def _cost_of_a_sample(entry: Entry) -> float | None:
    return _share(total_usd(entry), len(_known_usd(entry)))


def _cost_of_a_pass(entry: Entry) -> float | None:
    known = known_of(entry, "cost_usd")
    return _share(float(known.mean()) * len(entry.rows()), int(entry.perfect.sum())) if len(known) else None


def _tokens_per_s(entry: Entry) -> float | None:
    rows = entry.rows()
    streaming = rows["latency_s"] - rows["ttft_s"]
    with np.errstate(divide="ignore", invalid="ignore"):
        return quantile(np.where(streaming > 0, rows["output_tokens"] / streaming, np.nan), 0.5)


def _tested(q: float) -> Callable[[Entry], float | None]:
    def of(entry: Entry) -> float | None:
        seconds = entry.rows()["test_s"]
        return quantile(seconds[seconds > 0], q)

    return of


def quantile_of(name: str, q: float) -> Callable[[Entry], float | None]:
    """Return a function that computes a quantile of the known values of a field."""
    return lambda entry: quantile(known_of(entry, name), q)


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def quantile(values: NDArray[np.float64], q: float) -> float | None:
    """Return a quantile of the values that are not NaN; None if all values are NaN."""
    known = values[~np.isnan(values)]
    return float(np.quantile(known, q)) if len(known) else None
