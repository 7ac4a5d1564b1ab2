"""Incremental computation of the paper's metrics (arXiv 2502.00226, equations 1 to 5).

With n problems, k samples each, p_ij of T_i tests passed in sample j of problem i:

    mean score  = mean_i mean_j p_ij / T_i                  (1)
    mean pass@1 = mean_i mean_j [p_ij = T_i]                (2)
    SD_i        = sqrt(mean_j (s_ij - mean_j s_ij)^2)       (3, 4), s_ij = p_ij / T_i, ddof = 0
    consistency = median_i SD_i                             (5)

The score of a task is a reward from 0 to 1: T is 1, and p is counted in millionths of that test.

Only integers are stored (samples, sum of p, sum of p^2, perfect samples). Every quotient is rounded once, and
sums over problems use math.fsum. The results therefore do not depend on the order of completion or on a
resume. Intervals and tests are in `stats`.
"""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections import Counter
from dataclasses import astuple, dataclass, field, fields
from typing import TYPE_CHECKING, get_args

from astra_async.errors import ConflictError
from astra_async.types import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, TypeVar

    from astra_async.types import Format, Status

    Cell = TypeVar("Cell")

REWARD_PARTS = 1_000_000  # a reward is recorded with six decimals
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first characters of a formula in spreadsheet programs


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemRow:
    """One problem under one model and format, over its valid samples so far.

    The order of the fields is the order of the columns in problems.csv.

    Attributes:
        planned: k.
        perfect: number of samples that passed all tests.
        total: T; None if not known yet.
        tests_passed, mean_tests_passed: sum and mean of p_ij; None without a valid sample, as the next three.
        sd: ddof = 0; also None for a single sample.
    """

    model: str
    format: Format
    problem_id: str
    planned: int
    valid: int
    perfect: int
    total: int | None
    tests_passed: float | None
    mean_tests_passed: float | None
    mean_score: float | None
    pass_at_1: float | None
    sd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One model under one format, over the valid samples so far.

    `mean_score`, `pass_at_1` and `median_sd` (ddof = 0) leave out problems without a valid sample, and are
    None without any valid sample. `median_sd` also leaves out problems with a single sample. These are the
    paper's metrics only if `complete` is true: every planned sample of every problem is valid. `k` is None if
    problems have different numbers of planned samples.
    """

    model: str
    format: Format
    mean_score: float | None
    pass_at_1: float | None
    median_sd: float | None
    k: int | None
    planned: int
    valid: int
    missing: int
    scored: int
    no_solution: int
    problems: int
    problems_begun: int
    problems_done: int
    complete: bool
    failures: Mapping[Failure, int]


def planned_samples(deciding: Mapping[str, Any], model: str, most: int) -> int:
    """Return the planned samples of each problem for a model.

    This is `most`, or with `--until` the number up to the current round of the model.
    """
    if "planned" not in deciding:
        return most
    return int(deciding["planned"].get(model, deciding["rounds"][0]))


class Metrics:
    """Incremental metrics of a run. `add` takes constant time; `summary` is linear in the number of problems.

    Attributes:
        planned: number of planned samples, by (model, format) and problem.
    """

    def __init__(self, planned: Mapping[tuple[str, Format], Mapping[str, int]]) -> None:
        self.planned = {pair: dict(problems) for pair, problems in planned.items()}
        self._pairs = {pair: _Pair() for pair in self.planned}
        self._totals: dict[str, int] = {}

    def add(  # noqa: PLR0913 - the fields of a result that a metric depends on
        self,
        model: str,
        answer_format: Format,
        problem_id: str,
        passed: int,
        total: int,
        *,
        reward: float | None = None,
        status: Status = "scored",
        failure: Failure | None = None,
    ) -> None:
        """Count one valid sample; call once for each sample. `reward` is the score of a task's sample.

        Raises ConflictError if the sample is not planned, if all planned samples of its problem are counted
        already, if `passed` is impossible, or if `total` differs from earlier samples of the problem.
        """
        where = f"{model}/{answer_format}/{problem_id}"
        planned = self.planned.get((model, answer_format), {}).get(problem_id)
        if planned is None:
            raise ConflictError(f"{where} has a result but is not planned in run.json; check run.json")
        if not 0 <= passed <= total or total == 0:
            raise ConflictError(
                f"{where}: {passed} of {total} tests passed is impossible; check results.jsonl"
            )
        self.check_total(problem_id, total, where)
        pair = self._pairs[model, answer_format]
        parts = 1 if reward is None else REWARD_PARTS
        sums = pair.problems.setdefault(problem_id, Sums(parts=parts))
        if sums.valid == planned:
            raise ConflictError(f"{where} has more than the {planned} planned results; check results.jsonl")
        sums.add(passed if reward is None else round(reward * parts), total * parts)
        pair.outcomes[status] += 1
        if failure is not None:
            pair.outcomes[failure] += 1

    def add_sums(self, pair: tuple[str, Format], problem_id: str, total: int, sums: Sums) -> None:
        """Set the sums over all valid samples of one model, format and problem.

        Raises KeyError if not planned.
        """
        self.check_total(problem_id, total, "/".join((*pair, problem_id)))
        self._pairs[pair].problems[problem_id] = sums

    def add_all(self, other: Metrics, pair: tuple[str, Format]) -> None:
        """Add another run's metrics of a pair; the pair must be planned here."""
        for problem_id, sums in other._pairs[pair].problems.items():
            self.add_sums(pair, problem_id, other._totals[problem_id], sums)
        self._pairs[pair].outcomes.update(other._pairs[pair].outcomes)

    def add_outcomes(self, pair: tuple[str, Format], counts: Mapping[Status | Failure | None, int]) -> None:
        """Add numbers of samples of a planned pair by status or failure."""
        for outcome, count in counts.items():
            if outcome is not None and count:
                self._pairs[pair].outcomes[outcome] += count

    def check_total(self, problem_id: str, total: int, where: str) -> None:
        """Record T of a problem. Raises ConflictError if T differs from earlier samples."""
        known = self._totals.setdefault(problem_id, total)
        if known != total:
            raise ConflictError(
                f"{where}: a result has {total} tests, but earlier results of this problem have {known}. "
                "All samples of a problem must be graded with the same tests; run `astra regrade`"
            )

    def summary(self, model: str, answer_format: Format) -> Summary:
        """Return the metrics of one model under one format. Raises KeyError if the pair is not planned."""
        planned = self.planned[model, answer_format]
        pair = self._pairs[model, answer_format]
        rows = [row for row in self.problem_rows(model, answer_format) if row.valid]
        sds = [row.sd for row in rows if row.sd is not None]
        samples = sum(planned.values())
        valid = sum(row.valid for row in rows)
        return Summary(
            model=model,
            format=answer_format,
            mean_score=_mean([row.mean_score for row in rows]),
            pass_at_1=_mean([row.pass_at_1 for row in rows]),
            median_sd=statistics.median(sds) if sds else None,
            k=next(iter(planned.values())) if len(set(planned.values())) == 1 else None,
            planned=samples,
            valid=valid,
            missing=samples - valid,
            scored=pair.outcomes["scored"],
            no_solution=pair.outcomes["no_solution"],
            problems=len(planned),
            problems_begun=len(rows),
            problems_done=sum(row.valid == row.planned for row in rows),
            complete=samples == valid > 0,
            failures={name: pair.outcomes[name] for name in sorted(get_args(Failure)) if pair.outcomes[name]},
        )

    def summaries(self) -> list[Summary]:
        """Return the summaries of all planned pairs, in the order of the plan."""
        return [self.summary(model, answer_format) for model, answer_format in self.planned]

    def problem_rows(self, model: str, answer_format: Format) -> Iterator[ProblemRow]:
        """Yield a row for each planned problem of a pair, in the order of the plan."""
        found = self._pairs[model, answer_format].problems
        for problem_id, planned in self.planned[model, answer_format].items():
            sums, total = found.get(problem_id) or Sums(), self._totals.get(problem_id)
            n = sums.valid
            scale = n * (total or 1) * sums.parts
            # n * sum(p^2) - (sum p)^2 is n^2 T^2 times the variance: an exact integer, never negative.
            spread = n * sums.passed_squared - sums.passed * sums.passed
            yield ProblemRow(
                model=model,
                format=answer_format,
                problem_id=problem_id,
                planned=planned,
                valid=n,
                perfect=sums.perfect,
                total=total,
                tests_passed=(sums.passed if sums.parts == 1 else sums.passed / sums.parts) if n else None,
                mean_tests_passed=sums.passed / (n * sums.parts) if n else None,
                mean_score=sums.passed / scale if n else None,
                pass_at_1=sums.perfect / n if n else None,
                sd=math.sqrt(spread) / scale if n > 1 else None,
            )


def problems_csv(metrics: Metrics) -> str:
    """Return the text of problems.csv (paper, section 3.2), with all digits; an empty field means None."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.name for column in fields(ProblemRow)])
    rows = (astuple(row) for pair in metrics.planned for row in metrics.problem_rows(*pair))
    writer.writerows([escape_formula(cell) for cell in row] for row in rows)
    return text.getvalue()


def escape_formula(cell: Cell) -> Cell | str:
    """Prefix text that a spreadsheet would run as a formula with an apostrophe (OWASP, CSV injection)."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


@dataclass(slots=True)
class Sums:
    """Integer sums over one problem's valid samples: number, sum of p, sum of p^2, and perfect samples.

    `parts` is the number of units of p in one test: 1, or REWARD_PARTS for a task.
    """

    valid: int = 0
    passed: int = 0
    passed_squared: int = 0
    perfect: int = 0
    parts: int = 1

    def add(self, passed: int, total: int) -> None:
        """Count one sample."""
        self.valid += 1
        self.passed += passed
        self.passed_squared += passed * passed
        self.perfect += passed == total


@dataclass(slots=True)
class _Pair:
    """Sums by problem and outcomes of one (model, format)."""

    problems: dict[str, Sums] = field(default_factory=dict)
    outcomes: Counter[Status | Failure] = field(default_factory=Counter)  # by status, and by failure


def _mean(values: list[float | None]) -> float | None:
    """Return the mean of the values that are not None; math.fsum makes it independent of their order."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
