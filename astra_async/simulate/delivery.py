"""Delivery of answers: timing of the pieces, and injected faults.

Times are log-normal and pieces are grouped into few writes. Faults depend only on the sample's name and the
attempt. At most two attempts of a sample fail, and at most one of them after the first token. A client with
the usual six attempts (two for truncated streams) therefore always succeeds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from astra_async.simulate.draws import seeded
from astra_async.simulate.model_answers import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.simulate.profiles import Profile
    from astra_async.types.simulation import FaultKind, SimulationSettings

MOST_FAULTS = 2
IN_STREAM: frozenset[FaultKind] = frozenset({"reset", "cut", "stream_error", "stall"})
# Events due within this time are sent together, because a demo has hundreds of streams on one loop.
SHORTEST_GAP_S = 0.05
_FIRST_TOKEN_SIGMA = 0.45
_SPEED_SIGMA = 0.25
_GAP_SIGMA = 0.5


def due_times(profile: Profile, sample: str, pieces: Sequence[str], reasoning_tokens: int) -> list[float]:
    """Return the seconds after the request at which each piece is due, at realistic speed."""
    generator = seeded("timing", profile.name, sample)
    tokens_per_s = profile.tokens_per_s * generator.lognormvariate(0, _SPEED_SIGMA)
    now = generator.lognormvariate(math.log(profile.first_token_s), _FIRST_TOKEN_SIGMA)
    now += reasoning_tokens / tokens_per_s
    times = []
    for piece in pieces:
        times.append(now)
        gap_s = len(piece) / CHARACTERS_PER_TOKEN / tokens_per_s
        # exp(-sigma^2 / 2) makes the mean of the factor 1, not only its median.
        now += gap_s * generator.lognormvariate(-(_GAP_SIGMA**2) / 2, _GAP_SIGMA)
    return times


def grouped(events: Sequence[bytes], times: Sequence[float], speed: float) -> list[tuple[float, bytes]]:
    """Return writes as (due, bytes), scaled by `speed`; the first event is always sent alone."""
    if speed == 0 or not times:
        return [(0.0, part) for part in (b"".join(events[:1]), b"".join(events[1:])) if part]
    groups: list[tuple[float, list[bytes]]] = []
    for event, time in zip(events, times, strict=True):
        due = time * speed
        if len(groups) > 1 and due - groups[-1][0] < SHORTEST_GAP_S:
            groups[-1][1].append(event)
        else:
            groups.append((due, [event]))
    return [(due, b"".join(parts)) for due, parts in groups]


def fault_of(settings: SimulationSettings, sample: str, attempt: int) -> FaultKind | None:
    """Return the fault of a sample's attempt (from 0), or None; `sample` names model and sample."""
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
    """Return the number of pieces (fewer than all) that are sent before a fault in the stream."""
    return seeded("broken at", sample, attempt).randrange(max(1, pieces))
