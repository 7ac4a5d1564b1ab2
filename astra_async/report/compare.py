"""`astra compare A B`: two runs of the same problems, paired: better, worse, and which of it is real.

Two units, never mixed: over problems (paired tests of the means) and within one problem (an exact
permutation test of its two sets of samples, Benjamini-Hochberg over the problems).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.errors import UsageError
from astra_async.report.entries import entries_of
from astra_async.report.load import load_run
from astra_async.report.pairwise import METRICS, adjusted, compare_entries, said
from astra_async.report.table import Column, Table
from astra_async.report.tables import EQUIVALENCE_MARGIN
from astra_async.stats.several import benjamini_hochberg
from astra_async.stats.unpaired import permutation_p

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy as np

    from astra_async.report.entries import Entry
    from astra_async.report.pairwise import Comparison
    from astra_async.report.table import Cell

_ALPHA = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """Two runs compared: over problems, problem by problem, and verdicts that changed on equal answers.

    `changed` has rows only when both runs graded the same solutions (a regrade): there every
    difference is the harness's.
    """

    overall: Table
    problems: Table
    changed: Table
    warnings: tuple[str, ...]

    def tables(self) -> tuple[Table, Table, Table]:
        """In the order of reading."""
        return self.overall, self.problems, self.changed


def compare_runs(a: Path, b: Path, margin: float = EQUIVALENCE_MARGIN) -> RunComparison:
    """Compare run B against run A; a difference is B - A.

    Models of the same name and format are paired; where none is, and each run has one of a format, those
    two are. Raises UsageError when nothing can be paired, else as `load_run`.
    """
    runs = load_run(a), load_run(b)
    pairs = _pairs(*(entries_of([run]) for run in runs))
    if not pairs:
        names = [", ".join(entry.name for entry in entries_of([run])) for run in runs]
        raise UsageError(
            f"{a} ({names[0]}) and {b} ({names[1]}) have no model and format in common, or no problem; "
            "give two runs of the same problems"
        )
    return RunComparison(
        overall=_overall(pairs, margin),
        problems=_problems(pairs),
        changed=_changed(pairs),
        warnings=tuple(f"{run.directory}: {warning}" for run in runs for warning in run.warnings),
    )


def _pairs(before: Sequence[Entry], after: Sequence[Entry]) -> list[tuple[Entry, Entry]]:
    named = {(entry.label, entry.format): entry for entry in after}
    found = [(one, named[one.label, one.format]) for one in before if (one.label, one.format) in named]
    if not found:
        for answer_format in ("xml", "json"):
            ones = [entry for entry in before if entry.format == answer_format]
            others = [entry for entry in after if entry.format == answer_format]
            if len(ones) == len(others) == 1:
                found.append((ones[0], others[0]))
    return [(one, other) for one, other in found if set(one.problem_ids) & set(other.problem_ids)]


def _overall(pairs: Sequence[tuple[Entry, Entry]], margin: float) -> Table:
    rows: list[tuple[Cell, ...]] = []
    compared = [list(compare_entries(after, before, margin)) for before, after in pairs]
    for place in range(len(METRICS)):
        rows += _family(pairs, [comparisons[place] for comparisons in compared])
    return Table(
        name="compare",
        title="B against A, paired over problems",
        columns=(
            Column(name="metric", title="Metric"),
            Column(name="a", title="A"),
            Column(name="b", title="B"),
            Column(name="format", title="Format"),
            Column(name="n", title="n", kind="count", help="problems with all samples in both"),
            Column(name="a_value", title="A's value", kind="score"),
            Column(name="b_value", title="B's value", kind="score"),
            Column(name="difference", title="B - A", kind="signed"),
            Column(name="difference_interval", title="95 % interval", kind="signed", interval=True),
            Column(name="p_t", title="p, t-test", kind="p"),
            Column(name="p_t_holm", title="Holm", kind="p", help="over the models of this metric"),
            Column(name="p_wilcoxon", title="Wilcoxon", kind="p"),
            Column(name="p_permutation", title="Sign flips", kind="p"),
            Column(name="smallest_effect", title="Detectable effect", kind="score", help="80 % power"),
            Column(name="verdict", title="Verdict", help="after Holm"),
        ),
        rows=tuple(rows),
        notes=(
            f"Values from 0 to 1. Equivalent: a difference of {margin:g} or more can be excluded.",
            "SD is compared over problems with the same k in both runs only.",
        ),
    )


def _family(pairs: Sequence[tuple[Entry, Entry]], compared: Sequence[Comparison]) -> list[tuple[Cell, ...]]:
    return [
        (
            METRICS[c.metric],
            before.label,
            after.label,
            before.format,
            c.n,
            c.b,
            c.a,
            c.difference,
            c.interval,
            c.p_t,
            holm_p["p_t"],
            c.p_wilcoxon,
            c.p_permutation,
            c.smallest_effect,
            said(c, holm_p, ("B", "A")),
        )
        for (before, after), c, holm_p in zip(pairs, compared, adjusted(compared), strict=True)
    ]


def _problems(pairs: Sequence[tuple[Entry, Entry]]) -> Table:
    rows = [row for before, after in pairs for row in _problem_rows(before, after)]
    adjusted = benjamini_hochberg([p for *_, p in rows]).tolist()
    done: list[tuple[Cell, ...]] = []
    for (label, answer_format, problem, a, b, p), p_adjusted in zip(rows, adjusted, strict=True):
        verdict = "not shown to differ"
        if p_adjusted < _ALPHA:
            verdict = "better" if b > a else "worse"
        done.append((label, answer_format, problem, a, b, b - a, p, p_adjusted, verdict))
    done.sort(key=lambda row: (row[8] == "not shown to differ", row[7], str(row[2])))
    counts = [sum(row[8] == verdict for row in done) for verdict in ("better", "worse")]
    return Table(
        name="compare_problems",
        title="Problem by problem",
        columns=(
            Column(name="model", title="Model"),
            Column(name="format", title="Format"),
            Column(name="problem_id", title="Problem"),
            Column(name="a_value", title="A's score %", kind="percent"),
            Column(name="b_value", title="B's score %", kind="percent"),
            Column(name="difference", title="B - A", kind="points"),
            Column(name="p", title="p", kind="p", help="exact permutation test of the samples"),
            Column(name="p_bh", title="p, adjusted", kind="p", help="Benjamini-Hochberg over all rows"),
            Column(name="verdict", title="Verdict"),
        ),
        rows=tuple(done),
        notes=(f"{counts[0]} really better, {counts[1]} really worse, of {len(done)}.",),
    )


def _problem_rows(before: Entry, after: Entry) -> Iterator[tuple[str, str, str, float, float, float]]:
    """(label, format, problem, A's mean, B's mean, p) of each problem with samples and one T in both."""
    ones, others = _passed(before), _passed(after)
    there = {problem: place for place, problem in enumerate(after.problem_ids)}
    for place, problem in enumerate(before.problem_ids):
        other = there.get(problem)
        if other is None or before.totals[place] != after.totals[other]:
            continue
        p = permutation_p(ones[problem], others[problem])
        if p is not None:
            mean, changed = float(before.means[place]), float(after.means[other])
            yield after.label, after.format, problem, mean, changed, p


def _passed(entry: Entry) -> dict[str, list[int]]:
    """Tests passed in each sample, by problem."""
    passed: dict[str, list[int]] = {problem: [] for problem in entry.problem_ids}
    for run, rows in entry.rows_by_run():
        for problem, tests in zip(rows["problem"].tolist(), rows["passed"].tolist(), strict=True):
            passed[run.problems[problem]].append(tests)
    return passed


def _changed(pairs: Sequence[tuple[Entry, Entry]]) -> Table:
    rows = [row for before, after in pairs for row in _changed_rows(before, after)]
    return Table(
        name="changed_verdicts",
        title="Equal solutions, other verdict",
        columns=(
            Column(name="model", title="Model"),
            Column(name="format", title="Format"),
            Column(name="problem_id", title="Problem"),
            Column(name="sample", title="Sample", kind="count"),
            Column(name="a_passed", title="A passed", kind="count"),
            Column(name="b_passed", title="B passed", kind="count"),
        ),
        rows=tuple(rows),
        notes=("The same files for the same sample, judged differently: the harness or its limits.",),
    )


def _changed_rows(before: Entry, after: Entry) -> Iterator[tuple[Cell, ...]]:
    (run, ones), (other_run, others) = next(before.rows_by_run()), next(after.rows_by_run())
    known = {
        (other_run.problems[problem], sample): (solution, passed, outcomes)
        for problem, sample, solution, passed, outcomes in _columns(others)
    }
    for problem, sample, solution, passed, outcomes in _columns(ones):
        found = known.get((run.problems[problem], sample))
        if found is not None and solution == found[0] and (passed, outcomes) != found[1:]:
            yield after.label, after.format, run.problems[problem], sample, passed, found[1]


def _columns(rows: np.ndarray) -> Iterator[tuple[int, int, int, int, int]]:
    graded = rows[rows["solution"] != 0]
    names = ("problem", "sample", "solution", "passed", "outcomes")
    return zip(*(graded[name].tolist() for name in names), strict=True)
