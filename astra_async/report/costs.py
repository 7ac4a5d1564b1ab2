"""What it took: calls, tokens, money and time of each entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from astra_async.report.table import WHO, Column, Table
from astra_async.stats.differences import ratio_of_means

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from astra_async.report.entries import Entry


def costs(entries: Sequence[Entry]) -> Table:
    """Totals and medians over valid samples; None where nothing was recorded."""
    columns = (
        *WHO,
        Column("valid", "Answers", "count", of=lambda entry: len(entry.rows())),
        Column("attempts", "Attempts", "count", help="calls, repeats included", of=_count("attempts")),
        Column("input_tokens", "Input tokens", "count", of=_total("input_tokens")),
        Column(
            "cached_share",
            "Cached %",
            "percent",
            help="of the input tokens",
            of=_ratio("cached_tokens", "input_tokens"),
        ),
        Column("output_tokens", "Output tokens", "count", of=_total("output_tokens")),
        Column(
            "reasoning_share",
            "Reasoning %",
            "percent",
            help="of the output tokens",
            of=_ratio("reasoning_tokens", "output_tokens"),
        ),
        Column("cost_usd", "Cost $", "usd", of=_total("cost_usd")),
        Column("cost_per_sample", "$ per sample", "usd", of=_cost_of_a_sample),
        Column("cost_per_pass", "$ per perfect sample", "usd", of=_cost_of_a_pass),
    )
    return Table.of("costs", "Tokens and cost", columns, entries, notes=_cost_notes(entries))


def times(entries: Sequence[Entry]) -> Table:
    """Latency of the final attempt, time to the first token and time in the container."""
    columns = (
        *WHO,
        Column("ttft_s", "First token s, median", "seconds", of=quantile_of("ttft_s", 0.5)),
        Column("latency_s", "Answer s, median", "seconds", of=quantile_of("latency_s", 0.5)),
        Column("latency_p90", "Answer s, 90 %", "seconds", of=quantile_of("latency_s", 0.9)),
        Column("latency_p99", "Answer s, 99 %", "seconds", of=quantile_of("latency_s", 0.99)),
        Column("tokens_per_s", "Tokens/s, median", "number", help="after the first", of=_tokens_per_s),
        Column("test_s", "Tests s, median", "seconds", help="in the container", of=_tested(0.5)),
        Column("test_p90", "Tests s, 90 %", "seconds", of=_tested(0.9)),
        Column("timed_out", "Time-outs", "count", help="of the tests", of=_count("timed_out")),
    )
    return Table.of("times", "Time", columns, entries)


def _cost_notes(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Whose costs are guesses, in part: no tokens were reported for those answers."""
    notes = ["Of samples with a result; sums of tokens leave out what a provider did not report."]
    notes += filter(None, map(partly_known, entries))
    for entry in entries:
        rows = entry.rows()
        guessed = int(rows["cost_estimated"].sum())
        if guessed:
            notes.append(
                f"{entry.name}: the cost of {guessed} of {len(rows)} samples is an estimate"
                " from characters, for the provider did not report all tokens."
            )
    return tuple(notes)


def mean_cost_usd(entry: Entry) -> float | None:
    """US dollars for a sample, all attempts, over the samples whose cost is known; None if there is none."""
    known = known_of(entry, "cost_usd")
    return float(known.mean()) if len(known) and known.sum() > 0 else None


class CostRatio(NamedTuple):
    """How much more one entry costs than another on the problems that both have.

    `ours` and `theirs` are US dollars for a sample: means over these problems of their samples' mean cost.
    `is_partial`: the cost of some of these samples is not known.
    """

    ours: float
    theirs: float
    ratio: float
    interval: tuple[float, float]
    is_partial: bool


def cost_ratio(a: Entry, b: Entry, here: NDArray[np.int64], there: NDArray[np.int64]) -> CostRatio | None:
    """Compare the costs at the places of common problems; None where no interval is known."""
    known = [entry.per_problem(lambda rows: ~np.isnan(rows["cost_usd"])) for entry in (a, b)]
    sums = [entry.per_problem(lambda rows: np.nan_to_num(rows["cost_usd"])) for entry in (a, b)]
    both = (known[0][here] > 0) & (known[1][there] > 0)
    here, there = here[both], there[both]
    ours, theirs = sums[0][here] / known[0][here], sums[1][there] / known[1][there]
    found = ratio_of_means(ours, theirs, a.families_of(here))
    if found is None:
        return None
    is_partial = bool((known[0][here] < a.valid[here]).any() or (known[1][there] < b.valid[there]).any())
    return CostRatio(float(ours.mean()), float(theirs.mean()), *found, is_partial or not both.all())


def partly_known(entry: Entry) -> str:
    """A note on an entry of whose samples only some have a known cost; empty for any other."""
    known, valid = len(known_of(entry, "cost_usd")), entry.summary.valid
    if known in (0, valid):
        return ""
    return (
        f"{entry.name}: cost known of {known} of {valid} samples; what a sample costs is their mean, and a"
        " sum is theirs alone."
    )


def cost_is_estimated(entry: Entry) -> bool:
    """Whether any sample's cost was worked out from an estimate of its tokens."""
    return any(bool(rows["cost_estimated"].any()) for _, rows in entry.rows_by_run())


def known_of(entry: Entry, name: str) -> NDArray[np.float64]:
    """A field of an entry's samples, of those that it is known of."""
    values = np.concatenate([rows[name] for _, rows in entry.rows_by_run()])
    known: NDArray[np.float64] = values[~np.isnan(values)]
    return known


def _total(name: str) -> Callable[[Entry], float | None]:
    """The sum of a field over the samples of which it is known."""

    def of(entry: Entry) -> float | None:
        known = known_of(entry, name)
        return float(known.sum()) if len(known) else None

    return of


def _count(name: str) -> Callable[[Entry], int]:
    return lambda entry: int(entry.rows()[name].sum())


def _ratio(part: str, whole: str) -> Callable[[Entry], float | None]:
    return lambda entry: _share(_total(part)(entry), _total(whole)(entry))


def _cost_of_a_sample(entry: Entry) -> float | None:
    return _share(_total("cost_usd")(entry), len(known_of(entry, "cost_usd")))


def _cost_of_a_pass(entry: Entry) -> float | None:
    each = _cost_of_a_sample(entry)
    return None if each is None else _share(each * len(entry.rows()), int(entry.perfect.sum()))


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
    """A quantile of a field of an entry's samples, of those that it is known of."""
    return lambda entry: quantile(known_of(entry, name), q)


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def quantile(values: NDArray[np.float64], q: float) -> float | None:
    """A quantile of the values that are known; None without any."""
    known = values[~np.isnan(values)]
    return float(np.quantile(known, q)) if len(known) else None
