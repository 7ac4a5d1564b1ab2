"""Sentences on runs with `--until`: each pair or model, and the limits of these conclusions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from astra_async.report.conclusions import expense
from astra_async.report.deciding import compared, complete_rounds, scores_of, shown_state
from astra_async.report.entries import directory_names, entries_of, format_name
from astra_async.report.pairwise import RARE_DIFFERENCES
from astra_async.report.table import shown, visible
from astra_async.stats.spread import round_drift

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from astra_async.report.deciding import Compared, NextRound
    from astra_async.report.load import Run
    from astra_async.stats.sequential import State

_DRIFT_P = 0.01  # over all models of a run
_UNDECIDED: tuple[State, ...] = ("not separable", "open")


def sentences(runs: Sequence[Run]) -> Iterator[str]:
    """Yield a sentence for each pair or model of runs with `--until`, and the limits of these conclusions.

    Several runs or formats are named before each sentence.
    """
    names = directory_names([run.directory for run in runs])
    for run, name in zip(runs, names, strict=True):
        if record := run.settings.deciding:
            of_run = f"{name}: " if len(runs) > 1 else ""
            for each, text in _of_run(run, record):
                of_format = f"{format_name(each.format)}: " if len(run.settings.formats) > 1 else ""
                yield visible(of_run + of_format + text)
            yield from (visible(of_run + limit) for limit in _limits_of(run, record))


def decided_pairs(run: Run) -> dict[frozenset[str], str]:
    """Return the conclusion on each pair of a run with `--until decided`, by the names of the two entries."""
    record = run.settings.deciding
    if record.get("until") != "decided":
        return {}
    return {
        frozenset(f"{name} ({each.format})" for name in (each.a, each.b)): visible(text)
        for each, text in _of_run(run, record)
    }


def _of_run(run: Run, record: Mapping[str, Any]) -> Iterator[tuple[Compared, str]]:
    """Yield each pair or model with its conclusion, and for a pair with its costs and model times."""
    entries = {(entry.model, entry.format): entry for entry in entries_of([run])}
    for each in compared(run, record):
        text = sentence(each, record)
        if each.b and each.looks:
            pair = entries[each.a, each.format], entries[each.b, each.format]
            found = expense(pair, (each.a, each.b))
            text += f" {found} Intervals of ratios are not adjusted for the looks." if found else ""
        yield each, text


def _limits_of(run: Run, record: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence on several groups of pairs, and one for each model whose rounds disagree."""
    groups, alpha = len(record["groups"]) * len(run.settings.formats), record["alpha"]
    if groups > 1 and record["until"] == "decided":
        yield (
            f"The pairs are tested in {groups} groups (models that began together, with one answer format),"
            f" each with an error rate of {100 * alpha:g} %. A false difference is concluded in up to"
            f" {min(100, 100 * alpha * groups):g} % of such runs, and a false equivalence as well."
        )
    found = scores_of(run)
    for (model, fmt), scores in found.items():
        drift = round_drift(scores[:, : complete_rounds(scores)], record["rounds"][0])
        if drift and drift.p < _DRIFT_P / len(found):
            change = (
                f"{100 * abs(drift.difference):.1f} points {'higher' if drift.difference > 0 else 'lower'}"
            )
            name = model if len(run.settings.formats) == 1 else f"{model} ({fmt})"
            yield (
                f"{name} scores {change} after its first round than in it (p = {drift.p:.2g}): the model or"
                " its server may have changed during the run, and all conclusions above assume that it did"
                " not."
            )


def sentence(each: Compared, record: Mapping[str, Any]) -> str:
    """Return the conclusion on a pair, or with `--until precise` on a model."""
    both = f"{each.a} and {each.b}" if each.b else each.a
    if not each.looks:
        return f"{both}: no look yet, because no round is complete."
    look, problems = each.looks[-1], len(record["problems"])
    needed = f"about {look.problems:,.0f}" if (look.problems or math.inf) < math.inf else "more than 10,000"
    worse = look.state == "worse"
    first, second = (each.b, each.a) if worse else (each.a, each.b)
    points = f"{100 * abs(look.difference):.1f} points"
    turned = (-look.interval[1], -look.interval[0]) if worse and look.interval else look.interval
    bounds = f"repeated 95 % interval {shown(turned, 'points')}, " if turned else ""
    decided = f"decided after {look.k} samples of each problem"
    better = (
        f"{first} is better than {second}: its mean score is {points} higher ({bounds}{decided})."
        if turned is not None and turned[0] > 0
        else f"{first}'s mean score is {points} above {second}'s ({bounds}{decided}). {RARE_DIFFERENCES}"
    )
    target = f"{record['target_se']} points"
    more = (
        f"more samples (--samples above {look.k}) may also be enough"
        if look.k == record["rounds"][-1]
        else "more samples would narrow the interval by 5 % at most"
    )
    return {
        "better": better,
        "worse": better,
        "equivalent": (
            f"{both} are equivalent: a difference of {100 * record['margin']:g} points or more in"
            f" mean score can be excluded at 95 % ({decided})."
        ),
        "open": f"{both}: no decision after {look.k} samples of each problem.",
        "precise": f"{each.a} has reached the target standard error of {target} ({decided}).",
        "not separable": (
            f"{both} are not separable with {problems} problems: their mean scores differ by {points}"
            f" ({bounds}{decided}). If the difference is as observed, {needed} problems are needed."
            if each.b
            else f"{each.a} has not reached the target standard error of {target} with {look.k} samples of"
            f" each of {problems} problems. It needs {needed} problems; {more}."
        ),
    }[look.state]


def status_line(record: Mapping[str, Any], found: Sequence[Compared], next_round: NextRound | None) -> str:
    """Return a line with the numbers of decided and open pairs, and the next round with its cost."""
    states = [each.state for each in found]
    last = max((each.k for each in found), default=0)
    what = "mean scores precise" if record["until"] == "precise" else "pairs decided"
    counts = {name: states.count(name) for name in _UNDECIDED}
    rest = "".join(
        f", {count} {shown_state(name, record['until'])}" for name, count in counts.items() if count
    )
    decided = f"{len(states) - sum(counts.values())} of {len(states)} {what}"
    known = f"{decided}{rest} after {last} samples of each problem"
    if next_round is None:
        return known
    money = f", about ${next_round.cost_usd:,.2f}" if next_round.cost_usd else ""
    names = ", ".join(next_round.models)
    return f"{known}; next round: up to {next_round.end} samples of each problem from {names}{money}"
