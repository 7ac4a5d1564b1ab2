"""What is examined, and what that has come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from astra_async.integrity.draw import Solved

if TYPE_CHECKING:
    from astra_async.integrity.draw import Decision
    from astra_async.problems.prepare import Prepared
    from astra_async.testing.verdict import Tested
    from astra_async.types import Failure, Integrated, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A solution that is examined: what it changes, of which problem in which image, and whose it is."""

    prepared: Prepared
    image: str
    integrated: Integrated
    model: str

    @property
    def solved(self) -> Solved:
        """The solution, whoever wrote it."""
        return Solved(self.prepared.problem.id, self.integrated.sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What the scored run was, what it is worth, and what trials and others have to say about it."""

    tested: Tested
    verdict: Verdict
    failure: Failure | None
    note: str = ""
    suspicions: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    trial: Decision | None = None
