"""When the pieces of an answer leave the server: log-normal times, grouped into few writes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from astra_async.simulate.draws import seeded
from astra_async.simulate.model_answers import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from astra_async.simulate.profiles import Profile

# Events that are due within this time leave together: a demo has hundreds of streams on one loop.
SHORTEST_GAP_S = 0.05
_FIRST_TOKEN_SIGMA = 0.45
_SPEED_SIGMA = 0.25
_GAP_SIGMA = 0.5


def due_times(profile: Profile, sample: str, pieces: Sequence[str], reasoning_tokens: int) -> list[float]:
    """Seconds after the request at which each piece is due, at realistic speed."""
    generator = seeded("timing", profile.name, sample)
    tokens_per_s = profile.tokens_per_s * generator.lognormvariate(0, _SPEED_SIGMA)
    now = generator.lognormvariate(math.log(profile.first_token_s), _FIRST_TOKEN_SIGMA)
    now += reasoning_tokens / tokens_per_s
    times = []
    for piece in pieces:
        times.append(now)
        gap_s = len(piece) / CHARACTERS_PER_TOKEN / tokens_per_s
        # exp(-sigma^2 / 2) makes 1 the mean of the factor, not only its median.
        now += gap_s * generator.lognormvariate(-(_GAP_SIGMA**2) / 2, _GAP_SIGMA)
    return times


def grouped(events: Sequence[bytes], times: Sequence[float], speed: float) -> list[tuple[float, bytes]]:
    """Writes as (due, bytes), with `speed` applied; the first event always leaves alone."""
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
