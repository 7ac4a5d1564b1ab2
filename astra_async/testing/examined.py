"""What an examination has come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from astra_async.integrity.draw import Decision
    from astra_async.testing.verdict import Tested
    from astra_async.types import Failure, Verdict


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
