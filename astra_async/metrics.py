"""The paper's metrics, kept current while results arrive (arXiv 2502.00226, equations 1 to 5).

With n problems, k samples each, p_ij of T_i tests passed in sample j of problem i:

    mean score  = mean_i mean_j p_ij / T_i                  (1)
    mean pass@1 = mean_i mean_j [p_ij = T_i]                (2)
    SD_i        = sqrt(mean_j (s_ij - mean_j s_ij)^2)       (3, 4), s_ij = p_ij / T_i, ddof = 0
    consistency = median_i SD_i                             (5)

The score of a task is a reward from 0 to 1: T is 1, and p is counted in millionths of that test.

Only integers are kept (samples, sum of p, sum of p^2, perfect samples), every quotient is rounded
once, and sums over problems use math.fsum: neither the order of completion nor a resume can change a
digit. Intervals and tests are not here but in `stats`.
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
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for the beginning of a formula


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemRow:
    """One problem under one model and format, over its valid samples so far.

    `planned` is k, `total` is T; the last five are None while there is no valid sample.
    `tests_passed` is the sum of p_ij (of a task: of its rewards), `mean_tests_passed` its mean. `sd` has
    ddof = 0 and is None for a single sample, which has no spread.
    The order of the fields is the order of the columns in problems.csv.
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

    `mean_score`, `pass_at_1` and `median_sd` (ddof = 0) leave out problems without a valid sample and
    are None while no problem has one; a median SD takes two samples of a problem. They are the paper's
    numbers only if `complete`: every planned sample of every problem is valid. `k` is None where problems
    have different numbers planned.
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
    """Samples of each problem planned of a model: all, or as far as `--until` has begun, at least a round."""
    if "planned" not in deciding:
        return most
    return int(deciding["planned"].get(model, deciding["rounds"][0]))


class Metrics:
    """Incremental metrics of a run: `add` takes constant time, `summary` time linear in problems.

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
        """Count one valid sample, each once; `reward` is the score of a task's sample.

        Raises ConflictError: not planned, one too many, another T.
        """
        where = f"{model}/{answer_format}/{problem_id}"
        planned = self.planned.get((model, answer_format), {}).get(problem_id)
        if planned is None:
            raise ConflictError(f"{where} has a result but is not part of this run's plan; see run.json")
        if not 0 <= passed <= total or total == 0:
            raise ConflictError(f"{where}: {passed} of {total} tests passed is impossible; see results.jsonl")
        self.check_total(problem_id, total, where)
        pair = self._pairs[model, answer_format]
        parts = 1 if reward is None else REWARD_PARTS
        sums = pair.problems.setdefault(problem_id, Sums(parts=parts))
        if sums.valid == planned:
            raise ConflictError(f"{where} has more than the {planned} results planned; see results.jsonl")
        sums.add(passed if reward is None else round(reward * parts), total * parts)
        pair.outcomes[status] += 1
        if failure is not None:
            pair.outcomes[failure] += 1

    def add_sums(self, pair: tuple[str, Format], problem_id: str, total: int, sums: Sums) -> None:
        """Count all valid samples of a planned pair and problem at once; KeyError if it is not planned."""
        self.check_total(problem_id, total, "/".join((*pair, problem_id)))
        self._pairs[pair].problems[problem_id] = sums

    def add_all(self, other: Metrics, pair: tuple[str, Format]) -> None:
        """Count all that another run's metrics hold of a pair, in which its problems are planned."""
        for problem_id, sums in other._pairs[pair].problems.items():
            self.add_sums(pair, problem_id, other._totals[problem_id], sums)
        self._pairs[pair].outcomes.update(other._pairs[pair].outcomes)

    def add_outcomes(self, pair: tuple[str, Format], counts: Mapping[Status | Failure | None, int]) -> None:
        """Count how samples of a planned pair ended: states and failures by name."""
        for outcome, count in counts.items():
            if outcome is not None and count:
                self._pairs[pair].outcomes[outcome] += count

    def check_total(self, problem_id: str, total: int, where: str) -> None:
        """Note T of a problem. Raises ConflictError if it is not that of earlier samples."""
        known = self._totals.setdefault(problem_id, total)
        if known != total:
            raise ConflictError(
                f"{where}: a result counts {total} tests where earlier ones of this problem count {known}; "
                "all samples of a problem are graded against the same tests: use `astra regrade`"
            )

    def summary(self, model: str, answer_format: Format) -> Summary:
        """The headline numbers of one model under one format; KeyError if that pair is not planned."""
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
        """All planned pairs, in the order of the plan."""
        return [self.summary(model, answer_format) for model, answer_format in self.planned]

    def problem_rows(self, model: str, answer_format: Format) -> Iterator[ProblemRow]:
        """One row for each planned problem of a pair, in the order of the plan."""
        found = self._pairs[model, answer_format].problems
        for problem_id, planned in self.planned[model, answer_format].items():
            sums, total = found.get(problem_id) or Sums(), self._totals.get(problem_id)
            n = sums.valid
            scale = n * (total or 1) * sums.parts
            # n * sum(p^2) - (sum p)^2 is an exact integer, never negative: n^2 T^2 times the variance.
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
    """The text of problems.csv (paper, section 3.2), numbers with all their digits, empty for none."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.name for column in fields(ProblemRow)])
    rows = (astuple(row) for pair in metrics.planned for row in metrics.problem_rows(*pair))
    writer.writerows([harmless(cell) for cell in row] for row in rows)
    return text.getvalue()


def harmless(cell: Cell) -> Cell | str:
    """A text that a spreadsheet would run as a formula gets an apostrophe in front (OWASP, CSV injection)."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


@dataclass(slots=True)
class Sums:
    """Integer sums of one problem's valid samples: their number, of p, of p^2, of those that passed all.

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
    """What is known of one (model, format)."""

    problems: dict[str, Sums] = field(default_factory=dict)
    outcomes: Counter[Status | Failure] = field(default_factory=Counter)  # by state, and by failure


def _mean(values: list[float | None]) -> float | None:
    """The correctly rounded mean of what is known; independent of order (math.fsum)."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
