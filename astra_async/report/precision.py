"""`astra plan DIR --target-se POINTS`: from a pilot, what a wanted precision takes in calls and money."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from astra_async.errors import UsageError
from astra_async.report.conclusions import SO_FAR
from astra_async.report.costs import mean_cost_usd
from astra_async.report.entries import entries_of
from astra_async.report.load import load_run
from astra_async.report.table import WHO, Column, Findings, Table
from astra_async.stats.intervals import minimum_detectable_effect, problems_needed, samples_needed
from astra_async.stats.spread import drawn_spreads

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from astra_async.report.entries import Entry, Floats

_POINT = 0.01
_KS = (1, 2, 4, 8, 16, 32, 64)
_RANGE = (0.025, 0.975)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pilot:
    """What one model's pilot says of the spread; variances of scores: the best guess, then draws of it."""

    entry: Entry
    between: Floats
    within: Floats
    k0: float  # samples of a problem, or their effective number
    problems: int
    cost: float | None  # US dollars for one sample, all attempts


def plan_run(directory: Path, target_se_points: float) -> Findings:
    """What the pilot says, and the sizes that bring its mean score's standard error to `target_se_points`.

    SE^2 = (sigma_b^2 + sigma_w^2 / k) / n for new problems, sigma_w^2 / (k n) for these very problems;
    the variances and their ranges are `drawn_spreads`: every size has a 95 % range, for a pilot knows the
    spread no better than its problems do. Of a model that passed all tests or none no spread can be told, and
    that is all that is said of it. Raises UsageError when the target is not above 0, or no model has two
    problems with two samples each.
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
    split, several = entry.split, entry.valid > 1
    if split is None:
        return None
    means, families = entry.means[several], entry.families_of(several)
    between, within = drawn_spreads(means, entry.score_variances[several], split.k0, families)
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
        f"{pilot.entry.name}: all samples of the pilot's {pilot.problems} problems passed all tests, or none"
        " passed any: how much scores vary cannot be told from them; add problems."
    )


def _sentence(pilot: _Pilot, target: float) -> str:
    """Problems at the pilot's own k, and what more samples of its own problems would do instead."""
    k = max(1, round(pilot.k0))
    needed = problems_needed(pilot.between, pilot.within, k, target)
    n, (low, high) = int(needed[0]), _range(needed)
    cost = f", about ${pilot.cost * n * k:,.2f}" if pilot.cost else ""
    samples = _samples(samples_needed(pilot.between, pilot.within, pilot.problems, target))
    return (
        f"{'' if pilot.entry.complete else SO_FAR}{pilot.entry.name}: about {n:,}"
        f" {'problem' if n == 1 else 'problems'} like these with {k} samples each would do for a standard"
        f" error of {_points(target)}, at 95 % between {low:,.0f} and {high:,.0f} ({n * k:,} calls{cost});"
        f" with the pilot's {pilot.problems}, {samples}."
    )


def _samples(needed: Floats) -> str:
    """How many samples of each problem would do, with the range."""
    about, (low, high) = float(needed[0]), _range(needed)
    most = "any number" if math.isinf(high) else f"{high:,.0f}"
    if math.isinf(low):
        return "no number of samples would do"
    if math.isinf(about):
        return f"no number of samples may do (at 95 % {low:,.0f} at least)"
    return (
        f"about {about:,.0f} {'sample' if about == 1 else 'samples'} of each would do ({low:,.0f} to {most})"
    )


def _range(draws: Floats) -> tuple[float, float]:
    """The 95 % range of what follows from the draws; an infinity stays one."""
    low, high = np.quantile(draws[1:], _RANGE, method="inverted_cdf").tolist()
    return low, high


def _points(target: float) -> str:
    return f"{100 * target:g} {'point' if target == _POINT else 'points'}"


def _now(pilots: Sequence[_Pilot], target: float) -> Table:
    columns = (
        *WHO,
        Column("n", "n", "count", help="problems with at least two samples"),
        Column("k", "k", "number", help="samples of a problem, effective number"),
        Column("between_sd", "SD between problems", "score", help="an unseen problem added"),
        Column("between_sd_range", "95 % range", "score", interval=True, help="of the SD between problems"),
        Column("within_sd", "SD within problems", "score"),
        Column("se_total", "SE, new problems", "percent", help="points"),
        Column("se_run_only", "SE, new samples", "percent", help="points"),
        Column("k_total", "k for the target, new problems", "number"),
        Column("k_total_range", "95 % range", "number", interval=True, help="of that k"),
        Column("k_run_only", "k for the target, new samples", "number"),
        Column("detectable", "Detectable difference", "percent", help="points"),
    )
    notes = (
        f'Target: a standard error of {_points(target)}. "never": no k reaches it, only more problems do.',
        (
            "Detectable: between two models with such a spread between problems (80 % power), taken as"
            " uncorrelated; the same problems under both models usually do better."
        ),
    )
    items = (_pilot_now(pilot, target) for pilot in pilots)
    return Table.of("plan_now", "The pilot", columns, items, notes=notes, provisional=True)


def _pilot_now(pilot: _Pilot, target: float) -> dict[str, Any]:
    between, within, n = float(pilot.between[0]), float(pilot.within[0]), pilot.problems
    k_total = samples_needed(pilot.between, pilot.within, n, target)
    total = math.sqrt((between + within / pilot.k0) / n)
    effect = minimum_detectable_effect(n)
    return pilot.entry.who | {
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
        *WHO,
        Column("k", "k", "count", help="samples of each problem"),
        Column("se_same_n", "SE with this n", "percent", help="points, new problems"),
        Column("se_run_only", "SE, new samples", "percent", help="these problems"),
        Column("n_needed", "Problems needed", "count", help="for the target"),
        Column("n_range", "95 % range", "count", interval=True, help="of the problems needed"),
        Column("calls", "Calls", "count", help="problems needed x k"),
        Column("cost_usd", "Cost $", "usd", help="at the pilot's mean cost"),
    )
    note = (
        "For the same number of calls, more problems beat more samples. Raise k for all problems"
        " alike: stopping single problems early biases the scores upward by 0.6 to 1.2 points."
    )
    items = (_size(pilot, k, target) for pilot in pilots for k in _KS)
    title = f"Sizes that reach a standard error of {_points(target)}, and what they cost"
    return Table.of("plan", title, columns, items, notes=(note,), provisional=True)


def _size(pilot: _Pilot, k: int, target: float) -> dict[str, Any]:
    between, within = float(pilot.between[0]), float(pilot.within[0])
    needed = problems_needed(pilot.between, pilot.within, k, target)
    calls = int(needed[0]) * k
    return pilot.entry.who | {
        "k": k,
        "se_same_n": math.sqrt((between + within / k) / pilot.problems),
        "se_run_only": math.sqrt(within / k / pilot.problems),
        "n_needed": int(needed[0]),
        "n_range": _range(needed),
        "calls": calls,
        "cost_usd": pilot.cost * calls if pilot.cost is not None else None,
    }
