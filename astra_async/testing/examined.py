"""A solution to grade, and the outcome of its graded run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from astra_async.prepare import Prepared
    from astra_async.testing.verdict import Tested
    from astra_async.types import Failure, Integrated, Verdict


class Solved(NamedTuple):
    """A solution to a problem, identified by the hash of its applied files."""

    problem_id: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A solution to grade: the changes, the problem and the image."""

    prepared: Prepared
    image: str
    integrated: Integrated

    @property
    def solved(self) -> Solved:
        """The solution, whoever wrote it."""
        return Solved(self.prepared.problem.id, self.integrated.sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """The outcome of a scored run: the tests' report and the verdict on it."""

    tested: Tested
    verdict: Verdict
    failure: Failure | None
    note: str = ""
    suspicions: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
