"""Which attempt of a sample fails, and how: a function of the sample's name and the attempt alone.

At most two attempts of a sample are faulty, and at most one of them after tokens were delivered, so
that a client with the usual six attempts (two for an answer that broke off) is never out of retries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astra_async.simulate.draws import seeded

if TYPE_CHECKING:
    from astra_async.types.simulation import FaultKind, SimulationSettings

MOST_FAULTS = 2
IN_STREAM: frozenset[FaultKind] = frozenset({"reset", "cut", "stream_error", "stall"})


def fault_of(settings: SimulationSettings, sample: str, attempt: int) -> FaultKind | None:
    """The fault of a sample's attempt (from 0), or None; `sample` names model and sample."""
    if not settings.faults or not settings.fault_kinds or attempt >= MOST_FAULTS:
        return None
    generator = seeded("fault", sample, attempt)
    if generator.random() >= settings.fault_rate:
        return None
    kinds = settings.fault_kinds
    if attempt and fault_of(settings, sample, attempt - 1) in IN_STREAM:
        kinds = tuple(kind for kind in kinds if kind not in IN_STREAM)
    return generator.choice(kinds) if kinds else None


def broken_at(sample: str, attempt: int, pieces: int) -> int:
    """After how many of an answer's pieces a fault in the stream strikes; fewer than all of them."""
    return seeded("broken at", sample, attempt).randrange(max(1, pieces))
