"""`astra compare A B`: compare two runs, or two models of one run.

There are two separate analyses. Paired tests over problems compare the means. Within each problem, an exact
permutation test compares the two sets of samples; its p-values are adjusted by Benjamini-Hochberg over
problems.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import starmap
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from astra_async.errors import UsageError
from astra_async.report.common_problems import changed_problems, left_out
from astra_async.report.conclusions import paired_sentence
from astra_async.report.entries import entries_of
from astra_async.report.load import load_run
from astra_async.report.paired_table import display_tables, paired_table, swap_sides
from astra_async.report.pairwise import Pair, concluded_pairs
from astra_async.report.table import ENTRY_COLUMNS, Column, Findings, Table
from astra_async.report.until_sentences import decided_pairs
from astra_async.stats.differences import ALPHA, benjamini_hochberg, permutation_p

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np

    from astra_async.report.entries import Entry
    from astra_async.types import Format

_COLUMNS = (
    *("metric", "a", "b", "format", "verdict", "difference", "difference_interval", "n", "a_value"),
    *("b_value", "p_t", "p_t_holm", "p_wilcoxon", "p_permutation", "smallest_effect", "why"),
)
_NOT_SHOWN = "not shown to differ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a comparison: a whole run, or the entries of one model, one format or agent, or both.

    `model` may also be the name of an entry: `model (format)`.
    """

    directory: Path
    model: str | None = None
    format: Format | None = None

    def __str__(self) -> str:
        return " ".join(filter(None, (str(self.directory), self.model, self.format)))


def compare_runs(a: Path | Side, b: Path | Side) -> Findings:
    """Compare B with A: over problems, problem by problem, and equal solutions with different verdicts.

    A difference is B - A. A pair of models of one run with `--until decided` has no tests over problems; its
    conclusion is that of the looks. The table of verdicts has rows only if both sides graded the same
    solutions (a regrade); each such difference is due to the harness.

    Entries of the same model and format are paired. Without such entries, two entries are paired if each is
    the only one of its format on its side, or otherwise if each is the only entry of its side. Raises
    UsageError if no entries can be paired, and the errors of `load_run`.
    """
    sides = [Side(directory=side) if isinstance(side, Path) else side for side in (a, b)]
    runs = {side.directory: load_run(side.directory) for side in sides}
    entries = [_chosen(side, entries_of([runs[side.directory]])) for side in sides]
    pairs = _pairs(entries[0], entries[1], [side.directory.resolve().name for side in sides])
    if not pairs:
        names = [", ".join(entry.name for entry in each) for each in entries]
        raise UsageError(
            f"{sides[0]} ({names[0]}) and {sides[1]} ({names[1]}) cannot be paired: no common model and "
            "format, or no common problem; name two runs of the same problems, or two models of one run"
        )
    # Tests of a fixed number of samples are not valid with looks.
    decided = decided_pairs(runs[sides[0].directory]) if len(runs) == 1 else {}
    concluded = concluded_pairs([pair for pair in pairs if _names(pair) not in decided])
    problems = _problems(pairs)
    wide = paired_table("compare", "B against A, paired over problems", concluded)
    return Findings(
        conclusions=(
            *(decided[_names(pair)] for pair in pairs if _names(pair) in decided),
            *starmap(paired_sentence, concluded),
            *problems.notes,
        ),
        tables=(*map(swap_sides, display_tables(wide)), problems, _changed(pairs)),
        data=(swap_sides(wide).only(*_COLUMNS),),
        warnings=tuple(f"{run.directory}: {warning}" for run in runs.values() for warning in run.warnings),
    )


def _chosen(side: Side, entries: Sequence[Entry]) -> list[Entry]:
    found = [
        entry
        for entry in entries
        if side.model in (None, entry.model, entry.name) and side.format in (None, entry.format)
    ]
    if not found:
        known = ", ".join(entry.name for entry in entries)
        raise UsageError(f"{side}: the run has no such model; use one of {known}")
    return found


def _pairs(before: Sequence[Entry], after: Sequence[Entry], directories: Sequence[str]) -> list[Pair]:
    """Return the pairs to compare.

    Side B of the command is A of each pair, because a pair's difference is A - B (see `swap_sides`).
    """
    found: list[tuple[Entry, Entry]] = []
    for about in (attrgetter("label", "format"), attrgetter("format"), lambda _: None):
        theirs = _alone(after, about)
        found = found or [(one, theirs[key]) for key, one in _alone(before, about).items() if key in theirs]
    return [_pair(one, other, directories) for one, other in found if one.places.keys() & other.places.keys()]


def _alone(entries: Sequence[Entry], about: Callable[[Entry], Any]) -> dict[Any, Entry]:
    """Return the entries with a unique value of `about`, by that value."""
    often = Counter(map(about, entries))
    return {about(entry): entry for entry in entries if often[about(entry)] == 1}


def _pair(before: Entry, after: Entry, directories: Sequence[str]) -> Pair:
    formats = "/".join(dict.fromkeys((before.format, after.format)))
    pair = replace(Pair.of(after, before), format=formats)
    if pair.a_name != pair.b_name:
        return pair
    before_at, after_at = directories if directories[0] != directories[1] else ("A", "B")
    return replace(pair, a_name=f"{pair.a_name} @ {after_at}", b_name=f"{pair.b_name} @ {before_at}")


def _names(pair: Pair) -> frozenset[str]:
    return frozenset((pair.a.name, pair.b.name))


def _problems(pairs: Sequence[Pair]) -> Table:
    rows = [row for pair in pairs for row in _of_problems(pair)]
    for row, adjusted in zip(rows, benjamini_hochberg([row["p"] for row in rows]).tolist(), strict=True):
        better = "better" if row["b_value"] > row["a_value"] else "worse"
        row |= {"p_bh": adjusted, "verdict": better if adjusted < ALPHA else _NOT_SHOWN}
    rows.sort(key=lambda row: (row["verdict"] == _NOT_SHOWN, row["p_bh"], row["problem_id"]))
    counts = [sum(row["verdict"] == each for row in rows) for each in ("better", "worse")]
    later, on, of = (
        (pairs[0].a_name, "on", "") if len(pairs) == 1 else ("B", "in", f" of {len(rows)} comparisons")
    )
    columns = (
        *ENTRY_COLUMNS,
        Column("problem_id", "Problem"),
        Column("a_value", "A's score %", "percent"),
        Column("b_value", "B's score %", "percent"),
        Column("difference", "B - A", "points"),
        Column("p", "p", "p", help="exact permutation test of the samples"),
        Column("p_bh", "p, adjusted", "p", help="Benjamini-Hochberg over all rows"),
        Column("verdict", "Conclusion", help="on B, for new samples of this problem"),
    )
    note = (
        f"With new samples of these {len({row['problem_id'] for row in rows})} problems, {later} is better"
        f" {on} {counts[0]}{of} and worse {on} {counts[1]}. No difference is shown {on}"
        f" {len(rows) - sum(counts)}."
    )
    notes = (note, *left_out((pair.a, pair.b) for pair in pairs))
    return Table.of("compare_problems", "Problem by problem", columns, rows, notes=notes)


def _of_problems(pair: Pair) -> Iterator[dict[str, Any]]:
    """Yield both means and p of each problem with samples on both sides; p is 1 while samples are missing."""
    before, after = pair.b, pair.a
    ones, others, changed = _passed(before), _passed(after), changed_problems(before, after)
    for problem, place in before.places.items():
        other = after.places.get(problem)
        if other is None or problem in changed:
            continue
        p = permutation_p(ones[problem], others[problem])
        if p is not None:
            a_value, b_value = float(before.means[place]), float(after.means[other])
            yield {
                "label": pair.a_name,
                "format": pair.format,
                "problem_id": problem,
                "a_value": a_value,
                "b_value": b_value,
                "difference": b_value - a_value,
                "p": p if before.done[place] and after.done[other] else 1.0,
            }


def _passed(entry: Entry) -> dict[str, list[int]]:
    """Return the number of tests passed in each sample, by problem."""
    passed: dict[str, list[int]] = {problem: [] for problem in entry.problem_ids}
    for run, rows in entry.rows_by_run():
        for problem, tests in zip(rows["problem"].tolist(), rows["passed"].tolist(), strict=True):
            passed[run.problems[problem]].append(tests)
    return passed


def _changed(pairs: Sequence[Pair]) -> Table:
    columns = (
        *ENTRY_COLUMNS,
        Column("problem_id", "Problem"),
        Column("sample", "Sample", "count"),
        Column("a_passed", "A passed", "count"),
        Column("b_passed", "B passed", "count"),
    )
    note = (
        "Both runs have the same files for these samples but different test results. The difference is due"
        " to the harness, the machine or the limits."
    )
    items = (item for pair in pairs for item in _graded_otherwise(pair))
    return Table.of("changed_verdicts", "Equal solutions, different verdicts", columns, items, notes=(note,))


def _graded_otherwise(pair: Pair) -> Iterator[dict[str, Any]]:
    (run, ones), (other_run, others) = next(pair.b.rows_by_run()), next(pair.a.rows_by_run())
    known = {
        (other_run.problems[problem], sample): (solution, passed, outcomes)
        for problem, sample, solution, passed, outcomes in _columns(others)
    }
    for problem, sample, solution, passed, outcomes in _columns(ones):
        found = known.get((run.problems[problem], sample))
        if found is not None and solution == found[0] and (passed, outcomes) != found[1:]:
            which = {"problem_id": run.problems[problem], "sample": sample}
            who = {"label": pair.a.label, "format": pair.format}
            yield {**who, **which, "a_passed": passed, "b_passed": found[1]}


def _columns(rows: np.ndarray) -> Iterator[tuple[int, int, int, int, int]]:
    graded = rows[rows["solution"] != 0]
    names = ("problem", "sample", "solution", "passed", "outcomes")
    return zip(*(graded[name].tolist() for name in names), strict=True)
