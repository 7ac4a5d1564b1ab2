"""Values of two entries over their common problems, by metric.

The problems compared are those with all samples under both entries. While samples are missing, all problems
begun are compared, and the conclusion is provisional: it must hold in both extreme cases (all missing samples
fail for A and pass for B, and the reverse). A problem whose statement, project or tests differ between two
runs is not a common problem, even if its id is the same.
"""

from __future__ import annotations

import math
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from astra_async.report.estimates import ESTIMATES, estimated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from astra_async.report.entries import Entry, Floats

Metric = str  # a key of METRICS
MAIN_METRICS = {"mean_score": "Mean score", "pass_at_1": "Pass@1", "sd": "SD"}
METRICS: dict[Metric, str] = MAIN_METRICS | {name: each.title for name, each in ESTIMATES.items()}
_ARRAYS = {"mean_score": attrgetter("means"), "pass_at_1": attrgetter("passes"), "sd": attrgetter("sds")}
_MOST_NAMED = 10  # maximum number of problems named in a warning


class Values(NamedTuple):
    """Both entries' values of one metric over the same problems; `families` as in `Entry`."""

    metric: Metric
    a: Floats
    b: Floats
    families: NDArray[np.str_] | None = None


def changed_problems(a: Entry, b: Entry) -> dict[str, str]:
    """Return the common problem ids whose content differs, with the difference: `T 4 and 8`, `statement`.

    T and the recorded hashes are compared; only T if one run recorded no hashes of the problem.
    """
    if {id(run) for run, _ in a.parts} == {id(run) for run, _ in b.parts}:
        return {}
    ours, theirs = _contents(a), _contents(b)
    found = {}
    for problem in filter(theirs.__contains__, ours):
        (total, content), (other_total, other) = ours[problem], theirs[problem]
        differing = [name for name in content if name in other and content[name] != other[name]]
        named = [name.removesuffix("_sha256").replace("_", " ") for name in differing]
        if total != other_total and not math.isnan(total + other_total):
            named.insert(0, f"T {total:.0f} and {other_total:.0f}")
        if named:
            found[problem] = ", ".join(named)
    return found


def left_out(entries: Iterable[tuple[Entry, Entry]]) -> list[str]:
    """Return a sentence for each two runs with changed problems, which are not compared."""
    found: dict[tuple[str, str], str] = {}
    for two in entries:
        a, b = sorted(two, key=_directories)
        names = _directories(a), _directories(b)
        if names not in found and (changed := changed_problems(a, b)):
            common = len(a.places.keys() & b.places.keys())
            named = [f"{problem} ({what})" for problem, what in changed.items()]
            if len(named) > _MOST_NAMED:
                named[_MOST_NAMED:] = [f"{len(named) - _MOST_NAMED} more"]
            found[names] = (
                f"{' and '.join(names)}: {len(changed)} of {common} common problems differ between the runs"
                f" and are not compared: {', '.join(named)}."
            )
    return list(found.values())


def common_values(metric: Metric, a: Entry, b: Entry) -> Values:
    """Return both entries' values on common problems with enough samples.

    SDs depend on k, so they need equal k of at least 2. An estimate over m samples needs m samples.
    """
    here, there = common_places(a, b)
    enough = np.minimum(a.valid[here], b.valid[there]) >= _least_samples(metric)
    if metric == "sd":
        enough &= a.planned[here] == b.planned[there]
    here, there = here[enough], there[enough]
    return Values(metric, _values(metric, a)[here], _values(metric, b)[there], a.families_of(here))


def worst_values(metric: Metric, a: Entry, b: Entry) -> Values:
    """Return the values under the assumption that all missing samples fail for A and pass for B.

    SDs have no such bound: the arrays are empty.
    """
    here, there = common_places(a, b, planned=True)
    enough = np.minimum(a.planned[here], b.planned[there]) >= _least_samples(metric)
    if metric == "sd":
        enough[:] = False
    here, there = here[enough], there[enough]
    low, high = _extremes(metric, a)[0], _extremes(metric, b)[1]
    return Values(metric, low[here], high[there], a.families_of(here))


def _least_samples(metric: Metric) -> int:
    """Return the number of samples of a problem that the metric needs."""
    return ESTIMATES[metric].m if metric in ESTIMATES else 1 + (metric == "sd")


def _values(metric: Metric, entry: Entry) -> Floats:
    if metric in ESTIMATES:
        return estimated(ESTIMATES[metric].of, ESTIMATES[metric].m, entry.valid, entry.perfect)
    values: Floats = _ARRAYS[metric](entry)
    return values


def _extremes(metric: Metric, entry: Entry) -> tuple[Floats, Floats]:
    """Return the lowest and the highest possible values; an estimate never decreases with more passes."""
    if metric not in ESTIMATES:
        return entry.extremes(_values(metric, entry))
    perfect = entry.perfect, entry.perfect + entry.planned - entry.valid
    low, high = (
        estimated(ESTIMATES[metric].of, ESTIMATES[metric].m, entry.planned, each) for each in perfect
    )
    return low, high


def common_places(
    a: Entry, b: Entry, *, planned: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the indexes of the common problems in the arrays of A and of B, in A's order.

    The problems are those complete under both; those begun under both if an entry is incomplete; or all with
    `planned`. Problems whose content differs are left out.
    """
    sure, changed = a.complete and b.complete, changed_problems(a, b)
    ours, theirs = (
        np.ones(len(entry.problem_ids), bool) if planned else entry.done if sure else entry.valid > 0
        for entry in (a, b)
    )
    found = [
        (place, b.places[problem])
        for problem, place in a.places.items()
        if ours[place] and problem not in changed and problem in b.places and theirs[b.places[problem]]
    ]
    here, other = np.array(found, dtype=np.int64).reshape(-1, 2).T
    return here, other


def _contents(entry: Entry) -> dict[str, tuple[float, Mapping[str, str]]]:
    """Return T and the recorded hashes of each problem."""
    recorded = {
        problem: run.settings.contents.get(problem, {}) for run, _ in entry.parts for problem in run.problems
    }
    return {problem: (entry.totals[place], recorded[problem]) for problem, place in entry.places.items()}


def _directories(entry: Entry) -> str:
    return " + ".join(sorted({str(run.directory) for run, _ in entry.parts}))
