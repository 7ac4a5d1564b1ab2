"""Audited samples: audit.jsonl and the tables computed from it (docs/audit.md).

An audit never changes a score.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
import numpy as np

from astra_async.listing import counted
from astra_async.report.packed_row import FAILURES
from astra_async.report.table import ENTRY_COLUMNS, Column, Table, shown
from astra_async.stats.intervals import total_interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from astra_async.report.entries import Entry
    from astra_async.report.load import Run
    from astra_async.stats.intervals import Interval

    Floats = NDArray[np.float64]


AUDIT_LOG = "audit.jsonl"
SCHEMA = 1
Outcome = Literal["clean", "flagged", "not_applicable"]


class SolutionKey(NamedTuple):
    """A solution to a problem; `sha256` is the hash of its applied files, as in `results.jsonl`."""

    problem_id: str
    sha256: str


class AuditEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """A test that a solution passes in its original and in a mutated form, and the mutated line."""

    test: str
    path: str
    line: int
    before: str
    after: str

    @property
    def diff(self) -> str:
        """The mutation as a diff of one line."""
        return f"{self.path}:{self.line}\n-{self.before}\n+{self.after}"


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """The audit of one solution.

    `samples` are the keys (model, format, sample) that had this solution when it was audited. `tests` is the
    number of tests that the solution passes and a mutation covers. `seconds` is container time.
    """

    schema: int = SCHEMA
    problem_id: str
    solution_sha256: str
    samples: tuple[tuple[str, str, int], ...] = ()
    outcome: Outcome
    reason: str = ""
    mutants_run: int = 0
    tests: int = 0
    flagged: tuple[AuditEvidence, ...] = ()
    seconds: float = 0.0
    image_id: str = ""
    finished_at: str = ""

    @property
    def key(self) -> SolutionKey:
        """The solution that the line is about."""
        return SolutionKey(self.problem_id, self.solution_sha256)


_DECODER = msgspec.json.Decoder(AuditLine)


def read_audit(directory: Path) -> Mapping[SolutionKey, AuditLine]:
    """Return the last line of each audited solution; a damaged line is skipped, because it can be redone."""
    found: dict[SolutionKey, AuditLine] = {}
    with suppress(FileNotFoundError):
        for content in (directory / AUDIT_LOG).read_bytes().splitlines():
            with suppress(msgspec.MsgspecError):
                line = _DECODER.decode(content)
                found[line.key] = line
    return found


_TAMPERED = FAILURES.index("tampered")  # in run directories of older versions
_LEADING_DIGITS = 15  # hex digits of a solution's hash in a packed row
OLD_VERSION = "an older version recorded this sample as tampered; its raw score is unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """One entry's audited samples.

    `share` is the mean over problems of the share of audited samples that are flagged, with its interval for
    a new set of problems. `mean_with` and `mean_without` are the mean scores with and without flagged
    samples, both over the problems with other samples. `only_flagged` is the number of problems
    whose samples are all flagged.
    """

    audited: int
    flagged: int
    share: float | None
    interval: Interval | None
    mean_with: float | None
    mean_without: float | None
    only_flagged: int


def audited(entry: Entry) -> Audited:
    """Return the audit of an entry's samples; all None without an audit."""
    counts = [_per_problem(run, rows) for run, rows in entry.rows_by_run()]
    seen, flagged, scores, kept = (np.concatenate(each) for each in zip(*counts, strict=True))
    known, rest = seen > 0, kept > 0
    share = flagged[known] / seen[known]
    means = entry.means[rest]
    without = np.where(flagged[rest] > 0, scores[rest] / kept[rest], means)
    return Audited(
        audited=int(seen.sum()),
        flagged=int(flagged.sum()),
        share=float(share.mean()) if len(share) else None,
        interval=total_interval(share, entry.families_of(known)),
        mean_with=math.fsum(means) / len(means) if len(means) else None,
        mean_without=math.fsum(without) / len(means) if len(means) else None,
        only_flagged=int(np.count_nonzero((flagged > 0) & ~rest)),
    )


def audit_tables(entries: Sequence[Entry]) -> tuple[Table, ...]:
    """Return the table of counts and the table of flagged samples; return () if no sample was audited."""
    found = [(entry, each) for entry in entries if (each := audited(entry)).audited]
    if not found:
        return ()
    columns = (
        *ENTRY_COLUMNS,
        Column("audited", "Audited", "count", help="samples that ran against mutated tests"),
        Column("flagged", "Flagged", "count", help="samples that pass a test and its mutation"),
        Column("share", "Flagged %", "percent", help="mean over problems"),
        Column("interval", "95 %", "percent", interval=True, help="for a new set of problems"),
        Column("mean_with", "With flagged %", "percent", help="mean score over the same problems"),
        Column("mean_without", "Without flagged %", "percent", help="mean score without flagged samples"),
    )
    items = (entry.cells | asdict(each) for entry, each in found)
    note = "Inspect flagged samples by hand. Flagging does not change a score."
    counts = Table.of("audit", "Audit: mutated tests", columns, items, notes=(note,))
    evidence = list(_evidence(entries))
    if not evidence:
        return (counts,)
    named = (("problem", "Problem"), ("sample", "Sample"), ("test", "Test"), ("place", "Place"))
    forms = (("before", "Line of the test"), ("after", "Mutated line"))
    texts = (*ENTRY_COLUMNS, *(Column(name, title) for name, title in (*named, *forms)))
    return counts, Table.of("flagged", "Flagged samples", texts, evidence)


def sensitivity(entry: Entry) -> str:
    """Return the sentence on an entry's mean score without flagged samples; "" if none is flagged."""
    found = audited(entry)
    if not found.flagged:
        return ""
    flagged = f"{entry.name}: {found.flagged:,} of {found.audited:,} audited samples are flagged."
    if found.mean_without is None:
        return f"{flagged} No problem has other samples."
    score, without = (shown(each, "percent") for each in (found.mean_with, found.mean_without))
    only = found.only_flagged
    left_out = f" Both omit {counted(only, 'problem')} with only flagged samples." if only else ""
    return f"{flagged} The mean score is {score} % with flagged samples and {without} % without.{left_out}"


def audit_lines(run: Run, rows: NDArray[np.void]) -> list[AuditLine | None]:
    """Return the audit line of each row of a run."""
    lines = {_packed(key): line for key, line in read_audit(run.directory).items()}
    keys = zip(rows["problem"].tolist(), rows["solution"].tolist(), strict=True)
    return [lines.get((run.problems[problem], solution)) for problem, solution in keys]


def _packed(key: SolutionKey) -> tuple[str, int]:
    return key.problem_id, int(key.sha256[:_LEADING_DIGITS] or "0", 16)


def _per_problem(run: Run, rows: NDArray[np.void]) -> tuple[Floats, Floats, Floats, Floats]:
    """Return per problem: audited samples, flagged samples, sum of unflagged scores, unflagged samples."""
    outcomes = [line.outcome if line else "" for line in audit_lines(run, rows)]
    flagged = np.array([each == "flagged" for each in outcomes], dtype=bool) | (rows["failure"] == _TAMPERED)
    seen = np.array([each == "clean" for each in outcomes], dtype=bool) | flagged
    scores = np.where(flagged, 0.0, rows["score"])

    def summed(weights: NDArray[np.generic]) -> Floats:
        return np.bincount(rows["problem"], weights=weights, minlength=len(run.problems)).astype(np.float64)

    return summed(seen), summed(flagged), summed(scores), summed(~flagged)


def _evidence(entries: Sequence[Entry]) -> Sequence[dict[str, object]]:
    found: list[dict[str, object]] = []
    for entry in entries:
        for run, rows in entry.rows_by_run():
            for row, line in zip(rows, audit_lines(run, rows), strict=True):
                who = {**entry.cells, "problem": run.problems[row["problem"]], "sample": int(row["sample"])}
                if row["failure"] == _TAMPERED:
                    found.append({**who, "test": OLD_VERSION, "place": "", "before": "", "after": ""})
                for each in line.flagged if line and line.outcome == "flagged" else ():
                    place = {"test": each.test, "place": f"{each.path}:{each.line}"}
                    found.append({**who, **place, "before": each.before.strip(), "after": each.after.strip()})
    return found
