"""`astra plan DIR --target-se POINTS`: from a pilot, what a wanted precision takes in calls and money."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.errors import UsageError
from astra_async.report.costs import mean_cost_usd
from astra_async.report.entries import entries_of
from astra_async.report.load import load_run
from astra_async.report.table import WHO, Column, Findings, Table
from astra_async.stats.intervals import with_unseen
from astra_async.stats.power import minimum_detectable_effect, problems_needed, samples_needed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from astra_async.report.entries import Entry
    from astra_async.report.table import Cell

_POINT = 0.01
_KS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pilot:
    """What one model's pilot says of the spread; variances of scores."""

    entry: Entry
    between: float  # of problems, half an unseen one among them
    within: float
    k0: float  # samples of a problem, or their effective number
    problems: int
    cost: float | None  # US dollars for one sample, all attempts


def plan_run(directory: Path, target_se_points: float) -> Findings:
    """What the pilot says, and the sizes that bring its mean score's standard error to `target_se_points`.

    SE^2 = (sigma_b^2 + sigma_w^2 / k) / n for new problems, sigma_w^2 / (k n) for these very problems;
    the variances come from a one-way ANOVA of the pilot, and sigma_b^2 has what was not seen added as every
    interval has (`with_unseen`): a few problems that came out alike do not prove that all do. Of a model
    that passed all tests or none no spread can be told, and that is all that is said of it. Raises
    UsageError when the target is not above 0, or no model has two problems with two samples each.
    """
    if not target_se_points > 0:
        raise UsageError(f"--target-se {target_se_points:g}: give points above 0, such as 1.0")
    run = load_run(directory)
    pilots = [pilot for entry in entries_of([run]) if (pilot := _pilot(entry))]
    if not pilots:
        raise UsageError(
            f"{directory}: a pilot takes at least two problems with two samples each; run more samples first"
        )
    flat = tuple(_nothing_to_plan(pilot) for pilot in pilots if not _has_spread(pilot))
    pilots = [pilot for pilot in pilots if _has_spread(pilot)]
    target = target_se_points / 100
    return Findings(
        conclusions=(*(_sentence(pilot, target) for pilot in pilots), *flat),
        tables=(_now(pilots, target), _options(pilots, target)) if pilots else (),
        warnings=tuple(f"{run.directory}: {warning}" for warning in run.warnings),
    )


def _pilot(entry: Entry) -> _Pilot | None:
    split = entry.split
    if split is None:
        return None
    means = entry.means[entry.valid > 1]
    mean, seen = math.fsum(means) / len(means), split.between + split.within / split.k0
    unseen = max(0.0, with_unseen(mean, seen, len(means)) - seen)
    return _Pilot(
        entry=entry,
        between=split.between + unseen,
        within=split.within,
        k0=split.k0,
        problems=len(means),
        cost=mean_cost_usd(entry),
    )


def _has_spread(pilot: _Pilot) -> bool:
    return pilot.between + pilot.within > 0


def _nothing_to_plan(pilot: _Pilot) -> str:
    return (
        f"{pilot.entry.name}: all samples of the pilot's {pilot.problems} problems passed all tests, or none"
        " passed any: how much scores vary cannot be told from them; add problems."
    )


def _sentence(pilot: _Pilot, target: float) -> str:
    """Problems at the pilot's own k, and what more samples of its own problems would do instead."""
    k = max(1, round(pilot.k0))
    n = problems_needed(pilot.between, pilot.within, k, target)
    calls = n * k
    cost = f", about ${pilot.cost * calls:,.2f}" if pilot.cost else ""
    samples = samples_needed(pilot.between, pilot.within, pilot.problems, target)
    instead = (
        "no number of samples would do"
        if math.isinf(samples)
        else f"{samples:,.0f} {'sample' if samples == 1 else 'samples'} of each would do"
    )
    return (
        f"{pilot.entry.name}: {n:,} {'problem' if n == 1 else 'problems'} like these with {k} samples each"
        f" would do for a standard error of {_points(target)} ({calls:,} calls{cost}); with the"
        f" pilot's {pilot.problems}, {instead}."
    )


def _points(target: float) -> str:
    return f"{100 * target:g} {'point' if target == _POINT else 'points'}"


def _now(pilots: Sequence[_Pilot], target: float) -> Table:
    return Table(
        name="plan_now",
        title="The pilot",
        columns=(
            *WHO,
            Column("n", "n", "count", help="problems with at least two samples"),
            Column("k", "k", "number", help="samples of a problem, effective number"),
            Column("between_sd", "SD between problems", "score", help="half an unseen problem added"),
            Column("within_sd", "SD within problems", "score"),
            Column("se_total", "SE, new problems", "percent", help="points"),
            Column("se_run_only", "SE, new samples", "percent", help="points"),
            Column("k_total", "k for the target, new problems", "number"),
            Column("k_run_only", "k for the target, new samples", "number"),
            Column("detectable", "Detectable difference", "percent", help="points"),
        ),
        rows=tuple(_now_row(pilot, target) for pilot in pilots),
        notes=(
            (
                f'Target: a standard error of {_points(target)}. "never": no k reaches it, only more'
                " problems do."
            ),
            (
                "Detectable: between two models with such a spread between problems (80 % power), taken as"
                " uncorrelated; the same problems under both models usually do better."
            ),
        ),
    )


def _now_row(pilot: _Pilot, target: float) -> tuple[Cell, ...]:
    between, within, n = pilot.between, pilot.within, pilot.problems
    total = math.sqrt((between + within / pilot.k0) / n)
    effect = minimum_detectable_effect(n)
    return (
        *pilot.entry.who,
        n,
        pilot.k0,
        math.sqrt(between),
        math.sqrt(within),
        total,
        math.sqrt(within / pilot.k0 / n),
        samples_needed(between, within, n, target),
        samples_needed(0.0, within, n, target),
        min(1.0, effect * math.sqrt(2 * n) * total) if effect is not None else None,
    )


def _options(pilots: Sequence[_Pilot], target: float) -> Table:
    return Table(
        name="plan",
        title=f"Sizes that reach a standard error of {_points(target)}, and what they cost",
        columns=(
            *WHO,
            Column("k", "k", "count", help="samples of each problem"),
            Column("se_same_n", "SE with this n", "percent", help="points, new problems"),
            Column("se_run_only", "SE, new samples", "percent", help="these problems"),
            Column("n_needed", "Problems needed", "count", help="for the target"),
            Column("calls", "Calls", "count", help="problems needed x k"),
            Column("cost_usd", "Cost $", "usd", help="at the pilot's mean cost"),
        ),
        rows=tuple(row for pilot in pilots for row in _option_rows(pilot, target)),
        notes=(
            (
                "For the same number of calls, more problems beat more samples. Raise k for all problems"
                " alike: stopping single problems early biases the scores upward by 0.6 to 1.2 points."
            ),
        ),
    )


def _option_rows(pilot: _Pilot, target: float) -> Iterator[tuple[Cell, ...]]:
    for k in _KS:
        n = problems_needed(pilot.between, pilot.within, k, target)
        calls = n * k
        yield (
            *pilot.entry.who,
            k,
            math.sqrt((pilot.between + pilot.within / k) / pilot.problems),
            math.sqrt(pilot.within / k / pilot.problems),
            n,
            calls,
            pilot.cost * calls if pilot.cost is not None else None,
        )
