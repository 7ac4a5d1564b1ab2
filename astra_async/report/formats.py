"""Tables on answer formats: XML against JSON (paper, section 4.4), unusable answers (4.5), and lengths."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from itertools import compress
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from astra_async.report.pairwise import Pair
from astra_async.report.table import ENTRY_COLUMNS, Column, Table
from astra_async.stats.association import correlation
from astra_async.stats.intervals import total_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from astra_async.report.entries import Entry, Floats
    from astra_async.report.table import Interval
    from astra_async.types import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Mean characters of answers and prompts, and mean score, of each problem with a valid sample."""

    label: str
    format: str
    problem_ids: tuple[str, ...]
    output: Floats
    input: Floats
    score: Floats


def lengths_of(entries: Sequence[Entry]) -> list[Lengths]:
    """Return the mean lengths of each entry, preceded by the mean over all entries if there are several."""
    each = [_of_entry(entry) for entry in entries]
    return [*_mean_of(each), *each] if len(each) > 1 else each


def correlations(lengths: Sequence[Lengths]) -> Table:
    """Return correlations over problems: Pearson's as in the paper, Spearman's with its interval."""
    columns = (
        *ENTRY_COLUMNS,
        Column("length", "Length of"),
        Column("n", "n", "count", help="problems"),
        Column("mean", "Mean characters", "count"),
        Column("r", "Pearson r", "signed"),
        Column("p", "p", "p", help="permutation test of r, two-sided"),
        Column("rho", "Spearman rho", "signed"),
        Column(
            "rho_interval",
            "95 % interval",
            "signed",
            interval=True,
            help="of Spearman's rho",
            of=itemgetter("interval"),
        ),
        Column("rho_p", "p", "p", help="permutation test of rho, two-sided"),
    )
    note = (
        "Each problem is one observation: mean characters of its answers (or prompt), and its mean score."
        " The paper reports r = -0.560 for answers and -0.164 for inputs. A correlation does not"
        " show a cause: harder problems may need longer answers."
    )
    items = (item for one in lengths for item in _correlated(one))
    title = "Length and mean score: correlation over problems"
    return Table.of("lengths", title, columns, items, notes=(note,))


def _correlated(one: Lengths) -> Iterator[dict[str, Any]]:
    for title, values in (("Answer", one.output), ("Prompt", one.input)):
        found = correlation(values, one.score)
        mean = float(values.mean()) if len(values) else None
        figures = asdict(found) if found else dict.fromkeys(("r", "p", "rho", "interval", "rho_p"))
        who = {"label": one.label, "format": one.format}
        yield {**who, **figures, "length": title, "n": len(values), "mean": mean}


def _of_entry(entry: Entry) -> Lengths:
    begun, samples = entry.valid > 0, np.maximum(entry.valid, 1)
    return Lengths(
        label=entry.label,
        format=entry.format,
        problem_ids=tuple(compress(entry.problem_ids, begun)),
        output=(entry.per_problem(lambda rows: rows["output_characters"]) / samples)[begun],
        input=(entry.per_problem(lambda rows: rows["input_characters"]) / samples)[begun],
        score=entry.means[begun],
    )


def _mean_of(each: Sequence[Lengths]) -> Iterator[Lengths]:
    """Yield the mean over entries, for the problems with a valid sample in every entry."""
    where = [{problem: place for place, problem in enumerate(one.problem_ids)} for one in each]
    common = [problem for problem in each[0].problem_ids if all(problem in one for one in where)]
    if not common:
        return
    places = [[one[problem] for problem in common] for one in where]
    means = {
        name: np.mean([getattr(one, name)[place] for one, place in zip(each, places, strict=True)], axis=0)
        for name in ("output", "input", "score")
    }
    formats = dict.fromkeys(one.format for one in each)
    yield Lengths(label="mean of all", format="+".join(formats), problem_ids=tuple(common), **means)


_RATES: tuple[tuple[Failure, str], ...] = (
    ("format_error", "Format errors"),
    ("refusal", "Refusals"),
    ("truncated", "Cut answers"),
    ("context_exceeded", "Context exceeded"),
)


def format_scores(entries: Sequence[Entry]) -> Table:
    """Return each model's scores with XML and with JSON (paper, tables 5 and 6)."""
    columns = (
        Column("model", "Model", of=lambda pair: pair.a.label),
        Column("xml_mean_score", "XML mean score %", "percent", of=lambda pair: pair.a.summary.mean_score),
        Column("xml_pass_at_1", "XML pass@1 %", "percent", of=lambda pair: pair.a.summary.pass_at_1),
        Column("json_mean_score", "JSON mean score %", "percent", of=lambda pair: pair.b.summary.mean_score),
        Column("json_pass_at_1", "JSON pass@1 %", "percent", of=lambda pair: pair.b.summary.pass_at_1),
    )
    pairs = both_formats(entries)
    return Table.of("format_scores", "XML and JSON", columns, pairs, within="formats", provisional=True)


def both_formats(entries: Sequence[Entry]) -> list[Pair]:
    """Return a pair for each model with entries in both formats: XML as A, JSON as B."""
    by_key = {(entry.label, entry.format): entry for entry in entries}
    return [
        Pair.of(by_key[label, "xml"], by_key[label, "json"])
        for label in dict.fromkeys(entry.label for entry in entries)
        if (label, "xml") in by_key and (label, "json") in by_key
    ]


def answer_rates(entries: Sequence[Entry]) -> Table:
    """Return the rates of unusable answers, with intervals (paper, section 4.5)."""
    columns = (
        *ENTRY_COLUMNS,
        Column("valid", "Valid", "count", help="samples", of=lambda entry: entry.summary.valid),
        *(column for failure, title in _RATES for column in _rate(failure, title)),
    )
    note = (
        "A rate is the mean over problems of the share of valid samples. The interval is for new"
        " problems like these."
    )
    begun = (entry for entry in entries if entry.summary.valid)
    title = "Unusable answers"
    return Table.of("answer_rates", title, columns, begun, notes=(note,), provisional=True)


def _rate(failure: Failure, title: str) -> Iterator[Column]:
    """Yield the columns of one failure: number of samples, rate and interval."""

    def shares(entry: Entry) -> Floats:
        found: Floats = entry.begun(entry.failed(failure)) / entry.begun(entry.valid)
        return found

    def mean(entry: Entry) -> float:
        return math.fsum(shares(entry)) / len(shares(entry))

    def interval(entry: Entry) -> Interval | None:
        return total_interval(shares(entry), entry.families_of(entry.valid > 0))

    yield Column(failure, title, "count", of=lambda entry: int(entry.failed(failure).sum()))
    yield Column(f"{failure}_rate", "%", "percent", of=mean)
    yield Column(f"{failure}_interval", "95 %", "percent", interval=True, of=interval)
