"""What an examination has come to: the scored run with its verdict, and what trials have shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from astra_async.integrity.draw import Decision
    from astra_async.testing.verdict import Tested
    from astra_async.types import Failure, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a trial has shown: `suspicions` for the record; the decision's evidence if the tests were bent."""

    decision: Decision
    suspicions: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What the scored run was, what it is worth, and what else there is to say about it."""

    tested: Tested
    verdict: Verdict
    failure: Failure | None
    note: str = ""
    suspicions: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    trial: Finding | None = None

    @property
    def seconds(self) -> float:
        """How long the scored run took."""
        return self.tested.execution.duration_s
