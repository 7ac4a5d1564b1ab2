"""`astra plan DIR --target-se POINTS`: estimate from a pilot run the size and cost of a precise run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from astra_async.errors import UsageError
from astra_async.listing import counted
from astra_async.report.conclusions import SO_FAR
from astra_async.report.costs import mean_cost_usd
from astra_async.report.entries import entries_of
from astra_async.report.load import load_run
from astra_async.report.table import ENTRY_COLUMNS, Column, Findings, Table
from astra_async.stats.intervals import minimum_detectable_effect, problems_needed, samples_needed
from astra_async.stats.spread import variance_draws

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from astra_async.report.entries import Entry, Floats

_POINT = 0.01
_KS = (1, 2, 4, 8, 16, 32, 64)
_RANGE = (0.025, 0.975)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pilot:
    """Variances estimated from one model's pilot; each array has the best estimate, then random draws."""

    entry: Entry
    between: Floats
    within: Floats
    k0: float  # samples of each problem, or the effective number if they differ
    problems: int
    cost: float | None  # US dollars for one sample, all attempts


def plan_run(directory: Path, target_se_points: float) -> Findings:
    """Return the sizes for which the standard error of the mean score is `target_se_points`.

    SE^2 = (sigma_b^2 + sigma_w^2 / k) / n for new problems, and sigma_w^2 / (k n) for the same problems with
    new samples. `variance_draws` gives the variances with their uncertainty, from which every size has a 95 %
    range. A model that passed all tests or no test has a sentence but no rows, because its variances cannot
    be estimated.

    Raises UsageError if the target is not above 0, or if no model has two problems with two samples each.
    """
    if not target_se_points > 0:
        raise UsageError(f"--target-se {target_se_points:g}: the value must be above 0, for example 1.0")
    run = load_run(directory)
    pilots = [pilot for entry in entries_of([run]) if (pilot := _pilot(entry))]
    if not pilots:
        raise UsageError(
            f"{directory}: a pilot needs at least two problems with two samples each; run more samples first"
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
    split, several = entry.split, entry.valid > 1
    if split is None:
        return None
    means, families = entry.means[several], entry.families_of(several)
    between, within = variance_draws(means, entry.score_variances[several], split.k0, families)
    return _Pilot(
        entry=entry,
        between=between,
        within=within,
        k0=split.k0,
        problems=len(means),
        cost=mean_cost_usd(entry),
    )


def _has_spread(pilot: _Pilot) -> bool:
    means = pilot.entry.begun(pilot.entry.means)
    return 0 < math.fsum(means) < len(means)


def _nothing_to_plan(pilot: _Pilot) -> str:
    return (
        f"{pilot.entry.name}: the pilot's {pilot.problems} problems show no variation, because every sample"
        " passed all tests or every sample failed all tests. Add problems to the pilot."
    )


def _sentence(pilot: _Pilot, target: float) -> str:
    """Return the problems needed at the pilot's k, and the samples needed with the pilot's problems."""
    k = max(1, round(pilot.k0))
    needed = problems_needed(pilot.between, pilot.within, k, target)
    n, (low, high) = int(needed[0]), _range(needed)
    cost = f" and costs about ${pilot.cost * n * k:,.2f}" if pilot.cost else ""
    samples = _samples(samples_needed(pilot.between, pilot.within, pilot.problems, target))
    return (
        f"{'' if pilot.entry.complete else SO_FAR}{pilot.entry.name}: a standard error of {_points(target)}"
        f" needs about {counted(n, 'problem')} like these with {counted(k, 'sample')}"
        f" each (95 % range {low:,.0f} to {high:,.0f} problems)."
        f" Such a run has {n * k:,} samples{cost}. With the pilot's {pilot.problems} problems, {samples}."
    )


def _samples(needed: Floats) -> str:
    """Return a clause on the samples of each problem that are needed, with their 95 % range."""
    about, (low, high) = float(needed[0]), _range(needed)
    if math.isinf(low):
        return "no number of samples is sufficient"
    if math.isinf(about):
        return (
            f"no number of samples is sufficient by the best estimate; the 95 % range begins at {low:,.0f}"
            " samples of each problem"
        )
    most = "or more" if math.isinf(high) else f"to {high:,.0f}"
    number = f"about {about:,.0f} {'sample of each is' if about == 1 else 'samples of each are'}"
    return f"{number} needed (95 % range {low:,.0f} {most})"


def _range(draws: Floats) -> tuple[float, float]:
    """Return the 95 % range over the draws; an end may be infinite."""
    low, high = np.quantile(draws[1:], _RANGE, method="inverted_cdf").tolist()
    return low, high


def _points(target: float) -> str:
    return f"{100 * target:g} {'point' if target == _POINT else 'points'}"


def _now(pilots: Sequence[_Pilot], target: float) -> Table:
    columns = (
        *ENTRY_COLUMNS,
        Column("n", "n", "count", help="problems with at least two samples"),
        Column("k", "k", "number", help="samples of each problem (effective number if they differ)"),
        Column("between_sd", "SD between problems", "score", help="allows for one unobserved problem"),
        Column(
            "between_sd_range", "95 % range", "score", interval=True, help="range of the SD between problems"
        ),
        Column("within_sd", "SD within problems", "score"),
        Column("se_total", "SE, new problems", "percent", help="standard error in points"),
        Column("se_run_only", "SE, new samples", "percent", help="standard error in points, same problems"),
        Column("k_total", "k for the target, new problems", "number"),
        Column("k_total_range", "95 % range", "number", interval=True, help="range of this k"),
        Column("k_run_only", "k for the target, new samples", "number"),
        Column("detectable", "Detectable difference", "percent", help="in points, with 80 % power"),
    )
    notes = (
        (
            f'Target: a standard error of {_points(target)}. "never" means that no k reaches the target;'
            " more problems are needed."
        ),
        (
            "The detectable difference is between two models with this spread between problems (80 % power)."
            " The models' scores are assumed to be uncorrelated. With the same problems under both models the"
            " detectable difference is usually smaller."
        ),
    )
    items = (_pilot_now(pilot, target) for pilot in pilots)
    return Table.of("plan_now", "The pilot", columns, items, notes=notes, provisional=True)


def _pilot_now(pilot: _Pilot, target: float) -> dict[str, Any]:
    between, within, n = float(pilot.between[0]), float(pilot.within[0]), pilot.problems
    k_total = samples_needed(pilot.between, pilot.within, n, target)
    total = math.sqrt((between + within / pilot.k0) / n)
    effect = minimum_detectable_effect(n)
    return pilot.entry.cells | {
        "n": n,
        "k": pilot.k0,
        "between_sd": math.sqrt(between),
        "between_sd_range": _range(np.sqrt(pilot.between)),
        "within_sd": math.sqrt(within),
        "se_total": total,
        "se_run_only": math.sqrt(within / pilot.k0 / n),
        "k_total": float(k_total[0]),
        "k_total_range": _range(k_total),
        "k_run_only": float(samples_needed(0 * pilot.within, pilot.within, n, target)[0]),
        "detectable": min(1.0, effect * math.sqrt(2 * n) * total) if effect is not None else None,
    }


def _options(pilots: Sequence[_Pilot], target: float) -> Table:
    columns = (
        *ENTRY_COLUMNS,
        Column("k", "k", "count", help="samples of each problem"),
        Column("se_same_n", "SE with this n", "percent", help="in points, for new problems"),
        Column("se_run_only", "SE, new samples", "percent", help="in points, for the same problems"),
        Column("n_needed", "Problems needed", "count", help="for the target standard error"),
        Column("n_range", "95 % range", "count", interval=True, help="range of the problems needed"),
        Column("calls", "Samples", "count", help="problems needed x k"),
        Column("cost_usd", "Cost $", "usd", help="at the pilot's mean cost of a sample"),
    )
    note = (
        "With the same total number of samples, more problems give a smaller standard error than a larger k."
        " Increase k for all problems: stopping single problems early raises the scores by 0.6 to 1.2 points."
    )
    items = (_size(pilot, k, target) for pilot in pilots for k in _KS)
    title = f"Sizes and costs for a standard error of {_points(target)}"
    return Table.of("plan", title, columns, items, notes=(note,), provisional=True)


def _size(pilot: _Pilot, k: int, target: float) -> dict[str, Any]:
    between, within = float(pilot.between[0]), float(pilot.within[0])
    needed = problems_needed(pilot.between, pilot.within, k, target)
    calls = int(needed[0]) * k
    return pilot.entry.cells | {
        "k": k,
        "se_same_n": math.sqrt((between + within / k) / pilot.problems),
        "se_run_only": math.sqrt(within / k / pilot.problems),
        "n_needed": int(needed[0]),
        "n_range": _range(needed),
        "calls": calls,
        "cost_usd": pilot.cost * calls if pilot.cost is not None else None,
    }
